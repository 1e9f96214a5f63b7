"""How to read a result of a per-request server: is it the whole answer, or is something wanted first?

Lives here: reading `resultType` off raw JSON. Must not: follow what it says (`inputs`), nor put the field on or take
it off, which the steps do. Called for each result of such a server before anything else looks at it: what is unknown
must not reach a client with a handshake, which would read it as an empty success.

Source: 2026-07-28/basic/index, ResultType: "clients MUST treat an absent `resultType` as `complete`", and "a
`resultType` of any value unrecognized by the client MUST be considered invalid".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from dragoman.core.bridge.names import FACTS
from dragoman.core.bridge.questions import is_question
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.errors import RemoteProtocolError


class ResultType(Enum):
    """What a result is."""

    COMPLETE = "complete"
    INPUT_REQUIRED = "input_required"


COMPLETE: Final = ResultType.COMPLETE


def read_type(result: Mapping[str, Any], method: str) -> ResultType:
    """Say what a result is, of a request that takes no task for an answer.

    Args:
        result: Of a server of the per-request era.
        method: That was asked.

    Raises:
        RemoteProtocolError: It is of a type that the answer to this request cannot be (-32603).
    """
    kind = result.get("resultType", "complete")
    if kind == "complete":
        return COMPLETE
    if kind == "input_required" and method in FACTS.input_required:
        _check_input_required(result, method)
        return ResultType.INPUT_REQUIRED
    raise _invalid(method, f"with a result of type {str(kind)[:40]!r}, which this request cannot have")


def _check_input_required(result: Mapping[str, Any], method: str) -> None:
    requests, state = result.get("inputRequests"), result.get("requestState")
    if requests is None and state is None:
        raise _invalid(method, "that it needs input, but neither with questions nor with a state")
    if not isinstance(requests, dict | None) or not isinstance(state, str | None):
        raise _invalid(method, "that it needs input, but its questions or its state are malformed")
    for key, question in (requests or {}).items():
        if not isinstance(question, dict) or not is_question(question.get("method")):
            raise _invalid(method, f"that it needs input, but {key[:40]!r} is not a question that a server may ask")
        if not isinstance(question.get("params"), dict | None):
            raise _invalid(method, f"that it needs input, but the params of {key[:40]!r} are not an object")


def _invalid(method: str, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(INTERNAL_ERROR, f"the server answered {method} {what}", {"method": method})
