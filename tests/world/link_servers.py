"""Servers over WebSocket, and over HTTP+SSE: each connection, or stream, is a run of the server, in one process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from websockets.http11 import Request
from websockets.server import ServerProtocol

from tests.world.http_bytes import Message, chunk, event, write_answer
from tests.world.http_server import Connection
from tests.world.network import Address, Network
from tests.world.peers.server import Server
from tests.world.peers.words import chance_of
from tests.world.plan import ServerPlan
from tests.world.record import Body, Record
from tests.world.streams import End
from tests.world.ways import WebSocketTalk


class Process(Protocol):
    """What listens as a server, dies, and is started again."""

    def start(self) -> None: ...

    def die(self) -> None: ...

    def forget(self) -> None: ...


class _Linked:
    """A process whose runs go with their connections.

    Args:
        network: Of the world.
        address: Where it listens.
        plan: What it is.
        seed: Of the world.
        record: Where it is noted what is said and heard.
        runs: Where its runs are kept.
    """

    def __init__(
        self, network: Network, address: Address, plan: ServerPlan, seed: int, record: Record, runs: list[Server]
    ) -> None:
        self.plan = plan
        self.record = record
        self.chance = chance_of(seed, plan.name, plan.link)
        self.ends: dict[End, None] = {}  # in their order
        self._network = network
        self._address = address
        self._seed = seed
        self._runs = runs
        self.start()

    def start(self) -> None:
        """Listen."""
        self._network.listen(self._address, lambda end, _: self._take(end))

    def die(self) -> None:
        """Be gone, with all runs, and listen to nobody until it is started again."""
        self._network.stop(self._address)
        self.record.add(self.plan.name, "dies")
        for end in list(self.ends):
            end.cut()
        self.ends.clear()

    def forget(self) -> None:
        """Break every connection: with it goes what was known of it."""
        self.record.add(self.plan.name, "forgets its sessions")
        for end in list(self.ends):
            end.cut()
        self.ends.clear()

    def open(self) -> Server:
        """Begin another run."""
        run = Server(self.plan, len(self._runs) + 1, self._seed, self.record)
        self._runs.append(run)
        self.record.add(run.name, "opens")
        return run

    def _take(self, end: End) -> None:
        raise NotImplementedError


class WebSocketServer(_Linked):
    """Each connection is a run."""

    def _take(self, end: End) -> None:
        self.ends[end] = None
        _Accepting(end, self)


class _Accepting(WebSocketTalk):
    """One connection, and its run."""

    def __init__(self, end: End, server: _Linked) -> None:
        run = server.open()
        run.wire = self
        protocol = ServerProtocol(subprotocols=["mcp"])  # type: ignore[list-item]
        super().__init__(end, protocol, run, server.record, server.plan.arrays)

    def answer(self, asked: Any) -> None:
        if isinstance(asked, Request):
            self.protocol.send_response(self.protocol.accept(asked))
            self.begin()


class SseServer(_Linked):
    """Each stream is a run; what is for it is posted."""

    def __init__(self, *args: Any) -> None:
        self.connections: dict[Connection, None] = {}
        self._streams: dict[str, _Stream] = {}
        super().__init__(*args)

    def _take(self, end: End) -> None:
        self.ends[end] = None
        self.connections[Connection(self, end)] = None  # type: ignore[arg-type]

    def serve(self, connection: Connection, message: Message) -> None:
        """Serve one request."""
        if message.method == "GET":
            stream = _Stream(connection, self.open(), self)
            key = f"/message?n={stream.run.name}"
            self._streams[key] = stream
            connection.gone = lambda: self._lose(key)
            connection.stream()
            connection.write(chunk(event(key.encode(), name="endpoint")))
        elif message.method == "POST" and message.path in self._streams:
            frame = json.loads(message.body)
            run = self._streams[message.path].run
            self.record.add(run.name, "hears", frame, connection.mark())
            connection.write(write_answer(202, {}))
            run.hear(frame)
        else:
            connection.write(write_answer(404, {}))

    def _lose(self, key: str) -> None:
        stream = self._streams.pop(key)
        self.record.add(stream.run.name, "ends", "its stream was closed")
        stream.run.over("its stream was closed")


class _Stream:
    """A run's way to the proxy."""

    def __init__(self, connection: Connection, run: Server, server: SseServer) -> None:
        self.run = run
        run.wire = self
        self._connection = connection
        self._server = server

    def say(self, frame: Body, via: str = "") -> None:
        noted = self._server.record.add(self.run.name, "says", frame)
        self._connection.tell(json.dumps(frame, ensure_ascii=False).encode(), noted)

    def leave(self) -> None: ...

    def cut(self) -> None:
        self._connection.end.cut()

    def stall(self, stalled: bool) -> None: ...

    def write_raw(self, data: bytes) -> None: ...


LINKED: Final[dict[str, Callable[..., Process]]] = {"websocket": WebSocketServer, "sse": SseServer}
"""What listens, by how the proxy reaches it."""
