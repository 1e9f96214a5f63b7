"""The lifecycles of the two edges, as tables.

Lives here, as data: the states, the events that are possible in each, and the actions that follow. Must not: run them;
the edges look up every event here and run the actions by name. The diagrams in docs/internals/lifecycle.md are drawn
from the tables, and a test keeps them in step.

Theory of operation. The proxy is a server to the client and a client to the server. Where both belong together, the
client's `initialize` is offered to the server, the server's result answers the client, and the client's `initialized`
ends both handshakes; a server that several clients share is opened once. Whatever the client sends in between waits in
a queue and is replayed, in order, when the state moves on; the client's end of input waits in the same queue, so that a
script piped in at once is served to its end. A pair of state and event that is not in the table
cannot happen, or is refused where it comes in (a second `initialize`, for example); looking it up gives None.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)
A = TypeVar("A", bound=Enum)


class FrontState(Enum):
    """Where the session with a client stands."""

    CONNECTING = "connecting"
    INITIALIZING = "initializing"
    SENDING_INITIALIZED = "sending-initialized"
    READY = "ready"
    PER_REQUEST = "per-request"
    DRAINING = "draining"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


class FrontEvent(Enum):
    """What happened to the session with a client."""

    OPENED = "opened"
    INITIALIZE_REQUESTED = "initialize requested"
    SERVER_ACCEPTED = "server accepted"
    SERVER_REFUSED = "server refused"
    SERVER_FAILED = "server failed"
    INITIALIZED = "initialized"
    PER_REQUEST_BEGUN = "per-request begun"
    HANDSHAKE_BEGUN = "handshake begun"
    TIMED_OUT = "timed out"
    DRAIN_ASKED = "drain asked"
    DRAINED = "drained"
    CLIENT_CLOSED = "client closed"
    SERVER_CLOSED = "server closed"
    STOPPED = "stopped"


class FrontAction(Enum):
    """What a transition asks of a front edge."""

    START_TIMER = "start timer"
    STOP_TIMER = "stop timer"
    ANSWER_INITIALIZE = "answer initialize"
    PASS_REFUSAL = "pass refusal"
    FAIL_INITIALIZE = "fail initialize"
    ANNOUNCE = "announce"
    REPLAY_QUEUE = "replay queue"
    FAIL_QUEUE = "fail queue"
    FAIL_CLIENT_REQUESTS = "fail client requests"
    FAIL_SERVER_REQUESTS = "fail server requests"
    FINISH = "finish"


class UpstreamState(Enum):
    """Where the session with a server stands."""

    IDLE = "idle"
    OPENING = "opening"
    ACCEPTED = "accepted"
    READY = "ready"
    RECOVERING = "recovering"
    ABSENT = "absent"
    LOST = "lost"


class UpstreamEvent(Enum):
    """What happened to the session with a server."""

    ASKED = "asked"
    DISCOVERED = "discovered"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    FAILED = "failed"
    ANNOUNCED = "announced"
    SESSION_LOST = "session lost"
    NEEDED = "needed"
    CRASHED = "crashed"
    RECOVERED = "recovered"
    VANISHED = "vanished"
    CLOSED = "closed"


class UpstreamAction(Enum):
    """What a transition asks of an upstream edge."""

    TELL_DISCOVERED = "tell discovered"
    REOPEN = "reopen"
    TELL_ACCEPTED = "tell accepted"
    TELL_REFUSED = "tell refused"
    TELL_FAILED = "tell failed"
    SEND_INITIALIZED = "send initialized"
    TELL_INTERRUPTED = "tell interrupted"
    TELL_CHANGES = "tell changes"
    SEND_KEPT = "send kept"
    WATCH = "watch"
    CLOSE = "close"
    TELL_LOST = "tell lost"


class Transition(NamedTuple, Generic[S, A]):
    """Where an event leads, and what is done on the way, in order."""

    state: S
    actions: tuple[A, ...]


class Table(Generic[S, E, A]):
    """A lifecycle.

    Args:
        first: The state that it begins in.
        last: The state that nothing leads out of.
        transitions: By state and event.
    """

    def __init__(self, first: S, last: S, transitions: dict[tuple[S, E], tuple[S, tuple[A, ...]]]) -> None:
        self.first = first
        self.last = last
        self.transitions: Mapping[tuple[S, E], Transition[S, A]] = MappingProxyType(
            {cause: Transition(state, actions) for cause, (state, actions) in transitions.items()}
        )

    def advance(self, state: S, event: E) -> Transition[S, A] | None:
        """Look up where an event leads; None where the event has no meaning in that state."""
        return self.transitions.get((state, event))


_S, _E, _A = FrontState, FrontEvent, FrontAction
_FAIL = (_A.STOP_TIMER, _A.FAIL_INITIALIZE, _A.FAIL_QUEUE, _A.FINISH)
_STOP = (_A.STOP_TIMER, _A.FAIL_INITIALIZE, _A.FAIL_QUEUE, _A.FAIL_CLIENT_REQUESTS, _A.FAIL_SERVER_REQUESTS, _A.FINISH)

FRONT: Final[Table[Any, Any, Any]] = Table(
    _S.CONNECTING,
    _S.CLOSED,
    {
        # Nothing asked yet. The clock runs all the same: a client may connect, and never say a word.
        (_S.CONNECTING, _E.OPENED): (_S.CONNECTING, (_A.START_TIMER,)),
        (_S.CONNECTING, _E.INITIALIZE_REQUESTED): (_S.INITIALIZING, (_A.START_TIMER,)),
        (_S.CONNECTING, _E.PER_REQUEST_BEGUN): (_S.PER_REQUEST, (_A.STOP_TIMER,)),
        (_S.CONNECTING, _E.TIMED_OUT): (_S.FAILED, _FAIL),
        (_S.CONNECTING, _E.CLIENT_CLOSED): (_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_QUEUE, _A.FINISH)),
        # A server that dies before it was asked: the client's `initialize` is on its way and deserves the reason.
        (_S.CONNECTING, _E.SERVER_CLOSED): (_S.FAILED, (_A.FAIL_QUEUE, _A.START_TIMER)),
        (_S.CONNECTING, _E.STOPPED): (_S.CLOSED, _STOP),
        # The server has the offer.
        (_S.INITIALIZING, _E.SERVER_ACCEPTED): (
            _S.SENDING_INITIALIZED,
            (_A.ANSWER_INITIALIZE, _A.START_TIMER, _A.REPLAY_QUEUE),
        ),
        # An error that is not about revisions is the server's own: the client may correct itself and ask again.
        (_S.INITIALIZING, _E.SERVER_REFUSED): (_S.CONNECTING, (_A.START_TIMER, _A.PASS_REFUSAL, _A.FAIL_QUEUE)),
        (_S.INITIALIZING, _E.SERVER_FAILED): (_S.FAILED, _FAIL),
        (_S.INITIALIZING, _E.TIMED_OUT): (_S.FAILED, _FAIL),
        (_S.INITIALIZING, _E.SERVER_CLOSED): (_S.FAILED, _FAIL),
        (_S.INITIALIZING, _E.STOPPED): (_S.CLOSED, _STOP),
        # The client has its answer and owes `initialized`. A person at a keyboard may take long: only requests fail.
        (_S.SENDING_INITIALIZED, _E.INITIALIZED): (_S.READY, (_A.STOP_TIMER, _A.ANNOUNCE, _A.REPLAY_QUEUE)),
        (_S.SENDING_INITIALIZED, _E.TIMED_OUT): (_S.SENDING_INITIALIZED, (_A.FAIL_QUEUE, _A.START_TIMER)),
        (_S.SENDING_INITIALIZED, _E.CLIENT_CLOSED): (_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_QUEUE, _A.FINISH)),
        (_S.SENDING_INITIALIZED, _E.SERVER_CLOSED): (_S.FAILED, (_A.STOP_TIMER, _A.FAIL_QUEUE, _A.FINISH)),
        (_S.SENDING_INITIALIZED, _E.STOPPED): (_S.CLOSED, _STOP),
        # Everything crosses.
        (_S.READY, _E.CLIENT_CLOSED): (_S.CLOSING, (_A.FAIL_SERVER_REQUESTS, _A.START_TIMER)),
        (_S.READY, _E.DRAIN_ASKED): (_S.DRAINING, (_A.START_TIMER,)),
        (_S.READY, _E.SERVER_CLOSED): (_S.CLOSED, (_A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.READY, _E.STOPPED): (_S.CLOSED, _STOP),
        # Each request speaks for itself. A client may ask like that what is served, and then open a session.
        (_S.PER_REQUEST, _E.HANDSHAKE_BEGUN): (_S.CONNECTING, (_A.START_TIMER,)),
        (_S.PER_REQUEST, _E.CLIENT_CLOSED): (_S.CLOSING, (_A.START_TIMER,)),
        (_S.PER_REQUEST, _E.DRAIN_ASKED): (_S.DRAINING, (_A.START_TIMER,)),
        (_S.PER_REQUEST, _E.SERVER_CLOSED): (_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.PER_REQUEST, _E.STOPPED): (_S.CLOSED, _STOP),
        # The proxy stops: what the client has asked is answered, with all that belongs to it, and nothing new is taken.
        (_S.DRAINING, _E.DRAINED): (_S.CLOSED, _STOP),
        (_S.DRAINING, _E.TIMED_OUT): (_S.CLOSED, _STOP),
        (_S.DRAINING, _E.CLIENT_CLOSED): (_S.CLOSING, (_A.FAIL_SERVER_REQUESTS,)),
        (_S.DRAINING, _E.SERVER_CLOSED): (_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.DRAINING, _E.STOPPED): (_S.CLOSED, _STOP),
        # The client says no more; what it asked for is still answered.
        (_S.CLOSING, _E.DRAINED): (_S.CLOSED, (_A.STOP_TIMER, _A.FINISH)),
        (_S.CLOSING, _E.TIMED_OUT): (_S.CLOSED, (_A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.CLOSING, _E.SERVER_CLOSED): (_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.CLOSING, _E.STOPPED): (_S.CLOSED, _STOP),
        # Only the last words remain.
        (_S.FAILED, _E.INITIALIZE_REQUESTED): (_S.FAILED, _FAIL),
        (_S.FAILED, _E.TIMED_OUT): (_S.CLOSED, (_A.FINISH,)),
        (_S.FAILED, _E.CLIENT_CLOSED): (_S.CLOSED, (_A.STOP_TIMER, _A.FINISH)),
        (_S.FAILED, _E.STOPPED): (_S.CLOSED, (_A.STOP_TIMER, _A.FINISH)),
    },
)
"""The connection of a client: a session, or requests that each speak for themselves."""

_U, _V, _B = UpstreamState, UpstreamEvent, UpstreamAction

UPSTREAM: Final[Table[Any, Any, Any]] = Table(
    _U.IDLE,
    _U.LOST,
    {
        (_U.IDLE, _V.ASKED): (_U.OPENING, ()),
        (_U.IDLE, _V.CLOSED): (_U.LOST, (_B.TELL_LOST,)),
        # What it is asked meanwhile, and when it is started again, is one routine: `opening`.
        (_U.OPENING, _V.ACCEPTED): (_U.ACCEPTED, (_B.TELL_ACCEPTED,)),
        (_U.OPENING, _V.DISCOVERED): (_U.READY, (_B.TELL_DISCOVERED, _B.WATCH)),
        (_U.OPENING, _V.REFUSED): (_U.IDLE, (_B.TELL_REFUSED,)),
        (_U.OPENING, _V.FAILED): (_U.IDLE, (_B.TELL_FAILED,)),
        (_U.OPENING, _V.CLOSED): (_U.LOST, (_B.TELL_LOST,)),
        (_U.ACCEPTED, _V.ANNOUNCED): (_U.READY, (_B.SEND_INITIALIZED, _B.WATCH)),
        (_U.ACCEPTED, _V.CLOSED): (_U.LOST, (_B.TELL_LOST,)),
        (_U.READY, _V.CLOSED): (_U.LOST, (_B.TELL_LOST,)),
        # The server has forgotten the session, or is gone and to be started again, if that is wanted. How it gets the
        # session that it had is one routine: `recovery`. What was asked before a crash may have run: it fails.
        (_U.READY, _V.SESSION_LOST): (_U.RECOVERING, ()),
        (_U.READY, _V.CRASHED): (_U.RECOVERING, (_B.TELL_INTERRUPTED,)),
        (_U.RECOVERING, _V.SESSION_LOST): (_U.RECOVERING, ()),
        (_U.RECOVERING, _V.CRASHED): (_U.RECOVERING, ()),
        (_U.RECOVERING, _V.RECOVERED): (_U.READY, (_B.WATCH, _B.TELL_CHANGES, _B.SEND_KEPT)),
        (_U.RECOVERING, _V.CLOSED): (_U.LOST, (_B.TELL_LOST,)),
        # A server without a handshake keeps nothing that could be lost: it is opened again when it is needed.
        (_U.READY, _V.VANISHED): (_U.ABSENT, (_B.CLOSE, _B.TELL_LOST)),
        (_U.ABSENT, _V.NEEDED): (_U.READY, (_B.REOPEN, _B.WATCH)),
        (_U.ABSENT, _V.CLOSED): (_U.LOST, (_B.TELL_LOST,)),
    },
)
"""The session with a server of a revision that opens with `initialize`."""
