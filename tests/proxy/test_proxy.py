"""The proxy's own part: carrying out commands, holding back, and surviving its own defects."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman.core.commands import Finish, Outcome
from dragoman.core.exact_json import encode_line
from dragoman.core.switch.direct import Direct
from dragoman.errors import LocalProtocolError, TransportClosed
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.base import Receiver
from dragoman.transports.memory import MemoryTransport, connect_pair
from tests.proxy.conversation import an_error, client, expect_end, expect_to_client, hold, initialize, opening
from tests.support.frames import heard
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
        self.client_end.start_raw(self.client)
        self.run = asyncio.create_task(self.proxy.run())

    def connect(self) -> MemoryTransport:
        if self.problem is not None:
            raise self.problem
        self.upstream, self.server_end = connect_pair("proxy", "server")
        self.server_end.start_raw(self.server)
        return self.upstream

    async def finish(self) -> Finish:
        return await asyncio.wait_for(self.run, 3)


def receiver(transport: MemoryTransport | None) -> Receiver:
    """Who is told what happens at the other end of a transport of the proxy's."""
    assert transport is not None
    assert transport._receiver is not None
    return transport._receiver


def start_again(proxy: Proxy) -> None:
    """Let the proxy open a fresh server, as after an offer that the first one died of."""
    proxy._host.perform(switch_of(proxy).upstream.open)


def switch_of(proxy: Proxy) -> Direct:
    assert isinstance(proxy._switch, Direct)
    return proxy._switch


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
        receiver(stage.front).broken("broken pipe")
        assert (await stage.finish()).outcome is Outcome.CLIENT_CLOSED

    run(main())


def test_a_server_that_does_not_read_has_a_moment_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.host.port.BROKEN_GRACE_S", 0.01)

    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        await asyncio.sleep(0)
        receiver(stage.upstream).broken("broken pipe")
        finish = await stage.finish()
        assert finish == Finish(Outcome.SERVER_CLOSED, "the server closed its input")

    run(main())


def test_who_does_not_take_what_is_written_holds_back_who_writes_it() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        assert stage.upstream is not None
        front, upstream = stage.front, stage.upstream
        receiver(upstream).pause_writing()
        assert (front._reading, upstream._reading) == (False, True)
        receiver(front).pause_writing()
        assert (front._reading, upstream._reading) == (False, False)
        receiver(upstream).resume_writing()
        assert (front._reading, upstream._reading) == (False, False)
        receiver(front).resume_writing()
        assert (front._reading, upstream._reading) == (True, True)
        stage.proxy.stop("enough")
        await stage.finish()

    run(main())


def test_a_transport_that_was_replaced_is_not_listened_to() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        old = stage.proxy._host._ports[switch_of(stage.proxy).upstream]
        start_again(stage.proxy)
        old.received(heard(b"garbage\n"))
        old.ended("late")
        old.broken("late")
        old.pause_writing()
        old.resume_writing()
        assert stage.proxy.counters.malformed == 0
        stage.proxy.stop("enough")
        await stage.finish()

    run(main())


def test_a_server_that_cannot_be_started_again_fails_the_session() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.problem = TransportClosed("server", "command not found")
        start_again(stage.proxy)
        receiver(stage.front).pause_writing()
        receiver(stage.front).resume_writing()
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        assert (await stage.finish()).outcome is Outcome.SERVER_NOT_STARTED

    run(main())


def test_a_defect_of_our_own_ends_the_session_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def explode(source: str, target: str) -> Any:
        raise RuntimeError("out of ideas")

    said = "RuntimeError: out of ideas"
    conversation = [expect_to_client(an_error(0, -32000, said)), expect_end(Outcome.INTERNAL_ERROR, said)]
    hold([client(initialize("2025-06-18")), *conversation], explode)
    lines = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [line.getMessage() for line in lines] == ["internal error: RuntimeError: out of ideas"]


def test_a_defect_of_our_own_answers_what_waits() -> None:
    async def main() -> None:
        stage = Stage()
        await asyncio.sleep(0)
        stage.client_end.write(encode_line(initialize("2025-06-18")))
        await stage.server.until(lambda: b"initialize" in stage.server.data)

        def explode() -> None:
            raise RuntimeError("out of ideas")

        stage.proxy._host.perform(explode)
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
        [
            *opening("2025-06-18", "2025-06-18"),
            client({"jsonrpc": "2.0", "id": 1, "method": 5}),
            expect_to_client(an_error(1, -32600)),
        ]
    )
    assert "1 malformed" in caplog.text


def test_protocol_errors_carry_the_answer() -> None:
    error = LocalProtocolError(-32601, "tools/call needs the capability tools", {"capability": "tools"})
    assert str(error) == "tools/call needs the capability tools (-32601)"
    assert error.data == {"capability": "tools"}
