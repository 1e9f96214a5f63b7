"""Why a session does not go on, in the words that the peers are told.

Lives here: the error of each way to fail. Must not: decide that something failed (`core.edges`).
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.commands import Outcome
from dragoman.core.edges.lifecycle import FrontState as State
from dragoman.core.envelope import Refusal
from dragoman.core.settings import Settings
from dragoman.errors import InitializationTimeout

_AWAITED: Final = {
    State.CONNECTING: "the client's initialize",
    State.INITIALIZING: "the server's answer to initialize",
    State.SENDING_INITIALIZED: "the client's notifications/initialized",
}

_LAST: Final = {
    State.CLOSING: ("the client's closing", Outcome.CLIENT_CLOSED),
    State.DRAINING: ("the moment when the proxy began to stop", Outcome.STOPPED),
}

_CLOSED_EARLY: Final = {
    State.CONNECTING: "the client closed without sending initialize",
    State.SENDING_INITIALIZED: "the client closed without sending notifications/initialized",
}


def explain_timeout(state: State, settings: Settings, about: dict[str, Any]) -> tuple[Refusal, Outcome]:
    """Say what did not come in time.

    Args:
        state: Where the session stood.
        settings: With the limits.
        about: What is known of the handshake, for the error's data.
    """
    if state in _LAST:
        event, outcome = _LAST[state]
        message = f"the server did not answer within {settings.drain_timeout_s:g} s of {event}"
        return connection_closed(message), outcome
    error = InitializationTimeout(_AWAITED.get(state, "the end"), settings.init_timeout_s)
    data = {"error": "InitializationTimeout", "waitingFor": error.waiting_for, "timeoutSeconds": error.timeout_s}
    return Refusal(CONNECTION_CLOSED, str(error), {**data, **about}), Outcome.INITIALIZATION_TIMED_OUT


def explain_client_closing(state: State, reason: str) -> Refusal:
    """Say that the client is gone, to a server that asked it something, or to the client's own early requests."""
    return connection_closed(_CLOSED_EARLY.get(state, f"the client has closed: {reason}"))


def connection_closed(message: str) -> Refusal:
    """Return the error for a connection that went away."""
    return Refusal(CONNECTION_CLOSED, message, {})
