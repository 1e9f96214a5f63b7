"""The store of `--store redis://…`, with a client of it that is made up: when it counts as away."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.instances.store import Store
from dragoman.transports.http.exchange import RequestRefused
from tests.support.waiting import IdleClockLoop, pass_time, run


class Client:
    """Answers what is written at once, and what is read when it is told to."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def set(self, *_: object, **__: object) -> None: ...

    async def aclose(self) -> None: ...

    async def get(self, key: str) -> bytes | None:
        if key == "dragoman:asked":
            return await self.answer
        return b"said" if key == "dragoman:began" else None


async def ask_after(stopped_s: float, waits_s: float) -> str | None:
    """Ask for something, and have the answer once this process was stopped for so long, and waited for so long."""
    client = Client()
    store = Store("redis://made.up", "0123456789abcdef", "127.0.0.1", 0, lambda _: client)
    await store.announce()
    asked = asyncio.create_task(store.read("asked"))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, IdleClockLoop)
    loop.skip(stopped_s)
    await pass_time(waits_s)
    client.answer.set_result(b"text")
    try:
        return await asked
    finally:
        await store.withdraw()


def test_a_store_is_not_away_because_this_process_was_stopped() -> None:
    assert run(ask_after(5.0, 0.1)) == "text"


def test_a_store_that_does_not_answer_is_away() -> None:
    with pytest.raises(RequestRefused, match="just now"):
        run(ask_after(0.0, 1.0))


async def find_nobody(store: Store) -> str | None:
    """Ask where an instance is that is not there, after the store has not answered once."""
    await store.announce()
    with pytest.raises(RequestRefused):
        await store.read("asked")
    try:
        return await store.find("fedcba9876543210")
    finally:
        await store.withdraw()


def test_one_answer_that_did_not_come_takes_nobody_for_missing() -> None:
    """Else all requests for instances that are gone would be refused for six seconds."""

    async def ask() -> str | None:
        return await find_nobody(Store("redis://made.up", "0123456789abcdef", "127.0.0.1", 0, lambda _: Client()))

    assert run(ask()) is None
