"""Defects of ours, planted: everybody who waits is answered, the session ends, and one line says why."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.edges.front import FrontEdge
from dragoman.pool import Scope
from tests.proxy.conversation import an_error, initialize, request
from tests.support import waiting
from tests.transports.house import House, hear, say

EVERY_SCOPE = pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED], ids=lambda s: s.value)


def _breaks(*_: Any) -> None:
    raise ZeroDivisionError("ouch")


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@EVERY_SCOPE
def test_requests_behind_a_defect_are_answered_too(
    scope: Scope, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        house = House(scope)
        guest = await house.open()
        switch = type(house.pool.upstreams[0].switch if scope is Scope.SHARED else guest.proxy._switch)  # type: ignore[union-attr]
        monkeypatch.setattr(switch, "carry", _breaks)
        guest.transport.write(b"".join(_line(key) for key in (1, 2, 3)))
        for key in (1, 2, 3):
            assert an_error(key, -32000, "internal error: ZeroDivisionError")(await hear(guest))
        [finish] = await asyncio.wait_for(asyncio.gather(*house.runs), 30.0)
        assert finish.outcome is Outcome.INTERNAL_ERROR
        await house.close()

    waiting.run(live())
    assert _said(caplog) == ["internal error: ZeroDivisionError: ouch"]


@EVERY_SCOPE
def test_a_transport_that_breaks_its_promise_ends_the_session(scope: Scope, caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> None:
        house = House(scope)
        guest = await house.open()
        server = house.servers[-1].transport._peer
        assert server is not None
        server.send = _breaks  # type: ignore[method-assign]
        guest.say(request(1, "tools/list"))
        assert an_error(1, -32000, "ZeroDivisionError")(await hear(guest))
        [finish] = await asyncio.wait_for(asyncio.gather(*house.runs), 30.0)
        assert finish.outcome is Outcome.INTERNAL_ERROR
        await house.close()

    waiting.run(live())
    assert _said(caplog) == ["internal error: ZeroDivisionError: ouch"]


def test_a_server_that_cannot_be_opened_for_an_unforeseen_reason_ends_the_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live() -> None:
        house = House(Scope.CLIENT, _breaks)  # type: ignore[arg-type]
        guest = await house.enter()
        guest.say(initialize("2025-11-25", key=1))
        [finish] = await asyncio.wait_for(asyncio.gather(*house.runs), 30.0)
        assert finish.outcome is Outcome.INTERNAL_ERROR
        await house.close()

    waiting.run(live())
    assert _said(caplog) == ["internal error: ZeroDivisionError: ouch"]


def test_a_defect_that_comes_again_while_the_session_is_ended_does_not_keep_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        house = House(Scope.CLIENT)
        guest = await house.open()
        say(house.servers[0], request("q", "roots/list"))
        assert (await hear(guest))["id"] == "q"
        switch = type(guest.proxy._switch)  # type: ignore[union-attr]
        monkeypatch.setattr(switch, "carry", _breaks)
        monkeypatch.setattr(switch, "reply", _breaks)
        guest.say(request(1, "tools/list"))
        assert an_error(1, -32000, "ZeroDivisionError")(await hear(guest))
        [finish] = await asyncio.wait_for(asyncio.gather(*house.runs), 30.0)
        assert finish.outcome is Outcome.INTERNAL_ERROR
        await house.close()

    waiting.run(live())
    assert _said(caplog) == ["internal error: ZeroDivisionError: ouch"]


def test_a_defect_in_the_middle_of_an_end_does_not_keep_the_session(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        house = House(Scope.CLIENT)
        guest = await house.open()
        monkeypatch.setattr(FrontEdge, "_fail_requests", _breaks)
        assert guest.proxy is not None
        guest.proxy.stop("a test ends it")
        [finish] = await asyncio.wait_for(asyncio.gather(*house.runs), 30.0)
        assert finish.outcome is Outcome.INTERNAL_ERROR
        await house.close()

    waiting.run(live())
    assert _said(caplog) == ["internal error: ZeroDivisionError: ouch"]


def _line(key: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{}}\n' % key
