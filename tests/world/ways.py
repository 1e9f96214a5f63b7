"""Two more ways of a client to the proxy: over WebSocket, and over HTTP+SSE, the transport of 2024-11-05."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from tests.world.http_bytes import Message
from tests.world.http_client import Connection, HttpWire, Said, requests_in
from tests.world.network import Address, Network
from tests.world.record import Event, Record
from tests.world.streams import End
from tests.world.wires import Arrays, Listener

_MESSAGES: Final = (Opcode.TEXT, Opcode.CONT)


class WebSocketTalk:
    """One end of a WebSocket: a frame a message; what is said before it is open waits.

    Args:
        end: Of the connection.
        protocol: What the library knows of it.
        peer: Whose it is.
        record: Where it is noted what is said and heard.
        gathers: Whether what it says in one moment goes out as one array.
    """

    def __init__(self, end: End, protocol: Any, peer: Listener, record: Record, gathers: bool = False) -> None:
        self.protocol = protocol
        self._arrays = Arrays(peer, record, self._write, gathers)
        self._peer = peer
        self._record = record
        self._waiting: list[tuple[bytes, tuple[Event, ...]]] | None = []
        self._under_way: deque[tuple[int, Event]] = deque()
        self._rest = b""
        self._end = end
        self._end.says.on_taken = self._note_taken
        self._end.start(self)

    def answer(self, asked: Any) -> None:
        """Deal with what the other side says before the connection is open."""

    def begin(self) -> None:
        """The connection is open: say what has waited."""
        waiting, self._waiting = self._waiting or [], None
        for text, noted in waiting:
            self._send(text, *noted)

    # What a peer calls

    def say(self, frame: Any, via: str = "") -> None:
        self._arrays.say(frame)

    def _write(self, frame: Any, *events: Event) -> None:
        self._send(json.dumps(frame, ensure_ascii=False).encode(), *events)

    def write_raw(self, data: bytes) -> None:
        self._record.add(self._peer.name, "writes", repr(data))
        self._send(data)

    def leave(self) -> None:
        self._record.add(self._peer.name, "leaves")
        if self._waiting is None and not self.protocol.close_sent:
            self.protocol.send_close(1000)
            self.flush()
        else:
            self._end.end()

    def cut(self) -> None:
        self._record.add(self._peer.name, "is cut")
        self._end.cut()

    def stall(self, stalled: bool) -> None:
        self._record.add(self._peer.name, "reads nothing" if stalled else "reads again")
        self._end.hears.stall(stalled)

    def _send(self, data: bytes, *noted: Event) -> None:
        if self._waiting is not None:
            self._waiting.append((data, noted))
        elif not self.protocol.close_sent:
            self.protocol.send_text(data)
            self.flush()
            self._under_way.extend((self._end.says.written, event) for event in noted)

    def flush(self) -> None:
        """Send what the library wants to be sent."""
        for data in self.protocol.data_to_send():
            if data:
                self._end.write(data)
            else:
                self._end.end()

    def _note_taken(self, taken: int) -> None:
        while self._under_way and self._under_way[0][0] <= taken:
            self._under_way.popleft()[1].there = self._record.turns.count

    # What the connection tells

    def data_received(self, data: bytes) -> None:
        self.protocol.receive_data(data)
        for event in self.protocol.events_received():
            if not isinstance(event, Frame):
                self.answer(event)
            elif event.opcode in _MESSAGES:
                self._rest += event.data
                if event.fin:
                    text, self._rest = self._rest, b""
                    self._hear(text)
        self.flush()

    def _hear(self, text: bytes) -> None:
        self._arrays.hear(json.loads(text), self._end.hears.mark_of(self._end.hears.taken))

    def ended(self, reason: str) -> None:
        self._record.add(self._peer.name, "ends", reason)
        self._end.close()
        self._peer.over(reason)

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class WebSocketWire(WebSocketTalk):
    """A client's way.

    Args:
        network: Of the world.
        address: Where the proxy listens.
        peer: Whose it is.
        record: Where it is noted what is said and heard.
        secret: What it shows the proxy.
    """

    def __init__(self, network: Network, address: Address, peer: Listener, record: Record, secret: str) -> None:
        protocol = ClientProtocol(parse_uri("ws://127.0.0.1/ws"), subprotocols=["mcp"])  # type: ignore[list-item]
        super().__init__(network.dial(address, peer.name)[0], protocol, peer, record)
        request = protocol.connect()
        request.headers["Authorization"] = f"Bearer {secret}"
        protocol.send_request(request)
        self.flush()

    def answer(self, asked: Any) -> None:
        if isinstance(asked, Response) and self.protocol.handshake_exc is None:
            self.begin()
        elif isinstance(asked, Response):
            self._record.add(self._peer.name, "is refused", {"id": None, "status": asked.status_code})


class SseConnection(Connection):
    """One that may bring the stream of the session, which says first where is posted."""

    def _take_body(self, message: Message) -> None:
        wire = self._wire
        assert isinstance(wire, SseWire)
        if self.events is not None:
            body, message.body = message.body, b""
            for name, data in self.events.feed(body):
                if name == "endpoint":
                    wire.open(data.decode())
                else:
                    self._hear(data)

    def _take_end(self, message: Message) -> None:
        if self.method == "GET":
            self._wire.lost(self)
        else:
            super()._take_end(message)


class SseWire(HttpWire):
    """Frames are posted, and all that is heard comes on one stream, which is the session."""

    endpoint = ""

    @property
    def kind(self) -> type[Connection]:
        return SseConnection

    def __init__(self, network: Network, address: Address, peer: Listener, record: Record, secret: str) -> None:
        super().__init__(network, address, peer, record, "2024-11-05", secret, listens=False)
        self._ready = asyncio.Event()
        self._send("GET", b"", None)

    def open(self, endpoint: str) -> None:
        """The stream is open, and says where is posted."""
        self.endpoint = endpoint
        self._ready.set()

    def path_of(self, method: str) -> str:
        return "/sse" if method == "GET" else self.endpoint

    def say(self, frame: Any, via: str = "") -> None:
        noted = self.note(frame)
        if self._ready.is_set():
            self._post(frame, noted)
        elif not self.is_over:
            self._run(self._post_when_ready(frame, noted))

    async def _post_when_ready(self, frame: Said, noted: Sequence[Event]) -> None:
        await self._ready.wait()
        self._post(frame, noted)

    def write_raw(self, data: bytes) -> None:
        if self._ready.is_set():
            super().write_raw(data)

    def opened(self, frame: Said) -> None: ...

    def leave(self) -> None:
        """Close the stream once what was posted has arrived."""
        if not self.is_over:
            self.record.add(self.peer.name, "leaves")
            self._run(self._close_later())

    async def _close_later(self) -> None:
        for _ in range(40):
            if not any(one.is_busy and one.method == "POST" for one in self.connections):
                break
            await asyncio.sleep(0.5)
        asyncio.get_running_loop().call_soon(self.close)

    def lost(self, connection: Connection) -> None:
        if connection.method == "GET" and not self.is_over:
            self.record.add(self.peer.name, "ends", "its stream has ended")
            self.close()
            self.peer.over("its stream has ended")
        elif connection.method == "POST" and connection.is_busy and not self.is_over:
            frame = connection.frame
            self.connections.pop(connection, None)
            for key in requests_in(frame):
                self.record.add(self.peer.name, "is refused", {"id": key, "status": 0})
                self.peer.refuse(key)
            if not requests_in(frame) and frame is not None:
                self._run(self._post_again(frame))  # perhaps it has come
        else:
            super().lost(connection)
