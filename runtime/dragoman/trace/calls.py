"""Seeing calls: how long each took, at the server and here, and how it ended.

Lives here: the observer of the core, which hands each call that is over to metrics and to the access log. Must not:
decode what need not be decoded: the name of a tool stands at the head of nearly every call, and an answer is read only
where it says that something went wrong. Made by `dragoman.cli`, used by `dragoman.proxy`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from dragoman.core.calls import Call
from dragoman.core.commands import CLIENT, SERVER, Side
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.envelope import Frame, read_params
from dragoman.core.exact_json import decode
from dragoman.core.label import LABEL, PRINCIPAL
from dragoman.core.methods import CALL_TOOL, LIST_TOOLS
from dragoman.core.unchecked import find, find_list
from dragoman_spec import HANDSHAKE_REVISIONS
from dragoman_spec.losses import LossGroup

if TYPE_CHECKING:
    from dragoman.core.observing import Observer, SessionObserver

ASKS: Final = "input_required"
"""How a call ends for now whose client has to come back with an answer."""

OK: Final = "ok"
CANCELLED: Final = "cancelled"
UNREADABLE: Final = "error"
TOOL_ERROR: Final = "tool_error"

_NAMES = re.compile(rb'[^{]*\{(?:[^{]*,)?"params":\{"name":"([^"\\]*)"')
"""How nearly every call of a tool begins. No quote in a string looks like that; and the second brace of a frame, if its
params' own, is at the top."""

_FAILS = re.compile(rb'"isError"\s*:\s*true')
_ASKS: Final = b'"input_required"'
_ERROR: Final = b'"isError"'
_NO_ERROR: Final = b'"isError":false'
_LASTING: Final = frozenset({UpstreamState.READY, UpstreamState.RECOVERING})


class SeenCall(NamedTuple):
    """A call that is over.

    Attributes:
        session: The label of its session, as in the log.
        principal: Whose it is; empty where nobody has a name.
        client: Name and version of the client, as it says.
        revisions: Of the client and of the server.
        server: What the user calls the server.
        method: What was asked.
        tool: Its tool, if it is a call of one.
        outcome: `ok`, `tool_error`, `input_required`, `cancelled`, or the code of an error; `error` without a code.
        server_s: How long it was with whoever serves it, in seconds; None: nobody was asked.
        ours_s: How long it was here besides.
        request_bytes: The length of the request, as it came.
        answer_bytes: That of its answer, as it went.
    """

    session: str
    principal: str
    client: str
    revisions: tuple[str | None, str | None]
    server: str
    method: str
    tool: str
    outcome: str
    server_s: float | None
    ours_s: float
    request_bytes: int
    answer_bytes: int


class SeenSession(NamedTuple):
    """A session of a client, or with a server, that is over; or a client's that has begun.

    Attributes:
        session: Its label.
        principal: Whose it is.
        client: Name and version of the client; None: it is a session with a server.
        revision: What it speaks.
        outcome: How it ended; empty where it has begun.
        lasted_s: How long it was open, in seconds.
    """

    session: str
    principal: str
    client: str | None
    revision: str
    outcome: str
    lasted_s: float


_HANDED: Final = 1
_ANSWERED: Final = 2
"""Where in `Call.seen` stands when it went to whoever serves it, and when its answer came from there: a list is made in
a fifth of the time that an object takes."""

_new_seen: Final = tuple.__new__
"""Makes a `SeenCall` of all its fields in a third of the time."""


class Sink(Protocol):
    """Who gets what is seen; never waits, never fails."""

    def take_call(self, call: SeenCall, is_front: bool, is_back: bool) -> None:
        """A call is over; it came from a client of the proxy's, and went to a server of its own."""

    def take_session(self, session: SeenSession) -> None:
        """A session has begun or is over."""

    def take_losses(self, source: str, target: str, losses: Sequence[LossGroup]) -> None:
        """A translation could not carry all."""

    def take_question(self, method: str) -> None:
        """A client is asked something, by this request or in the result of this one."""

    def take_restart(self) -> None:
        """A server is started again."""

    def take_tools(self, server: str, names: Sequence[str]) -> None:
        """A server has listed these."""


class CallWatch:
    """Sees the calls of the proxies that are given it, in `ProxyConfig(calls=…)`.

    Args:
        sinks: Who gets what is seen.
        server: What the user calls the server.
        is_front: Whether the clients of these proxies are ours, and not a router.
        is_back: Whether their servers are.
    """

    def __init__(
        self, sinks: tuple[Sink, ...], server: str = "", *, is_front: bool = True, is_back: bool = True
    ) -> None:
        self.sinks = sinks
        self.name = server
        self.is_front = is_front
        self.is_back = is_back
        self._open: dict[int, tuple[float, str]] = {}  # since when, and in which revision, by edge
        self._behind: dict[str, CallWatch] = {}

    def before_router(self) -> CallWatch:
        """Return the same for the proxy between the clients and a router."""
        return CallWatch(self.sinks, self.name, is_back=False)

    def behind_router(self, server: str) -> CallWatch:
        """Return the same for a proxy between a router and this server."""
        if server not in self._behind:  # settings that follow from it are made once
            self._behind[server] = CallWatch(self.sinks, server, is_front=False)
        return self._behind[server]

    def session(self, front: Any) -> SessionWatch:
        """Return who is told of a client."""
        return SessionWatch(self, front)

    def server(self, edge: Any) -> None:
        """Note since when a session with a server is open, or that it is over; one without a handshake has none."""
        if not self.is_back or edge.revision not in HANDSHAKE_REVISIONS:
            return
        if edge.state in _LASTING:
            self._open.setdefault(id(edge), (time.monotonic(), edge.revision))
        elif (since := self._open.pop(id(edge), None)) is not None:
            over = SeenSession(LABEL.get(), "", None, since[1], "over", time.monotonic() - since[0])
            for sink in self.sinks:
                sink.take_session(over)

    def restarted(self) -> None:
        """Count it."""
        for sink in self.sinks:
            sink.take_restart()


class SessionWatch:
    """Told of what one client does.

    Args:
        watch: Whose sinks get it.
        front: The edge towards it.
    """

    __slots__ = ("_client", "_front", "_label", "_opened", "_principal", "_revisions", "_spoken", "_watch")

    def __init__(self, watch: CallWatch, front: Any) -> None:
        self._watch = watch
        self._front = front
        self._client = ""
        self._label = self._principal = ""
        self._opened = 0.0
        self._spoken: object = None  # what the exchange says of revisions; another object once they change
        self._revisions: tuple[str | None, str | None] = (None, None)

    def opened(self, info: object) -> None:
        """Note since when, and who it is."""
        self._client, self._opened = _name(info), time.monotonic()
        self._label, self._principal = LABEL.get(), PRINCIPAL.get()
        self._tell("", 0.0)

    def closed(self, outcome: str) -> None:
        """Say that it is over, if it was open."""
        if self._opened:
            lasted_s, self._opened = time.monotonic() - self._opened, 0.0
            self._tell(outcome.lower(), lasted_s)

    def _tell(self, outcome: str, lasted_s: float) -> None:
        if self._watch.is_front:
            revision = self._front.exchange.revisions[CLIENT] or ""
            told = SeenSession(self._label, self._principal, self._client, revision, outcome, lasted_s)
            for sink in self._watch.sinks:
                sink.take_session(told)

    def began(self, side: Side, call: Call, frame: Frame) -> None:
        """Note when, and what it asks."""
        if side is not CLIENT:
            self._ask(call.method)
            return
        tool = _find_tool(call, frame) if call.method == CALL_TOOL else ""
        whose = frame.sender or PRINCIPAL.get()
        call.seen = [time.monotonic(), 0.0, 0.0, LABEL.get(), whose, tool, len(frame.raw)]

    def handed(self, call: Call) -> None:
        """Note when."""
        if (seen := call.seen) is not None:
            seen[_HANDED] = time.monotonic()

    def answered(self, call: Call) -> None:
        """Note when it came first."""
        if (seen := call.seen) is not None and not seen[_ANSWERED]:
            seen[_ANSWERED] = time.monotonic()

    def ended(self, call: Call, frame: Frame | None) -> None:
        """Hand it on."""
        seen, now, server_s = call.seen, time.monotonic(), None
        if seen is None:
            return
        call.seen = None
        began, handed, answered, label, whose, tool, size = seen
        if handed:
            server_s = (answered or now) - handed
        watch, method, revision = self._watch, call.method, call.revision
        outcome = CANCELLED if frame is None else _judge(method, revision, frame)
        if outcome == ASKS:
            self._ask(method)
        elif method == LIST_TOOLS and frame is not None and outcome == OK:
            self._note_tools(frame)
        spoken = self._front.exchange.revisions
        if revision is not None:
            revisions: tuple[str | None, str | None] = (revision, self._find_servers())
        elif spoken is self._spoken:
            revisions = self._revisions
        else:
            revisions = self._revisions = (spoken[CLIENT], spoken[SERVER])
            self._spoken = spoken
        fields = (
            label,
            whose,
            self._client or _name(getattr(getattr(call, "metadata", None), "client_info", None)),
            revisions,
            watch.name,
            method,
            tool,
            outcome,
            server_s,
            now - began - (server_s or 0.0),
            size,
            0 if frame is None else len(frame.raw),
        )
        told = _new_seen(SeenCall, fields)
        for sink in watch.sinks:
            sink.take_call(told, watch.is_front, watch.is_back)

    def lost(self, source: str, target: str, losses: Sequence[LossGroup]) -> None:
        """Hand it on."""
        for sink in self._watch.sinks:
            sink.take_losses(source, target, losses)

    def _ask(self, method: str) -> None:
        if self._watch.is_front:
            for sink in self._watch.sinks:
                sink.take_question(method)

    def _note_tools(self, frame: Frame) -> None:
        listed = [find(tool, "name") for tool in find_list(_read(frame), "result", "tools")]
        for sink in self._watch.sinks:
            sink.take_tools(self._watch.name, [name for name in listed if isinstance(name, str)])

    def _find_servers(self) -> str | None:
        """Return what is spoken with the server."""
        servers = getattr(self._front.backend, "servers", ())
        return next((edge.revision for edge in servers if edge.revision), None)


def _find_tool(call: Call, frame: Frame) -> str:
    """Return the tool that is called; empty where none is named."""
    named = _NAMES.match(frame.raw)
    if named is not None:
        return named[1].decode("utf-8", "replace")
    params = getattr(call, "params", None)
    name = find(read_params(frame) if params is None else params, "name")
    return name if isinstance(name, str) else ""


def _judge(method: str, revision: str | None, frame: Frame) -> str:
    """Say how a call of this method ended, which says itself what it is written in, by its answer."""
    if frame.kind == "error":
        code = find(_read(frame), "error", "code")
        return str(code) if type(code) is int and abs(code) < 1 << 53 else UNREADABLE
    line = frame.raw  # `in` would try first whether it is given a number, which costs more than to look
    if method == CALL_TOOL and line.find(_ERROR) >= 0 and _says_error(frame):
        return TOOL_ERROR
    if revision is not None and line.find(_ASKS) >= 0 and find(_read(frame), "result", "resultType") == ASKS:
        return ASKS
    return OK


def _says_error(frame: Frame) -> bool:
    line = frame.raw
    if line.count(_ERROR) == line.count(_NO_ERROR) or _FAILS.search(line) is None:
        return False
    return find(_read(frame), "result", "isError") is True


def _read(frame: Frame) -> object:
    """Return what a response says; None where it cannot be decoded, which is for whoever it goes to to find out."""
    try:
        return decode(frame.raw)
    except ValueError:
        return None


def _name(info: object) -> str:
    """Return name and version of a client."""
    said = (find(info, "name"), find(info, "version"))
    return " ".join(one[:100] for one in said if isinstance(one, str))


if TYPE_CHECKING:
    _observer: type[Observer] = CallWatch
    _session: type[SessionObserver] = SessionWatch
