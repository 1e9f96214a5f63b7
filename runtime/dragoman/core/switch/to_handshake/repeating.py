"""Calls at a server with a handshake that are made again with recorded answers: carrying out what `bridge.replay` says.

Lives here: one attempt after the other. Must not: decide which call may be repeated (`bridge.strategy`), or cancel at
the server, for which `asking` has its reasons. Called by `asking`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.core.bridge.asking import Turned
from dragoman.core.bridge.questions import Question, Reply
from dragoman.core.bridge.replay import Replay, resume_replay
from dragoman.core.bridge.state import State
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.edges.per_request_front import Request
from dragoman.core.envelope import Refusal
from dragoman.core.switch.to_handshake.works import Work
from dragoman.core.wiring import Bridging
from dragoman.errors import RemoteProtocolError, TranslationError


class NextRound(NamedTuple):
    """The result that asks the client; the server's call is to be cancelled."""

    result: dict[str, Any]


def ask_again(work: Work, method: str, params: Any, bridging: Bridging) -> Reply | NextRound | Turned:
    """Take a question of the server, about a call with its client there.

    Returns:
        The recorded answer, or what asks the client, or why there is neither.
    """
    assert work.caller is not None
    caller = work.caller
    if work.replay is None:
        work.replay = Replay(caller.revision, caller.capabilities)
    try:
        said = work.replay.ask(method, params)
    except RemoteProtocolError as error:
        data = error.data if isinstance(error.data, dict) else {}
        refusal = Refusal(error.code, error.message, data)
        return Turned(Refusal(INTERNAL_ERROR, error.message, {"method": method}), refusal)
    except TranslationError as error:
        return Turned(Refusal(error.code, str(error), error.data), Refusal(INTERNAL_ERROR, str(error), {}))
    if not isinstance(said, Question):
        return said
    result = work.replay.compose(said, bridging.keeper(), caller.binding, bridging.now(), bridging.nonce())
    if result is None:
        reason = "the client cannot be asked: what it has answered so far is too long to be carried along"
        return Turned(Refusal(INTERNAL_ERROR, reason, {}), Refusal(INTERNAL_ERROR, reason, {}))
    return NextRound(result)


def resume_attempt(state: State, request: Request, revision: str) -> Replay:
    """Begin the next attempt.

    Args:
        state: That the retry brought, checked by the keeper.
        request: The retry.
        revision: Of the server.

    Raises:
        RemoteProtocolError: The answer is not one (-32602).
    """
    return resume_replay(state, request.params.get("inputResponses"), revision, request.metadata.capabilities)
