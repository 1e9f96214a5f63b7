"""Tasks of a server of the per-request era, where it may know several callers by one credential.

Lives here: the ids by which each caller knows its own tasks, in requests, results and notifications. Must not: keep
tasks. Called by `relay`, for callers that have names.

Theory of operation. Who knows the id of a task reads, answers and cancels it, and a server may count its ids up. So a
caller gets the id as a sealed state: it is good for its server and its caller only. How long a task is kept, the server
says. The other ids of a request are those that its client has brought; what names another task is nothing for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.edges.wiring import Bridging
from dragoman.core.rules.names import TASK_METHODS
from dragoman.core.rules.state import Reason, State, refuse
from dragoman.core.switch.to_session.promoting import FILTER, NOTICE, bind_task, find_wanted
from dragoman.core.unchecked import find
from dragoman.errors import RemoteProtocolError

_KIND: Final = "relayed task"
_EVER_S: Final = 100 * 366 * 86_400.0


def show_task(
    result: dict[str, Any], asked: Mapping[str, Any], method: str, bridging: Bridging, principal: str
) -> dict[str, Any]:
    """Return a result that names a task as its caller knows it; the same object where it names none.

    Args:
        result: Of the server.
        asked: The params of the client's request.
        method: Of that.
        bridging: Seals the id of a new task.
        principal: Who asks.
    """
    task = result.get("taskId")
    if method in TASK_METHODS and task is not None:
        return {**result, "taskId": asked["taskId"]}
    if result.get("resultType") != "task" or not isinstance(task, str):
        return result
    keeper = bridging.keeper()._replace(ttl_s=_EVER_S)
    bound = bind_task(bridging.server, principal)
    return {**result, "taskId": keeper.write(State(_KIND, extra=task), bound, bridging.now(), bridging.nonce())}


def read_task(params: Mapping[str, Any], bridging: Bridging, principal: str) -> dict[str, Any]:
    """Return the params of a request about a task with the server's own id.

    Raises:
        RemoteProtocolError: It is none that this caller was given (-32602); the data says why.
    """
    return {**params, "taskId": _open(params.get("taskId"), bridging, principal)}


def read_filter(
    params: Mapping[str, Any], bridging: Bridging, principal: str
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return what is listened to with the server's own ids, without tasks that are none of this caller's.

    Returns:
        The params; the same object where they name no tasks. And the ids that the caller has, by those of the server.

    Raises:
        RemoteProtocolError: They are no list, or too many (-32602).
    """
    wanted = find_wanted(params)
    if wanted is None:
        return params, {}
    known: dict[str, str] = {}
    for task in wanted:
        with contextlib.suppress(RemoteProtocolError):  # the acknowledgement says which are heard of
            known[_open(task, bridging, principal)] = task
    return {**params, "notifications": {**params["notifications"], FILTER: list(known)}}, known


def show_notice(method: str, params: dict[str, Any], known: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what a listener is told with the ids that it has; None where it is about another task."""
    if method == NOTICE:
        task = params.get("taskId")
        own = known.get(task) if isinstance(task, str) else None
        return None if own is None else {**params, "taskId": own}
    heard = find(params, "notifications", FILTER)
    if not isinstance(heard, list):
        return params
    own_ids = [known[task] for task in heard if isinstance(task, str) and task in known]
    return {**params, "notifications": {**params["notifications"], FILTER: own_ids}}


def _open(task: object, bridging: Bridging, principal: str) -> str:
    state = bridging.keeper().read(task, bind_task(bridging.server, principal), bridging.now())
    if state.kind != _KIND:
        raise refuse(Reason.OTHER_REQUEST)
    return str(state.extra)
