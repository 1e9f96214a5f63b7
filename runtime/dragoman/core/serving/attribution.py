"""Which session does a frame belong to? Only answers say so; this module finds evidence for the other frames.

Lives here: tasks and elicitations with their owners, and the evidence in a frame itself. Must not: write frames. Used
by `desk`.

Evidence also counts if it leads to no session. A frame on the stream of an ended request, or one that names an unknown
task, belongs to no other session either: no session gets it, and no other rule is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.envelope import Frame
from dragoman.core.loans import Loans
from dragoman.core.places import keep_latest
from dragoman.core.rules.tasks import read_relation
from dragoman.core.serving.loans import QUIET, Loan
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.unchecked import find, find_list

REMEMBERED: Final = 4096
"""How many tasks, and how many elicitations, are remembered."""

NAME_BYTES: Final = 1024
"""The longest id of a task or elicitation that is remembered, in bytes or characters."""


class Attribution:
    """What is known about who is the reason for what.

    Args:
        loans: The requests that are with the server.
        sessions: Those who are there.

    Attributes:
        called_and_left: Whether a session has ended that had made calls.
    """

    def __init__(self, loans: Loans[Loan], sessions: Mapping[Any, ClientSession]) -> None:
        self.called_and_left = False
        self._loans = loans
        self._sessions = sessions
        self._tasks: dict[str, Loan] = {}  # the requests that began them
        self._tokens: dict[bytes, Loan] = {}  # those of tasks, whose progress tokens outlive the request
        self._elicitations: dict[str, ClientSession | None] = {}  # None where two sessions were told the same

    def add_task(self, task: Any, loan: Loan) -> None:
        """Note that a request began a task."""
        if _is_name(task) and loan.session is not None and task not in self._tasks:
            keep_latest(self._tasks, task, loan, REMEMBERED)
            if loan.token is not None:
                keep_latest(self._tokens, loan.key, loan, REMEMBERED)

    def add_elicitation(self, name: Any, session: ClientSession) -> None:
        """Note whose an elicitation is that may be completed later, elsewhere."""
        if _is_name(name):
            is_its_own = self._elicitations.get(name, session) is session
            keep_latest(self._elicitations, name, session if is_its_own else None, REMEMBERED)

    def task_owner(self, task: Any) -> ClientSession | None:
        """Return the owner of a task."""
        loan = self._tasks.get(task) if isinstance(task, str) else None
        return None if loan is None else loan.owner

    def find_progressing(self, key: bytes) -> Loan | None:
        """Return the request that has this progress token, or had it and began a task."""
        return self._loans.find(key) or self._tokens.get(key)

    def elicitation_owner(self, name: Any) -> ClientSession | None:
        """Return whose an elicitation is; it is not expected again."""
        return self._elicitations.pop(name, None) if isinstance(name, str) else None

    def clear(self) -> None:
        """Forget everything: the server is gone, and the next one may give the same names to others."""
        for table in (self._tasks, self._tokens, self._elicitations):
            table.clear()
        self._loans.suspects.forget_all()

    def forget(self, session: ClientSession) -> None:
        """Forget what belonged to a session that has gone."""
        self.called_and_left = self.called_and_left or session.called
        self._tasks = {task: loan for task, loan in self._tasks.items() if loan.session is not session}
        self._tokens = {key: loan for key, loan in self._tokens.items() if loan.session is not session}
        self._elicitations = {name: owner for name, owner in self._elicitations.items() if owner is not session}
        self._loans.suspects.forget(session)

    def reasons(self, params: dict[str, Any], frame: Frame) -> set[ClientSession | None]:
        """Return who may be the reason for what the server says; None in it is nobody who is there.

        Args:
            params: Of the server's frame.
            frame: That frame, with the id of ours of the request on whose stream it came.
        """
        among = frozenset(frame.source[1:]) if frame.source else None
        named = self.named_owners(params, frame.stream)
        reasons = named or self._find_reasons(True, among)
        # It may be about a call that is answered: of another principal, whatever is open now.
        is_unproved = not named and self._loans.is_called_by_several
        if (reasons and not is_unproved) or not self._sessions:
            return reasons
        reasons = self._find_reasons(False, among)
        if reasons and not self._loans.is_of_several:
            return reasons
        # It may be about a call that is answered, of one who has called; who only lists is not more likely.
        before = {one for one in self._sessions.values() if one.called or not reasons}
        return reasons | before | ({None} if self.called_and_left else set())

    def _find_reasons(self, only_asking: bool, among: frozenset[bytes] | None) -> set[ClientSession | None]:
        """Return whose requests may be the reason: those that are with the server, and those that it never answered.

        Whose request it answers last or not at all is as likely as whose it works on. `initialize` is everybody's.

        Args:
            only_asking: Whether only those count during which servers ask back.
            among: Our ids of those that it can be; None where nobody has said so.
        """
        loans, suspects = self._loans.by_key, self._loans.suspects
        found: set[ClientSession | None] = set()  # a question may come while there are very many: this is a quick loop
        for key, loan in loans.items():
            if loan.frame is None and not (only_asking and loan.method in QUIET) and (among is None or key in among):
                found.add(loan.session)
        owners = {one if one is not None and one.present else None for one in found}
        if any(key not in loans and suspects.find(key) is None for key in among or ()):
            owners.add(None)  # a request of whoever said so, or one that is forgotten here
        return owners | suspects.owners(only_asking, among)

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
            found = self._loans.find(related) or self._loans.suspects.find(related)
            owners.add(None if found is None else found.owner)
        task = read_relation(params)
        if task is not None and (task in self._tasks or related is None):  # one that has just begun is not known yet
            owners.add(self.task_owner(task))
        return owners


def elicitation_ids(error: dict[str, Any]) -> list[Any]:
    """Return the elicitations that an error asks for first (-32042, 2025-11-25/client/elicitation)."""
    return [find(one, "elicitationId") for one in find_list(error, "data", "elicitations") if isinstance(one, dict)]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= NAME_BYTES
