"""What must be so in the tables of the proxy whenever nothing is under way in its loop: they are looked through then.

What two tables say of one thing agrees, no table holds what is over, none is above its limit, and what is counted is
what is there. Peers notice such a mistake late or never; memory that grows, or a place that is not given back, hurts
all the same. `watched` keeps hold of the tables that are made while a world runs, and `look` goes through them when
time is about to pass; it gives a sentence for each place where the books do not balance.

To add a table: a function with `@book(Kind)`, over one object of that kind, which gives such sentences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from dragoman.core.calls import CANCELLED_KEPT, Calls
from dragoman.core.commands import Side
from dragoman.core.edges.exchange import Exchange
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.per_request import PerRequestEdge
from dragoman.core.edges.recovery import Recovery
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.serving.subscriptions import Subscriptions
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.shared.desk import Desk
from dragoman.core.switch.shared.levels import LEVELS
from dragoman.core.switch.shared.switch import Shared
from dragoman.core.switch.to_session.loans import SessionLoans
from dragoman.core.waiting import WaitingRoom
from dragoman.host.host import Host
from dragoman.host.shared import SharedHost
from dragoman.transports.http.streamable_session import StreamableSession
from dragoman.transports.upstream.lanes import Lanes

Check = Callable[[Any, float], Iterator[str]]
"""Takes an object and the time."""

_CHECKS: Final[dict[type, list[Check]]] = {}

_MOST_LOOKS: Final = 400
"""How often the books of one world are looked through at most."""

_MANY: Final = 100
"""More than any world has of anything."""

_UNASKED: Final = LEVELS.index("info")
"""What a session is given that has asked for no level."""

_SLACK_S: Final = 3.0
"""How much later than its time something may go that a clock lets go."""


def book(kind: type) -> Callable[[Check], Check]:
    """Make a function one that looks through objects of a kind."""

    def note(function: Check) -> Check:
        _CHECKS.setdefault(kind, []).append(function)
        return function

    return note


class Books:
    """The tables of one world."""

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}
        self._told: set[str] = set()
        self._looks = 0

    def look(self, now: float) -> Iterator[tuple[str, str]]:
        """Give what does not balance, as rule and text; now and then, for it takes time."""
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            return
        for one in list(self.kept.values()):
            kind = type(one)
            for text in (text for check in _CHECKS[kind] for text in check(one, now)):
                if kind.__name__ + text[:12] in self._told:
                    continue
                self._told.add(kind.__name__ + text[:12])
                yield "limits" if " may " in text else "books", f"{kind.__name__}: {text}"

    def clear(self) -> None:
        """Hold on to nothing."""
        self.kept.clear()


@contextlib.contextmanager
def watched() -> Iterator[Books]:
    """Keep hold of every table that is made."""
    books = Books()
    before: dict[type, Any] = {kind: vars(kind)["__init__"] for kind in _CHECKS}

    def watch(kind: type, made: Any) -> Any:
        def make(self: Any, *args: Any, **more: Any) -> None:
            made(self, *args, **more)
            if type(self) is kind:
                books.kept[id(self)] = self

        return make

    for kind, made in before.items():
        kind.__init__ = watch(kind, made)  # type: ignore[misc]
    try:
        yield books
    finally:
        for kind, made in before.items():
            kind.__init__ = made  # type: ignore[misc]
        books.clear()


# A session


@book(Exchange)
def _exchange(exchange: Exchange, now: float) -> Iterator[str]:
    for side, calls in exchange.calls.items():
        yield from (f"of the {side.value}: {text}" for text in _calls(calls))
        if not hasattr(exchange, "front"):
            tables = (calls.waiting, calls.cancelled, calls.tokens, calls.retired, calls.renamed)
            if any(tables):
                yield f"the session is over, and keeps requests of the {side.value}"


def _calls(calls: Calls) -> Iterator[str]:
    if len(calls.waiting) > calls.limit:
        yield f"{len(calls.waiting)} requests are open, and {calls.limit} may be"
    if len(calls.cancelled) > CANCELLED_KEPT or len(calls.retired) > CANCELLED_KEPT:
        yield f"{len(calls.cancelled)} cancelled and {len(calls.retired)} retired ids are kept"
    if calls.waiting.keys() & calls.cancelled.keys():
        yield "an id is that of a request that waits, and of one that was cancelled"
    for key, call in calls.waiting.items():
        if call.key != key:
            yield f"{call.method} is kept under {key!r}, and its id is {call.key!r}"
    for name, table in (("token", calls.tokens), ("first id", calls.renamed)):
        for value, call in table.items():
            if calls.waiting.get(call.key) is not call:
                yield f"the {name} {value!r} is kept of {call.method}, which does not wait"


# A server that is shared


def _desk(desk: Desk, now: float) -> Iterator[str]:
    yield from _loans_of(desk, now)
    yield from _turns_of(desk, now)
    for key, (session, _) in desk.questions._asked.items():
        if desk.sessions.get(session.front) is not session:
            yield f"session {session.number} has left, and is asked {key!r}"
        elif not _is_known(session.front.exchange.calls[Side.SERVER], key):
            yield f"session {session.number} is asked {key!r}, and its edge knows nothing of it"
    for session in desk.sessions.values():
        for call in session.front.exchange.calls[Side.SERVER].waiting.values():
            key = call.key if call.first is None else call.first[0]
            if call.own is None and desk.questions._asked.get(key, (None,))[0] is not session:
                yield f"session {session.number} is asked {key!r}, and the server waits for no answer of it"
    levels = [session.level for session in desk.sessions.values()]
    are_ready = all(session.ready for session in desk.sessions.values())
    if are_ready and desk.levels._current is not None and any(level is not None for level in levels):
        least = min(_UNASKED if level is None else level for level in levels)
        if desk.levels._current != least:
            yield f"the server was told {LEVELS[desk.levels._current]}, and somebody wants {LEVELS[least]}"
    if len(desk.questions) > desk.questions._limit:
        yield f"{len(desk.questions)} questions are open, and {desk.questions._limit} may be"
    for session in desk.subscriptions._filters:
        if not session.present:
            yield f"session {session.number} has left, and what it wanted is kept"
        elif len(desk.subscriptions.uris_of([session])) > desk.settings.subscriptions:
            yield f"a session has more subscriptions than the {desk.settings.subscriptions} that it may have"
    attribution = desk.attribution
    for table in (attribution._tasks, attribution._tokens):
        for name, loan in table.items():
            if loan.session is not None and not loan.session.present:
                yield f"{name!r} is kept as that of session {loan.session.number}, which has left"
    for name, owner in attribution._elicitations.items():
        if owner is not None and not owner.present:
            yield f"the elicitation {name} is kept as that of session {owner.number}, which has left"
    suspects = desk.loans.suspects
    for suspect in (*suspects._by_key.values(), *suspects._for_good):
        if suspect.owner is not None and getattr(suspect.owner, "present", None) is not True:
            yield "somebody is suspected who has left"
    if len(suspects._by_key) > suspects._limit:
        yield f"{len(suspects._by_key)} are suspected one by one, and {suspects._limit} may be"
    if suspects._for_good and suspects._limit > _MANY:
        yield "somebody is suspected for good, and there is room"


def _is_known(calls: Calls, key: bytes) -> bool:
    """Whether a question waits for its answer, under whatever id its client knows it."""
    return key in calls.waiting or key in calls.renamed


def _loans_of(desk: Desk, now: float) -> Iterator[str]:
    by_key = desk.loans.by_key
    waiting = 0
    for key, loan in by_key.items():
        if loan.key != key:
            yield f"a loan is kept under {key!r}, and its id is {loan.key!r}"
        session = loan.session
        if session is not None and not session.present and loan.cancelled_at is None:
            yield f"{loan.method} of session {session.number}, which has left, is not given up"
        if session is not None and session.present and loan.call is not None and loan.cancelled_at is None:
            waiting += 1
            calls = session.front.exchange.calls[Side.CLIENT]
            if loan.call.at_server != key or calls.waiting.get(loan.call.key) is not loan.call:
                yield f"{loan.method} of session {session.number} is with the server, and nobody waits for it"
        if session is None and loan.cancelled_at is None:
            yield f"{loan.method} is a request of our own, and is never let go"
        if loan.cancelled_at is not None:
            if loan not in desk.turns.cancelled:
                yield f"{loan.method} was given up, and is never let go"
            elif now - loan.cancelled_at > desk.settings.grace_s + _SLACK_S:
                yield f"{loan.method} was given up {now - loan.cancelled_at:.0f} s ago, and is kept"
    for session in desk.sessions.values():
        for call in session.front.exchange.calls[Side.CLIENT].waiting.values():
            key = call.at_server
            if not isinstance(key, bytes) or session.front.exchange.around is not None:  # else a bridge has it
                continue
            if key not in by_key or by_key[key].call is not call:
                yield f"{call.method} of session {session.number} waits, and is not with the server"


def _turns_of(desk: Desk, now: float) -> Iterator[str]:
    turns, by_key = desk.turns, desk.loans.by_key
    if turns._bytes != sum(len(loan.frame.raw) for loan in turns._queue if loan.frame is not None):
        yield f"{turns._bytes} bytes are counted of {len(turns._queue)} calls that wait for their turn"
    if turns._bytes > desk.settings.waiting_bytes:
        yield f"{turns._bytes} bytes wait for their turn, and {desk.settings.waiting_bytes} may"
    for loan in turns._queue:
        if loan.frame is None or by_key.get(loan.key) is not loan:
            yield f"{loan.method} waits for its turn, and is not there"
        elif now - loan.since_s > desk.settings.turn_s + _SLACK_S:
            yield f"{loan.method} has waited for its turn for {now - loan.since_s:.0f} s"
    queued = set(map(id, turns._queue))
    for loan in by_key.values():
        if loan.frame is not None and id(loan) not in queued:
            yield f"{loan.method} has not been sent, and does not wait for its turn"
    for loan in turns.cancelled:
        if by_key.get(loan.key) is not loan:
            yield f"{loan.method} is over, and kept as given up"
    if turns._queue and turns._is_free_for(turns._queue[0]):
        yield f"{turns._queue[0].method} waits, and nobody is before it"


def _shared(shared: Shared, now: float) -> Iterator[str]:
    sessions = shared._desk.sessions
    for front in shared._waiting:
        if front not in sessions:
            yield "a client that has left waits for the server"
    if len(shared._bridges.keys() - sessions.keys()):
        yield "a bridge is kept of a client that has left"
    if shared._waiting and shared.upstream.state is UpstreamState.IDLE:
        yield "clients wait for a server that is not asked"
    if shared._waiting and shared.is_open:
        yield "clients wait for a server that is open"


@book(Subscriptions)
def _subscriptions(subscriptions: Subscriptions[Any], now: float) -> Iterator[str]:
    for item, holders in subscriptions._holders.items():
        if not holders:
            yield f"nobody wants {item}, which is kept"
        if any(item not in subscriptions._filters.get(holder, ()) for holder in holders):
            yield f"somebody does not want {item}, and is kept for it"
    for listener, wanted in subscriptions._filters.items():
        if not wanted or any(listener not in subscriptions._holders.get(item, ()) for item in wanted):
            yield f"somebody wants {wanted}, and is not kept for it"


# Those who carry it all


@book(Host)
def _host(host: Host, now: float) -> Iterator[str]:
    for edge, port in host._ports.items():
        if not port.alive:
            yield "a port is kept that is cut"
        elif port.edge is not edge or port.host is not host:
            yield "a port is kept for another edge"
    for front in host._endings:
        if front not in host._ports:
            yield "a session is waited for that has no port"
    if host._endings and (host._commands or host.switch.outbox.commands):
        yield "a command is not carried out"
    if host.switch.outbox.waiting:
        yield "frames are not written"


@book(SharedHost)
def _shared_host(host: SharedHost, now: float) -> Iterator[str]:
    yield from _host(host, now)
    if host.closing is not None:
        return
    yield from _desk(host.switch._desk, now)
    yield from _shared(host.switch, now)
    clients = [port for edge, port in host._ports.items() if isinstance(edge, FrontEdge)]
    if host._clients > len(clients) or host._clients < 0:
        yield f"{host._clients} clients are counted, and {len(clients)} are there"
    for port in host._ports.values():
        held = sum(len(frame.raw) for frame in port.backlog or ())
        if port.backlog_bytes != held:
            yield f"{port.backlog_bytes} bytes are counted for a reader for whom {held} wait"
        if port.backlog and not port.full:
            yield "frames wait for a reader that reads"
    waiting, high = sum(port.backlog_bytes for port in host._ports.values()), host._config.high_water_bytes
    if waiting > high and not host._is_held_back:
        yield f"{waiting} bytes wait for slow readers, {high} may, and the server is read"
    if host._is_held_back and waiting <= high // 2:
        yield f"the server is held back, and {waiting} bytes wait"
    if host._clock is None and (host.switch.needs_clock or host._is_held_back):
        yield "something waits for a time, and no clock runs"
    if not host._clients and host._idle is None and host._ports:  # else it could not be started
        yield "nobody uses a server, and it is not closed after a while"
    if host._idle is not None and not host._idle.cancelled() and host._clients and host._idle.when() > now:
        yield "a server is closed after a while, though it has clients"


@book(PerRequestEdge)
def _per_request(edge: PerRequestEdge, now: float) -> Iterator[str]:
    for key, loan in edge._loans.by_key.items():
        if loan.key != key:
            yield f"{loan.method} is kept under {key!r}, and its id is {loan.key!r}"


@book(SessionLoans)
def _session_loans(loans: SessionLoans, now: float) -> Iterator[str]:
    by_key = loans.table.by_key
    for key, loan in by_key.items():
        if loan.key != key:
            yield f"{loan.method} is kept under {key!r}, and its id is {loan.key!r}"
    for loan in loans._queue:
        if by_key.get(loan.key) is not loan:
            yield f"{loan.method} waits for its turn, and is over"
    if loans._queue and not loans._must_wait(loans._queue[0]):
        yield f"{loans._queue[0].method} waits for its turn, and nobody is before it"


@book(Recovery)
def _recovery(recovery: Recovery, now: float) -> Iterator[str]:
    for room in (recovery._given_back, recovery._meanwhile):
        yield from _room(room)
    state = getattr(getattr(recovery, "_edge", None), "state", None)
    if state is UpstreamState.READY and (recovery._given_back or recovery._meanwhile):
        yield "frames wait for a session that is open"
    if state is UpstreamState.READY and recovery._routine is not None:
        yield "a session is got back, and it is open"


def _room(room: WaitingRoom) -> Iterator[str]:
    if room._bytes != sum(len(frame.raw) for frame in room._frames):
        yield f"{room._bytes} bytes are counted of {len(room._frames)} frames that wait"
    if room._bytes > room._limit_bytes or len(room._frames) > room._limit_frames:
        yield f"{len(room._frames)} frames wait, and {room._limit_frames} may"


@book(UpstreamEdge)
def _upstream(upstream: UpstreamEdge, now: float) -> Iterator[str]:
    if upstream.outgoing and upstream not in upstream._outbox.waiting:
        yield "frames are never written"
    if upstream.state is UpstreamState.READY and (upstream.offer or upstream._first or upstream._offered):
        yield "what was offered is kept, and nobody asks for it again"


@book(FrontEdge)
def _front(front: FrontEdge, now: float) -> Iterator[str]:
    if front.outgoing and front not in front._outbox.waiting and front.state is FrontState.READY:
        yield "frames are never written"


# A router


@book(Common)
def _common(common: Common, now: float) -> Iterator[str]:
    if getattr(common.outside, "is_over", False):
        return
    for name, member in common.members.items():
        if len(set(member.asked.values())) != len(member.asked):
            yield f"two questions of {name} have one number"
        if len(member.suspects._by_key) > member.suspects._limit:
            yield f"more requests of {name} are suspected than may be"


# HTTP


@book(StreamableSession)
def _streamable(session: StreamableSession, now: float) -> Iterator[str]:
    ledger, streams = session._ledger, session._streams.values()
    kept = sum(len(event) for stream in streams for event in stream._events)
    if ledger.kept != kept:
        yield f"{ledger.kept} bytes of events are counted, and {kept} are kept"
    for stream in streams:
        unread = sum(len(event) for event in stream._after_cursor())
        if stream.unread != unread:
            yield f"{stream.unread} bytes are counted as unread of stream {stream.name}, and {unread} are"
        if len(stream._events) > ledger.limit_events:
            yield f"{len(stream._events)} events of a stream are kept, and {ledger.limit_events} may be"
        if stream._connection is not None and stream._connection.stream is not stream:
            yield f"stream {stream.name} has a connection that carries another one"
    for key, call in session._calls.items():
        if key not in call.keys:
            yield f"{key!r} waits in a call that does not have it"
    for call in session._waiting():
        if call.stream is not None and call.stream.finished:
            yield f"a call waits whose stream {call.stream.name} is finished"
    if session.over and not session._calls and session._ledger.kept and not streams:
        yield "events are kept of a session that is over"


@book(Lanes)
def _lanes(lanes: Lanes, now: float) -> Iterator[str]:
    left = [*lanes._held, *lanes._requests, *lanes._notices, *lanes._answers]
    size = sum(len(job.frame.raw) for job in left)
    if lanes._bytes < size:
        yield f"{lanes._bytes} bytes are counted of {size} that wait to be sent"
    taken = sum(not job.is_parked for job in lanes._asked.values())
    if sum(lanes._by_sender.values()) != sum(bool(job.sender and not job.is_parked) for job in lanes._asked.values()):
        yield f"places are counted for {dict(lanes._by_sender)}, and {taken} requests have one"
    if lanes._requests and lanes._find_next() is not None:
        yield "a request waits for a place, and there is one"
    if lanes._answers and lanes._answering == 0:
        yield "an answer waits, and none is being sent"
