"""Whose is it? What the server says beside its answers names no session; here is what gives it away.

Lives here: tasks and elicitations with their owners, and the rule of the only session with a request under way. Must
not: write frames. Called by `hub`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from dragoman.core.sharing.calls import CALLS, Call, Calls, Member

REMEMBERED: Final = 4096
"""How many tasks, and how many elicitations, are remembered."""

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""Where a frame names the task that it is about: in its `_meta` (2025-11-25/basic/utilities/tasks)."""


@dataclass(frozen=True, slots=True)
class Owned:
    """A task, and the progress token that outlives the request which began it."""

    member: Member
    key: bytes = b""
    token: tuple[Any] | None = None


class Attribution:
    """What is known about who is the reason for what.

    Args:
        calls: The requests that are with the server.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._tasks: dict[str, Owned] = {}
        self._tokens: dict[bytes, Owned] = {}
        self._elicitations: dict[str, Member] = {}

    def add_task(self, task: Any, call: Call) -> None:
        """Note that a call began a task."""
        if isinstance(task, str) and call.member is not None and task not in self._tasks:
            owned = Owned(call.member, call.key, call.token)
            _remember(self._tasks, task, owned)
            if call.token is not None:
                _remember(self._tokens, call.key, owned)

    def add_elicitation(self, name: Any, member: Member) -> None:
        """Note whose an elicitation is that may be completed later, elsewhere."""
        if isinstance(name, str):
            _remember(self._elicitations, name, member)

    def task_owner(self, task: Any) -> Member | None:
        """Give whose a task is."""
        owned = self._tasks.get(task) if isinstance(task, str) else None
        return None if owned is None or not owned.member.present else owned.member

    def token_owner(self, key: bytes) -> Owned | None:
        """Give whose a progress token is that belongs to a task."""
        return self._tokens.get(key)

    def elicitation_owner(self, name: Any) -> Member | None:
        """Give whose an elicitation is; it is not expected again."""
        return self._elicitations.pop(name, None) if isinstance(name, str) else None

    def forget(self, member: Member) -> None:
        """Forget what belonged to a member that has gone."""
        self._tasks = {task: owned for task, owned in self._tasks.items() if owned.member is not member}
        self._tokens = {key: owned for key, owned in self._tokens.items() if owned.member is not member}
        self._elicitations = {name: owner for name, owner in self._elicitations.items() if owner is not member}

    def of_stream(self, related: bytes | None) -> Member | None:
        """Give whose the stream is on which something came: that of the request with this id of ours."""
        call = self._calls.find(related)
        return None if call is None else call.member

    def suspects(self, members: Iterable[Member]) -> set[Member]:
        """Give who may be the reason for something that comes now, those who have gone lately included.

        Args:
            members: Who is there.
        """
        return self._calls.owners(CALLS) or self._calls.owners() or set(members)


def related_task(params: dict[str, Any]) -> Any:
    """Give the id of the task that a frame says it is about."""
    meta = params.get("_meta")
    related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    return related.get("taskId") if isinstance(related, dict) else None


def elicitation_ids(error: dict[str, Any]) -> list[Any]:
    """Give the elicitations that an error asks for first (-32042, 2025-11-25/client/elicitation)."""
    data = error.get("data")
    wanted = data.get("elicitations") if isinstance(data, dict) else None
    return [one.get("elicitationId") for one in wanted if isinstance(one, dict)] if isinstance(wanted, list) else []


def _remember(table: dict[Any, Any], key: Any, value: Any) -> None:
    table[key] = value
    while len(table) > REMEMBERED:
        del table[next(iter(table))]
