"""What a client with a handshake hears of a per-request server: one `subscriptions/listen` instead of subscriptions.

Lives here: the listen streams of one client session. Must not: know connections. Made by `switch`.

Theory of operation. The client subscribes to one resource after another, and hears of lists without asking; the server
is told all of it in one filter, which cannot be changed. So each change opens a new stream with the new filter, and
the old one is closed when the new one is acknowledged: at no time does nobody listen. What both bring is told once.
A stream that breaks is opened again, later each time, and since nobody knows what was missed, everything that may have
changed is then said to have changed. A client that cannot hear anything, and has subscribed to nothing, needs no
stream.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from dragoman.core.calls import Call
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.commands import Alarm
from dragoman.core.edges.per_request import PerRequestLoan
from dragoman.core.envelope import Frame, Refusal, error_frame, notification_frame, result_frame
from dragoman.core.methods import ACKNOWLEDGED, CANCELLED, LISTEN
from dragoman.core.rules.names import FACTS, META_SUBSCRIPTION_ID
from dragoman.core.rules.notifications import (
    RESOURCE_FILTER,
    UPDATED,
    Filter,
    covers,
    promises,
    read_filter,
    subject_of,
    write_filter,
)
from dragoman.core.switch.to_stateless.hop import Hop
from dragoman.core.unchecked import find_object, without_meta
from dragoman_spec import facts

logger = logging.getLogger("dragoman.session")

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0

LASTING_S: Final = 30.0
"""How long a stream has to last to count as none that failed: else one that is cut at once would be opened each second,
and everything would be said to have changed as often."""

_OVERLAP_S: Final = 2.0
"""For how long the same notice from two streams counts as one."""

MOST_URIS: Final = 1024
"""How many resources a client may subscribe to."""


class ClientSubscriptions:
    """What one client hears outside of its calls.

    Args:
        hop: The way between client and server.
        capabilities: Of the server, as it discovered itself.
    """

    def __init__(self, hop: Hop, capabilities: Mapping[str, Any]) -> None:
        self._hop = hop
        self._capabilities = capabilities
        self._is_reachable = False
        self._uris: dict[str, None] = {}
        self._waiting: list[tuple[Call, str]] = []
        self._current: _Stream | None = None
        self._opening: _Stream | None = None
        self._failures = 0
        self._breaks = 0  # how many failures there were before the current stream, which began then:
        self._since_s = 0.0
        self._has_missed = self._is_refused = False
        self._told: dict[tuple[str, Any], tuple[_Stream, float]] = {}

    def reach(self) -> None:
        """From here on the client can hear something."""
        self._is_reachable = True
        self._follow()

    def close(self) -> None:
        """End all streams: the client is gone, or wants nothing any more."""
        ended = self._opening, self._current
        self._opening = self._current = None
        self._has_missed, self._failures, self._breaks = False, 0, 0
        for stream in ended:
            if stream is not None:
                stream.close()

    def take_request(self, call: Call, params: dict[str, Any]) -> None:
        """Take a request to subscribe to a resource, or to unsubscribe."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            self._answer(call, Refusal(INVALID_PARAMS, "expected uri to be a string", {"pointer": "/params/uri"}))
        elif call.method == "resources/subscribe":
            self._subscribe(call, uri)
        else:
            self._uris.pop(uri, None)
            gone = [waiting for waiting, wanted in self._waiting if wanted == uri]
            self._waiting = [waiting for waiting in self._waiting if waiting[1] != uri]
            for answered in (*gone, call):
                self._answer(answered)
            self._follow()

    def _subscribe(self, call: Call, uri: str) -> None:
        if not promises(self._capabilities, "resources.subscribe") or self._is_refused:
            self._answer(call, Refusal(METHOD_NOT_FOUND, "the server does not offer subscriptions", {}))
            return
        if uri not in self._uris and len(self._uris) >= MOST_URIS:
            self._answer(call, Refusal(INVALID_PARAMS, f"more than {MOST_URIS} subscriptions", {"uri": uri}))
            return
        self._uris[uri] = None
        if self._current is not None and (RESOURCE_FILTER, uri) in self._current.granted:
            self._answer(call)
        else:
            self._waiting.append((call, uri))
        self._follow()

    def hear(self, stream: _Stream, frame: Frame) -> None:
        """Take a notification of a stream."""
        self._hop.tools.hear(frame.method)
        params = find_object(frame.body, "params")
        if frame.method == ACKNOWLEDGED:
            self._acknowledge(stream, params.get("notifications"))
        elif frame.method == CANCELLED:
            stream.close()
            self.end(stream)
        elif frame.method is not None and self._is_news(stream, frame.method, params):
            told = without_meta(params, META_SUBSCRIPTION_ID)  # it names a request that this client never sent
            self._hop.front.take_server(notification_frame(frame.method, told or None))

    def end(self, stream: _Stream, error: Mapping[str, Any] | None = None) -> None:
        """Record that a stream has ended: with a result, with an error, or because it broke."""
        if stream is self._opening:
            self._opening = None
            self._failures += 1
            if error is not None:
                self._refuse_waiting(stream, error)
        elif stream is self._current:
            self._current, self._has_missed = None, True
            if self._opening is None:
                has_lasted = self._hop.now_s() - self._since_s >= LASTING_S
                self._failures = 1 + (0 if has_lasted else self._breaks)
        else:
            return
        self._follow()

    def _acknowledge(self, stream: _Stream, granted: object) -> None:
        """Take the filter that the server agreed to: the first thing on a stream."""
        if stream is not self._opening:
            return
        self._opening, self._since_s = None, self._hop.now_s()
        self._breaks, self._failures = self._failures, 0
        before, self._current = self._current, stream
        stream.granted = stream.asked & read_filter(granted)
        answered = self._take_waiting(stream)
        refused = {uri for _, uri in answered if (RESOURCE_FILTER, uri) not in stream.granted}
        self._uris = {uri: None for uri in self._uris if uri not in refused}
        stream.asked -= {(RESOURCE_FILTER, uri) for uri in refused}  # asking for them again would come to the same
        if before is not None:
            before.close()
        for call, uri in answered:
            refusal = Refusal(INVALID_PARAMS, "the server does not offer a subscription to this", {"uri": uri})
            self._answer(call, refusal if uri in refused else None)
        if self._has_missed:
            self._has_missed = False
            self._tell_all(stream.granted)
        self._follow()

    def _take_waiting(self, stream: _Stream) -> list[tuple[Call, str]]:
        """Return who has waited for this stream, and for which resource."""
        before, asked = self._waiting, stream.asked
        self._waiting = [waiting for waiting in before if (RESOURCE_FILTER, waiting[1]) not in asked]
        return [waiting for waiting in before if (RESOURCE_FILTER, waiting[1]) in asked]

    def _is_news(self, stream: _Stream, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the client is to be told: it has asked for it, and the stream before has not said the same."""
        if stream is not self._current or method not in FACTS.subscriptions.values():
            return False  # "the server MUST NOT send notification types the client has not explicitly requested"
        what = subject_of(method, params)
        if method == UPDATED and not (isinstance(what[1], str) and covers(self._uris, what[1])):
            return False
        now_s = self._hop.now_s()
        told_by, told_s = self._told.get(what, (stream, now_s))
        self._told = {key: told for key, told in self._told.items() if now_s - told[1] < _OVERLAP_S}
        if told_by is not stream and now_s - told_s < _OVERLAP_S:
            return False
        self._told[what] = (stream, now_s)
        return True

    def _refuse_waiting(self, stream: _Stream, error: Mapping[str, Any]) -> None:
        """Pass the server's error on to whoever waits for this stream; without listen streams there will be none."""
        code, message = error.get("code"), str(error.get("message", "the server does not listen"))
        self._is_refused = code == METHOD_NOT_FOUND
        for call, uri in self._take_waiting(stream):
            self._uris.pop(uri, None)
            self._answer(call, Refusal(code if isinstance(code, int) else INVALID_PARAMS, message, {}))

    def _follow(self) -> None:
        """Open the stream that is wanted now, unless it is there or another is on its way; close what nobody needs."""
        wanted = frozenset() if self._is_refused else self._want()
        if not wanted:
            self.close()
        elif self._opening is None and (self._current is None or self._current.asked != wanted):
            pause_s = min(FIRST_PAUSE_S * 2 ** (self._failures - 1), LONGEST_PAUSE_S) if self._failures else 0.0
            self._opening = _Stream(self, self._hop, wanted)
            self._opening.open(pause_s)

    def _want(self) -> Filter:
        lists = {
            (name, "")
            for name, method in FACTS.subscriptions.items()
            if name != RESOURCE_FILTER
            and self._can_hear(method)
            and promises(self._capabilities, FACTS.announced[method])
        }
        return frozenset(lists | {(RESOURCE_FILTER, uri) for uri in self._uris})

    def _can_hear(self, method: str) -> bool:
        """Whether the client can be told of this: its revision may have no such notice."""
        return self._is_reachable and method in facts(self._hop.path.client).announced

    def _answer(self, call: Call, refusal: Refusal | None = None) -> None:
        answer = result_frame(call.key, {})
        if refusal is not None:
            answer = error_frame(call.key, refusal.code, refusal.message, refusal.data or None)
        self._hop.front.take_answer(call, answer, own=True)

    def _tell_all(self, granted: Filter) -> None:
        """Say of everything in a filter that it may have changed."""
        for name, uri in sorted(granted):
            self._hop.front.take_server(notification_frame(FACTS.subscriptions[name], {"uri": uri} if uri else None))


class _Stream:
    """One `subscriptions/listen` with this filter, or one that is about to be sent."""

    def __init__(self, subscriptions: ClientSubscriptions, hop: Hop, asked: Filter) -> None:
        self._subscriptions = subscriptions
        self._hop = hop
        self.asked = asked
        self.granted: Filter = frozenset()
        self._lent: PerRequestLoan | None = None
        self._alarm: Alarm | None = None

    def open(self, after_s: float) -> None:
        """Send the request, after so many seconds."""
        if after_s:
            self._alarm = self._hop.schedule.after(after_s, self._send)
        else:
            self._send()

    def close(self) -> None:
        """Cancel it."""
        self._hop.schedule.stop(self._alarm)
        if self._lent is not None:
            self._hop.edge.withdraw(self._lent)

    def _take_end(self, frame: Frame) -> None:
        """The server has ended the stream, or refused it."""
        error = frame.body.get("error")
        if error is not None:
            logger.info("%s ended: %s", LISTEN, str(error.get("message"))[:200])
        self._subscriptions.end(self, error)

    def _send(self) -> None:
        lent = PerRequestLoan(LISTEN, self._hop, self._take_end, partial(self._subscriptions.hear, self))
        self._lent = self._hop.send(lent, {"notifications": write_filter(self.asked)})
