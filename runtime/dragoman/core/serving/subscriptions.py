"""Who wants to be told what of one server, which is asked once for all of them.

Lives here: the one table, for sessions of a shared server, listen requests at a server with a handshake, and the
streams of a router's client. Must not: write frames, or know who listens.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from dragoman.core.rules.notifications import RESOURCE_FILTER, Filter, Item, covering

ListenerT = TypeVar("ListenerT", bound=Hashable)


class Subscriptions(Generic[ListenerT]):
    """The filters of all listeners, and of each item in them whether the server has agreed to it."""

    def __init__(self) -> None:
        self._holders: dict[Item, dict[ListenerT, bool]] = {}
        self._filters: dict[ListenerT, set[Item]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def __contains__(self, item: object) -> bool:
        return item in self._holders

    @property
    def wanted(self) -> Filter:
        """What anybody wants."""
        return frozenset(self._holders)

    def filter_of(self, listener: ListenerT) -> Filter:
        """Return what one of them wants."""
        return frozenset(self._filters.get(listener, ()))

    def uris_of(self, listeners: Iterable[ListenerT]) -> set[str]:
        """Return the resources that some of them want."""
        return {uri for one in listeners for name, uri in self._filters.get(one, ()) if name == RESOURCE_FILTER}

    def add(self, listener: ListenerT, item: Item) -> bool:
        """Note that somebody wants something; whether the server has agreed to it already."""
        holders = self._holders.setdefault(item, {})
        holders[listener] = is_agreed = any(holders.values())
        self._filters.setdefault(listener, set()).add(item)
        return is_agreed

    def settle(self, listener: ListenerT, item: Item, agrees: bool) -> bool:
        """Note whether the server agreed, for somebody who may have gone; whether anybody wants it still."""
        holders = self._holders.get(item, {})
        if listener in holders:
            holders[listener] |= agrees
            if not holders[listener]:
                self.remove(listener, item)
        return item in self._holders

    def is_settled(self, listener: ListenerT) -> bool:
        """Whether the server has agreed to all that somebody wants."""
        return all(self._holders[item][listener] for item in self._filters.get(listener, ()))

    def holders(self, item: Item) -> list[ListenerT]:
        """Return who wants exactly this."""
        return list(self._holders.get(item, ()))

    def remove(self, listener: ListenerT, item: Item) -> bool:
        """Note that somebody does not want something any more; whether others still do."""
        holders, wanted = self._holders.get(item, {}), self._filters.get(listener, set())
        holders.pop(listener, None)
        wanted.discard(item)
        if not holders:
            self._holders.pop(item, None)
        if not wanted:
            self._filters.pop(listener, None)
        return bool(holders)

    def remove_all(self, listener: ListenerT) -> list[Item]:
        """Note that a listener has gone; give what nobody wants any more."""
        return [item for item in sorted(self.filter_of(listener)) if not self.remove(listener, item)]

    def listeners(self, method: str, uri: object) -> Iterator[ListenerT]:
        """Return who is to hear a notification, of this resource if it is about one: each once."""
        found = (listener for item in covering(method, uri) for listener in self._holders.get(item, ()))
        yield from dict.fromkeys(found)
