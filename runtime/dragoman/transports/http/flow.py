"""What the transports to clients have in common: flow control in both directions, and which calls wait for long.

Lives here: keeping what a client says before the proxy listens, holding clients back, holding their servers back while
too much waits to be read, one timer for all calls of a session, and the methods that are therefore the same for every
transport here. Must not: know what waits, or where. Used by `streamable_session`, `lines` and `requests`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from dragoman.core.envelope import Frame, Malformed
from dragoman.core.origin import Origin
from dragoman.transports.base import HttpHeads, Receiver
from dragoman.transports.countdown import Countdown

_LAST_WORDS_S: Final = 2.0
"""How long clients get at the end to take what they are owed."""

_WHOLE_BYTES: Final = 16 * 1024 * 1024
"""How much of whole answers may wait for slow readers among several clients before their server is held back."""

_TICK_S: Final = 0.002
"""How exact the clock of the loop is."""


class Gate:
    """What `asyncio.Event` offers, open from the start; while it is open it takes 48 bytes, not 760.

    Attributes:
        shut: What whoever comes waits for; None while it is open.
        shut_at: When it was shut last.
    """

    __slots__ = ("shut", "shut_at")

    def __init__(self) -> None:
        self.shut: asyncio.Event | None = None
        self.shut_at = 0.0

    def is_set(self) -> bool:
        """Whether it is open."""
        return self.shut is None

    def set(self) -> None:
        """Open it."""
        shut, self.shut = self.shut, None
        if shut is not None:
            shut.set()

    def clear(self) -> None:
        """Shut it."""
        if self.shut is None:
            self.shut = asyncio.Event()
            self.shut_at = asyncio.get_running_loop().time()

    async def wait(self) -> None:
        """Wait until it is opened, if it is shut."""
        if self.shut is not None:
            await self.shut.wait()


class FlowingTransport:
    """What the transports to clients have in common; each adds `send`, `close` and what its front calls.

    Args:
        high_water_bytes: When more than this waits for the client, its server is held back until a quarter is left.

    Attributes:
        over: Whether the client says no more, or nobody serves it any more.
        readable: Shut while the server does not read.
        held: Whether the server is held back.
        on_heads: Told the headers of each exchange over HTTP; None where nobody wants to know.
        origin: Where all of its requests come from, where they come over one connection; else each says so itself.
    """

    on_heads: Callable[[HttpHeads], None] | None = None
    origin: Origin | None = None

    def __init__(self, high_water_bytes: int) -> None:
        self.over = self.held = False
        self.readable = Gate()
        self._high_water_bytes = high_water_bytes
        self._receiver: Receiver | None = None
        self._early: list[Frame | Malformed] = []
        self._waiting_bytes = self._whole_bytes = 0  # of these, what is of whole answers to one of several clients
        self._drained = Gate()

    # What the proxy calls.

    def start(self, receiver: Receiver) -> None:
        """Begin to hand on what the client says, and what it has said already."""
        self._receiver = receiver
        early, self._early = self._early, []
        if early:
            receiver.received(early)
        if self.over:
            receiver.ended("the client has left already")

    def pause_reading(self) -> None:
        """Let what the client says wait."""
        self.readable.clear()

    def resume_reading(self) -> None:
        """Take what the client says again."""
        self.readable.set()

    def hurry(self) -> None:
        """Nothing to do: `close` takes no longer than readers need."""

    # What the front calls.

    def sweep(self, now: float) -> None:
        """Forget what nobody will ask for any more: nothing, where what has been sent is not kept."""

    def deliver(self, frame: Frame | Malformed) -> None:
        """Hand on what the client says."""
        if self.origin is not None and isinstance(frame, Frame):
            frame = frame._replace(origin=self.origin)
        if self._receiver is None:
            self._early.append(frame)
        else:
            self._receiver.received((frame,))

    def lose_answers(self, garbled: Iterable[Malformed]) -> None:
        """Hand on what may have answered something, and is refused."""
        for answer in garbled:
            self.deliver(answer)

    def end(self, reason: str) -> None:
        """Record that the client says no more, and tell the proxy."""
        if not self.over:
            self.over = True
            self.tell_end(reason)

    def tell_end(self, reason: str) -> None:
        """Tell the proxy, if there is one yet."""
        if self._receiver is not None:
            self._receiver.ended(reason)

    def weigh(self, size: int) -> None:
        """So much more waits for the client, or less: the server is held back if it is too much."""
        self._waiting_bytes = waiting = self._waiting_bytes + size
        if waiting <= 0:
            self._drained.set()
        high = self._high_water_bytes
        waiting -= min(self._whole_bytes, _WHOLE_BYTES)
        if self._receiver is None or self.held == (waiting > (high // 4 if self.held else high)):
            return
        self.held = not self.held
        if self.held:
            self._receiver.pause_writing()
        else:
            self._receiver.resume_writing()

    async def drain(self) -> None:
        """Wait until the client has taken everything, or has had the time to."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._waiting_bytes > 0:
                    self._drained.clear()
                    await self._drained.wait()


class Timed(Protocol):
    """Something that waits.

    Attributes:
        due_at: When it has waited for long, by the clock of the loop; infinity where nobody minds.
    """

    due_at: float


TimedT = TypeVar("TimedT", bound=Timed)


class CallTimer(Generic[TimedT]):
    """Says which calls of a session have waited for long.

    One timer for all: one for each call would be set and cancelled with nearly every call.

    Args:
        after_s: How long that is.
        waiting: Gives all that wait.
        on_due: Called once with each that has waited for so long.
    """

    __slots__ = ("_after_s", "_loop", "_on_due", "_timer", "_waiting")

    def __init__(
        self, after_s: float, waiting: Callable[[], Iterable[TimedT]], on_due: Callable[[TimedT], None]
    ) -> None:
        self._after_s = after_s
        self._waiting = waiting
        self._on_due = on_due
        self._loop = asyncio.get_running_loop()
        self._timer = Countdown()

    def start(self, call: TimedT) -> None:
        """Time a call from now on."""
        call.due_at = self._loop.time() + self._after_s
        if not self._timer.is_set:
            self._timer.set(self._after_s, self._look)

    def stop(self) -> None:
        """Time nothing any more, and hold nothing."""
        self._timer.stop()
        self._waiting, self._on_due = tuple, forget  # circles stay until somebody looks for such

    def _look(self) -> None:
        now = self._loop.time()
        due = [call for call in self._waiting() if call.due_at - now < _TICK_S]
        for call in due:
            call.due_at = math.inf
        next_at = min((call.due_at for call in self._waiting()), default=math.inf)
        if next_at < math.inf:
            self._timer.set(next_at - now, self._look)
        for call in due:
            self._on_due(call)


def forget(_: object) -> None:
    """Nobody minds any more."""
