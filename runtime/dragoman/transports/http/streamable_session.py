"""One session of Streamable HTTP, as the transport that the proxy sees.

Lives here: frames in from any POST, frames out to the right POST or stream, and what is held back. Must not: speak HTTP
(`streamable`). Made by `streamable`; what runs it sees the protocol of `transports.base`.

An answer goes to the POST that asked. A request or notification that belongs to a call goes onto the stream of that
call's POST; onto a GET stream, if the POST does not take a stream or is over. What belongs to no call goes onto a GET
stream; where there is none, onto the stream of the newest POST that takes one, for a request must reach the client or
its server waits for ever. What has nowhere to go waits, within bounds, for the next GET stream.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Sequence

from dragoman.core.envelope import Frame, decoded, to_keep
from dragoman.transports.http.call_timer import CallTimer
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.flow import FlowingTransport
from dragoman.transports.http.posts import PostedCall, PostedCalls
from dragoman.transports.http.reading import Posted
from dragoman.transports.http.streams import Ledger, Stream, StreamConnection

logger = logging.getLogger("dragoman.http")

_FINISHED_KEPT = 16
"""How many finished streams of one session can be resumed."""


class StreamableSession(FlowingTransport):
    """A client that speaks Streamable HTTP.

    Args:
        config: Limits and patience.

    Attributes:
        has_streams: Frames go out on the stream of the call that they name.
    """

    has_streams = True

    def __init__(self, config: FrontConfig) -> None:
        super().__init__(config.limits.high_water_bytes)
        self.loop = asyncio.get_running_loop()  # kept: asking for it is a system call each time
        self.revision: str | None = None
        self._config = config
        self._calls = PostedCalls()
        self._ledger = Ledger(self._flow.weigh, config.limits.replay_bytes, config.limits.replay_events)
        self._streams: dict[str, Stream] = {}
        self._standing: list[Stream] = []  # GET streams, the newest last
        self._backlog: deque[bytes] = deque()
        self._lossy = False  # whether one was dropped since a stream came last
        self._names = itertools.count(1)
        self._initialize: PostedCall | None = None
        self._timer = CallTimer(config.patience.stream_after_s, self._calls.__iter__, self.begin_stream)

    # What the proxy calls.

    def send(self, frames: Sequence[Frame]) -> None:
        """Put each frame onto the stream where it belongs."""
        for frame in frames:
            if frame.method is not None:
                self._send_unasked(frame)
            else:
                if self._initialize is not None:
                    self._note_revision(frame)
                if not self._calls.answer(frame):
                    logger.debug("an answer that no request waits for is dropped")

    async def close(self) -> None:
        """End every stream, once its reader has taken what it is owed."""
        self.over = True
        self.readable.set()
        self._timer.stop()
        for call in self._calls.take_all():
            call.end()
        for stream in self._streams.values():
            stream.finish()
        await self._flow.drain()
        for stream in self._streams.values():
            stream.clear()
        self._streams.clear()
        self._standing.clear()
        self._backlog.clear()

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
        """
        call = None
        if posted.keys:
            call = PostedCall(posted.keys, takes_stream, posted.is_batch)
            self._calls.add(call)
            if posted.initializes and self._initialize is None:
                self._initialize = call
        self._flow.deliver(posted.frame)
        for key in posted.cancelled:
            self._calls.forgo(key)
        return call

    def weigh(self, size: int) -> None:
        """So much more waits for the client, or less: the server is held back if it is too much."""
        self._ledger.waiting += size
        self._flow.weigh(self._ledger.waiting)

    def may_take(self, posted: Posted, most: int) -> bool:
        """Whether what a client posted can be delivered, with so many requests at most."""
        return not self.over and (not posted.keys or self._calls.may_take(posted.keys, most))

    def is_waiting(self, keys: frozenset[bytes]) -> bool:
        """Whether one of these ids belongs to a request that waits for its answer."""
        return self._calls.is_waiting(keys)

    def end(self, reason: str) -> None:
        """Tell the proxy that the client says no more."""
        if not self.over:
            self._flow.end(reason)
        self.over = True

    def begin_stream(self, call: PostedCall) -> None:
        """Answer a call with a stream from here on."""
        if call.stream is None and call.takes_stream:
            call.become_stream(self._new_stream("p"))

    def time(self, call: PostedCall) -> None:
        """Answer a call with a stream, if it takes long."""
        self._timer.start(call)

    def stand(self, connection: StreamConnection) -> Stream:
        """Open a GET stream, with what has waited for one."""
        stream = self._new_stream("g")
        for old in self._standing:
            if not old.attached:
                self._backlog.extendleft(reversed(old.give_up_unread()))
                old.finish()
        self._standing = [old for old in self._standing if old.attached]
        self._standing.append(stream)
        self._give_backlog(stream)
        stream.attach(connection)
        return stream

    def resume(self, last_event_id: str, connection: StreamConnection) -> Stream | None:
        """Attach a connection to the stream of this event, after it; None when that stream is gone."""
        name, _, number = last_event_id.rpartition("-")
        stream = self._streams.get(name)
        if stream is None or not (number.isascii() and number.isdigit()):
            return None
        stream.attach(connection, int(number[:18]))
        if stream in self._standing:
            self._give_backlog(stream)
        return stream

    def sweep(self, now: float) -> None:
        """Forget finished streams that are too old to be resumed, or too many."""
        finished = [stream for stream in self._streams.values() if stream.finished and not stream.attached]
        too_many = len(finished) - _FINISHED_KEPT
        for index, stream in enumerate(finished):
            if index < too_many or now - stream.finished_at > self._config.patience.resume_s:
                stream.clear()
                del self._streams[stream.name]

    # Frames to the client.

    def _send_unasked(self, frame: Frame) -> None:
        standing = next((stream for stream in reversed(self._standing) if stream.attached), None)
        call = None
        if frame.stream is not None:
            call = self._calls.find_streaming(frame.stream)
        elif standing is None:
            call = self._calls.find_newest_streaming()
        if call is not None:
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
        stream = Stream(f"{kind}{next(self._names)}", self._ledger)
        self._streams[stream.name] = stream
        self.sweep(self.loop.time())
        return stream
