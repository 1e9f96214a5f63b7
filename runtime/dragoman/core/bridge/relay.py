"""The state of a per-request server on its way to a per-request client and back.

Lives here: wrapping it, where the client must not bring it to another server, or for somebody else. Must not: read what
the server put into it. Where one server owns all names and each caller shows it a credential of its own, the state goes
as it is, and nothing here is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.bridge.state import Binding, Keeper, Reason, State, refuse

KIND: Final = "relay"
"""The kind of state that holds one of a server."""


def wrap(result: Mapping[str, Any], keeper: Keeper, binding: Binding, now_s: float, nonce: bytes) -> Mapping[str, Any]:
    """Bind the state in a result to its request; the same object where there is none.

    Args:
        result: Of the server, which needs input.
        keeper: Writes the state.
        binding: The client's request, with the server that answered it.
        now_s: The time.
        nonce: Random bytes for the state.
    """
    inner = result.get("requestState")
    if not isinstance(inner, str):
        return result
    return {**result, "requestState": keeper.write(State(KIND, extra=inner), binding, now_s, nonce)}


def unwrap(params: Mapping[str, Any], keeper: Keeper, binding: Binding, now_s: float) -> Mapping[str, Any]:
    """Return the params of a retry with the server's own state; the same object where they bring none.

    Args:
        params: Of the client's request.
        keeper: Reads the state.
        binding: That request, with the server that it goes to.
        now_s: The time.

    Raises:
        RemoteProtocolError: It may not go on from there (-32602); the data says why.
    """
    if "requestState" not in params:
        return params
    state = keeper.read(params["requestState"], binding, now_s)
    if state.kind != KIND:
        raise refuse(Reason.OTHER_REQUEST)
    return {**params, "requestState": state.extra}
