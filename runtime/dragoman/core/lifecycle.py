"""The lifecycle of a session between one client and one server, as a table.

Lives here: the states, what can happen in each, and what is to be done then, as data. Must not: do it; that is
`core.session`, which looks every event up here and runs the actions by name. The diagram in docs/lifecycle.md is drawn
from the table, and a test keeps the two in step.

Theory of operation. The proxy is a server to the client and a client to the server, and both handshakes are one: the
client's `initialize` is offered to the server, the server's result answers the client, the client's `initialized` ends
both. Whatever the client sends in between waits in a queue and is replayed, in order, when the state moves on; the
client's end of input waits in the same queue, so that a script piped in at once is served to its end. A pair that is
not in the table cannot happen or is refused where it comes in (a second `initialize`, say); `advance` says so by None.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(Enum):
    """Where a session stands."""

    CONNECTING = "connecting"
    INITIALIZING = "initializing"
    SENDING_INITIALIZED = "sending-initialized"
    READY = "ready"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


class Event(Enum):
    """What happened to a session."""

    OPENED = "opened"
    INITIALIZE_REQUESTED = "initialize requested"
    INITIALIZE_ANSWERED = "initialize answered"
    REVISION_REJECTED = "revision rejected"
    SERVER_LOST_ON_RETRY = "server lost on retry"
    INITIALIZE_REFUSED = "initialize refused"
    INITIALIZE_FAILED = "initialize failed"
    INITIALIZED = "initialized"
    TIMED_OUT = "timed out"
    DRAINED = "drained"
    CLIENT_CLOSED = "client closed"
    SERVER_CLOSED = "server closed"
    STOPPED = "stopped"


class Action(Enum):
    """What a transition asks of the session."""

    START_TIMER = "start timer"
    STOP_TIMER = "stop timer"
    OFFER = "offer"
    OFFER_ANOTHER = "offer another"
    RESTART_SERVER = "restart server"
    ANSWER_INITIALIZE = "answer initialize"
    PASS_REFUSAL = "pass refusal"
    FAIL_INITIALIZE = "fail initialize"
    SEND_INITIALIZED = "send initialized"
    REPLAY_QUEUE = "replay queue"
    FAIL_QUEUE = "fail queue"
    FAIL_CLIENT_REQUESTS = "fail client requests"
    FAIL_SERVER_REQUESTS = "fail server requests"
    FINISH = "finish"


class Transition(NamedTuple):
    """Where an event leads, and what is done on the way, in order."""

    state: State
    actions: tuple[Action, ...]


_S, _E, _A = State, Event, Action

_FAIL = (_A.STOP_TIMER, _A.FAIL_INITIALIZE, _A.FAIL_QUEUE, _A.FINISH)
_STOP = (_A.STOP_TIMER, _A.FAIL_INITIALIZE, _A.FAIL_QUEUE, _A.FAIL_CLIENT_REQUESTS, _A.FAIL_SERVER_REQUESTS, _A.FINISH)

TRANSITIONS: Final[Mapping[tuple[State, Event], Transition]] = MappingProxyType(
    {
        # Nothing asked yet. The clock runs all the same: a client may connect, and never say a word.
        (_S.CONNECTING, _E.OPENED): Transition(_S.CONNECTING, (_A.START_TIMER,)),
        (_S.CONNECTING, _E.INITIALIZE_REQUESTED): Transition(_S.INITIALIZING, (_A.OFFER, _A.START_TIMER)),
        (_S.CONNECTING, _E.TIMED_OUT): Transition(_S.FAILED, _FAIL),
        (_S.CONNECTING, _E.CLIENT_CLOSED): Transition(_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_QUEUE, _A.FINISH)),
        # A server that dies before it was asked: the client's `initialize` is on its way and deserves the reason.
        (_S.CONNECTING, _E.SERVER_CLOSED): Transition(_S.FAILED, (_A.FAIL_QUEUE, _A.START_TIMER)),
        (_S.CONNECTING, _E.STOPPED): Transition(_S.CLOSED, _STOP),
        # The offer is with the server.
        (_S.INITIALIZING, _E.INITIALIZE_ANSWERED): Transition(
            _S.SENDING_INITIALIZED, (_A.ANSWER_INITIALIZE, _A.START_TIMER, _A.REPLAY_QUEUE)
        ),
        (_S.INITIALIZING, _E.REVISION_REJECTED): Transition(_S.INITIALIZING, (_A.OFFER_ANOTHER,)),
        (_S.INITIALIZING, _E.SERVER_LOST_ON_RETRY): Transition(_S.INITIALIZING, (_A.RESTART_SERVER,)),
        # An error that is not about revisions is the server's own: the client may correct itself and ask again.
        (_S.INITIALIZING, _E.INITIALIZE_REFUSED): Transition(
            _S.CONNECTING, (_A.START_TIMER, _A.PASS_REFUSAL, _A.FAIL_QUEUE)
        ),
        (_S.INITIALIZING, _E.INITIALIZE_FAILED): Transition(_S.FAILED, _FAIL),
        (_S.INITIALIZING, _E.TIMED_OUT): Transition(_S.FAILED, _FAIL),
        (_S.INITIALIZING, _E.SERVER_CLOSED): Transition(_S.FAILED, _FAIL),
        (_S.INITIALIZING, _E.STOPPED): Transition(_S.CLOSED, _STOP),
        # The client has its answer and owes `initialized`. A person at a keyboard may take long: only requests fail.
        (_S.SENDING_INITIALIZED, _E.INITIALIZED): Transition(
            _S.READY, (_A.STOP_TIMER, _A.SEND_INITIALIZED, _A.REPLAY_QUEUE)
        ),
        (_S.SENDING_INITIALIZED, _E.TIMED_OUT): Transition(_S.SENDING_INITIALIZED, (_A.FAIL_QUEUE, _A.START_TIMER)),
        (_S.SENDING_INITIALIZED, _E.CLIENT_CLOSED): Transition(_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_QUEUE, _A.FINISH)),
        (_S.SENDING_INITIALIZED, _E.SERVER_CLOSED): Transition(_S.FAILED, (_A.STOP_TIMER, _A.FAIL_QUEUE, _A.FINISH)),
        (_S.SENDING_INITIALIZED, _E.STOPPED): Transition(_S.CLOSED, _STOP),
        # Everything crosses.
        (_S.READY, _E.CLIENT_CLOSED): Transition(_S.CLOSING, (_A.FAIL_SERVER_REQUESTS, _A.START_TIMER)),
        (_S.READY, _E.SERVER_CLOSED): Transition(_S.CLOSED, (_A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.READY, _E.STOPPED): Transition(_S.CLOSED, _STOP),
        # The client says no more; what it asked for is still answered.
        (_S.CLOSING, _E.DRAINED): Transition(_S.CLOSED, (_A.STOP_TIMER, _A.FINISH)),
        (_S.CLOSING, _E.TIMED_OUT): Transition(_S.CLOSED, (_A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.CLOSING, _E.SERVER_CLOSED): Transition(_S.CLOSED, (_A.STOP_TIMER, _A.FAIL_CLIENT_REQUESTS, _A.FINISH)),
        (_S.CLOSING, _E.STOPPED): Transition(_S.CLOSED, _STOP),
        # Only the last words remain.
        (_S.FAILED, _E.INITIALIZE_REQUESTED): Transition(_S.FAILED, _FAIL),
        (_S.FAILED, _E.TIMED_OUT): Transition(_S.CLOSED, (_A.FINISH,)),
        (_S.FAILED, _E.CLIENT_CLOSED): Transition(_S.CLOSED, (_A.STOP_TIMER, _A.FINISH)),
        (_S.FAILED, _E.STOPPED): Transition(_S.CLOSED, (_A.STOP_TIMER, _A.FINISH)),
    }
)


def advance(state: State, event: Event) -> Transition | None:
    """Look up where an event leads; None where the event has no meaning in that state."""
    return TRANSITIONS.get((state, event))


def draw_diagram() -> str:
    """Draw the table as a Mermaid state diagram: the text between the fences in docs/lifecycle.md."""
    lines = ["stateDiagram-v2", f"    [*] --> {_node(State.CONNECTING)}"]
    lines += [f"    {_node(a)} --> {_node(to.state)}: {event.value}" for (a, event), to in TRANSITIONS.items()]
    lines.append(f"    {_node(State.CLOSED)} --> [*]")
    return "\n".join(lines) + "\n"


def draw_table() -> str:
    """Write the table as Markdown: the second half of docs/lifecycle.md."""
    lines = ["| in state | when | go to | and |", "|---|---|---|---|"]
    for (state, event), to in TRANSITIONS.items():
        actions = ", ".join(action.value for action in to.actions)
        lines.append(f"| {state.value} | {event.value} | {to.state.value} | {actions} |")
    return "\n".join(lines) + "\n"


def _node(state: State) -> str:
    return state.value.replace("-", "_")
