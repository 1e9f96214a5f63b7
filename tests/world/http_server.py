"""A server's way to the proxy over Streamable HTTP: each session is a run of the server, in one process that may die.

What is said about a request goes out on its stream; what belongs to none waits for a stream that listens. An answer
that comes first and alone is JSON, or a stream of one event.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.world.http_bytes import Message, Reader, chunk, event, write_answer
from tests.world.network import Address, Network
from tests.world.peers.server import Server
from tests.world.peers.words import KNOW, PER_REQUEST, chance_of
from tests.world.plan import ServerPlan
from tests.world.record import Body, Event, Record
from tests.world.streams import RESET, End
from tests.world.wires import is_opening

_EVENTS = {"content-type": "text/event-stream", "cache-control": "no-store"}
_JSON = {"content-type": "application/json"}


class HttpServer:
    """The process of a server, and its sessions.

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
        self.chance = chance_of(seed, plan.name, "http")
        self._network = network
        self._address = address
        self._seed = seed
        self._runs = runs
        self._sessions: dict[str, Session] = {}
        self._stateless: Session | None = None
        self.connections: dict[Connection, None] = {}  # in their order
        self.start()

    def start(self) -> None:
        """Listen."""
        self._network.listen(self._address, lambda end, source: self.admit(Connection(self, end)))

    def admit(self, connection: Connection) -> None:
        """Take a connection."""
        self.connections[connection] = None

    def die(self) -> None:
        """Be gone, with all sessions, and listen to nobody until it is started again."""
        self._network.stop(self._address)
        self.record.add(self.plan.name, "dies")
        for session in [*self._sessions.values(), *filter(None, [self._stateless])]:
            session.run.stop()
        self._sessions.clear()
        self._stateless = None
        for connection in list(self.connections):
            connection.end.cut()
        self.connections.clear()

    def forget(self) -> None:
        """Forget the sessions, as a server does that was started again behind a balancer; streams may end with them."""
        self.record.add(self.plan.name, "forgets its sessions")
        for session in self._sessions.values():
            session.run.stop()
            if self.chance.random() < 0.5:
                session.end_stream()
        self._sessions.clear()

    # What connections bring

    def serve(self, connection: Connection, message: Message) -> None:
        """Serve one request."""
        match message.method:
            case "POST":
                self._take_post(connection, message)
            case "GET" if message.headers.get("mcp-session-id") in self._sessions and self.plan.manner != "deaf":
                self._sessions[message.headers["mcp-session-id"]].listen(connection)
            case "DELETE" if message.headers.get("mcp-session-id") in self._sessions:
                self._sessions.pop(message.headers["mcp-session-id"]).close()
                connection.write(write_answer(200, {}))
            case _:
                connection.write(write_answer(405, {}))

    def _take_post(self, connection: Connection, message: Message) -> None:
        frame = json.loads(message.body)
        session = self._find(frame, message.headers)
        if session is None:
            self.record.add(self.plan.name, "turns away", frame)
            said = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no such session"}}
            connection.write(write_answer(404, _JSON, json.dumps(said).encode()))
            return
        self.record.add(session.run.name, "hears", frame, connection.mark(), connection.name)
        if "method" in frame and "id" in frame:
            session.begin(connection, frame)
        else:
            connection.write(write_answer(202, {}))
        session.run.hear(frame, connection.name)

    def _find(self, frame: Body, headers: dict[str, str]) -> Session | None:
        if "mcp-session-id" in headers:
            return self._sessions.get(headers["mcp-session-id"])
        if frame.get("method") == "initialize" and any(one != PER_REQUEST for one in self.plan.revisions):
            session = self._open()
            session.key = f"session-of-{session.run.name}"
            self._sessions[session.key] = session
            return session
        if self._stateless is None:
            self._stateless = self._open()
            self._stateless.run.is_for_all = True
        return self._stateless

    def _open(self) -> Session:
        run = Server(self.plan, len(self._runs) + 1, self._seed, self.record)
        self._runs.append(run)
        self.record.add(run.name, "opens")
        run.wire = session = Session(self, run)
        return session


class Session:
    """One session of a server, and its run's way to the proxy."""

    def __init__(self, server: HttpServer, run: Server) -> None:
        self.run = run
        self.key = ""
        self._server = server
        self._on: dict[str, Connection] = {}  # with requests that are not answered; ids may be those of several clients
        self._listening: Connection | None = None
        self._waiting: deque[bytes] = deque(maxlen=100)
        self._gathered: dict[str, tuple[list[Body], list[Event]]] = {}  # what is said in this moment, by what it is on

    def begin(self, connection: Connection, frame: Body) -> None:
        """A request is to be answered."""
        name = connection.name
        self._on[name] = connection
        connection.gone = lambda: self._lose(name, frame)

    def listen(self, connection: Connection) -> None:
        """A stream is open for what belongs to no request."""
        self._listening = connection
        connection.stream(self.key)
        connection.gone = self._listen_no_more
        while self._waiting:
            connection.write(chunk(event(self._waiting.popleft())))

    def _listen_no_more(self) -> None:
        self._listening = None

    def close(self) -> None:
        """The proxy has said goodbye."""
        self._server.record.add(self.run.name, "ends", "the session was deleted")
        self.run.over("deleted")
        self.end_stream()

    def end_stream(self) -> None:
        """End the stream of what belongs to no request."""
        if self._listening is not None:
            self._listening.finish()

    def _lose(self, name: str, frame: Body) -> None:
        """The connection of a request is gone; without sessions, that is its cancellation."""
        if self._on.pop(name, None) is not None and not self.key:
            self._server.record.add(self.run.name, "drops", {"id": frame["id"]}, via=name)
            self.run.drop(frame["id"], name)

    # What the run calls

    def say(self, frame: Any, via: str = "") -> None:
        noted = self._server.record.add(self.run.name, "says", frame, via=via)
        knows = self._server.record.revisions.get(self.run.name) in KNOW
        if not (self._server.plan.arrays and knows) or is_opening(frame):
            self._put(via, [frame], [noted])
            return
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._say_gathered)
        frames, events = self._gathered.setdefault(via, ([], []))
        frames.append(frame)
        events.append(noted)

    def _say_gathered(self) -> None:
        """Send what was said in one moment: what belongs together as one array."""
        gathered, self._gathered = self._gathered, {}
        for via, (frames, events) in gathered.items():
            if len(frames) > 1:
                self._server.record.add(self.run.name, "says an array", [one.get("id") for one in frames], via=via)
            self._put(via, frames, events)

    def _put(self, via: str, frames: list[Body], noted: list[Event]) -> None:
        data = json.dumps(frames if len(frames) > 1 else frames[0], ensure_ascii=False).encode()
        answer = next((one for one in frames if "method" not in one), None)
        if answer is not None:
            connection = self._on.pop(via, None)
            if connection is not None:
                connection.gone = _nothing
                opens = "protocolVersion" in (answer.get("result") or {}) and self.key
                connection.answer(data, {"mcp-session-id": self.key} if opens else {}, *noted)
        elif via in self._on:
            self._on[via].tell(data, *noted)
        elif self._listening is not None:
            self._listening.tell(data, *noted)
        else:
            self._waiting.append(data)

    def leave(self) -> None: ...

    def cut(self) -> None:
        """The process dies: with it go all sessions."""
        self._server.die()

    def stall(self, stalled: bool) -> None: ...

    def write_raw(self, data: bytes) -> None: ...


def _nothing() -> None: ...


class Connection:
    """One connection from the proxy: one request after the other."""

    def __init__(self, server: HttpServer, end: End) -> None:
        self.end = end
        self.gone: Callable[[], None] = _nothing
        self._server = server
        self._requests = 0
        self._is_stream = False
        self._under_way: deque[tuple[int, Event]] = deque()
        self._reader = Reader(True, lambda _: None, lambda _: None, self._take)
        self._number = server.record.turns.next()
        end.says.on_taken = self._note_taken
        end.start(self)

    @property
    def name(self) -> str:
        """Names the request that is under way."""
        return f"{self._number}/{self._requests}"

    def mark(self) -> int:
        """Say at which turn the proxy wrote what has just come."""
        return self.end.hears.mark_of(self.end.hears.taken)

    def stream(self, session: str = "") -> None:
        """Begin to answer with events."""
        self._is_stream = True
        self.write(write_answer(200, _EVENTS, None))

    def tell(self, data: bytes, *noted: Event) -> None:
        """Send an event, before the answer or where there is none."""
        if not self._is_stream:
            self.stream()
        self.write(chunk(event(data)), *noted)

    def answer(self, data: bytes, headers: dict[str, str], *noted: Event) -> None:
        """Send the answer, and nothing more to this request."""
        if not self._is_stream and self._server.chance.random() < 0.5:
            self.write(write_answer(200, {**_JSON, **headers}, data), *noted)
            return
        if not self._is_stream:
            self.write(write_answer(200, {**_EVENTS, **headers}, None))
        self._is_stream = False
        self.write(chunk(event(data)) + chunk(b""), *noted)

    def finish(self) -> None:
        """End a stream that has no answer."""
        if self._is_stream:
            self._is_stream = False
            self.gone = _nothing
            self.write(chunk(b""))

    def write(self, data: bytes, *noted: Event) -> None:
        self._under_way.extend((self.end.says.written + len(data), event) for event in noted)
        self.end.write(data)

    def _take(self, message: Message) -> None:
        self._requests += 1
        self._is_stream = False
        self._server.serve(self, message)

    def _note_taken(self, taken: int) -> None:
        while self._under_way and self._under_way[0][0] <= taken:
            self._under_way.popleft()[1].there = self._server.record.turns.count

    # What the connection tells

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)

    def ended(self, reason: str) -> None:
        if reason != RESET:
            self.end.close()
        self._server.connections.pop(self, None)
        gone, self.gone = self.gone, _nothing
        gone()

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
