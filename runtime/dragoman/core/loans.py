"""What a server has been asked, under ids that are lent: numbers of ours, in place of those of who asks.

Lives here: the table, whoever the server is. Must not: know who waits for an answer, or send. Used by
`edges.per_request`, by `serving` and by `switch.to_session`, each with loans of its own.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from dragoman.core.calls import SUSPECTS, Suspects
from dragoman.core.envelope import Frame, twin_of


class AnyLoan(Protocol):
    """A request that is with the server, or is to be.

    Attributes:
        key: Our id for it, as JSON; empty before it has one.
        frame: What is to be sent when its turn comes; None once it is with the server.
    """

    key: bytes

    @property
    def frame(self) -> Frame | None:
        """What is to be sent."""


LoanT = TypeVar("LoanT", bound=AnyLoan)


class Loans(Generic[LoanT]):
    """The requests that are with one server or wait to be, by our ids.

    Args:
        restore_ids: Whether an id that came back as another type is known again.
        suspects: How many that ended without an answer are remembered one by one.

    Attributes:
        by_key: Those that are not answered.
        latest: The number of the latest id.
        senders: Whose requests the server has had; of several, two are named.
        callers: The principals who have called something during which servers ask back; of several, two are named.
        suspects: Those that ended without an answer.
    """

    __slots__ = ("_restore_ids", "by_key", "callers", "latest", "senders", "suspects")

    def __init__(self, restore_ids: bool = True, suspects: int = SUSPECTS) -> None:
        self.by_key: dict[bytes, LoanT] = {}
        self.latest = 0
        self.senders: set[str] = set()
        self.callers: set[str] = set()
        self.suspects: Suspects[Any] = Suspects(suspects, restore_ids)
        self._restore_ids = restore_ids

    def next_key(self) -> bytes:
        """Return an id that was never used."""
        self.latest += 1
        return b"%d" % self.latest

    def lend(self, loan: LoanT, sender: str | None = None) -> LoanT:
        """Lend a request an id, and remember it; a request of our own has no sender."""
        self.latest += 1
        loan.key = b"%d" % self.latest
        self.by_key[loan.key] = loan
        if sender is not None and sender not in self.senders:
            self.note(sender)
        return loan

    def note(self, sender: str, caller: str | None = None) -> None:
        """Note whose a request is, and the principal of one during which servers ask back."""
        if len(self.senders) < 2:
            self.senders.add(sender)
        if caller is not None and len(self.callers) < 2:
            self.callers.add(caller)

    @property
    def is_of_several(self) -> bool:
        """Whether the server has had requests of several senders: then no guess is good enough."""
        return len(self.senders) > 1

    @property
    def is_called_by_several(self) -> bool:
        """Whether several principals have called: then only a stream or a task says whose a question is."""
        return len(self.callers) > 1

    def find(self, key: bytes | None) -> LoanT | None:
        """Find a request by our id for it, or by one that differs in type alone."""
        if key is None:
            return None
        found = self.by_key.get(key)
        return self.by_key.get(self.twin(key)) if found is None else found

    def twin(self, key: bytes) -> bytes:
        """Return the id that an answer may have in place of this one; empty where there is none."""
        return (twin_of(key) if self._restore_ids else None) or b""

    def take(self, key: bytes | None, is_final: bool = True) -> LoanT | None:
        """Take off the table what a response answers; None where nothing is with the server under its id.

        Args:
            key: The id of the response.
            is_final: Whether it is the server's own, which says nothing more about a suspect then.
        """
        loan = self.by_key.get(key or b"") or self.find(key)
        if loan is not None and loan.frame is None:
            return self.by_key.pop(loan.key)
        if is_final:
            self.suspects.clear(key or b"")
        return None
