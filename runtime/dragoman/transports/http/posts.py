"""The POSTs of one session that wait for the answers to their requests.

Lives here: which POST an answer belongs to, collecting answers until none is missing, and turning into a stream when
something else is to be sent first or when it takes long. Must not: decide which call a request or notification of the
server belongs to: its frame says so (`core.streams`). `streamable` answers the POST.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dragoman.core.envelope import Frame, decoded, key_of
from dragoman.core.exact_json import encode_line
from dragoman.transports.http.exchange import Awaited
from dragoman.transports.http.streams import Stream, StreamConnection


class PostedCall(Awaited):
    """What one POST asked; whoever answers it waits until it is clear how.

    Args:
        keys: The ids of its requests, as JSON.
        takes_stream: Whether it may be answered with a stream.
        is_batch: Whether an array was posted.

    Attributes:
        due_at: When it is answered with a stream, by the clock of the loop.
        headers: What goes with the answer; such an answer refuses the request, for now.
        connection: That of the POST, once it is answered with a stream: it is there to read from the first event on.
        opened: Whether the session is open by this.
    """

    __slots__ = (
        "answers",
        "connection",
        "due_at",
        "headers",
        "is_batch",
        "keys",
        "opened",
        "stream",
        "takes_stream",
    )

    def __init__(self, keys: frozenset[bytes], takes_stream: bool, is_batch: bool) -> None:
        self.keys = set(keys)
        self.takes_stream = takes_stream
        self.is_batch = is_batch
        self.headers: tuple[tuple[str, str], ...] = ()
        self.due_at = math.inf
        self.stream: Stream | None = None
        self.connection: StreamConnection | None = None
        self.answers: list[bytes] = []
        self.opened = self.is_told = False
        self.resume = None

    def answer(self, line: bytes) -> None:
        """Take an answer to those of the requests that are not in `keys` any more; the last one completes the call."""
        if self.stream is None:
            self.answers.append(line)
        else:
            self.stream.append(line)
        if not self.keys:
            self.end()

    def forgo(self, key: bytes) -> None:
        """Expect no answer to this request any more: it was cancelled."""
        self.keys.discard(key)
        if not self.keys:
            self.end()

    def become_stream(self, stream: Stream) -> None:
        """Answer with a stream from here on, what was answered already first; it ends with that if that is all."""
        self.stream, self.connection = stream, StreamConnection()
        stream.attach(self.connection)
        for line in self.answers:
            stream.append(line)
        self.answers.clear()
        if self.is_told:
            stream.finish()  # the last answer, or the end, came first
        self.tell()

    def end(self) -> None:
        """Expect nothing more."""
        if self.stream is not None:
            self.stream.finish()
        self.tell()

    def body(self) -> bytes:
        """Return the answers as the body of a JSON response."""
        if not self.is_batch:
            return self.answers[0] if self.answers else b""
        members = [line.strip() for line in self.answers]
        bare = [line[1:-1] if line.startswith(b"[") else line for line in members]
        return b"[" + b",".join(bare) + b"]"


class PostedCalls:
    """What the POSTs of one session have asked."""

    def __init__(self) -> None:
        self._calls: dict[bytes, PostedCall] = {}

    def add(self, call: PostedCall) -> None:
        """Remember a call; none of its ids may be in use."""
        for key in call.keys:
            self._calls[key] = call

    def may_take(self, keys: frozenset[bytes], most: int) -> bool:
        """Whether requests with these ids may be added, where so many may wait."""
        return len(self._calls) + len(keys) <= most and self._calls.keys().isdisjoint(keys)

    def __iter__(self) -> Iterator[PostedCall]:
        """Return each call that waits, once."""
        return iter({id(call): call for call in self._calls.values()}.values())

    def is_waiting(self, keys: frozenset[bytes]) -> bool:
        """Whether a request with one of these ids waits for its answer."""
        return not self._calls.keys().isdisjoint(keys)

    def find_streaming(self, key: bytes) -> PostedCall | None:
        """Return the call with the request of this id, if it takes a stream and is not over."""
        call = self._calls.get(key)
        return call if call is not None and call.takes_stream else None

    def find_newest_streaming(self) -> PostedCall | None:
        """Return the newest call that takes a stream."""
        return next((call for call in reversed(self._calls.values()) if call.takes_stream), None)

    def answer(self, frame: Frame) -> bool:
        """Give an answer to the call that waits for it; False when none does."""
        if frame.kind == "batch":
            return self._answer_batch(frame)
        call = None if frame.key is None else self._calls.pop(frame.key, None)
        if call is None or frame.key is None:
            return False
        call.headers = frame.headers
        call.keys.discard(frame.key)
        call.answer(frame.raw)
        return True

    def _answer_batch(self, frame: Frame) -> bool:
        frame = decoded(frame)
        ids = (key_of(member.get("id")) for member in frame.body if _is_response(member))
        keys = frozenset(key for key in ids if key is not None)
        calls = {id(call): call for key in keys if (call := self._calls.pop(key, None)) is not None}
        for call in calls.values():
            line = _for_call(frame, call, len(calls))
            call.keys.difference_update(keys)
            call.answer(line)
        return bool(calls)

    def forgo(self, key: bytes) -> None:
        """Expect no answer to a request that the client has cancelled."""
        call = self._calls.pop(key, None)
        if call is not None:
            call.forgo(key)

    def take_all(self) -> list[PostedCall]:
        """Return every call that waits, and forget them."""
        calls = list(self)
        self._calls.clear()
        return calls


def _is_response(member: Any) -> bool:
    return isinstance(member, dict) and "method" not in member


def _for_call(frame: Frame, call: PostedCall, calls: int) -> bytes:
    """Return what of an array is for this call: a server may join answers to several arrays."""
    if calls == 1 and call.is_batch:
        return frame.raw
    members = [member for member in frame.body if isinstance(member, dict) and key_of(member.get("id")) in call.keys]
    return encode_line(members if call.is_batch else members[0])
