"""Notifications of change, whoever hears them: which a server sends, what a subscription covers, and those that wait.

Must not: know who listens (`subscriptions` in the folders of `switch`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.exact_json import encode
from dragoman.core.places import keep_latest
from dragoman.core.rules.names import FACTS
from dragoman.core.unchecked import find, find_list, find_object, is_deeper

RESOURCE_FILTER: Final = "resourceSubscriptions"
"""The member of a filter that names resources; each of the others stands for one notification."""

_LONGEST: Final = 8192
"""Of how many characters a URI is taken apart: that takes the square of the time."""

_KEPT_BYTES: Final = 16 * 1024
"""How long what a notice says may be that waits: there may be a thousand for each listener."""

UPDATED: Final = FACTS.subscriptions[RESOURCE_FILTER]


Item = tuple[str, str]
Filter = frozenset[Item]
"""What is listened to: names of lists, each with an empty string, and `resourceSubscriptions` with each URI."""


def find_fault(asked: object) -> str | None:
    """Say what a filter is expected to be, if it is something else."""
    if not isinstance(asked, dict):
        return "an object with the notifications to hear"
    for name in FACTS.subscriptions:
        value = asked.get(name)
        if name == RESOURCE_FILTER:
            if name in asked and not (isinstance(value, list) and all(isinstance(uri, str) for uri in value)):
                return f"{name} to be a list of URIs"
        elif not isinstance(value, bool | None):
            return f"{name} to be true or false"
    return None


def read_filter(said: object) -> Filter:
    """Read a filter; what has another form says nothing."""
    listed = {(RESOURCE_FILTER, uri) for uri in find_list(said, RESOURCE_FILTER) if isinstance(uri, str)}
    return frozenset(listed | {(name, "") for name, value in find_object(said).items() if value is True})


def write_filter(wanted: Filter) -> dict[str, Any]:
    """Return a filter as it is sent."""
    uris = sorted(uri for name, uri in wanted if name == RESOURCE_FILTER)
    lists = {name: True for name, _ in sorted(wanted) if name != RESOURCE_FILTER}
    return {**lists, RESOURCE_FILTER: uris} if uris else lists


def wants(wanted: Filter, method: str, uri: object) -> bool:
    """Whether a filter asks for a notification, of this resource if it is about one."""
    return any(item in wanted for item in covering(method, uri))


def covering(method: str, uri: object) -> Iterator[Item]:
    """Return each item of a filter that asks for a notification, of this resource if it is about one."""
    if method == UPDATED:
        yield from ((RESOURCE_FILTER, one) for one in (list_above(uri) if isinstance(uri, str) else ()))
    else:
        yield from ((name, "") for name, announced in FACTS.subscriptions.items() if announced == method)


def promises(capabilities: Mapping[str, Any], flag: str) -> bool:
    """Whether a server says that it sends notices of a kind.

    Args:
        capabilities: Of the server.
        flag: Where it says so, such as `tools.listChanged`.
    """
    return find(capabilities, *flag.split(".")) is True


def covers(subscribed: Collection[str], uri: str) -> bool:
    """Whether a change of a resource is for a subscriber to one of these.

    "This may be a sub-resource of the one that the client actually subscribed to" (2025-11-25 schema,
    ResourceUpdatedNotificationParams): so who subscribed to something above it hears of it too.
    """
    return any(one in subscribed for one in list_above(uri))


def list_above(uri: str) -> Iterator[str]:
    """Return a resource and everything that it may be a part of; a very long one is a part of nothing."""
    yield uri
    end = uri.find("/") if len(uri) <= _LONGEST else -1
    while end >= 0:
        yield uri[:end]
        yield uri[: end + 1]
        end = uri.find("/", end + 1)


def subject_of(method: str, params: Mapping[str, Any] | None) -> tuple[str, Any]:
    """Return what a notification says to have changed: of two about the same thing, the later one is enough."""
    return method, (params or {}).get("uri") if method == UPDATED else None


@dataclass(slots=True)
class Backlog:
    """Notices for somebody who does not listen at present: each once, the latest form of it, in order.

    Attributes:
        most: How many are kept; what comes first goes first.
    """

    most: int = 1024
    _kept: dict[tuple[str, Any], Mapping[str, Any] | None] = field(default_factory=dict)

    def put(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Keep a notice; one of the same thing is replaced. Of a long one, what has changed is enough."""
        if params is not None and (is_deeper(params) or len(encode(params)) > _KEPT_BYTES):
            params = {name: params[name] for name in ("uri",) if name in params}
        keep_latest(self._kept, subject_of(method, params), params, self.most)

    def take_all(self) -> list[tuple[str, Mapping[str, Any] | None]]:
        """Take everything out, in order."""
        kept, self._kept = self._kept, {}
        return [(method, params) for (method, _), params in kept.items()]
