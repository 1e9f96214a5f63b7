"""Tasks of 2025-11-25 and tasks of the extension: one object in two forms.

Lives here: the two forms, and how a tool and a call say that they are about tasks. Must not: keep tasks, or poll them
(`promoted`, `waiting`). The two are not wire-compatible, and no schema of ours has the second: so it is written here,
after the extension's own page (SEP-2663), field by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.bridge.names import OLDER_FACTS
from dragoman_spec.losses import Loss

RELATED_TASK: Final = OLDER_FACTS.request_meta["related-task"]

TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
"""The states that a task does not leave."""

_NEWER_NAMES: Final[Mapping[str, str]] = MappingProxyType({"ttl": "ttlMs", "pollInterval": "pollIntervalMs"})
_OLDER_NAMES: Final[Mapping[str, str]] = MappingProxyType({newer: older for older, newer in _NEWER_NAMES.items()})
_PAYLOAD: Final = frozenset({"result", "error", "inputRequests", "resultType", "_meta"})
"""What a task of the extension carries beside what is told of it."""


def to_older_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Give a task of the extension as one of 2025-11-25, without its result, which is fetched apart there."""
    older = {_OLDER_NAMES.get(name, name): value for name, value in task.items() if name not in _PAYLOAD}
    return {"ttl": None, **older}  # required there, if only as null


def to_newer_task(task: Mapping[str, Any], **payload: Any) -> dict[str, Any]:
    """Give a task of 2025-11-25 as one of the extension.

    Args:
        task: As `tasks/get` has it.
        payload: `result`, `error` or `inputRequests`, as its state asks for.
    """
    newer = {_NEWER_NAMES.get(name, name): value for name, value in task.items() if name not in _PAYLOAD}
    return {"ttlMs": None, **newer, **payload}


def to_older_creation(result: Mapping[str, Any]) -> dict[str, Any]:
    """Give the answer to a call that has become a task, as 2025-11-25 has it."""
    meta = {"_meta": result["_meta"]} if result.get("_meta") else {}
    return {"task": to_older_task(result), **meta}


def to_newer_creation(result: Mapping[str, Any]) -> dict[str, Any]:
    """Give the answer to a call that has become a task, as the extension has it."""
    meta = {"_meta": result["_meta"]} if result.get("_meta") else {}
    task = result.get("task")
    return {"resultType": "task", **to_newer_task(task if isinstance(task, dict) else {}), **meta}


def relate(params: Mapping[str, Any] | None, task_id: str) -> dict[str, Any]:
    """Say of a request to a client of 2025-11-25 which task it is about: it MUST say so there."""
    given = dict(params or {})
    meta = given.get("_meta")
    return {**given, "_meta": {**(meta if isinstance(meta, dict) else {}), RELATED_TASK: {"taskId": task_id}}}


def offer_tasks(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Say of every tool in a `tools/list` result that it may be run as a task: clients of 2025-11-25 need it said.

    Args:
        result: For a client of 2025-11-25, of a server that has the extension.
    """
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    return {**result, "tools": [_offer(tool) for tool in tools]}


def _offer(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    execution = tool.get("execution")
    return {**tool, "execution": {**(execution if isinstance(execution, dict) else {}), "taskSupport": "optional"}}


def needs_task(tool: Mapping[str, Any] | None) -> bool:
    """Whether a tool of a server of 2025-11-25 runs as a task only."""
    execution = (tool or {}).get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def take_task(params: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any] | None, tuple[Loss, ...]]:
    """Take off what a call of 2025-11-25 says about running as a task.

    Returns:
        The params without it, the same object where there is none; what it said; and what is lost of that: for how
        long the client wants the task to be kept, the server of the extension decides alone.
    """
    task = params.get("task")
    if "task" not in params:
        return params, None, ()
    said = task if isinstance(task, dict) else {}
    losses = tuple(Loss(f"/params/task/{name}", "dropped", value) for name, value in said.items())
    return {name: value for name, value in params.items() if name != "task"}, said, losses
