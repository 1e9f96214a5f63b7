"""Answering for a server that is still starting: from what it said to the same question the last time.

Lives here: what is kept of a server's answers, what is told from them, and what has changed once it speaks itself.
Stands between an edge and its server, and speaks the server's revision. Must not: keep anything (`host.greeting`).

Theory of operation. The first request on a connection says in which revision, and with which capabilities of a client,
the server is asked: `initialize`, or `server/discover`. What it answered to the same before is answered at once, and so
are its lists, of one page each: as they were before a tool was called, because calls change what a server has, and the
next one has not been called. All else waits until the server has answered that request itself. Then the lists that
were told are asked for once more, and the client hears of those that have changed: by the notification, or, without a
handshake, on the streams on which it listens for that. A capability that the server has no more is refused with these
words, and another revision ends the session: what has crossed was translated for the one that is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from dragoman.core.calls import cancelled_key
from dragoman.core.codes import CONNECTION_CLOSED, METHOD_NOT_FOUND
from dragoman.core.edges.greeting import DISCOVER, PROTOCOL_VERSION_KEY
from dragoman.core.envelope import (
    Frame,
    Malformed,
    decoded,
    error_frame,
    id_of,
    notification_frame,
    read_params,
    request_frame,
    result_frame,
    rewrite,
    twin_of,
)
from dragoman.core.exact_json import decode, encode
from dragoman.core.methods import ACKNOWLEDGED, CALL_TOOL, CANCELLED, INITIALIZED, LISTEN, PING
from dragoman.core.paging import Paging
from dragoman.core.places import keep_latest
from dragoman.core.unchecked import MOST_LEVELS, find, find_list, find_object, is_deeper, with_meta
from dragoman.core.waiting import WaitingRoom
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS, facts

logger = logging.getLogger("dragoman.session")

LISTED: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The lists that are kept, and the member of the result that has the entries."""

_FIRST: Final = ("initialize", DISCOVER)
_FACTS: Final = facts(PER_REQUEST_REVISIONS[-1])
_CAPABILITIES_KEY: Final = _FACTS.request_meta["clientCapabilities"]
_SUBSCRIPTION_KEY: Final = _FACTS.notification_meta["subscriptionId"]
_HELD: Final = {"ttlMs": 0, "cacheScope": "private"}
"""How long what is told from memory may be held, where a result says so."""

MOST_BYTES: Final = 1024 * 1024
"""How long what is kept of a server may be: a hundred tools take 50 kB."""

_MOST_OPEN: Final = 64

Answers = dict[str, bytes]
"""Results as JSON, by the method of the request."""


class GreeterCarrier(Protocol):
    """What carries frames, and keeps answers."""

    def tell_edge(self, frame: Frame | Malformed) -> None:
        """Hand this to the edge, as if the server had said it."""

    def tell_server(self, frame: Frame) -> None:
        """Send this to the server."""

    def recall(self, asked: bytes) -> tuple[Answers, bool]:
        """Return what is remembered for a first request, and whether that is to be told."""

    def keep(self, asked: bytes, answers: Answers) -> None:
        """Remember this for a first request, in place of what is remembered; nothing: forget it."""

    def arrived(self) -> bool:
        """Take note that the server has answered for itself; return whether it is slow, so that more is kept of it."""

    def end(self, reason: str) -> None:
        """Say to the edge that the server is gone."""


@dataclass(slots=True, eq=False, repr=False)
class _Reading:
    """A list while its pages come: what they have so far, and where the next begins."""

    paging: Paging = field(default_factory=Paging)
    entries: list[Any] = field(default_factory=list)
    rest: dict[str, Any] = field(default_factory=dict)
    cursor: str | None = None


class Greeter:
    """What stands between an edge and its server.

    Args:
        outside: What carries frames.
        room: Where frames wait for the server.

    Attributes:
        is_waiting: Whether the server is answered for, because it has not answered yet.
        is_believed: Whether the edge went on from the first answer.
    """

    __slots__ = (
        "_answers",
        "_asked",
        "_changed",
        "_expected",
        "_first",
        "_is_kept",
        "_is_open",
        "_last",
        "_lost",
        "_outside",
        "_readings",
        "_records",
        "_room",
        "_streams",
        "_told",
        "is_believed",
        "is_waiting",
    )

    def __init__(self, outside: GreeterCarrier, room: WaitingRoom) -> None:
        self.is_waiting = self.is_believed = False
        self._outside = outside
        self._room = room
        self._first: Frame | None = None
        self._asked = b""
        self._answers: Answers = {}
        self._is_open = self._is_kept = False
        self._records = True  # whether lists are read
        self._expected: dict[bytes, tuple[str, str | None, bool]] = {}  # lists by id: method, cursor, whether ours
        self._readings: dict[str, _Reading] = {}
        self._told: set[str] = set()  # the lists that were told from memory, and not compared since
        self._changed: set[str] = set()  # notifications that no stream has taken yet
        self._streams: dict[bytes, tuple[dict[str, Any], bool]] = {}  # what is listened to; whether that is agreed
        self._lost: frozenset[str] = frozenset()
        self._last = 0

    @property
    def is_idle(self) -> bool:
        """Whether what the server says may pass unseen."""
        return self._is_kept and not (self.is_waiting or self._expected or self._told or self._changed)

    @property
    def is_done(self) -> bool:
        """Whether it will mind no frame any more, if it did not mind the last one: nothing is kept from here on."""
        return self.is_idle and not self._records

    def minds(self, frame: Frame) -> bool:
        """Whether it has to see a frame for the server."""
        return bool(self._lost) or (
            self._records and (frame.method in LISTED or frame.method == CALL_TOOL or frame.kind == "batch")
        )

    # What the edge says

    def take_from_edge(self, frame: Frame) -> None:
        """Take a frame for the server: what answers it does not wait, for it may start only once it has that."""
        if not self.is_waiting or frame.kind in ("result", "error"):
            self._pass_on(frame)
            return
        self.is_believed = True
        result = self._recall(frame) if frame.kind == "request" else None
        key = frame.key or b"null"
        if result is not None:
            self._outside.tell_edge(result_frame(key, result))
        elif frame.method == CANCELLED and (cancelled := cancelled_key(frame)) and self._room.remove(cancelled):
            self._outside.tell_edge(error_frame(cancelled, CONNECTION_CLOSED, "cancelled before the server had come"))
        elif not self._room.add(frame):
            logger.warning("a %s dropped: too many frames wait for the server, which is starting", frame.kind)
            if frame.kind == "request":
                self._outside.tell_edge(error_frame(key, CONNECTION_CLOSED, "too many frames wait for the server"))

    def _recall(self, frame: Frame) -> Any:
        """Return what is told in place of the server; None where it has to answer itself."""
        method = frame.method or ""
        if method == PING:
            return {}
        if method not in self._answers or "cursor" in read_params(frame) or not self._is_alike(frame):
            return None
        if method in LISTED:
            self._told.add(method)
        result = decode(self._answers[method])
        return {**result, **{name: value for name, value in _HELD.items() if name in result}}

    def _is_alike(self, frame: Frame) -> bool:
        """Whether a request is asked in the same revision, and with the same capabilities, as the first.

        There is no first one where a server without a handshake is opened again in the middle of a session.
        """
        if self._first is not None and self._first.method == "initialize" and frame.method in LISTED:
            return True
        return _describe(frame) == self._asked

    def _pass_on(self, frame: Frame) -> None:
        method, key = frame.method or "", frame.key
        self._keep_first()
        if frame.kind == "request" and key is not None:
            if not self._is_open and method in _FIRST:
                frame = self._begin(frame)
            elif (lost := find_capability(method)) in self._lost:
                said = f"the server has no {lost} any more: that it had was remembered from its last start"
                self._outside.tell_edge(error_frame(key, METHOD_NOT_FOUND, said))
                return
            elif self._records and method in LISTED and self._is_alike(frame):
                cursor = read_params(frame).get("cursor")
                page = method, cursor if isinstance(cursor, str) else None, False
                keep_latest(self._expected, key, page, _MOST_OPEN)
            elif method == LISTEN and not self.is_idle:
                wanted = find_object(read_params(frame), "notifications")
                keep_latest(self._streams, key, (wanted, False), _MOST_OPEN)
        self._outside.tell_server(frame)
        if method == INITIALIZED:
            self._compare_lists()
        elif method == CALL_TOOL or frame.kind == "batch":  # from here on, what it has may be for this session alone
            self._records = False

    def _keep_first(self) -> None:
        """Keep the first answer, once the edge goes on: so it was one."""
        if self._is_open and not self._is_kept:
            self._is_kept = True
            if self._records:
                self._outside.keep(self._asked, self._answers)

    def _begin(self, frame: Frame) -> Frame:
        """Take the first request; answer it, if that is known. Return what the server is asked."""
        method = frame.method or ""
        self._first, self._asked = frame, _describe(frame)
        self._answers, is_told = self._outside.recall(self._asked)
        if not is_told or method not in self._answers:
            return frame
        self.is_waiting = True
        result = decode(self._answers[method])
        self._outside.tell_edge(result_frame(frame.key or b"null", _promise(result)))
        revision = result.get("protocolVersion")
        body = decoded(frame).body
        if method == DISCOVER or find(body, "params", "protocolVersion") == revision:
            return frame
        # One that has learned a newer revision since still has this one, which is what is spoken already.
        return rewrite(frame, {**body, "params": {**find_object(body, "params"), "protocolVersion": revision}})

    # What the server says

    def take_from_server(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if isinstance(frame, Malformed):
            is_answer = self.is_waiting and frame.is_response
            self._arrive({}, frame.reason) if is_answer else self._outside.tell_edge(frame)
        elif self.is_waiting and self._is_first_answer(frame):
            self._arrive(*_read_result(frame))
        elif frame.method is None and (expected := self._expected.pop(frame.key or b"", None)) is not None:
            self._take_page(*expected, frame)
            if not expected[2]:
                self._outside.tell_edge(frame)
        else:
            if not self._is_open and self._is_first_answer(frame):
                result, fault = _read_result(frame)
                if not fault:
                    self._open(result)
            self._outside.tell_edge(frame)
            if frame.method == ACKNOWLEDGED:
                self._note_stream(read_params(frame))

    def _is_first_answer(self, frame: Frame) -> bool:
        """Whether the server answers the first request: with its id, or with an error about what it could not read."""
        if self._first is None or frame.kind not in ("result", "error"):
            return False
        key = self._first.key or b"null"
        return frame.key in ((key, twin_of(key)) if frame.kind == "result" else (key, twin_of(key), None, b"null"))

    def _open(self, result: dict[str, Any]) -> None:
        assert self._first is not None
        self._is_open = True
        has = find_object(result, "capabilities")
        kept = {name: answer for name, answer in self._answers.items() if find_capability(name) in has}
        self._records = self._outside.arrived() or bool(self._told)
        self._answers = {**kept, self._first.method or "": encode(result)} if self._records else {}

    def _arrive(self, result: dict[str, Any], fault: str) -> None:
        """Compare what the server says with what was said for it; then it has all that waits for it."""
        assert self._first is not None
        self.is_waiting = False
        before = decode(self._answers[self._first.method or ""])
        self._open(result)
        if fault:
            fault = f"the server does not answer as it did the last time: {fault}"
        elif gone := sorted(_spoken(before) - _spoken(result)):
            fault = f"the server does not speak {gone[0]} any more, in which the session was opened: open it again"
        if fault:
            self._outside.keep(self._asked, {})
            self._outside.end(fault)
            return
        has = find_object(result, "capabilities")
        self._lost = frozenset(name for name in find_object(before, "capabilities") if name not in has)
        if self._lost:
            lost = ", ".join(sorted(self._lost))
            logger.warning("the server has no %s any more: the client was told so from its last start", lost)
        if self.is_believed:
            self._keep_first()
        if self._first.method == DISCOVER:
            self._compare_lists()
        for frame in self._room.take_all():
            self._pass_on(frame)

    def end(self, reason: str) -> None:
        """The server says no more; one that was answered for in vain is waited for the next time."""
        if self.is_waiting:
            self.is_waiting = False
            self._outside.keep(self._asked, {})
        self._outside.end(reason)

    # Lists

    def _compare_lists(self) -> None:
        """Ask for the lists that were told from memory."""
        for method in sorted(self._told):
            if find_capability(method) in self._lost:
                self._tell_changed(method)
            else:
                self._ask(method, {})

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        assert self._first is not None
        self._last += 1
        key = b'"dragoman-compare-%d"' % self._last
        self._expected[key] = (method, params.get("cursor"), True)
        if self._first.method == DISCOVER:
            params = {**params, "_meta": find_object(read_params(self._first), "_meta")}
        self._outside.tell_server(request_frame(key, method, params or None))

    def _take_page(self, method: str, cursor: str | None, is_ours: bool, frame: Frame) -> None:
        """Read a page of a list; the list is kept once it is whole, and never a part of it."""
        result, _ = _read_result(frame)
        page = result.pop(LISTED[method], None)
        reading = _Reading() if cursor is None else self._readings.pop(method, None)
        if not isinstance(page, list):
            self._note_list(method, None, is_ours)
        elif reading is not None and reading.cursor == cursor:
            reading.entries += page
            reading.rest = reading.rest or result
            reading.cursor = reading.paging.follow(result, len(frame.raw))
            if reading.cursor is not None:
                self._readings[method] = reading
                if is_ours:
                    self._ask(method, {"cursor": reading.cursor})
                return
            whole = {name: value for name, value in reading.rest.items() if name != "nextCursor"}
            self._note_list(method, None if reading.paging.cut else {**whole, LISTED[method]: reading.entries}, is_ours)

    def _note_list(self, method: str, result: dict[str, Any] | None, is_ours: bool) -> None:
        """Keep a list, and say if it is not what was told; None: there is none that can be kept."""
        before, now = self._answers.pop(method, b""), b"" if result is None else encode(result)
        if now and len(now) <= MOST_BYTES:
            self._answers[method] = now
        if bool(before) != bool(now) or _sort(method, before) != _sort(method, now):
            self._outside.keep(self._asked, self._answers)
            if is_ours and method in self._told:  # who has asked meanwhile knows
                self._tell_changed(method)
        self._told.discard(method)

    def _tell_changed(self, method: str) -> None:
        self._told.discard(method)
        notification = f"notifications/{find_capability(method)}/list_changed"
        assert self._first is not None
        if self._first.method == "initialize":
            self._outside.tell_edge(notification_frame(notification, None))
        else:
            self._changed.add(notification)
            self._tell_streams()

    def _note_stream(self, params: Mapping[str, Any]) -> None:
        """The server has agreed to a stream of notifications."""
        key = encode(find(params, "_meta", _SUBSCRIPTION_KEY))
        if key in self._streams:
            self._streams[key] = ({**find_object(params, "notifications")}, True)
            self._tell_streams()

    def _tell_streams(self) -> None:
        """Say on each stream what has changed; what another one waits for, which is not agreed to yet, is kept."""
        told, waits = set(), set()
        for key, (wanted, is_agreed) in self._streams.items():
            for name, notification in _FACTS.subscriptions.items():
                if wanted.get(name) is not True or notification not in self._changed:
                    continue
                if not is_agreed:
                    waits.add(notification)
                    continue
                named = with_meta({}, _SUBSCRIPTION_KEY, id_of(key))
                self._outside.tell_edge(notification_frame(notification, named))
                wanted[name] = False
                told.add(notification)
        self._changed -= told - waits


def find_capability(method: str) -> str:
    """Return the capability of a server that a request of a client needs, or its name in another spelling."""
    name = method.partition("/")[0]
    return {"completion": "completions"}.get(name, name)


def read_answers(said: Mapping[str, Any]) -> Answers:
    """Return those of remembered results that have the form of one, as JSON; none where no first one has."""
    opened, discovered = find_object(said, "initialize"), find_object(said, DISCOVER or "")
    kept: dict[str, Any] = {method: said[method] for method, member in LISTED.items() if _is_list(said, method, member)}
    if opened.get("protocolVersion") in HANDSHAKE_REVISIONS and isinstance(opened.get("capabilities"), dict):
        kept["initialize"] = opened
    if find_list(discovered, "supportedVersions") and isinstance(discovered.get("capabilities"), dict):
        kept[DISCOVER or ""] = discovered
    return {method: encode(result) for method, result in kept.items()} if kept.keys() - LISTED.keys() else {}


def _is_list(said: Mapping[str, Any], method: str, member: str) -> bool:
    return all(isinstance(one, dict) for one in find_list(said, method, member)) and isinstance(
        find(said, method, member), list
    )


def _describe(frame: Frame) -> bytes:
    """Return in which revision, and with which capabilities of a client, a request is asked; and the first by what."""
    params = read_params(frame)
    meta = find_object(params, "_meta")
    if frame.method == "initialize":
        return encode(["initialize", params.get("protocolVersion"), params.get("capabilities")])
    return encode([DISCOVER, meta.get(PROTOCOL_VERSION_KEY), meta.get(_CAPABILITIES_KEY)])


def _read_result(frame: Frame) -> tuple[dict[str, Any], str]:
    """Return a result that can be written again; or why there is none."""
    try:
        body = decoded(frame).body
    except ValueError as error:
        return {}, str(error)
    result = body.get("result")
    if not isinstance(result, dict):
        return {}, str(find(body, "error", "message") or "an answer without a result")
    return ({}, f"a result of more than {MOST_LEVELS} levels") if is_deeper(result) else (dict(result), "")


def _promise(result: dict[str, Any]) -> dict[str, Any]:
    """Say in an answer to `initialize` that changes of lists are told: those between two starts are, by us."""
    if "protocolVersion" not in result:
        return {**result, **{name: value for name, value in _HELD.items() if name in result}}
    has = find_object(result, "capabilities")
    listed: Collection[str] = {find_capability(method) for method in LISTED} & has.keys()
    told = {name: {**find_object(has, name), "listChanged": True} for name in listed}
    return {**result, "capabilities": {**has, **told}}


def _spoken(result: dict[str, Any]) -> set[str]:
    """Return the revisions that a server says it speaks."""
    opened = result.get("protocolVersion")
    return {opened} if isinstance(opened, str) else set(map(str, find_list(result, "supportedVersions")))


def _sort(method: str, result: bytes) -> list[bytes]:
    """Return the entries of a list in an order that does not depend on the server's."""
    return sorted(encode(entry) for entry in find_list(decode(result or b"{}"), LISTED[method]))
