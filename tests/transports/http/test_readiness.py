"""`/readyz` asks what the next client would meet, as soon as something speaks against the server."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from dragoman.core.commands import Outbox
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.settings import Settings
from dragoman.errors import TransportClosed
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.status import StatusBoard
from dragoman.transports.base import Transport
from dragoman.transports.http import readiness
from tests.transports.http.stage import Server, Stage, initialize, initialized, on_loop, serving, until, within


class Answering(Server):
    """A server that answers `initialize` by itself."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        while not self._heard.empty():
            frame = self._heard.get_nowait()
            if frame["method"] == "initialize":
                self.answer(frame["id"], **initialized("2025-06-18"))


def connects(stage: Stage, board: StatusBoard, how: list[str]) -> None:
    """Let the server be as the first of `how` says: `down`, `exits`, `up`."""

    def connect() -> Transport:
        if how[0] == "down":
            raise TransportClosed("the server", "connection refused")
        stage.servers.append(Answering() if how[0] == "up" else Server())
        if how[0] == "exits":
            stage.server.exit()
        return stage.server.far

    stage.make = lambda transport: Proxy(ProxyConfig(board=board), transport, connect)


async def ready(stage: Stage) -> tuple[int, Any]:
    reply = await within(stage.get("/readyz"))
    return reply.status, await reply.frame()


class HasOne:
    """A switch with one server."""

    def __init__(self) -> None:
        owner: Any = self
        self.servers = [UpstreamEdge(Settings(), Outbox(), owner)]
        self.servers[0].state = UpstreamState.READY


def test_a_session_that_ended_is_not_kept_because_a_server_had_a_problem_meanwhile() -> None:
    board, host, switch = StatusBoard(), object(), HasOne()
    board.put_up(host, "", switch, ())
    board.note_problem("", "connection refused")
    assert not board.read().ready, "what was open already says nothing of the next session"
    board.take_down(host)
    ended = weakref.ref(switch)
    del switch
    gc.collect()
    assert ended() is None


@pytest.mark.parametrize("fault", ["down", "exits"])
@on_loop
async def test_it_is_not_ready_when_sessions_fail_and_ready_when_the_next_would_not(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_AGAIN_S", 0.0)
    board, how = StatusBoard(), [fault]
    async with serving(board=board) as stage:
        connects(stage, board, how)
        assert (await ready(stage))[0] == 200  # nobody is asked without a reason: a server may be dear to start
        assert not stage.servers
        assert "error" in await (await within(stage.post(initialize()))).frame()
        status, told = await ready(stage)
        assert (status, told["ready"], list(told["problems"])) == (503, False, [""])
        assert (await ready(stage))[0] == 503
        how[0] = "up"
        assert (await ready(stage))[0] == 200  # without a client, which nobody would send
        await until(lambda: stage.server.gone is not None)
        started = len(stage.servers)
        assert (await ready(stage))[0] == 200
        assert len(stage.servers) == started


@on_loop
async def test_a_server_that_dies_under_a_session_is_asked_for() -> None:
    board, how = StatusBoard(), ["up"]
    async with serving(board=board) as stage:
        connects(stage, board, how)
        assert (await within(stage.post(initialize()))).status == 200
        assert (await ready(stage))[0] == 200
        how[0] = "down"
        stage.server.exit()
        await until(lambda: not stage.front.sessions)
        assert (await ready(stage))[0] == 503


@pytest.mark.parametrize("fault", ["down", "exits"])
@on_loop
async def test_what_an_old_session_has_does_not_make_it_ready(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_AGAIN_S", 0.0)
    board, how = StatusBoard(), ["up"]
    async with serving(board=board) as stage:
        connects(stage, board, how)
        old = await within(stage.post(initialize()))
        assert old.status == 200
        how[0] = fault
        assert "error" in await (await within(stage.post(initialize()))).frame()
        for _ in range(2):
            status, told = await ready(stage)
            assert (status, told["ready"], list(told["problems"])) == (503, False, [""])
            assert [server["state"] for server in told["servers"]] == ["ready"]
        assert not board.read().ready
        how[0] = "up"
        assert (await within(stage.post(initialize()))).status == 200
        assert board.read().ready
        assert (await ready(stage))[0] == 200


async def _ask(stage: Stage, head: bytes) -> tuple[bytes, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
    writer.write(head + b"\r\n\r\n")
    said = await within(reader.read())
    writer.close()
    return said.split(b"\r\n", 1)[0].split(b" ", 1)[1], said.rpartition(b"\r\n\r\n")[2].strip()


@pytest.mark.parametrize(
    ("head", "status", "told"),
    [
        (b"GET /readyz HTTP/1.0", b"200", b'{"ready": true}'),
        (b"GET /healthz HTTP/1.0", b"200", b'{"status": "ok"}'),
        (b"OPTIONS / HTTP/1.0", b"400", b""),
        (b"GET /mcp HTTP/1.0", b"400", b""),
        (b"GET /readyz HTTP/1.1\r\nHost: 10.1.2.3:8080\r\nConnection: close", b"200", b'{"ready": true}'),
        (b"GET /readyz HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: close", b"200", b'{"ready": true}'),
        (b"GET /readyz HTTP/1.1\r\nHost: evil.example\r\nConnection: close", b"421", b""),
        (b"GET /mcp HTTP/1.1\r\nHost: 10.1.2.3\r\nConnection: close", b"421", b""),
        (b"GET /readyz HTTP/1.0\r\nOrigin: http://evil.example", b"403", b""),
    ],
)
@on_loop
async def test_a_balancer_need_not_know_us_by_name(head: bytes, status: bytes, told: bytes) -> None:
    """haproxy checks in HTTP/1.0 without Host, others with the address that they were given."""
    async with serving(board=StatusBoard()) as stage:
        answer, body = await _ask(stage, head)
        assert answer.startswith(status)
        assert not told or body == told


@on_loop
async def test_a_server_is_not_started_for_everybody_who_asks() -> None:
    board, how = StatusBoard(), ["exits"]
    async with serving(board=board) as stage:
        connects(stage, board, how)
        await within(stage.post(initialize()))
        for _ in range(5):
            assert (await ready(stage))[0] == 503
        assert len(stage.servers) == 2  # the client's, and ours
