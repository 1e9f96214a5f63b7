"""The proxy's own part: carrying out commands, holding back, and surviving its own defects."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman.core.commands import Finish, Outcome, Side
from dragoman.core.exact_json import encode_line
from dragoman.errors import LocalProtocolError, TransportClosed
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.memory import MemoryTransport, connect_pair
from tests.proxy.conversation import an_error, client, expect_end, expect_to_client, hold, initialize, opening, request
from tests.support.waiting import run
from tests.transports.recorder import Recorder


class Stage:
    """A proxy between two recorders."""

    def __init__(self, problem: TransportClosed | None = None, **config: Any) -> None:
        front, self.client_end = connect_pair("proxy", "client")
        self.front = front
        self.problem = problem
        self.client, self.server = Recorder(), Recorder()
        self.server_end: MemoryTransport | None = None
        self.upstream: MemoryTransport | None = None
        self.proxy = Proxy(ProxyConfig(**config), front, self.connect)
        self.client_end.start(self.client)
        self.run = asyncio.create_task(self.proxy.run())

    def connect(self) -> MemoryTransport:
        if self.problem is not None:
            raise self.problem
        self.upstream, self.server_end = connect_pair("proxy", "server")
        self.server_end.start(self.server)
        return self.upstream

    async def finish(self) -> Finish:
        return await asyncio.wait_for(self.run, 3)


@pytest.mark.parametrize(
    ("names_server", "told"),
    [(True, "/opt/no-such-server: command not found"), (False, "the server: command not found")],
)
def test_a_server_that_cannot_be_started_is_named_only_to_a_client_that_may_know(
    names_server: bool, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        stage = Stage(TransportClosed("/opt/no-such-server", "command not found"), names_server=names_server)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        finish = await stage.finish()
        assert finish == Finish(Outcome.SERVER_NOT_STARTED, told)
        await stage.client.until(lambda: f'"{told}"'.encode() in stage.client.data)

    run(main())
    assert "/opt/no-such-server: command not found" in caplog.text


def test_a_client_that_does_not_read_ends_the_session() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        await stage.client_end.close()
        stage.client_end._closed = True
        assert stage.server_end is not None
        stage.proxy.take_broken(stage.proxy._edges[Side.CLIENT], "broken pipe")
        assert (await stage.finish()).outcome is Outcome.CLIENT_CLOSED

    run(main())


def test_a_server_that_does_not_read_has_a_moment_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.proxy._BROKEN_GRACE_S", 0.01)

    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        await asyncio.sleep(0)
        stage.proxy.take_broken(stage.proxy._edges[Side.SERVER], "broken pipe")
        finish = await stage.finish()
        assert finish == Finish(Outcome.SERVER_CLOSED, "the server closed its input")

    run(main())


def test_who_does_not_take_what_is_written_holds_back_who_writes_it() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        assert stage.upstream is not None
        front, upstream, edges = stage.front, stage.upstream, stage.proxy._edges
        edges[Side.SERVER].pause_writing()
        assert (front._reading, upstream._reading) == (False, True)
        edges[Side.CLIENT].pause_writing()
        assert (front._reading, upstream._reading) == (False, False)
        edges[Side.SERVER].resume_writing()
        assert (front._reading, upstream._reading) == (False, False)
        edges[Side.CLIENT].resume_writing()
        assert (front._reading, upstream._reading) == (True, True)
        stage.proxy.stop("enough")
        await stage.finish()

    run(main())


def test_a_transport_that_was_replaced_is_not_listened_to() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        old = stage.proxy._edges[Side.SERVER]
        stage.proxy._restart_server()
        old.data_received(b"garbage\n")
        old.ended("late")
        old.broken("late")
        old.pause_writing()
        old.resume_writing()
        assert stage.proxy.session.exchange.counters.malformed == 0
        stage.proxy.stop("enough")
        await stage.finish()

    run(main())


def test_a_server_that_cannot_be_started_again_fails_the_session() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.problem = TransportClosed("server", "command not found")
        stage.proxy._restart_server()
        stage.proxy.hold_back(Side.CLIENT)
        stage.proxy.let_go(Side.CLIENT)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        assert (await stage.finish()).outcome is Outcome.SERVER_NOT_STARTED

    run(main())


def test_a_defect_of_our_own_ends_the_session_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def explode(source: str, target: str) -> Any:
        raise RuntimeError("out of ideas")

    hold([client(initialize("2025-06-18")), expect_end(Outcome.INTERNAL_ERROR, "RuntimeError: out of ideas")], explode)
    lines = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [line.getMessage() for line in lines] == ["internal error: RuntimeError: out of ideas"]


def test_a_defect_of_our_own_answers_what_waits() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        await stage.server.until(lambda: b"initialize" in stage.server.data)

        def explode(session: Any) -> Any:
            raise RuntimeError("out of ideas")

        stage.proxy.perform(explode)
        assert (await stage.finish()).outcome is Outcome.INTERNAL_ERROR
        await stage.client.until(lambda: b"out of ideas" in stage.client.data)

    run(main())


def test_stopping_answers_what_waits() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        await stage.server.until(lambda: b"initialize" in stage.server.data)
        stage.proxy.stop("the proxy was stopped by SIGTERM")
        stage.proxy.stop("the proxy was stopped by SIGTERM")
        assert (await stage.finish()).outcome is Outcome.STOPPED
        await stage.client.until(lambda: b"SIGTERM" in stage.client.data)
        assert stage.server.end is not None

    run(main())


def test_counters_are_told_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    hold(
        [*opening("2025-06-18", "2025-06-18"), client(request(1, "initialize")), expect_to_client(an_error(1, -32600))]
    )
    assert "1 malformed" in caplog.text


def test_protocol_errors_carry_the_answer() -> None:
    error = LocalProtocolError(-32601, "tools/call needs the capability tools", {"capability": "tools"})
    assert str(error) == "tools/call needs the capability tools (-32601)"
    assert error.data == {"capability": "tools"}
