"""How an expectation is written and compared: rows, where in a report they look, and values looser than equality.

Not here: what is expected (`expectations.py`) and who runs the peers (`test_peers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

REVISIONS: Final[Mapping[str, str]] = {"A": "2024-11-05", "B": "2025-03-26", "C": "2025-06-18", "D": "2025-11-25"}
PAIRS: Final = tuple((client, server) for client in REVISIONS for server in REVISIONS)


class _Absent:
    """Nothing stands at this place of the report."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Has:
    """An object with at least these members; nested values may be matchers too."""

    members: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Says:
    """A text with this part in it."""

    part: str


@dataclass(frozen=True, slots=True)
class Either:
    """One of several values, where which one it is depends on who is faster; each may be a matcher."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What one place of the report holds for some pairs.

    Args:
        topic: the rows of one topic cover each pair exactly once.
        clients, servers: the letters of the revisions it holds for.
        at: path into the report, members and list places separated by "/".
        expected: JSON value or matcher.
        why: the rule or fact behind it.
        route: `proxy`, `direct` (equal revisions only) or `both`.
    """

    topic: str
    clients: str
    servers: str
    at: str
    expected: Any
    why: str
    route: str = "both"

    def covers(self, client: str, server: str, route: str) -> bool:
        """Say whether the row speaks about this pair, joined this way."""
        return client in self.clients and server in self.servers and self.route in (route, "both")


def look(report: Any, at: str) -> Any:
    """Return what stands at a place of the report, or ABSENT."""
    value = report
    for key in at.split("/"):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return ABSENT
    return value


def matches(found: Any, expected: Any) -> bool:
    """Compare a found value with an expected one. Booleans are not numbers here, as in JSON."""
    match expected:
        case _Absent():
            return found is ABSENT
        case Either(values):
            return any(matches(found, value) for value in values)
        case Says(part):
            return isinstance(found, str) and part in found
        case Has(members):
            return isinstance(found, Mapping) and all(
                matches(found.get(key, ABSENT), value) for key, value in members.items()
            )
        case Mapping():
            return isinstance(found, Mapping) and found.keys() == expected.keys() and matches(found, Has(expected))
        case list():
            return (
                isinstance(found, list)
                and len(found) == len(expected)
                and all(matches(one, other) for one, other in zip(found, expected, strict=True))
            )
        case _:
            return isinstance(found, bool) == isinstance(expected, bool) and bool(found == expected)
