"""A server with a handshake wants a URL visited before it runs a call: error -32042 of 2025-11-25.

Lives here: the result that asks a per-request client to visit it, and what its retry means. Must not: keep anything;
the server's call has ended, so nothing waits. Called where the answers of such servers come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.declared import find_missing, read_declared
from dragoman.core.methods import ELICITATION
from dragoman.core.rules.names import URL_ELICITATION_REQUIRED
from dragoman.core.rules.state import Binding, Keeper, Reason, State, refuse
from dragoman.core.unchecked import find, find_list
from dragoman.errors import RemoteProtocolError

KIND: Final = "url"
"""The kind of state that stands for a call to be made again after a visit."""


def ask_to_visit(
    error: Mapping[str, Any],
    keeper: Keeper,
    binding: Binding,
    capabilities: Mapping[str, Any],
    now_s: float,
    nonce: bytes,
) -> dict[str, Any] | None:
    """Turn the error into the result that asks for the visits.

    Args:
        error: Of the server.
        keeper: Writes the state.
        binding: The client's request.
        capabilities: As that request declared them.
        now_s: The time.
        nonce: Random bytes for the state.

    Returns:
        The result; None where there is no URL in the error, or the client did not say that it can visit any: then it
        gets an error, see `refuse_visit`.
    """
    if error.get("code") != URL_ELICITATION_REQUIRED or not (asked := _read(error.get("data"))):
        return None
    questions = {f"url-{number}": _question(elicitation) for number, elicitation in enumerate(asked, 1)}
    declared = read_declared(capabilities)
    if any(find_missing(ELICITATION, question["params"], declared) for question in questions.values()):
        return None
    names = [elicitation["elicitationId"] for elicitation in asked if isinstance(elicitation.get("elicitationId"), str)]
    state = keeper.write(State(KIND, extra=[[*questions], names]), binding, now_s, nonce)
    return {"resultType": "input_required", "inputRequests": questions, "requestState": state}


def refuse_visit(error: Mapping[str, Any]) -> RemoteProtocolError:
    """Return the error for a client that was not told about URLs: the code itself may not reach it."""
    urls = [elicitation["url"] for elicitation in _read(error.get("data"))]
    message = str(error.get("message", "A URL has to be visited first"))
    return RemoteProtocolError(INTERNAL_ERROR, " ".join([message, *urls]), {"original": dict(error)})


def resume_visit(state: State, params: Mapping[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Read a retry after the visits.

    Args:
        state: That it brought, checked by the keeper.
        params: Of the retry.

    Returns:
        The params to call the server with again, or None where somebody did not want to visit; and the names that the
        server has for the visits.

    Raises:
        RemoteProtocolError: An answer is missing or is not one (-32602).
    """
    keys, names = state.extra
    actions = []
    for key in keys:
        actions.append(find(params, "inputResponses", key, "action"))
        if actions[-1] not in ("accept", "decline", "cancel"):
            raise refuse(Reason.MALFORMED, {"pointer": f"/params/inputResponses/{key}"})
    if any(action != "accept" for action in actions):
        return None, tuple(names)
    left = {name: value for name, value in params.items() if name not in ("inputResponses", "requestState")}
    return left, tuple(names)


def _read(data: object) -> list[dict[str, Any]]:
    return [one for one in find_list(data, "elicitations") if isinstance(one, dict) and isinstance(one.get("url"), str)]


def _question(elicitation: Mapping[str, Any]) -> dict[str, Any]:
    message = elicitation.get("message")
    params = {"mode": "url", "message": message if isinstance(message, str) else "", "url": elicitation["url"]}
    return {"method": ELICITATION, "params": params}
