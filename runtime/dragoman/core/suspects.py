"""Requests that ended without the server's answer: it may still send messages about them at any time.

Lives here: their owners, until the server answers or goes. Must not: know the messages.

A server that was told of a cancellation usually does not answer, and nothing else says that it has stopped. So whatever
it says without naming a request may be about one of these, and nobody but their owners may hear it. An answer clears a
suspect, however late; so does time, where the switch says after how long. The table is bounded: the owner of a request
that does not fit any more is suspected for as long as the server lives.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import Generic, NamedTuple, TypeVar

from dragoman.core.envelope import twin_of

OwnerT = TypeVar("OwnerT", bound=Hashable)


class Suspect(NamedTuple, Generic[OwnerT]):
    """Who may be the reason for what the server says.

    Attributes:
        owner: Whose request it is; None for somebody who has left, and for requests of our own.
        asks: Whether servers ask back during such a request.
    """

    owner: OwnerT | None
    asks: bool


class Suspects(Generic[OwnerT]):
    """The requests, by our ids for them.

    Args:
        limit: How many are remembered one by one.
        restore_ids: Whether an id that came back as another type is known again.
    """

    def __init__(self, limit: int, restore_ids: bool = True) -> None:
        self._restore_ids = restore_ids
        self._limit = limit
        self._by_key: dict[bytes, Suspect[OwnerT]] = {}
        self._until_s: dict[bytes, float] = {}
        self._counts: dict[Suspect[OwnerT], int] = {}
        self._for_good: set[Suspect[OwnerT]] = set()

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: bytes, suspect: Suspect[OwnerT], until_s: float = inf) -> None:
        """Remember a request until this moment; if there are too many, its owner instead."""
        if len(self._by_key) >= self._limit:
            self._for_good.add(suspect)
            return
        self._by_key[key] = suspect
        if until_s != inf:
            self._until_s[key] = until_s
        self._counts[suspect] = self._counts.get(suspect, 0) + 1

    def find(self, key: bytes) -> Suspect[OwnerT] | None:
        """Find a request by our id for it, or by one that differs in type alone."""
        return self._by_key.get(key) or self._by_key.get(self._twin(key))

    def clear(self, key: bytes) -> bool:
        """Take note that the server has answered; whether it was a suspect."""
        found = self._by_key.pop(key, None) or self._by_key.pop(self._twin(key), None)
        if found is None:
            return False
        self._counts[found] -= 1
        if not self._counts[found]:
            del self._counts[found]
        return True

    def expire(self, now_s: float) -> None:
        """Forget the requests whose time is over."""
        for key in [key for key, until_s in self._until_s.items() if until_s <= now_s]:
            del self._until_s[key]
            self.clear(key)

    def _twin(self, key: bytes) -> bytes:
        return (twin_of(key) if self._restore_ids else None) or b""

    def forget_all(self) -> None:
        """Take note that the server is gone: it says nothing about any of them any more."""
        self._by_key.clear()
        self._until_s.clear()
        self._counts.clear()
        self._for_good.clear()

    def forget(self, owner: OwnerT) -> None:
        """Take note that somebody has left: their requests are nobody's, and suspect all the same."""
        for asks in (False, True):
            old, new = Suspect(owner, asks), Suspect[OwnerT](None, asks)
            if old in self._counts:
                self._by_key = {key: new if one == old else one for key, one in self._by_key.items()}
                self._counts[new] = self._counts.get(new, 0) + self._counts.pop(old)
            if old in self._for_good:
                self._for_good.remove(old)
                self._for_good.add(new)

    def owners(self, only_asking: bool) -> set[OwnerT | None]:
        """Give whose requests there are.

        Args:
            only_asking: Whether only those count during which servers ask back.
        """
        return {one.owner for one in (*self._counts, *self._for_good) if one.asks or not only_asking}

    def may_explain(self, owners: set[OwnerT], only_asking: bool) -> bool:
        """Whether what the server says may be about somebody else than these, whose requests are with it now."""
        others = self.owners(only_asking)
        return bool(others) and len(others | owners) > 1
