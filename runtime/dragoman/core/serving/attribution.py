"""Which session does a frame belong to? Only answers say so; this module finds evidence for the other frames.

Lives here: tasks and elicitations with their owners, and the evidence in a frame itself. Must not: write frames. Used
by `desk`.

Evidence also counts if it leads to no session. A frame on the stream of an ended request, or one that names an unknown
task, belongs to no other session either: no session gets it, and no other rule is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dragoman.core.places import keep_latest
from dragoman.core.serving.loans import Loan, Loans
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.unchecked import find, find_list
from dragoman_spec import HANDSHAKE_REVISIONS, facts

REMEMBERED: Final = 4096
"""How many tasks, and how many elicitations, are remembered."""

NAME_BYTES: Final = 1024
"""The longest id of a task or elicitation that is remembered, in bytes or characters."""

RELATED_TASK: Final = facts(HANDSHAKE_REVISIONS[-1]).request_meta.get("related-task")
"""Where a frame names the task that it is about: in its `_meta` (2025-11-25/basic/utilities/tasks)."""


@dataclass(frozen=True, slots=True)
class Owned:
    """A task, and the progress token that outlives the request which began it."""

    session: ClientSession
    token: tuple[Any] | None = None


class Attribution:
    """What is known about who is the reason for what.

    Args:
        loans: The requests that are with the server.
    """

    def __init__(self, loans: Loans) -> None:
        self._loans = loans
        self._tasks: dict[str, Owned] = {}
        self._tokens: dict[bytes, Owned] = {}
        self._elicitations: dict[str, ClientSession | None] = {}  # None where two sessions were told the same

    def add_task(self, task: Any, loan: Loan) -> None:
        """Note that a request began a task."""
        if _is_name(task) and loan.session is not None and task not in self._tasks:
            owned = Owned(loan.session, loan.token)
            keep_latest(self._tasks, task, owned, REMEMBERED)
            if loan.token is not None:
                keep_latest(self._tokens, loan.key, owned, REMEMBERED)

    def add_elicitation(self, name: Any, session: ClientSession) -> None:
        """Note whose an elicitation is that may be completed later, elsewhere."""
        if _is_name(name):
            is_its_own = self._elicitations.get(name, session) is session
            keep_latest(self._elicitations, name, session if is_its_own else None, REMEMBERED)

    def task_owner(self, task: Any) -> ClientSession | None:
        """Return the owner of a task."""
        owned = self._tasks.get(task) if isinstance(task, str) else None
        return None if owned is None or not owned.session.present else owned.session

    def token_owner(self, key: bytes) -> Owned | None:
        """Return the owner of a progress token that belongs to a task."""
        return self._tokens.get(key)

    def elicitation_owner(self, name: Any) -> ClientSession | None:
        """Return whose an elicitation is; it is not expected again."""
        return self._elicitations.pop(name, None) if isinstance(name, str) else None

    def clear(self) -> None:
        """Forget everything: the server is gone, and the next one may give the same names to others."""
        for table in (self._tasks, self._tokens, self._elicitations):
            table.clear()

    def forget(self, session: ClientSession) -> None:
        """Forget what belonged to a session that has gone."""
        self._tasks = {task: owned for task, owned in self._tasks.items() if owned.session is not session}
        self._tokens = {key: owned for key, owned in self._tokens.items() if owned.session is not session}
        self._elicitations = {name: owner for name, owner in self._elicitations.items() if owner is not session}

    def named_owners(self, params: dict[str, Any], related: bytes | None) -> set[ClientSession | None]:
        """Return whom a frame of the server names: by the stream on which it came, by the task that it is about.

        Args:
            params: Of the frame.
            related: The id of ours of the request on whose stream it came.

        Returns:
            Empty where it names nobody. None in it stands for somebody who is not there, or not known.
        """
        owners: set[ClientSession | None] = set()
        if related is not None:
            owners.add(self._loans.find_owner(related))
        task = related_task(params)
        if task is not None and (task in self._tasks or related is None):  # one that has just begun is not known yet
            owners.add(self.task_owner(task))
        return owners


def related_task(params: dict[str, Any]) -> str | None:
    """Return the id of the task that a frame says it is about; None where it says nothing of the kind."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or RELATED_TASK not in meta:
        return None
    related = meta[RELATED_TASK]
    task = related.get("taskId") if isinstance(related, dict) else None
    return task if isinstance(task, str) else ""


def elicitation_ids(error: dict[str, Any]) -> list[Any]:
    """Return the elicitations that an error asks for first (-32042, 2025-11-25/client/elicitation)."""
    return [find(one, "elicitationId") for one in find_list(error, "data", "elicitations") if isinstance(one, dict)]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= NAME_BYTES
