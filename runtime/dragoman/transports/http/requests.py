"""The requests of per-request clients, as the transport that the proxy sees: all of one principal, over any connection.

Lives here: what came of each POST so far, and what is held back. Must not: speak HTTP (`per_request`), or look into
frames. Made by `per_request`; what runs it sees the protocol of `transports.base`.

Two clients may use the same id. So each request gets a number of ours here; the id in its body does not change. The
number is the key of its frame, and the name of its stream.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.core.envelope import Frame, new_frame, notification_frame
from dragoman.core.exact_json import decode
from dragoman.core.label import teller_of
from dragoman.core.methods import CANCELLED
from dragoman.core.tally import deserves_a_line
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import LARGE_BYTES, Awaited
from dragoman.transports.http.flow import CallTimer, FlowingTransport
from dragoman.transports.http.sse import encode_message

logger = logging.getLogger("dragoman.http")


class Place(NamedTuple):
    """What a request is counted with; listens count apart, because they stay open.

    Attributes:
        principal: Whose it is; empty where nobody has a name.
        source: The connection that it came on, where nobody has a name: it counts then.
        listens: Whether it is a listen.
    """

    principal: str
    source: tuple[object, ...]
    listens: bool


class Post(Awaited):
    """One request that waits for its answer; whoever answers it waits for this until something happens.

    Attributes:
        key: What it is known as.
        takes_stream: Whether anything but the answer can be sent.
        place: With what it is counted.
        lines: What is to be sent on its stream.
        answer: The answer, once it is there.
        is_over: Whether nothing more comes.
        due_at: When it is answered with a stream, by the clock of the loop.
        is_streamed: Whether it is answered with a stream.
        whole_bytes: What a large answer counts: the server has nothing more to say to this client, so that one who does
            not read it is no reason to let the others wait.
        wake: Set from then on when there is something new.
    """

    __slots__ = (
        *("answer", "due_at", "is_over", "is_streamed", "key", "lines", "place", "takes_stream", "wake", "whole_bytes"),
    )

    wake: asyncio.Event

    def __init__(self, key: bytes, place: Place, takes_stream: bool) -> None:
        self.key = key
        self.place = place
        self.takes_stream = takes_stream
        self.lines: list[bytes] = []
        self.answer: Frame | None = None
        self.is_over = self.is_streamed = self.is_told = False
        self.due_at = math.inf
        self.whole_bytes = 0
        self.resume = None

    def note(self) -> None:
        """Let it be known that there is something new."""
        if self.is_streamed:
            self.wake.set()
        else:
            self.tell()

    def end(self) -> None:
        """Let it be known that nothing more comes."""
        self.is_over = True
        self.note()

    def take_part(self) -> tuple[bytes, int]:
        """Take out what is to be sent, as events, and what it counts; whoever has sent it settles that."""
        lines, self.lines = self.lines, []
        return b"".join(map(encode_message, lines)), sum(map(len, lines))


class RequestsTransport(FlowingTransport):
    """The clients of one principal that open no session.

    Args:
        config: Limits and patience.
        principal: They.

    Attributes:
        principal: The same; who runs the session knows by it that each request has a stream of its own.
        timer: Lets whoever answers a request go on that takes long.
    """

    def __init__(self, config: FrontConfig, principal: str) -> None:
        super().__init__(config.limits.high_water_bytes)
        self.principal = principal
        self._tells_whose = config.shares_requests
        self._posts: dict[bytes, Post] = {}
        self._most_bytes = config.limits.high_water_bytes
        self._cut = 0
        self._last = 0
        self.timer = CallTimer(config.patience.stream_after_s, lambda: self._posts.values(), Post.tell)

    # What the proxy calls

    def send(self, frames: Sequence[Frame]) -> None:
        """Give each frame to the request that it belongs to."""
        for frame in frames:
            post = self._posts.get((frame.stream if frame.method is not None else frame.key) or b"")
            if post is None:
                logger.debug("a frame that no request waits for is dropped")
            elif frame.method is None:
                self._finish(post, frame)
            elif post.takes_stream:
                self._add(post, frame.raw)

    async def close(self) -> None:
        """End every request, once its client has taken what it is owed."""
        self.over = True
        self.readable.set()
        self.timer.stop()
        for post in list(self._posts.values()):
            post.end()
        await self.drain()

    # What the front calls

    def __len__(self) -> int:
        return len(self._posts)

    def post(
        self,
        frame: Frame,
        headers: tuple[tuple[str, str], ...],
        place: Place,
        takes_stream: bool,
    ) -> Post:
        """Deliver a request.

        Args:
            frame: It, decoded.
            headers: Those of its headers that repeat arguments.
            place: With what it is counted.
            takes_stream: Whether its client takes a stream.
        """
        self._last += 1
        post = Post(b"%d" % self._last, place, takes_stream)
        self._posts[post.key] = post
        sender, source = place.principal if self._tells_whose else "", place.source
        self.deliver(
            new_frame(
                Frame,
                (
                    *(frame.raw, frame.kind, post.key, frame.method, frame.body),
                    *(None, headers, sender, source, frame.origin, frame.bare),
                ),
            )
        )
        return post

    def begin_stream(self, post: Post) -> None:
        """Answer a request with a stream from here on."""
        post.is_streamed, post.wake = True, asyncio.Event()
        if post.answer is not None:
            self._add(post, post.answer.raw)

    def leave(self, post: Post) -> None:
        """Record that nobody waits for a request any more: if it is not answered, that cancels it."""
        if self._posts.pop(post.key, None) is None:
            return
        self._whole_bytes -= post.whole_bytes
        if post.lines:
            self.weigh(-sum(map(len, post.lines)))
            post.lines = []
        if not post.is_over:
            # "the client closing the SSE response stream" is how a request is cancelled (2026-07-28/basic/transports).
            self._cancel(post, "the client closed the stream of its request")

    def revoke(self, principals: frozenset[str]) -> None:
        """End the requests of these, and what waits for them to come back."""
        reason = "its client may not come in any more"
        own = [post for post in self._posts.values() if teller_of(post.place.principal) in principals]
        for post in [post for post in own if not post.is_over]:
            self._cancel(post, reason)
            post.end()
        for principal in principals if self._tells_whose else ():
            self.deliver(notification_frame(CANCELLED, {"reason": reason})._replace(sender=principal))

    def _cancel(self, post: Post, reason: str) -> None:
        params = {"requestId": decode(post.key), "reason": reason}
        self.deliver(notification_frame(CANCELLED, params))

    def _finish(self, post: Post, frame: Frame) -> None:
        post.answer, post.is_over = frame, True
        if len(frame.raw) >= LARGE_BYTES:
            post.whole_bytes = len(frame.raw)
            self._whole_bytes += post.whole_bytes
        if post.is_streamed:
            self._add(post, frame.raw)
        else:
            post.tell()

    def _add(self, post: Post, line: bytes) -> None:
        post.lines.append(line)
        self.weigh(len(line))
        post.note()
        if self._waiting_bytes > self._most_bytes:
            self._cut_off()

    def _cut_off(self) -> None:
        """End the stream of the listener that is furthest behind: else the calls of all would wait for it."""
        unread = {post: sum(map(len, post.lines)) for post in self._posts.values() if post.place.listens}
        if sum(unread.values()) <= self._most_bytes // 2:
            return
        slowest = max(unread, key=unread.__getitem__)
        slowest.lines.clear()
        self.weigh(-unread[slowest])
        asyncio.get_running_loop().call_soon(self._withdraw, slowest)  # not while the proxy is in the middle of sending
        self._cut += 1
        if deserves_a_line(self._cut):
            told = unread[slowest], self._cut
            logger.warning("a listener that does not read is cut off: %d bytes wait for it (%d so far)", *told)

    def _withdraw(self, post: Post) -> None:
        self.leave(post)
        post.end()
