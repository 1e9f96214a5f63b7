"""A client's way to the proxy over Streamable HTTP: a POST for each frame, and a stream for what belongs to none.

Connections are kept and used again. A stream that breaks is taken up again where the proxy has given ids to its events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.world.http_bytes import Events, Message, Reader, write_request
from tests.world.network import Address, Network
from tests.world.peers.words import META, PER_REQUEST
from tests.world.record import Body, Event, Record
from tests.world.streams import RESET, End
from tests.world.wires import Listener

_ACCEPT: Final = "application/json, text/event-stream"
_NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}

Said = Body | list[Body]
"""What is posted: a frame, or an array of them."""


def method_of(said: Said | None) -> str:
    """Give the method of a frame; an array has none."""
    return str(said.get("method", "")) if isinstance(said, dict) else ""


def requests_in(said: Said | None) -> list[Any]:
    """Give the ids of the requests in what was said."""
    frames = said if isinstance(said, list) else [said or {}]
    return [one["id"] for one in frames if "method" in one and "id" in one]


class HttpWire:
    """One client's way.

    Args:
        network: Of the world.
        address: Where the proxy listens.
        peer: Whose it is.
        record: Where it is noted what is said and heard.
        revision: What the client speaks.
        secret: What it shows the proxy, or what gives that; empty for none.
        listens: Whether it opens a stream for what belongs to no request.
    """

    def __init__(
        self,
        network: Network,
        address: Address,
        peer: Listener,
        record: Record,
        revision: str,
        secret: str | Callable[[], str] = "",
        listens: bool = True,
    ) -> None:
        self.record = record
        self.peer = peer
        self.session = ""
        self.path = ""
        self._network = network
        self._address = address
        self._revision = revision
        self._secret = secret
        self._listens = listens
        self.idle: list[Connection] = []
        self.connections: dict[Connection, None] = {}  # in their order
        self._opened = asyncio.Event()  # what is said before waits
        self._stalled = False
        self._patience = [10.0, 10.0, 5.0, 1.0, 1.0]  # how long it waits before it listens again, the last one first
        self.is_over = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._numbers: dict[str, int] = {}  # of the last event that came of each stream
        self._arrays = 0

    @property
    def kind(self) -> type[Connection]:
        """What is made of a connection."""
        return Connection

    @property
    def is_stateless(self) -> bool:
        return self._revision == PER_REQUEST

    def path_of(self, method: str) -> str:
        """Say where a request goes."""
        return f"/{self.path}/mcp" if self.path else "/mcp"

    # What a peer calls

    def note(self, said: Said) -> list[Event]:
        """Note that something is said."""
        if isinstance(said, dict):
            return [self.record.add(self.peer.name, "says", said)]
        name = self.name_array()
        self.record.add(self.peer.name, "says an array", [one.get("id") for one in said], via=name)
        return [self.record.add(self.peer.name, "says", one, via=name) for one in said]

    def name_array(self) -> str:
        """Name another array."""
        self._arrays += 1
        return f"array {self._arrays}"

    def say(self, frame: Any, via: str = "") -> None:
        noted = self.note(frame)
        if self.is_stateless and frame.get("method") == "notifications/cancelled":
            self._give_up(frame["params"]["requestId"], noted[0])
        elif self.is_stateless or self._opened.is_set() or method_of(frame) in _OPENING:
            self._post(frame, noted)
        elif not self.is_over:
            self._run(self._post_later(frame, noted))

    def write_raw(self, data: bytes) -> None:
        self.record.add(self.peer.name, "writes", repr(data))
        self._send("POST", data, None)

    def leave(self) -> None:
        if self.is_over:
            return
        self.record.add(self.peer.name, "leaves")
        if self.session:
            self._send("DELETE", b"", None)
            self.is_over = True
            self._stop_tasks()
        else:
            self.close()

    def cut(self) -> None:
        self.record.add(self.peer.name, "is cut")
        self.close()

    def stall(self, stalled: bool) -> None:
        self.record.add(self.peer.name, "reads nothing" if stalled else "reads again")
        self._stalled = stalled
        for connection in self.connections:
            connection.end.hears.stall(stalled)

    def close(self) -> None:
        """Drop every connection."""
        self.is_over = True
        self._stop_tasks()
        for connection in list(self.connections):
            connection.end.cut()
        self.connections.clear()

    def _stop_tasks(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def break_streams(self) -> None:
        """Lose the connections that bring events, and nothing else."""
        self.record.add(self.peer.name, "loses its streams")
        for connection in list(self.connections):
            if connection.is_busy and connection.events is not None:
                connection.end.cut()

    # What connections tell

    def note_event(self, key: str) -> None:
        """An event has come that has an id: of each stream they come in order, and once."""
        stream, _, number = key.rpartition("-")
        if not number.isdigit() or int(number) == 0:
            return
        if int(number) <= self._numbers.get(stream, 0):
            last = self._numbers[stream]
            self.record.note("resumed", f"{self.peer.name} heard event {number} of {stream} after event {last}")
        self._numbers[stream] = int(number)

    def free(self, connection: Connection) -> None:
        """A connection has brought its answer."""
        if self.is_over:
            connection.end.close()
            self.connections.pop(connection, None)
        else:
            self.idle.append(connection)

    def opened(self, frame: Said) -> None:
        """The proxy has taken in that the session is open."""
        self._opened.set()
        if self._listens and not self.is_over:
            self._send("GET", b"", None)

    def refused(self, frame: Said | None, message: Message) -> None:
        """What was said was refused with a status; what the answer says in its body was heard before."""
        keys = requests_in(frame)
        is_undone = message.status in (408, 429, 503) or (message.status == 502 and not method_of(frame))
        if is_undone and frame is not None and not keys and not self.is_over:
            self._run(self._post_again(frame))  # it has not come, or is dropped; without it, somebody waits for ever
            return
        if frame is None and message.method == "GET" and message.status in (502, 503):
            self._run(self._listen_again())
        told: Body = {"status": message.status}
        if message.status == 401 and "resource_metadata" in message.headers.get("www-authenticate", ""):
            told["asks"] = "token"
        if message.resumes:
            told["resumes"] = True
        if "retry-after" in message.headers:
            told["Retry-After"] = message.headers["retry-after"]
        for key in keys or [frame.get("id") if isinstance(frame, dict) else None]:
            self.record.add(self.peer.name, "is refused", {"id": key, **told})
        if frame is not None and method_of(frame) == _OPENING[1] and message.status == 502:
            self.opened(frame)  # perhaps it has come
        self._opened.set()
        for key in keys:
            self.peer.refuse(key)
        if message.status == 404 and self.session:
            self.record.add(self.peer.name, "ends", "the session is gone")
            self.close()
            self.peer.over("the session is gone")

    def lost(self, connection: Connection) -> None:
        """A connection has ended."""
        self.connections.pop(connection, None)
        if connection in self.idle:
            self.idle.remove(connection)
        events, frame = connection.events, connection.frame
        if self.is_over or not connection.is_busy:
            return
        if events is not None and events.last:
            self._run(self._take_up(connection, events))
        elif keys := requests_in(frame):
            for key in keys:
                self.record.add(self.peer.name, "is refused", {"id": key, "status": 0})
                self.peer.refuse(key)
        elif connection.method == "GET" and not self.is_over:
            self._run(self._listen_again())
        elif frame is not None and method_of(frame) == _OPENING[1]:
            self.opened(frame)  # perhaps it has come
        elif frame is not None and not method_of(frame):
            self._run(self._post_again(frame))  # the same; whoever has it already drops it

    # Sending

    def _run(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _post_later(self, frame: Said, noted: Sequence[Event]) -> None:
        """Post what was said before the session was open; whoever leaves before that says nothing more."""
        await self._opened.wait()
        self._post(frame, noted)

    def _post(self, frame: Said, noted: Sequence[Event]) -> None:
        self._send("POST", json.dumps(frame, ensure_ascii=False).encode(), frame, noted)

    async def _post_again(self, frame: Said) -> None:
        await asyncio.sleep(2.0)
        self._send("POST", json.dumps(frame).encode(), frame)

    async def _take_up(self, connection: Connection, events: Events) -> None:
        await asyncio.sleep(events.retry_s or 1.0)
        if (again := self._send("GET", b"", connection.frame, before=events)) is not None:
            again.array = connection.array

    async def _listen_again(self) -> None:
        await asyncio.sleep(self._patience.pop() if self._patience else 60.0)
        self._send("GET", b"", None)

    def _give_up(self, key: Any, noted: Event) -> None:
        """Cancel as clients without a session do: by closing the stream of the request."""
        for connection in list(self.connections):
            if key in requests_in(connection.frame) and connection.is_busy:
                connection.is_busy = False
                connection.end.cut()
                self.connections.pop(connection, None)
        noted.there = self.record.turns.count

    def _send(
        self,
        method: str,
        body: bytes,
        frame: Said | None,
        noted: Sequence[Event] = (),
        before: Events | None = None,
    ) -> Connection | None:
        if self.is_over:
            return None
        connection = self.take_connection()
        if connection is None:
            self.peer.over("nobody listens")
            return None
        more = {} if before is None else {"last-event-id": before.last}
        connection.send(
            method, write_request(method, self.path_of(method), {**self._headers(method, frame), **more}, body)
        )
        connection.begin(method, frame, noted, before)
        return connection

    def _headers(self, method: str, frame: Said | None) -> dict[str, str]:
        found = {"accept": "text/event-stream" if method == "GET" else _ACCEPT}
        if method == "POST":
            found["content-type"] = "application/json"
        secret = self._secret if isinstance(self._secret, str) else self._secret()
        if secret:
            found["authorization"] = f"Bearer {secret}"
        if self.session:
            found["mcp-session-id"] = self.session
        if self.session or self.is_stateless:
            found["mcp-protocol-version"] = self._revision
        if self.is_stateless and isinstance(frame, dict) and "method" in frame:
            found["mcp-method"] = frame["method"]
            params = frame.get("params") or {}
            if frame["method"] in _NAMED:
                found["mcp-name"] = params[_NAMED[frame["method"]]]
            assert frame["method"].startswith("notifications/") or f"{META}protocolVersion" in params["_meta"]
        return found

    def take_connection(self) -> Connection | None:
        """Give a connection to whoever gets the next request; None where nobody listens."""
        return self.idle.pop() if self.idle else self.connect(self._address)

    def connect(self, address: Address) -> Connection | None:
        """Make a connection."""
        try:
            end, _ = self._network.dial(address, self.peer.name)
        except ConnectionRefusedError:
            return None
        connection = self.kind(self, end, address)
        self.connections[connection] = None
        end.hears.stall(self._stalled)
        return connection


_RETURNS: Final = 3
"""How often who has taken up a stream again comes back to it with the answer in hand: there is to be no other one."""

_OPENING: Final = ("initialize", "notifications/initialized")


class Connection:
    """One connection of a client: one request after the other.

    Attributes:
        frame: What was said with the request that is under way; None for a GET.
        array: What that is called, if it is an array.
        events: The stream that answers it, if one does.
        is_busy: Whether an answer is to come.
    """

    def __init__(self, wire: HttpWire, end: End, address: Address) -> None:
        self.end = end
        self.address = address
        self.method = ""
        self.frame: Said | None = None
        self.array = ""
        self.events: Events | None = None
        self.is_busy = False
        self._wire = wire
        self._noted: tuple[int, Sequence[Event]] = 0, ()
        self._last = ""
        self._returns = 0
        self._reader = Reader(False, self._take_head, self._take_body, self._take_end)
        end.says.on_taken = self._note_taken
        end.start(self)

    def send(self, method: str, data: bytes) -> None:
        self.method = method
        self.end.write(data)

    def begin(self, method: str, frame: Said | None, noted: Sequence[Event] = (), before: Events | None = None) -> None:
        """Wait for the answer to what was just sent; `before` is a stream that is taken up again."""
        self.frame, self.events, self.is_busy = frame, None, True
        self._last, self._returns = ("", 0) if before is None else (before.last, before.returns)
        self.array = noted[0].via if noted else ""
        self._noted = self.end.says.written, noted

    def _note_taken(self, taken: int) -> None:
        written, noted = self._noted
        if noted and written <= taken:
            for event in noted:
                event.there = self._wire.record.turns.count
            self._noted = 0, ()

    def _hear(self, data: bytes) -> None:
        wire = self._wire
        try:
            frame = json.loads(data)
        except ValueError:
            wire.record.note("valid", f"{wire.peer.name} heard what is not JSON: {data!r}")
            return
        via, there = self._via, self.end.hears.mark_of(self.end.hears.taken)
        if isinstance(frame, list):
            name = wire.name_array()
            answered = [one.get("id") for one in frame if "method" not in one]
            wire.record.add(wire.peer.name, "hears an array", answered, there, name)
            via = name
        for one in frame if isinstance(frame, list) else [frame]:
            wire.record.add(wire.peer.name, "hears", one, there, via)
            wire.peer.hear(one, self._via)

    @property
    def _via(self) -> str:
        """Name the stream that brings what is heard: by the request, or the array, that it belongs to."""
        if isinstance(self.frame, list):
            return f"on {self.array}"
        return "listening" if self.method == "GET" and self.frame is None else str((self.frame or {}).get("id"))

    def _take_head(self, message: Message) -> None:
        if "mcp-session-id" in message.headers and method_of(self.frame) == "initialize":
            self._wire.session = message.headers["mcp-session-id"]
        if message.headers.get("content-type", "").startswith("text/event-stream"):
            self.events = Events()
            self.events.last = self._last
            self.events.returns = self._returns

    def _take_body(self, message: Message) -> None:
        if self.events is not None:
            body, message.body = message.body, b""
            for _, data in self.events.feed(body):
                self._wire.note_event(self.events.last)
                self._hear(data)

    def _take_end(self, message: Message) -> None:
        frame, wire = self.frame, self._wire
        wants_more = self.events is not None and self._comes_back(self.events, frame)
        if message.body and message.headers.get("content-type", "").startswith("application/json"):
            self._hear(message.body)
        if message.status >= 400 and self.method != "DELETE":
            self.is_busy = False
            message.method = self.method
            message.resumes = bool(self._last)
            wire.refused(frame, message)
        elif self.method == "POST" and method_of(frame) == "notifications/initialized":
            wire.opened(frame or {})
        if wants_more or (self.method == "GET" and self.events is not None and frame is None):
            events, self.events = self.events, None
            again = Connection.__new__(Connection)
            again.frame, again.events, again.method, again.is_busy = frame, events, self.method, True
            again.array = self.array
            self.is_busy = False
            wire.free(self)
            wire.lost(again)
            return
        self.is_busy, self.frame = False, None
        if self.method == "DELETE":
            wire.close()
        else:
            wire.free(self)

    def _comes_back(self, events: Events, frame: Said | None) -> bool:
        """Whether it takes a stream up again: until it has the answer, and a few times more where it came back once."""
        keys = requests_in(frame)
        if not keys:
            return False
        if any(map(self._wire.peer.waits_for, keys)):
            return True
        events.returns += 1
        return self.method == "GET" and events.returns < _RETURNS

    # What the connection tells

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)

    def ended(self, reason: str) -> None:
        if reason != RESET:
            self.end.close()
        self._wire.lost(self)

    def broken(self, reason: str) -> None:
        self._wire.lost(self)

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
