"""The requests that are with the shared server, under ids that are lent to them.

Lives here: the table of these requests, and which sessions could be the reason for a request of the server. Must not:
write frames. Used by the modules beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.calls import Call, Suspect, Suspects
from dragoman.core.envelope import Frame, twin_of
from dragoman.core.serving.sessions import ClientSession
from dragoman_spec import HANDSHAKE_REVISIONS, facts

_QUIET: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).quiet)
"""Requests during which no server asks back: they list, look up or set something. Any other request might, those that
the proxy does not know above all. Quiet ones are held responsible only when none of the others is under way."""

Hook = Callable[["Loan", Frame], Frame]
"""Called with the answer to a request before it is passed on; gives what is passed on."""


@dataclass(slots=True, eq=False)
class Loan:
    """A request that is with the server, or waits for its turn.

    Attributes:
        key: Our id for it, as JSON; a progress token of it is the same number.
        method: What it asks.
        session: Whose it is; None for one of our own.
        call: The client's request; None for one of our own.
        token: The client's progress token, in a tuple; None without one.
        hook: What to do with its answer first.
        started: Whether it is with the server.
        cancelled_at: When it was cancelled.
        is_slow: Whether it has held up others for so long that nobody waits for it any more.
    """

    key: bytes
    method: str
    session: ClientSession | None
    call: Call | None = None
    token: tuple[Any] | None = None
    hook: Hook | None = None
    started: bool = True
    cancelled_at: float | None = None
    is_slow: bool = False

    @property
    def asks(self) -> bool:
        """Whether servers ask back during such a request."""
        return self.method not in _QUIET

    @property
    def owner(self) -> ClientSession | None:
        """Whose it is; None for a session that has ended, and for requests of our own."""
        return self.session if self.session is not None and self.session.present else None


@dataclass(slots=True)
class Loans:
    """The requests that are with the server or wait to be, by our ids.

    Attributes:
        suspects: Those that ended without an answer.
        restore_ids: Whether an id that came back as another type is known again.
        by_key: All others.
        cancelled: Those of `by_key` that were cancelled a moment ago: their answer is passed on if it comes.
        senders: Whose requests the server has had; of several, two are named.
        callers_named: The principals who have called something; of several, two are named.
    """

    suspects: Suspects[ClientSession]
    restore_ids: bool = True
    by_key: dict[bytes, Loan] = field(default_factory=dict)
    cancelled: dict[Loan, None] = field(default_factory=dict)
    senders: set[str] = field(default_factory=set)
    callers_named: set[str] = field(default_factory=set)
    _last: int = 0

    @property
    def is_of_several(self) -> bool:
        """Whether several principals have called something: then only a stream or a task says whose a question is."""
        return len(self.callers_named) > 1

    def next_key(self) -> bytes:
        """Return an id that was never used."""
        self._last += 1
        return b"%d" % self._last

    def add(
        self, method: str, session: ClientSession | None = None, call: Call | None = None, hook: Hook | None = None
    ) -> Loan:
        """Lend a request an id and remember it."""
        loan = Loan(self.next_key(), method, session, call, hook=hook)
        self.by_key[loan.key] = loan
        if call is not None:
            call.lent = loan.key
        if session is not None:
            session.called = session.called or loan.asks
            self._note(loan, session)
        return loan

    def _note(self, loan: Loan, session: ClientSession) -> None:
        if len(self.senders) < 2:
            self.senders.add(session.sender)
        if loan.asks and len(self.callers_named) < 2:
            self.callers_named.add(session.principal)

    def note_others(self) -> None:
        """Record that there is another server: it has had nothing but what goes to it now."""
        self.senders.clear()
        self.callers_named.clear()
        for loan in self.by_key.values():
            if loan.session is not None:
                self._note(loan, loan.session)

    def find(self, key: bytes | None) -> Loan | None:
        """Find a request by our id for it, or by one that differs in type alone."""
        if key is None:
            return None
        found = self.by_key.get(key)
        return self.by_key.get(twin_of(key) or b"") if found is None and self.restore_ids else found

    def find_owner(self, key: bytes) -> ClientSession | None:
        """Return whose the request with this id of ours is or was; None where that is nobody who is there."""
        found = self.find(key) or self.suspects.find(key)
        return None if found is None else found.owner

    def forget(self, loan: Loan) -> None:
        """Forget a request: it was answered, or never got to the server."""
        self.by_key.pop(loan.key, None)
        self.cancelled.pop(loan, None)

    def cancel(self, loan: Loan, now: float) -> None:
        """Note that nobody waits for a request any more; its answer may be on its way, or a question about it."""
        loan.cancelled_at = now
        self.cancelled[loan] = None

    def suspect(self, loan: Loan) -> None:
        """Note that a request has ended without an answer."""
        self.forget(loan)
        self.suspects.add(loan.key, Suspect(loan.owner, loan.asks))

    def expired(self, before: float) -> list[Loan]:
        """Return the requests that were cancelled before this moment."""
        return [loan for loan in self.cancelled if loan.cancelled_at is not None and loan.cancelled_at < before]

    def of(self, session: ClientSession) -> list[Loan]:
        """Return the requests of a session."""
        return [loan for loan in self.by_key.values() if loan.session is session]

    def callers(self) -> set[ClientSession | None]:
        """Return whose calls others wait for: those with the server, also if they were cancelled a moment ago."""
        return {loan.session for loan in self.by_key.values() if loan.started and loan.asks and not loan.is_slow}

    def note_slow(self) -> None:
        """Let nobody wait for the calls that are with the server now."""
        for loan in self.by_key.values():
            loan.is_slow = loan.started

    def reasons(self, only_asking: bool, among: frozenset[bytes] | None = None) -> set[ClientSession | None]:
        """Return whose requests may be the reason for something that the server says now; None is nobody who is there.

        Whose request it answers last or not at all is as likely as whose it works on. `initialize` is everybody's.

        Args:
            only_asking: Whether only those count during which servers ask back.
            among: Our ids of those that it can be; None where nobody has said so.
        """
        found: set[ClientSession | None] = set()  # a question may come while there are very many: this is a quick loop
        for key, loan in self.by_key.items():
            if loan.started and not (only_asking and loan.method in _QUIET) and (among is None or key in among):
                found.add(loan.session)
        if any(key not in self.by_key and self.suspects.find(key) is None for key in among or ()):
            found.add(None)  # a request of whoever said so, or one that is forgotten here
        return _present(found) | self.suspects.owners(only_asking, among)


def _present(sessions: set[ClientSession | None]) -> set[ClientSession | None]:
    """Return those who are there, and None for all who are not."""
    return {session if session is not None and session.present else None for session in sessions}
