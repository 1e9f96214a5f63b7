"""An application in our own process as a server: its lifespan, its answers, and what becomes of requests at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import dragoman
from dragoman.errors import ConnectionClosed, TransportClosed
from dragoman.transports.upstream.mounted import mount
from tests.server.rooms import make
from tests.support.waiting import PATIENCE_S, run


class Living:
    """An application with a lifespan."""

    def __init__(self, fails: bool = False) -> None:
        self.app = make("2025-06-18").app()
        self.fails = fails
        self.seen: list[str] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        for kind in ("startup", "shutdown"):
            await receive()
            self.seen.append(kind)
            await send({"type": f"lifespan.{kind}.{'failed' if self.fails else 'complete'}"})
            if self.fails:
                return
        await self.app.close()


@asynccontextmanager
async def calling(app: Any, **options: Any) -> AsyncIterator[Any]:
    async with (
        mount(app, **options) as connect,
        dragoman.connect(connect, "2024-11-05", policy="translate", timeout_s=10) as client,
    ):
        yield client


def test_a_client_of_another_revision_calls_it() -> None:
    async def work() -> None:
        app = Living()
        async with calling(app) as client:
            assert app.seen == ["startup"]
            assert client.server_revision == "2025-11-25"  # its own proxy speaks all of them
            assert (await client.call("count")).content[0].text == "3"
        assert app.seen == ["startup", "shutdown"]

    run(work())


def test_one_that_does_not_start_is_an_error() -> None:
    async def work() -> None:
        with pytest.raises(TransportClosed, match="its lifespan failed"):
            async with mount(Living(fails=True)):
                pass

    run(work())


def test_another_path_is_a_server_that_cannot_be_reached() -> None:
    async def work() -> None:
        with pytest.raises(ConnectionClosed, match="404"):
            async with calling(Living(), path="/elsewhere"):
                pass

    run(work())


class Clinging(Living):
    """One that goes on with every request after the answer, for ever."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await super().__call__(scope, receive, send)
        if scope["type"] == "http":
            self.seen.append("answered")
            await asyncio.Event().wait()


def test_what_hangs_at_the_end_does_not_hold_it_up() -> None:
    async def work() -> None:
        app = Clinging()
        async with asyncio.timeout(PATIENCE_S), calling(app, drain_timeout_s=0.1) as client:
            await client.ping()
        assert app.seen[-1] == "shutdown"
        assert "answered" in app.seen

    run(work())
