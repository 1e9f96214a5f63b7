"""What a world may leave behind: nothing. Rows of tables, and objects, are counted here."""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Iterator, Sized
from typing import Any, Final

_COLLECTIONS: Final = (dict, list, set, deque)
_OURS: Final = "dragoman."
_COMING_AND_GOING: Final = (
    *(
        "core.edges",
        "core.serving",
        "core.switch.shared",
        "core.switch.router",
        "core.switch.to_session",
        "core.switch.to_stateless",
    ),
    *("core.calls", "host.host", "host.port", "host.shared", "router.transport"),
)
"""Modules whose objects are gone when the sessions are."""

_FOR_ALL: Final = ("core.edges.wiring",)
"""Those among them whose objects are made once for all sessions of a proxy."""

_BY_SESSION: Final = (
    *(
        "].waiting",
        "].cancelled",
        "].tokens",
        "oans.by_key",
        "urns.cancelled",
        "suspects._by_key",
        "ages._ages",
        "._frames",
    ),
    *("_asked", "_parked", "_sleeping"),
)
"""Parts of the places of tables that have rows only while something is under way."""

_OF_LISTENING: Final = "listener._loans.by_key"
"""At a server without a handshake: a router that is shared listens there for whoever comes next."""

OF_CLIENTS: Final = (
    *(
        "_desk.sessions",
        "_desk.questions._asked",
        "turns._queue",
        "subscriptions._holders",
        "subscriptions._filters",
        "_elicitations",
    ),
    *("listener._waiting", "_bridges", "attribution._tasks", "attribution._tokens"),
    *("turns.cancelled", "_desk.loans.by_key", "attribution._loans.by_key", "turns._loans.by_key"),
)
"""Those that have rows only while a client is there, whatever its server still owes."""


def collect() -> None:
    """Let everything go that nobody holds: what was waiting is only let go when it has been told."""
    while gc.collect():
        pass


def census() -> Counter[str]:
    """Give how many objects of the parts that come and go with sessions there are, those that are frozen left out."""
    kinds = Counter(
        f"{type(one).__module__}.{type(one).__qualname__}"
        for one in gc.get_objects()
        if str(type(one).__module__).startswith(_OURS)
    )
    return Counter({kind: count for kind, count in kinds.items() if _comes_and_goes(kind)})


def _comes_and_goes(kind: str) -> bool:
    place = kind.removeprefix(_OURS)
    return place.startswith(_COMING_AND_GOING) and not place.startswith(_FOR_ALL)


class Tables:
    """The tables that can be reached from something that lives longer than a session.

    Args:
        root: A pool, a front, ….
    """

    def __init__(self, root: object) -> None:
        self._root = root

    def left_over(self) -> list[str]:
        """Name the tables that have rows though no session is open."""
        found = ((place, len(table)) for place, table in _tables(self._root) if _is_by_session(place))
        return [f"{place} has {count} rows" for place, count in found if count]


def _is_by_session(place: str) -> bool:
    return place.endswith((*_BY_SESSION, *OF_CLIENTS)) and not place.endswith(_OF_LISTENING)


def _tables(root: object) -> Iterator[tuple[str, Sized]]:
    """Walk over everything of ours that can be reached, and give what holds rows, with its place."""
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [(type(root).__name__, root)]
    while left:
        place, one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, _COLLECTIONS):
            yield place, one
            values = list(one.values()) if isinstance(one, dict) else list(one)
            left += [(f"{place}[]", value) for value in values]
        elif type(one).__module__.startswith(_OURS):
            left += [(f"{place}.{name}", value) for name, value in _members(one)]


def _members(one: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(one, name):
                yield name, getattr(one, name)
