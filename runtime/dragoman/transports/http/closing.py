"""How an HTTP connection is written to, closed and read.

Lives here: closing without losing the last answer, leaving requests unread that come before their turn, and noticing
that a client has gone while it is not read. Must not: know HTTP. A part of `connection`.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from dragoman.transports.countdown import Countdown
from dragoman.transports.http.flow import Gate

LINGER_S: Final = 2.0
"""How long a client that is still sending gets to hear why nobody wants it."""

GLANCE_S: Final = 1.0
"""How often we look whether a client that is not read is still there."""


class ClosingTransport:
    """A transport that closes only once the client has heard what was said last, or has had the time to.

    Args:
        transport: Of asyncio; whatever is not here is its.
        is_unheard: Whether the client is sending what nobody will read. To close then would make the system reset the
            connection, and the client lose the answer; so what comes is dropped for a while (RFC 9112, 9.6).
        stall_s: How long a client may take to read the rest after we have closed.
        ended: Called when the connection has ended.

    Attributes:
        is_lingering: Whether what comes is to be dropped.
    """

    __slots__ = (
        "_end",
        "_ended",
        "_is_unheard",
        "_stall_s",
        "_transport",
        "_write",
        "abort",
        "is_closing",
        "is_lingering",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        is_unheard: Callable[[], bool],
        stall_s: float,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        self._transport = transport
        self._ended = ended
        self._is_unheard = is_unheard
        self._stall_s = stall_s
        self._write = transport.write
        self._end = Countdown()
        self.is_lingering = False
        # What every request asks for; the rest goes through `__getattr__`.
        self.abort = transport.abort
        self.is_closing: Callable[[], bool] = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, unless the connection is closing."""
        if not self.is_closing():  # uvloop minds
            self._write(data)

    def close(self) -> None:
        """Close: at once, where the client has nothing more to say."""
        if self.is_closing():
            return
        if self._is_unheard():
            self.linger()
        else:
            self._transport.close()
            self.abort_after(self._stall_s)

    def linger(self) -> None:
        """Say that nothing more comes, and close once the client has heard it, or has had the time to."""
        if self.is_closing():
            return
        self.is_lingering = True
        self.is_closing = lambda: True
        with contextlib.suppress(NotImplementedError, OSError):  # over TLS; cut by the client, which we are told later
            self._transport.write_eof()
        self._transport.resume_reading()
        self.abort_after(LINGER_S)

    def hand_over(self) -> asyncio.Transport:
        """Hand what is below over to another protocol, which closes it."""
        self._end.stop()
        return self._transport

    def abort_after(self, patience_s: float) -> None:
        """Cut the connection, if it has not ended by then."""
        self._end.set(patience_s, self.abort)

    def lose(self) -> None:
        """Record that the connection has ended; a circle of objects would stay until somebody looks for such."""
        self._end.stop()
        self._is_unheard = bool  # never
        self._ended()


class TurnFlow:
    """When a connection is written to, and when it is read: not while requests of it wait.

    A loop that does not read a connection is not told of its end. So while it is not read, the system is asked.

    Args:
        transport: Of asyncio.
        pipeline: The requests that wait.
        loop: For its clock.
        take: Takes what has come.

    Attributes:
        writable: Shut while the client does not read.
        is_paused: Whether nothing is read.
        transport: The same.
        loop: The same.
        left: What has come and is not looked at, while it rests.
    """

    def __init__(
        self,
        transport: ClosingTransport,
        pipeline: deque[Any],
        loop: asyncio.AbstractEventLoop,
        take: Callable[[bytes], object],
    ) -> None:
        self.writable = Gate()
        self.is_paused = False
        self.transport = transport
        self._pipeline = pipeline
        self.loop = loop
        self.left = b""
        self._take = take
        self._is_stopped = False  # as the transport has it
        self._paused_at = self._paused_s = 0.0
        self._glance = Countdown()
        self._rest = Countdown()
        self._goes_on = False  # when it has rested

    def pause_reading(self) -> None:
        """Read nothing more for now."""
        if not self.is_paused:
            self.is_paused = True
            self._paused_at = self.loop.time()
            self._stop(True)
            if not self._glance.is_set:
                self._glance.set(GLANCE_S, self._look)

    def resume_reading(self) -> None:
        """Go on reading, if nothing waits; once it has rested, if it rests."""
        if self._rest.is_set:
            self._goes_on = True
        elif self.is_paused and not self._pipeline:
            if self.left:  # which is taken first, when who asks for it has done so
                self.rest(0.0, goes_on=True)
                return
            self._go_on()
            self._stop(False)

    def _go_on(self) -> None:
        self.is_paused = False
        self._paused_s += self.loop.time() - self._paused_at

    def _stop(self, is_stopped: bool) -> None:
        if is_stopped is not self._is_stopped:
            self._is_stopped = is_stopped
            (self.transport.pause_reading if is_stopped else self.transport.resume_reading)()

    def rest(self, rest_s: float, *, goes_on: bool = False) -> None:
        """Read nothing for a while, so that others have a turn."""
        if not self._rest.is_set:
            self._goes_on = goes_on or not self.is_paused
            self.pause_reading()
            self._rest.set(rest_s, self._wake)

    def _wake(self) -> None:
        if not self._goes_on or self.transport.is_closing():
            return
        if not self.left or self._pipeline:
            self.resume_reading()
            return
        left, self.left = self.left, b""
        self._go_on()
        self._take(left)
        if not self.is_paused and not self.transport.is_closing():
            self._stop(False)

    def take_paused(self) -> float:
        """Return how long nothing was read since this was asked before, in seconds."""
        now = self.loop.time()
        paused_s = self._paused_s + (now - self._paused_at if self.is_paused else 0.0)
        self._paused_at, self._paused_s = now, 0.0
        return paused_s

    def forget(self) -> None:
        """Look no more, and let nobody wait: the connection has ended."""
        self.writable.set()
        self._glance.stop()
        self._rest.stop()
        self._take, self.left = bytes, b""  # a circle would stay until somebody looks

    def _look(self) -> None:
        """Cut a connection that is not read and whose client has gone; one that is read ends by itself."""
        if not self.is_paused or self.transport.is_closing():
            return
        # Of a body that nobody has taken, the rest is still to be had after the client's goodbye.
        if has_gone(self.transport.get_extra_info("socket"), says_goodbye=bool(self._pipeline)):
            self.transport.abort()
        else:
            self._glance.set(GLANCE_S, self._look)


def has_gone(connection: Any, says_goodbye: bool) -> bool:
    """Whether the peer of a socket has gone, also where it has said something before that nobody has read.

    Args:
        connection: Of asyncio or uvloop; a platform without `poll` knows nothing about it.
        says_goodbye: Whether it counts that it has closed in order, beside that it was cut off.
    """
    if sys.platform == "win32" or not hasattr(select, "poll"):
        return False
    goodbye = getattr(select, "POLLRDHUP", 0) if says_goodbye else 0
    asking = select.poll()
    asking.register(connection.fileno(), goodbye)  # that it was cut off is said unasked
    return any(event & (goodbye | select.POLLHUP | select.POLLERR) for _, event in asking.poll(0))
