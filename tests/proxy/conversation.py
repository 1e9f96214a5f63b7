"""Conversations as lists: who says what, what has to arrive at the other end, and how it ends.

    hold([
        *opening("2024-11-05", "2025-11-25"),
        client(request(1, "tools/list")),
        expect_to_server(request(1, "tools/list")),
        server(result(1, {"tools": []})),
        expect_to_client(result(1, {"tools": []})),
    ])

A real proxy runs between two memory transports; every line that arrives and that no step expected is a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.core.commands import Finish, Outcome
from dragoman.core.envelope import Frame
from dragoman.core.exact_json import decode, encode_line
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.memory import MemoryTransport, connect_pair
from dragoman_spec import DEFAULT_RULES
from tests.support.waiting import pass_time, put_forward, run

PATIENCE_S = 20.0


@dataclass(frozen=True)
class Says:
    who: str
    data: bytes | Callable[[], Any]


@dataclass(frozen=True)
class Hears:
    who: str
    expected: Any


@dataclass(frozen=True)
class Closes:
    who: str


@dataclass(frozen=True)
class Restarts:
    """A fresh server has been started: what the server says and hears from here on is the fresh one."""


@dataclass(frozen=True)
class Ends:
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Waits:
    seconds: float


@dataclass(frozen=True)
class Skips:
    seconds: float


Step = Says | Hears | Closes | Restarts | Ends | Waits | Skips


def client(frame: Any) -> Step:
    """Say a line: bytes as they are, JSON, or what a function gives when the time has come."""
    return Says("client", frame if isinstance(frame, bytes) or callable(frame) else encode_line(frame))


def server(frame: Any) -> Step:
    return Says("server", frame if isinstance(frame, bytes) or callable(frame) else encode_line(frame))


def expect_to_client(expected: Any) -> Step:
    """Expect one line: bytes exactly, JSON by value, or whatever a function says yes to."""
    return Hears("client", expected)


def expect_to_server(expected: Any) -> Step:
    return Hears("server", expected)


def client_closes() -> Step:
    """The client says no more, but still listens: what a pipe from a shell does."""
    return Closes("client")


def server_closes() -> Step:
    return Closes("server")


def server_restarts() -> Step:
    return Restarts()


def expect_end(outcome: Outcome, reason: str = "") -> Step:
    return Ends(outcome, reason)


def time_passes(seconds: float) -> Step:
    return Waits(seconds)


def the_clock_is_put_forward(seconds: float) -> Step:
    """For what is due by the clock of the loop, and would take long."""
    return Skips(seconds)


def request(key: Any, method: str, **params: Any) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "id": key, "method": method}
    return {**frame, "params": params} if params else frame


def notification(method: str, **params: Any) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "method": method}
    return {**frame, "params": params} if params else frame


def result(key: Any, value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "result": value}


def error(key: Any, code: int, message: str = "no", **data: Any) -> dict[str, Any]:
    body = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": key, "error": {**body, "data": data} if data else body}


def an_error(key: Any, code: int, *words: str) -> Callable[[Any], bool]:
    """Match an error response by id and code, and by words that its text or data hold."""

    def matches(frame: Any) -> bool:
        body = frame.get("error", {})
        text = f"{body.get('message')} {body.get('data')}"
        same_id = frame.get("id") == key and type(frame.get("id")) is type(key)
        return same_id and body.get("code") == code and all(word in text for word in words)

    matches.__name__ = f"an_error({key!r}, {code}, {', '.join(words)})"
    return matches


def initialize(revision: Any, key: Any = 0, **capabilities: Any) -> dict[str, Any]:
    info = {"name": "test", "version": "1"}
    return request(key, "initialize", protocolVersion=revision, capabilities=capabilities, clientInfo=info)


def initialized(revision: Any, key: Any = 0, **capabilities: Any) -> dict[str, Any]:
    """The server's result to `initialize`."""
    info = {"name": "test", "version": "1"}
    return result(key, {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info})


READY = notification("notifications/initialized")


def opening(
    client_revision: str, server_revision: str, client_has: Sequence[str] = (), server_has: Sequence[str] = ()
) -> list[Step]:
    """The handshake of a client that asks for one revision with a server that answers another."""
    capabilities: dict[str, Any] = {name: {} for name in client_has}
    return [
        client(initialize(client_revision, **capabilities)),
        expect_to_server(lambda frame: frame["method"] == "initialize"),
        server(initialized(server_revision, **{name: {} for name in server_has})),
        expect_to_client(lambda frame: frame["result"]["protocolVersion"] == client_revision),
        client(READY),
        expect_to_server(READY),
    ]


class Peer:
    """One end of the conversation: it remembers what it heard."""

    def __init__(self, name: str, transport: MemoryTransport) -> None:
        self.name = name
        self.transport = transport
        self.pending = b""
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.said: list[bytes] = []
        self.heard: list[bytes] = []
        self.closed = asyncio.Event()
        transport.start_raw(self)

    def data_received(self, data: bytes) -> None:
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            self.heard.append(line)
            self.lines.put_nowait(line + b"\n")

    def ended(self, reason: str) -> None:
        self.closed.set()

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    async def hear(self, expected: Any, where: str) -> None:
        try:
            line = await asyncio.wait_for(self.lines.get(), PATIENCE_S)
        except TimeoutError:
            raise AssertionError(f"{where}: the {self.name} heard nothing, expected {_shown(expected)}") from None
        if isinstance(expected, bytes):
            assert line == expected, where
        elif callable(expected):
            assert expected(decode(line)), f"{where}: the {self.name} heard {line!r}, expected {_shown(expected)}"
        else:
            found = decode(line)
            assert found == expected, where
            assert type(found.get("id") if isinstance(found, dict) else 0) is type(
                expected.get("id") if isinstance(expected, dict) else 0
            ), f"{where}: the id changed its type"


Check = Callable[[Peer, Peer], None]
"""Looks at what a client and the last of its servers have said and heard."""


Whose = Mapping[Any, str | tuple[str, ...]]
"""The principals of requests, or else their connections, by id, of those that are not of the one client; None is for
notifications."""


def hold(
    conversation: Sequence[Step],
    translate: Any = None,
    *,
    check: Check | None = None,
    whose: Whose | None = None,
    **config: Any,
) -> Proxy:
    """Hold a conversation, and give the proxy for more questions.

    The server is offered what the client asks for, unless a test says otherwise: most are not about offers.
    """
    config.setdefault("rules", DEFAULT_RULES - {"echoing-server"})
    return run(_hold(conversation, ProxyConfig(**config), translate, check, whose or {}))


class _Signing:
    """Says of each request whose it is, or on which connection it came, as fronts of several clients do."""

    def __init__(self, receiver: Any, whose: Whose) -> None:
        self._receiver = receiver
        self._whose = whose

    def __getattr__(self, name: str) -> Any:
        return getattr(self._receiver, name)

    def received(self, frames: Sequence[Frame]) -> None:
        self._receiver.received([self._sign(one) for one in frames])

    def _sign(self, frame: Frame) -> Frame:
        said = self._whose.get(decode(frame.key or b"null"), frame.sender)
        return frame._replace(sender=said) if isinstance(said, str) else frame._replace(source=said)


async def _hold(
    conversation: Sequence[Step], config: ProxyConfig, translate: Any, check: Check | None, whose: Whose
) -> Proxy:
    front, client_end = connect_pair("proxy", "client", config.limit_bytes)
    if whose:
        start = front.start
        front.start = lambda receiver: start(_Signing(receiver, whose))  # type: ignore[method-assign]
    servers: list[Peer] = []

    def connect() -> MemoryTransport:
        upstream, server_end = connect_pair("proxy", "server", config.limit_bytes)
        servers.append(Peer("server", server_end))
        return upstream

    proxy = Proxy(config, front, connect, translate)
    peer = Peer("client", client_end)
    run = asyncio.create_task(proxy.run())
    await asyncio.sleep(0)
    used = 0
    for number, step in enumerate(conversation):
        where = f"step {number}"
        match step:
            case Says(who, data):
                line = data if isinstance(data, bytes) else encode_line(data())
                speaker = peer if who == "client" else servers[used]
                speaker.said.append(line)
                speaker.transport.write(line)
            case Hears(who, expected):
                await (peer if who == "client" else servers[used]).hear(expected, where)
            case Closes("client"):
                peer.transport.end()
            case Closes():
                await servers[used].transport.close()
            case Restarts():
                used += 1
                assert len(servers) == used + 1, f"{where}: no fresh server"
            case Waits(seconds):
                await pass_time(seconds)
            case Skips(seconds):
                await put_forward(seconds)
            case Ends(outcome, reason):
                finish = await asyncio.wait_for(run, PATIENCE_S)
                assert finish.outcome is outcome, f"{where}: {finish}"
                assert reason in finish.reason, f"{where}: {finish}"
    await _wind_up(proxy, peer, servers[used], run)
    if check is not None:
        check(peer, servers[used])
    return proxy


async def _wind_up(proxy: Proxy, peer: Peer, server: Peer, run: asyncio.Task[Finish]) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    unheard = [(end.name, end.lines.get_nowait()) for end in (peer, server) for _ in range(end.lines.qsize())]
    assert not unheard, f"nobody expected {unheard}"
    if not run.done():
        proxy.stop("the test is over")
        await asyncio.wait({run}, timeout=PATIENCE_S)  # and not for what a cancelled one may still wait for
        assert run.done(), "the proxy does not end"


def _shown(expected: Any) -> str:
    return str(getattr(expected, "__name__", expected))
