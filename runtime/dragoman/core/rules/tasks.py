"""Tasks of 2025-11-25 and tasks of the extension: one object in two forms.

Lives here: the two forms, and how a tool and a call say that they are about tasks. Must not: keep tasks, or poll them
(`promoted`, `awaiting`). The two are not wire-compatible, and no schema of ours has the second: so it is written here,
after the extension's own page (SEP-2663), field by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.rules.names import OLDER_FACTS
from dragoman.core.unchecked import find, find_object, with_meta, without_meta
from dragoman_spec.losses import Loss

RELATED_TASK: Final = OLDER_FACTS.request_meta["related-task"]

_OLDER_NAMES: Final[Mapping[str, str]] = MappingProxyType({"ttlMs": "ttl", "pollIntervalMs": "pollInterval"})
_PAYLOAD: Final = frozenset({"result", "error", "inputRequests", "resultType", "_meta"})
"""What a task of the extension carries beside what is told of it."""


def to_older_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task of the extension as one of 2025-11-25, without its result, which is fetched apart there."""
    older = {_OLDER_NAMES.get(name, name): value for name, value in task.items() if name not in _PAYLOAD}
    return {"ttl": None, **older}  # required there, if only as null


def to_older_creation(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a call that has become a task, as 2025-11-25 has it."""
    meta = {"_meta": result["_meta"]} if result.get("_meta") else {}
    return {"task": to_older_task(result), **meta}


def relate(params: Mapping[str, Any] | None, task_id: str) -> dict[str, Any]:
    """Say of a request to a client of 2025-11-25 which task it is about: it MUST say so there."""
    return with_meta(params or {}, RELATED_TASK, {"taskId": task_id})


def spell_time(time_s: float) -> str:
    """Return a time, in seconds since 1970, as tasks have it."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def leave_off_relation(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result of 2025-11-25 without the task that it says it is of; the same object where it says none."""
    left: dict[str, Any] = without_meta(result, RELATED_TASK)
    return left


def read_relation(params: object) -> str | None:
    """Return the task that a request or notification of a server of 2025-11-25 says it is about; None for none.

    One that says so and names nothing that can be read is about a task that nobody has: its name is empty.
    """
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or RELATED_TASK not in meta:
        return None
    task_id = find(meta, RELATED_TASK, "taskId")
    return task_id if isinstance(task_id, str) else ""


def read_support(tool: Mapping[str, Any] | None) -> str:
    """Say whether a tool of a server of 2025-11-25 runs as a task: `required`, `optional` or `forbidden`."""
    support = find(tool, "execution", "taskSupport")
    return support if support in ("required", "optional") else "forbidden"


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
    return {**tool, "execution": {**find_object(tool, "execution"), "taskSupport": "optional"}}


def take_task(params: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any] | None, tuple[Loss, ...]]:
    """Take off what a call of 2025-11-25 says about running as a task.

    Returns:
        The params without it, the same object where there is none; what it said; and what is lost of that: for how
        long the client wants the task to be kept, the server of the extension decides alone.
    """
    if "task" not in params:
        return params, None, ()
    said = find_object(params, "task")
    losses = tuple(Loss(f"/params/task/{name}", "dropped", value) for name, value in said.items())
    return {name: value for name, value in params.items() if name != "task"}, said, losses
