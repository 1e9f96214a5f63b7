"""One session of Streamable HTTP, as the transport that the proxy sees.

Lives here: frames in from any POST, frames out to the right POST or stream, collecting the answers of a POST until none
is missing, and what is held back. Must not: speak HTTP (`streamable`), or decide which call a request or notification
of the server belongs to: its frame says so (`core.streams`).

An answer goes to the POST that asked. A request or notification that belongs to a call goes onto the stream of that
call's POST; onto a GET stream, if the POST does not take a stream or is over. What belongs to no call goes onto a GET
stream; where there is none, onto the stream of the newest POST that takes one, for a request must reach the client or
its server waits for ever. What has nowhere to go waits, within bounds, for the next GET stream.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dragoman.core.envelope import Frame, Malformed, decoded, key_of, to_keep
from dragoman.core.exact_json import encode_line
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import Awaited, RequestRefused
from dragoman.transports.http.flow import CallTimer, FlowingTransport, forget
from dragoman.transports.http.marking import Marking
from dragoman.transports.http.reading import Posted, blame, check_batch
from dragoman.transports.http.sessions import NO_SESSION, too_many_streams
from dragoman.transports.http.streams import Ledger, Stream, StreamConnection

logger = logging.getLogger("dragoman.http")

_FINISHED_KEPT = 16
"""How many finished streams of one session can be resumed."""


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


class StreamableSession(FlowingTransport):
    """A client that speaks Streamable HTTP.

    Args:
        config: Limits and patience.
        mark: For a session that other instances had: in no name that they have given out in it.

    Attributes:
        has_streams: Frames go out on the stream of the call that they name.
        timer: Answers calls with a stream that take long.
    """

    has_streams = True

    def __init__(self, config: FrontConfig, mark: str = "") -> None:
        super().__init__(config.limits.high_water_bytes)
        self._mark, self._marking = mark, Marking(mark) if mark else None
        self.loop = asyncio.get_running_loop()  # kept: asking for it is a system call each time
        self.revision: str | None = None
        self._config = config
        self._calls: dict[bytes, PostedCall] = {}  # by the ids of their requests
        self._ledger = Ledger(self.weigh, config.limits.replay_bytes, config.limits.replay_events)
        self._streams: dict[str, Stream] = {}
        self._standing: list[Stream] = []  # GET streams, the newest last
        self._backlog: deque[bytes] = deque()
        self._lossy = False  # whether one was dropped since a stream came last
        self._names = itertools.count(1)
        self._initialize: PostedCall | None = None
        self.timer = CallTimer(config.patience.stream_after_s, self._waiting, self.begin_stream)

    # What the proxy calls.

    def send(self, frames: Sequence[Frame]) -> None:
        """Put each frame onto the stream where it belongs."""
        for frame in frames if self._marking is None else map(self._marking.mark, frames):
            if frame.method is not None:
                self._send_unasked(frame)
            else:
                if self._initialize is not None:
                    self._note_revision(frame)
                if not self._answer(frame):
                    logger.debug("an answer that no request waits for is dropped")

    async def close(self) -> None:
        """End every stream, once its reader has taken what it is owed."""
        self.over = True
        self.readable.set()
        self.timer.stop()
        calls = self._waiting()
        self._calls.clear()
        for call in calls:
            call.end()
        for stream in self._streams.values():
            stream.finish()
        await self.drain()
        for stream in self._streams.values():
            stream.clear()
        self._streams.clear()
        self._standing.clear()
        self._backlog.clear()
        self._ledger.weigh = forget  # a circle, too

    # What the front calls.

    @property
    def standing(self) -> int:
        """How many GET streams are read; they count apart from the POSTs that wait for answers."""
        return sum(stream.attached for stream in self._standing)

    def post(self, posted: Posted, takes_stream: bool) -> PostedCall | None:
        """Deliver what a client posted.

        Args:
            posted: What it is.
            takes_stream: Whether the answer may be a stream.

        Returns:
            The call that collects the answers; None if nothing is asked.

        Raises:
            RequestRefused: It cannot be delivered.
        """
        call, calls, keys = None, self._calls, posted.keys
        if posted.is_batch:
            check_batch(posted, self.revision)
        if self.over:
            raise self._refuse(posted)
        if keys:
            if len(calls) + len(keys) > self._config.limits.streams or not calls.keys().isdisjoint(keys):
                raise self._refuse(posted)
            call = PostedCall(keys, takes_stream, posted.is_batch)
            for key in keys:
                calls[key] = call
            if posted.initializes and self._initialize is None:
                self._initialize = call
        frame = posted.frame if self._marking is None else self._marking.unmark(posted.frame)
        if frame is not None:
            self.deliver(frame)
        if posted.cancelled:
            self.give_up(posted.cancelled)
        return call

    def give_up(self, keys: Iterable[bytes]) -> None:
        """Expect no answer to these requests any more: their places are free."""
        for key in keys:
            given_up = self._calls.pop(key, None)
            if given_up is not None:
                given_up.forgo(key)

    def lose_answers(self, garbled: Iterable[Malformed]) -> None:
        """Hand on what may have answered something, and is refused."""
        super().lose_answers(garbled if self._marking is None else map(self._marking.unmark_garbled, garbled))

    def _refuse(self, posted: Posted) -> RequestRefused:
        """Say why what was posted cannot be delivered."""
        if self.is_waiting(posted.keys):
            refused = RequestRefused(400, "the id of this request belongs to one that is not answered yet")
            return blame(refused, posted.frame.body) if posted.is_batch else refused
        return RequestRefused(404, NO_SESSION) if self.over else too_many_streams(posted.only_key)

    def is_waiting(self, keys: Iterable[bytes | None]) -> bool:
        """Whether one of these ids belongs to a request that waits for its answer."""
        return not self._calls.keys().isdisjoint(keys)

    def begin_stream(self, call: PostedCall) -> None:
        """Answer a call with a stream from here on."""
        if call.stream is None and call.takes_stream:
            stream = self._new_stream("p")
            if self._ledger.log is not None:
                self._ledger.log(stream.name, 0, b"[%b]" % b",".join(call.keys))
            call.become_stream(stream)

    def log_events(self, log: Callable[[str, int, bytes | None], None]) -> None:
        """Have what streams keep from now on noted, as `Ledger.log`."""
        self._ledger.log = log

    def stand(self, connection: StreamConnection, missed: Sequence[bytes] = ()) -> None:
        """Open a GET stream, with what the client has missed elsewhere, and what has waited for one."""
        stream = self._new_stream("g")
        self._backlog.extendleft(line for line in reversed(missed) if line)
        for old in self._standing:
            if not old.attached:
                self._backlog.extendleft(reversed(old.give_up_unread()))
                old.finish()
        self._standing = [old for old in self._standing if old.attached]
        self._standing.append(stream)
        self._give_backlog(stream)
        stream.attach(connection)

    def resume(self, last_event_id: str, connection: StreamConnection) -> bool:
        """Attach a connection to the stream of this event, after it; false when that stream is gone."""
        name, _, number = last_event_id.rpartition("-")
        stream = self._streams.get(name)
        if stream is None or not (number.isascii() and number.isdigit()):
            return False
        stream.attach(connection, int(number[:18]))
        if stream in self._standing:
            self._give_backlog(stream)
        return True

    def end_elsewhere(self, last_event_id: str, rest: Sequence[bytes], connection: StreamConnection) -> None:
        """Have a connection carry what is left of the stream of a call at another instance; the store keeps it."""
        name, _, number = last_event_id.rpartition("-")
        stream = Stream(name, Ledger(forget, self._ledger.limit_bytes, self._ledger.limit_events), int(number))
        stream.attach(connection)
        for line in rest:
            stream.append(line)
        stream.finish()

    def sweep(self, now: float) -> None:
        """Forget finished streams that are too old to be resumed, or too many."""
        finished = [stream for stream in self._streams.values() if stream.finished and not stream.attached]
        too_many = len(finished) - _FINISHED_KEPT
        for index, stream in enumerate(finished):
            if index < too_many or now - stream.finished_at > self._config.patience.resume_s:
                stream.clear(is_in_vain=True)
                del self._streams[stream.name]

    # Frames to the client.

    def _waiting(self) -> Iterable[PostedCall]:
        """Return each call that waits, once."""
        return {id(call): call for call in self._calls.values()}.values()

    def _answer(self, frame: Frame) -> bool:
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

    def _send_unasked(self, frame: Frame) -> None:
        standing = next((stream for stream in reversed(self._standing) if stream.attached), None)
        call = None
        if frame.stream is not None:
            call = self._calls.get(frame.stream)
        elif standing is None:
            call = next((call for call in reversed(self._calls.values()) if call.takes_stream), None)
        if call is not None and call.takes_stream:
            self.begin_stream(call)
            assert call.stream is not None
            call.stream.append(frame.raw)
        elif standing is not None:
            standing.append(frame.raw)
        else:
            self._backlog.append(to_keep(frame.raw))
            self._trim_backlog()

    def _give_backlog(self, stream: Stream) -> None:
        self._lossy = False
        while self._backlog:
            stream.append(self._backlog.popleft())

    def _trim_backlog(self) -> None:
        limits = self._config.limits
        size = sum(map(len, self._backlog))
        while len(self._backlog) > limits.replay_events or (size > limits.replay_bytes and len(self._backlog) > 1):
            size -= len(self._backlog.popleft())
            if not self._lossy:
                self._lossy = True
                logger.warning("frames to a client are dropped: no stream comes to take them")

    def _note_revision(self, frame: Frame) -> None:
        if frame.kind != "result" or self._initialize is None or frame.key not in self._initialize.keys:
            return
        revision = decoded(frame).body["result"].get("protocolVersion")
        self.revision = revision if isinstance(revision, str) else None
        self._initialize.opened = True
        self._initialize = None

    def _new_stream(self, kind: str) -> Stream:
        stream = Stream(f"{kind}{self._mark}{next(self._names)}", self._ledger)
        self._streams[stream.name] = stream
        self.sweep(self.loop.time())
        return stream


def _is_response(member: Any) -> bool:
    return isinstance(member, dict) and "method" not in member


def _for_call(frame: Frame, call: PostedCall, calls: int) -> bytes:
    """Return what of an array is for this call: a server may join answers to several arrays."""
    if calls == 1 and call.is_batch:
        return frame.raw
    members = [member for member in frame.body if isinstance(member, dict) and key_of(member.get("id")) in call.keys]
    return encode_line(members if call.is_batch else members[0])
