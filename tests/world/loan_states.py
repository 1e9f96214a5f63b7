"""Where a request that is lent to a server stands, and the steps that it may take: those of the pictures, no others.

The pictures are in docs/internals/lifecycle.md, and are read here: a step that a world takes and that is not drawn is
a mistake of the code or of the page. `watched_loans` sees each loan whenever one of its fields is set, when it enters
its table, and when time is about to pass.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dragoman.core.serving.loans import Loan
from dragoman.core.serving.turns import Turns
from dragoman.core.switch.to_session.loans import SessionLoan, SessionLoans

PAGE: Final = Path(__file__).parents[2] / "docs" / "internals" / "lifecycle.md"

BEGIN: Final = "[*]"
"""Where every loan comes from, and where it goes."""

Step = tuple[str, str]
"""A state, and the one after it."""


def state_of(loan: SessionLoan) -> str | None:
    """Return where a request of a newer client stands; None in the middle of a step."""
    if loan.frame is not None:
        return "waiting"
    if loan.is_left:
        return "settling"
    if loan.request is None:
        return "parked" if loan.questions else "a_task" if loan.task is not None else None
    return "asked" if loan.questions else "at_work"


def state_of_shared(loan: Loan) -> str | None:
    """Return where a request of a client with a session stands."""
    if loan.frame is not None:
        return "waiting"
    return "settling" if loan.cancelled_at is not None else "at_work"


def drawn(title: str) -> set[Step]:
    """Return the steps of the picture below a heading of the page."""
    picture = PAGE.read_text().split(f"## {title}\n")[1].split("```mermaid\n")[1].split("```")[0]
    return {(start, end) for start, end in re.findall(r"^ +(\S+) --> ([^\s:]+)", picture, re.M)}


class LoanTable(dict[bytes, Any]):
    """The loans of one server, whose steps are noted.

    Args:
        state_of: Says where one stands.
        taken: The steps of all tables of this kind.
    """

    def __init__(self, state_of: Callable[[Any], str | None], taken: set[Step]) -> None:
        super().__init__()
        self._state_of = state_of
        self._taken = taken
        self._seen: dict[int, tuple[Any, str]] = {}

    def __setitem__(self, key: bytes, loan: Any) -> None:
        super().__setitem__(key, loan)
        self._seen.setdefault(id(loan), (loan, BEGIN))
        self.note(loan)

    def note(self, loan: Any) -> None:
        """Note the step that a loan has taken, if it has."""
        if id(loan) not in self._seen or self.get(loan.key) is not loan:
            return
        before, now = self._seen[id(loan)][1], self._state_of(loan)
        if now is not None and now != before:
            self._seen[id(loan)] = loan, now
            self._taken.add((before, now))

    def look(self) -> None:
        """Note the steps that have been taken meanwhile, and the loans that have gone."""
        there = {id(loan) for loan in self.values()}
        for key, (loan, state) in list(self._seen.items()):
            if key in there:
                self.note(loan)
            else:
                del self._seen[key]
                self._taken.add((state, BEGIN))


class LoanStates:
    """The steps of one world's loans, by what is drawn."""

    def __init__(self) -> None:
        self.taken: dict[str, set[Step]] = {kind: set() for kind in DRAWN}
        self._tables: list[LoanTable] = []

    def make(self, kind: str, state_of: Callable[[Any], str | None]) -> LoanTable:
        """Make a table that is watched."""
        self._tables.append(LoanTable(state_of, self.taken[kind]))
        return self._tables[-1]

    def note(self, loan: Any) -> None:
        """Look at a loan of which something was set."""
        for table in self._tables:
            table.note(loan)

    def look(self) -> None:
        """Look at all of them."""
        for table in self._tables:
            table.look()

    def forget(self) -> None:
        """Hold on to nothing but the steps."""
        self._tables.clear()

    def undrawn(self) -> Iterator[str]:
        """Give the steps that no picture has."""
        for kind, taken in self.taken.items():
            for start, end in sorted(taken - DRAWN[kind]):
                yield f"{kind}: from {start} to {end}, which is not drawn"


DRAWN: Final = {
    "call": drawn("A call at a server with sessions"),
    "shared call": drawn("A call at a shared server"),
}
"""The steps of the pictures, by what is drawn."""


@contextlib.contextmanager
def watched_loans() -> Iterator[LoanStates]:
    """Keep hold of every table of loans that is made."""
    states = LoanStates()
    of_sessions, of_shared = SessionLoans.__init__, Turns.__init__

    def make_session_loans(self: SessionLoans, *args: Any, **more: Any) -> None:
        of_sessions(self, *args, **more)
        self.table.by_key = states.make("call", state_of)

    def make_turns(self: Turns, *args: Any, **more: Any) -> None:
        of_shared(self, *args, **more)
        self._loans.by_key = states.make("shared call", state_of_shared)

    def set_field(self: Any, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name != "key":
            states.note(self)

    changed: tuple[tuple[type, str, Any], ...] = (
        (SessionLoans, "__init__", make_session_loans),
        (Turns, "__init__", make_turns),
        (SessionLoan, "__setattr__", set_field),
        (Loan, "__setattr__", set_field),
    )
    before = [(kind, name, getattr(kind, name)) for kind, name, _ in changed]
    for kind, name, new in changed:
        setattr(kind, name, new)
    try:
        yield states
    finally:
        for kind, name, old in before:
            setattr(kind, name, old)
        states.look()
        states.forget()
