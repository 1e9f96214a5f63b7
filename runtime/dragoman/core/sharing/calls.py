"""Who is at the shared server, and the requests that are with it.

Lives here: members, their requests under ids of ours, and who could be the reason for a question of the server's. Must
not: write frames. Called by the modules beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.envelope import Frame, twin_of
from dragoman.core.lines import LineSplitter
from dragoman.core.sharing.suspects import Suspect, Suspects
from dragoman_spec import HANDSHAKE_REVISIONS, facts

_QUIET: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).quiet)
"""Requests during which no server asks back: they list, look up or set something. Any other request might, those that
the proxy does not know above all. Quiet ones are held responsible only when none of the others is under way."""


_NOTHING: Final[frozenset[str]] = frozenset()
"""One for all: even an empty set takes 0.2 KB."""


class Member:
    """One client session at a shared server.

    Attributes:
        number: In the order of joining.
        declared: What its client can be asked; see the module of that name.
        initialize: The id of its `initialize` while that is not answered.
        offered: The revision that it named there.
        ready: Whether it has sent `notifications/initialized`.
        present: Whether it is still there.
        called: Whether it ever made a request during which servers ask back.
        level: The index of the log level that it asked for.
        uris: The resources that it subscribed to.
        calls: Its requests that are not answered, by its own ids.
        splitter: What it has said of a line.
    """

    __slots__ = (
        "called",
        "calls",
        "declared",
        "initialize",
        "level",
        "number",
        "offered",
        "present",
        "ready",
        "splitter",
        "uris",
    )

    def __init__(self, number: int, limit_bytes: int) -> None:
        self.number = number
        self.declared = _NOTHING
        self.initialize: bytes | None = None
        self.offered: Any = None
        self.ready = False
        self.present = True
        self.called = False
        self.level: int | None = None
        self.uris = _NOTHING
        self.calls: dict[bytes, Call] = {}
        self.splitter = LineSplitter(limit_bytes)


Hook = Callable[["Call", Frame], Frame]
"""Called with the answer to a call before it is passed on; gives what is passed on."""


@dataclass(slots=True, eq=False)
class Call:
    """A request that is with the server, or waits for its turn.

    Attributes:
        key: Our id for it, as JSON; a progress token of it is the same number.
        method: What it asks.
        member: Whose it is; None for one of our own.
        own_key: The member's id for it.
        token: The member's progress token, in a tuple; None without one.
        hook: What to do with its answer first.
        started: Whether it is with the server.
        cancelled_at: When it was cancelled.
    """

    key: bytes
    method: str
    member: Member | None
    own_key: bytes = b""
    token: tuple[Any] | None = None
    hook: Hook | None = None
    started: bool = True
    cancelled_at: float | None = None

    @property
    def asks(self) -> bool:
        """Whether servers ask back during such a request."""
        return self.method not in _QUIET

    @property
    def owner(self) -> Member | None:
        """Whose it is; None for a member that has left, and for requests of our own."""
        return self.member if self.member is not None and self.member.present else None


@dataclass(slots=True)
class Calls:
    """The requests that are with the server or wait to be, by our ids.

    Attributes:
        suspects: Those that ended without an answer.
        by_key: All others.
        cancelled: Those of `by_key` that were cancelled a moment ago: their answer is passed on if it comes.
    """

    suspects: Suspects
    by_key: dict[bytes, Call] = field(default_factory=dict)
    cancelled: dict[Call, None] = field(default_factory=dict)
    _last: int = 0

    def add(self, method: str, member: Member | None = None, own_key: bytes = b"", hook: Hook | None = None) -> Call:
        """Give a request an id of ours and remember it."""
        self._last += 1
        call = Call(b"%d" % self._last, method, member, own_key, hook=hook)
        self.by_key[call.key] = call
        if member is not None:
            member.calls[own_key] = call
            member.called = member.called or call.asks
        return call

    def find(self, key: bytes | None) -> Call | None:
        """Find a request by our id for it, or by one that differs in type alone."""
        if key is None:
            return None
        return self.by_key.get(key) or self.by_key.get(twin_of(key) or b"")

    def find_owner(self, key: bytes) -> Member | None:
        """Give whose the request with this id of ours is or was; None where that is nobody who is there."""
        found = self.find(key) or self.suspects.find(key)
        return None if found is None else found.owner

    def forget(self, call: Call) -> None:
        """Forget a request: it was answered, or never got to the server."""
        self.by_key.pop(call.key, None)
        self.cancelled.pop(call, None)
        if call.member is not None and call.member.calls.get(call.own_key) is call:
            del call.member.calls[call.own_key]

    def cancel(self, call: Call, now: float) -> None:
        """Note that nobody waits for a request any more; its answer may be on its way, or a question about it."""
        call.cancelled_at = now
        self.cancelled[call] = None

    def suspect(self, call: Call) -> None:
        """Note that a request has ended without an answer."""
        self.forget(call)
        self.suspects.add(call.key, Suspect(call.owner, call.asks))

    def expired(self, before: float) -> list[Call]:
        """Give the requests that were cancelled before this moment."""
        return [call for call in self.cancelled if call.cancelled_at is not None and call.cancelled_at < before]

    def callers(self) -> set[Member | None]:
        """Give whose calls are with the server now, those cancelled a moment ago included."""
        return {call.member for call in self.by_key.values() if call.started and call.asks}

    def reasons(self) -> set[Member | None]:
        """Give who may be the reason for something that the server says now; None is nobody who is there.

        Whose request it answers last or not at all is as likely as whose it works on. `initialize` is everybody's.
        """
        asking: set[Member | None] = set()  # a question may come while there are very many calls: this is a quick loop
        quiet: set[Member | None] = set()
        for call in self.by_key.values():
            if call.started and call.method != "initialize":
                (quiet if call.method in _QUIET else asking).add(call.member)
        suspects = self.suspects
        return _present(asking) | suspects.owners(only_asking=True) or _present(quiet) | suspects.owners(
            only_asking=False
        )


def _present(members: set[Member | None]) -> set[Member | None]:
    """Give those who are there, and None for all who are not."""
    return {member if member is not None and member.present else None for member in members}
