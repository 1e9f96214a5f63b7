"""Calls at a server with a handshake that are made again with recorded answers: carrying out what `bridge.replay` says.

Lives here: one attempt after the other. Must not: decide which call may be repeated (`bridge.strategy`), or cancel at
the server, for which `asking` has its reasons. Called by `asking`.
"""

from __future__ import annotations

from typing import Any

from dragoman.core.bridge.asking import Turned, turn
from dragoman.core.bridge.questions import Question, Reply
from dragoman.core.bridge.replay import Replay
from dragoman.core.bridge.to_session.works import Work
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.envelope import Refusal
from dragoman.core.wiring import Bridging
from dragoman.errors import RemoteProtocolError, TranslationError


def ask_again(work: Work, method: str, params: Any, bridging: Bridging) -> Reply | dict[str, Any] | Turned:
    """Take a question of the server, about a call with its client there.

    Returns:
        The recorded answer; or the result that asks the client, and then the server's call is to be cancelled; or why
        there is neither.
    """
    assert work.questions is not None
    caller = work.questions.caller
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
    return turn("what it has answered so far is too long to be carried along") if result is None else result
