"""What sessions leave behind when they are over: nothing that waits until somebody looks for cycles."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.proxy import Proxy
from dragoman.transports.http.config import FrontConfig, Patience
from dragoman.transports.http.legacy import LegacyTransport
from dragoman.transports.http.lines import LineTransport
from dragoman.transports.http.sessions import Caller, Sessions
from dragoman.transports.http.streamable_session import StreamableSession
from tests.transports.http.stage import Stage, initialize, initialized, on_loop, serving, until
from tests.transports.http.test_websocket import dial, shake_hands
from tests.transports.http.wire import hang_up

KINDS = (Proxy, FrontEdge, UpstreamEdge, StreamableSession, LegacyTransport, LineTransport)
SESSIONS = 100


@contextmanager
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def count() -> dict[str, int]:
    found = [type(one) for one in gc.get_objects()]
    return {kind.__name__: found.count(kind) for kind in KINDS}


async def visit_streamable(stage: Stage) -> None:
    stage.session = ""
    stage.servers.clear()
    opened = await stage.open()
    await stage.call_and_answer()
    deleted = await stage.delete()
    assert deleted.status == 204
    for reply in (opened, deleted):
        reply.leave()


async def visit_and_vanish(stage: Stage) -> None:
    """Leave without a word while a call is under way: the session is ended later, as idle."""
    stage.session = ""
    stage.servers.clear()
    opened = await stage.open()
    calling = stage.call()
    assert (await stage.server.hear())["id"] == 2
    calling.cancel()
    opened.leave()
    await hang_up()


async def visit_websocket(stage: Stage) -> None:
    stage.servers.clear()
    async with dial(stage) as socket:
        await shake_hands(stage, socket)


async def visit_legacy(stage: Stage) -> None:
    stage.servers.clear()
    stage.session = ""
    stream = await stage.get("/sse")
    endpoint = await stream.event()
    assert endpoint is not None
    (await stage.post(initialize("2024-11-05"), endpoint.data)).leave()
    offer = await stage.server.hear()
    stage.server.answer(offer["id"], **initialized("2024-11-05"))
    assert await stream.event() is not None
    stream.leave()


@pytest.mark.parametrize("visit", [visit_streamable, visit_and_vanish, visit_websocket, visit_legacy])
def test_sessions_that_are_over_are_gone_without_a_search_for_cycles(visit: Callable[[Stage], Awaitable[None]]) -> None:
    @on_loop
    async def run() -> None:
        async with serving(FrontConfig(patience=Patience(idle_s=0.2))) as stage:
            before = count()
            for _ in range(SESSIONS):
                await visit(stage)
            await until(lambda: len(stage.front.sessions) == 0)
            stage.servers.clear()
            await until(lambda: count() == before)

    with no_collection():
        run()


class Ended:
    """What runs a session that is over at once."""

    async def run(self) -> None:
        """End."""

    def stop(self, reason: str) -> None:
        """It is over already."""


@on_loop
async def test_whoever_made_the_front_may_tidy_up_once_after_sessions_have_ended() -> None:
    tidied: list[int] = []
    config = FrontConfig(patience=Patience(tidy_s=0.05))
    sessions = Sessions(config, lambda *_: Ended(), lambda: tidied.append(1))
    for _ in range(3):
        sessions.open(StreamableSession(config), Caller("", "streamable-http"))
    await until(lambda: bool(tidied))
    sessions.open(StreamableSession(config), Caller("", "streamable-http"))
    await until(lambda: len(tidied) == 2)
    await sessions.close("the test is over")
    assert len(tidied) == 2


class Lasting(Ended):
    """What runs a session until it is stopped."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()

    async def run(self) -> None:
        """Last."""
        await self.stopped.wait()

    def stop(self, reason: str) -> None:
        """End."""
        self.stopped.set()


@on_loop
async def test_it_is_tidied_up_later_while_other_sessions_are_open() -> None:
    tidied: list[float] = []
    config = FrontConfig(patience=Patience(tidy_s=0.05))
    runners: list[Ended] = [Lasting(), Ended()]
    sessions = Sessions(config, lambda *_: runners.pop(), lambda: tidied.append(asyncio.get_running_loop().time()))
    began = asyncio.get_running_loop().time()
    sessions.open(StreamableSession(config), Caller("", "streamable-http"))
    lasting = sessions.open(StreamableSession(config), Caller("", "streamable-http"))
    await until(lambda: bool(tidied))
    assert tidied[0] - began >= 0.55
    await until(lambda: len(sessions) == 1)
    lasting.runner.stop("the test is over")
    await until(lambda: len(tidied) == 2)
    await sessions.close("the test is over")
