"""What a client with a handshake hears of a per-request server: one `subscriptions/listen` instead of subscriptions.

Lives here: the listen stream of one client session. Must not: send, wait, or know connections; streams are numbers
that are given out here, and whoever drives it says what comes on them. Called by `core.switch`.

Theory of operation. The client subscribes to one resource after another, and hears of lists without asking; the server
is told all of it in one filter, which cannot be changed. So each change opens a new stream with the new filter, and
the old one is closed when the new one is acknowledged: at no time does nobody listen. What both bring is told once.
A stream that breaks is opened again, later each time, and since nobody knows what was missed, everything that may have
changed is then said to have changed. A client that cannot hear anything, and has subscribed to nothing, needs no
stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dragoman.core.bridge.names import FACTS, META_SUBSCRIPTION_ID
from dragoman.core.bridge.notices import RESOURCE_FILTER, UPDATED, covers, promises
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.envelope import Refusal
from dragoman.core.unchecked import find, find_list, without_meta

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0

LASTING_S: Final = 30.0
"""How long a stream has to last to count as none that failed: else one that is cut at once would be opened each second,
and everything would be said to have changed as often."""


@dataclass(frozen=True, slots=True)
class OpenListen:
    """Send `subscriptions/listen` with this filter after so many seconds; what comes on it has this number."""

    stream: int
    filter: dict[str, Any]
    after_s: float


@dataclass(frozen=True, slots=True)
class CloseListen:
    """Cancel a listen request, or forget that it was to be sent."""

    stream: int


@dataclass(frozen=True, slots=True)
class AnswerClient:
    """Answer a request of the client: with an empty result, or with an error."""

    key: bytes
    error: Refusal | None


@dataclass(frozen=True, slots=True)
class TellClient:
    """Send the client a notification."""

    method: str
    params: dict[str, Any] | None


Command = OpenListen | CloseListen | AnswerClient | TellClient


class _Stream(NamedTuple):
    number: int
    asked: dict[str, Any]
    granted: dict[str, Any]


@dataclass(slots=True)
class ListenStream:
    """The listen stream of one client session.

    Attributes:
        capabilities: Of the server, as it discovers itself.
        overlap_s: For how long the same notice from two streams counts as one.
        most_uris: How many resources the client may subscribe to.
    """

    capabilities: Mapping[str, Any]
    overlap_s: float = 2.0
    most_uris: int = 1024
    _is_reachable: bool = False
    _uris: dict[str, None] = field(default_factory=dict)
    _waiting: list[tuple[bytes, str]] = field(default_factory=list)
    _last: int = 0
    _current: _Stream | None = None
    _before: int | None = None
    """The stream that the current one took over from: what is on its way there still counts."""
    _opening: _Stream | None = None
    _failures: int = 0
    _breaks: int = 0
    """How many failures there were before the current stream, which began then:"""
    _since_s: float = 0.0
    _has_missed: bool = False
    _is_refused: bool = False
    _told: dict[tuple[str, Any], tuple[int, float]] = field(default_factory=dict)

    def reach(self, is_reachable: bool) -> list[Command]:
        """Take note that the client can, or cannot, be sent notifications outside of its requests."""
        self._is_reachable = is_reachable
        return self._follow()

    def subscribe(self, key: bytes, uri: str) -> list[Command]:
        """Take `resources/subscribe` of the client.

        Args:
            key: Of its request.
            uri: Of the resource.
        """
        if not promises(self.capabilities, "resources.subscribe") or self._is_refused:
            return [AnswerClient(key, Refusal(METHOD_NOT_FOUND, "the server does not offer subscriptions", {}))]
        if uri not in self._uris and len(self._uris) >= self.most_uris:
            return [
                AnswerClient(key, Refusal(INVALID_PARAMS, f"more than {self.most_uris} subscriptions", {"uri": uri}))
            ]
        self._uris[uri] = None
        if self._current is not None and uri in self._current.granted.get(RESOURCE_FILTER, ()):
            return [AnswerClient(key, None), *self._follow()]
        self._waiting.append((key, uri))
        return self._follow()

    def unsubscribe(self, key: bytes, uri: str) -> list[Command]:
        """Take `resources/unsubscribe` of the client."""
        self._uris.pop(uri, None)
        gone = [waiting for waiting in self._waiting if waiting[1] == uri]
        self._waiting = [waiting for waiting in self._waiting if waiting[1] != uri]
        return [*(AnswerClient(asked, None) for asked, _ in gone), AnswerClient(key, None), *self._follow()]

    def acknowledge(self, stream: int, granted: object, now_s: float) -> list[Command]:
        """Take the filter that the server agreed to: the first thing on a stream."""
        if self._opening is None or self._opening.number != stream:
            return []
        asked, self._opening, self._since_s = self._opening.asked, None, now_s
        self._breaks, self._failures = self._failures, 0
        kept, old = _intersect(asked, granted), self._current
        self._before = old.number if old is not None else None
        commands: list[Command] = [] if old is None else [CloseListen(old.number)]
        answers, refused = self._answer_waiting(asked, kept)
        commands += answers
        self._current = _Stream(stream, _without(asked, refused), kept)
        if self._has_missed:
            self._has_missed = False
            commands += _tell_all(kept)
        return [*commands, *self._follow()]

    def hear(self, stream: int, method: str, params: Mapping[str, Any] | None, now_s: float) -> list[Command]:
        """Take a notification of a stream.

        Args:
            stream: Which.
            method: Of the notification.
            params: Of the notification.
            now_s: The time.
        """
        if self._current is None or stream not in (self._current.number, self._before):
            return []
        if method not in FACTS.subscriptions.values():
            return []  # "the server MUST NOT send notification types the client has not explicitly requested"
        what = (method, (params or {}).get("uri") if method == UPDATED else None)
        if method == UPDATED and not (isinstance(what[1], str) and covers(self._uris, what[1])):
            return []
        told_by, told_s = self._told.get(what, (stream, now_s))
        self._told = {key: told for key, told in self._told.items() if now_s - told[1] < self.overlap_s}
        if told_by != stream and now_s - told_s < self.overlap_s:
            return []
        self._told[what] = (stream, now_s)
        return [TellClient(method, _untagged(params))]

    def end(self, stream: int, now_s: float, error: Mapping[str, Any] | None = None) -> list[Command]:
        """Take note that a stream has ended: with a result, with an error, or because it broke.

        Args:
            stream: Which.
            now_s: The time.
            error: That answered the listen request, if one did.
        """
        if stream == self._before:
            self._before = None
        if self._opening is not None and self._opening.number == stream:
            asked, self._opening = self._opening.asked, None
            self._failures += 1
            return [*([] if error is None else self._refuse_waiting(asked, error)), *self._follow()]
        if self._current is not None and self._current.number == stream:
            self._current, self._has_missed = None, True
            if self._opening is None:
                self._failures = 1 + (self._breaks if now_s - self._since_s < LASTING_S else 0)
            return self._follow()
        return []

    def _refuse_waiting(self, asked: Mapping[str, Any], error: Mapping[str, Any]) -> list[Command]:
        """Pass the server's error on to whoever waits for this stream; without listen streams there will be none."""
        code, message = error.get("code"), str(error.get("message", "the server does not listen"))
        self._is_refused = code == METHOD_NOT_FOUND
        refusal = Refusal(code if isinstance(code, int) else INVALID_PARAMS, message, {})
        refused = [key for key, uri in self._waiting if uri in asked.get(RESOURCE_FILTER, ())]
        for key, uri in self._waiting:
            if key in refused:
                self._uris.pop(uri, None)
        self._waiting = [waiting for waiting in self._waiting if waiting[0] not in refused]
        return [AnswerClient(key, refusal) for key in refused]

    def _answer_waiting(self, asked: Mapping[str, Any], kept: Mapping[str, Any]) -> tuple[list[Command], set[str]]:
        """Answer whoever waits for what this stream was asked for; give the resources that were refused, too."""
        commands: list[Command] = []
        refused: set[str] = set()
        for key, uri in self._waiting:
            if uri in kept.get(RESOURCE_FILTER, ()):
                commands.append(AnswerClient(key, None))
            elif uri in asked.get(RESOURCE_FILTER, ()):
                refusal = Refusal(INVALID_PARAMS, "the server does not offer a subscription to this", {"uri": uri})
                commands.append(AnswerClient(key, refusal))
                refused.add(uri)
        answered = {command.key for command in commands if isinstance(command, AnswerClient)}
        self._waiting = [waiting for waiting in self._waiting if waiting[0] not in answered]
        self._uris = {uri: None for uri in self._uris if uri not in refused}
        return commands, refused

    def _follow(self) -> list[Command]:
        """Open the stream that is wanted now, unless it is there or another is on its way; close what nobody needs."""
        wanted = {} if self._is_refused else self._want()
        if not wanted:
            return self._close_all()
        if self._opening is not None or (self._current is not None and self._current.asked == wanted):
            return []
        return [self._open(wanted)]

    def _open(self, wanted: dict[str, Any]) -> OpenListen:
        self._last += 1
        self._opening = _Stream(self._last, wanted, {})
        pause_s = min(FIRST_PAUSE_S * 2 ** (self._failures - 1), LONGEST_PAUSE_S) if self._failures else 0.0
        return OpenListen(self._last, wanted, pause_s)

    def _close_all(self) -> list[Command]:
        streams = [stream.number for stream in (self._opening, self._current) if stream is not None]
        self._opening = self._current = self._before = None
        self._has_missed, self._failures, self._breaks = False, 0, 0
        return [CloseListen(number) for number in streams]

    def _want(self) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        for name, method in FACTS.subscriptions.items():
            if name != RESOURCE_FILTER and self._is_reachable and promises(self.capabilities, FACTS.announced[method]):
                wanted[name] = True
        return wanted | ({RESOURCE_FILTER: list(self._uris)} if self._uris else {})


def _intersect(asked: Mapping[str, Any], granted: object) -> dict[str, Any]:
    """Give what of a filter was granted."""
    kept = {name: True for name in asked if name != RESOURCE_FILTER and find(granted, name) is True}
    uris = find_list(granted, RESOURCE_FILTER)
    listed = [uri for uri in asked.get(RESOURCE_FILTER, ()) if uri in uris]
    return kept | ({RESOURCE_FILTER: listed} if listed else {})


def _without(asked: dict[str, Any], refused: set[str]) -> dict[str, Any]:
    """Give a filter without resources that the server refused: asking for them again would come to the same."""
    left = [uri for uri in asked.get(RESOURCE_FILTER, ()) if uri not in refused]
    rest = {name: value for name, value in asked.items() if name != RESOURCE_FILTER}
    return rest | ({RESOURCE_FILTER: left} if left else {})


def _tell_all(kept: Mapping[str, Any]) -> list[Command]:
    """Say of everything in a filter that it may have changed."""
    told: list[Command] = [TellClient(FACTS.subscriptions[name], None) for name in kept if name != RESOURCE_FILTER]
    return [*told, *(TellClient(UPDATED, {"uri": uri}) for uri in kept.get(RESOURCE_FILTER, ()))]


def _untagged(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Take the name of the subscription off: it names a request that this client never sent."""
    if params is None:
        return None
    return dict(without_meta(params, (META_SUBSCRIPTION_ID,))) or None
