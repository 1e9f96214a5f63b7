"""A transport that answers for a server while it starts.

Lives here: what `core.edges.greeter` needs of the world: both directions, the clock, and what is remembered
(`host.known`). Must not: decide what is answered. Made by `dragoman.proxy`, for servers that are commands.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dragoman.core.edges.greeter import Answers, Greeter
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.label import PRINCIPAL
from dragoman.core.waiting import WaitingRoom
from dragoman.host.known import KnownAnswers, Said
from dragoman.transports.base import Receiver, Transport
from dragoman.transports.countdown import Countdown

if TYPE_CHECKING:
    from dragoman.core.settings import Settings

logger = logging.getLogger("dragoman.session")

SLOW_S: Final = 1.0
"""A server that has started in less is waited for."""

_PAUSE_S: Final = 0.5
"""How long what is to be remembered may wait, with all that follows."""


def with_greeting(connect: Callable[[], Transport], known: KnownAnswers, settings: Settings) -> Callable[[], Transport]:
    """Return what opens such a transport: the first time; one that is started again is waited for.

    Args:
        connect: Opens a transport to the server.
        known: What is remembered of what it said.
        settings: Of the session.
    """
    is_first = True

    def open_transport() -> Transport:
        nonlocal is_first
        transport, greets, is_first = connect(), is_first, False
        # What a server says to somebody may be meant for nobody else.
        return transport if PRINCIPAL.get() else GreetedTransport(transport, known, settings, greets)

    return open_transport


class GreetedTransport:
    """The transport to a server, and its receiver.

    Args:
        inner: The transport.
        known: What is remembered.
        settings: Of the session.
        greets: Whether the server is answered for.
    """

    def __init__(self, inner: Transport, known: KnownAnswers, settings: Settings, greets: bool) -> None:
        self._inner = inner
        self._known = known
        self._settings = settings
        self._greets = greets
        self._greeter = Greeter(self, WaitingRoom(settings.queue_frames, settings.queue_bytes))
        self._receiver: Receiver | None = None
        self._told: list[Frame | Malformed] = []
        self._asked_s = time.monotonic()
        self._took_s = 0.0
        self._asked = b""
        self._since = time.time()
        self._patience, self._delay = Countdown(), Countdown()
        self._kept: tuple[bytes, Answers] | None = None
        self.pause_reading = inner.pause_reading
        self.resume_reading = inner.resume_reading
        self.hurry = inner.hurry
        self.was_read = getattr(inner, "was_read", None)
        self.takes_headers: bool = getattr(inner, "takes_headers", False)

    def is_recalled(self) -> bool:
        """Whether what the server says comes from memory."""
        return self._greeter.is_waiting

    # What the host calls

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        self.pause_writing, self.resume_writing = receiver.pause_writing, receiver.resume_writing
        self.failed, self.session_lost, self.unsent = receiver.failed, receiver.session_lost, receiver.unsent
        self.broken = receiver.broken
        self._inner.start(self)

    def send(self, frames: Sequence[Frame]) -> None:
        """Send frames, or answer them."""
        if self._greeter.is_idle and not any(map(self._greeter.minds, frames)):
            self._inner.send(frames)
            if self._greeter.is_done and not self._told and self._receiver is not None:
                self._step_aside(self._receiver)
            return
        for frame in frames:
            self._greeter.take_from_edge(frame)

    def _step_aside(self, receiver: Receiver) -> None:
        """Let both sides have each other: two calls fewer for each frame from here on."""
        self.send, self.received = self._inner.send, receiver.received  # type: ignore[method-assign]

    async def close(self) -> None:
        """Close the transport."""
        self._patience.stop()
        if self._greeter.is_waiting and not self._greeter.is_believed:
            self._known.keep(self._asked, None)  # as like as not, what was remembered is of no use
        if self._delay.is_set:
            self._delay.stop()
            self._write()
        await self._inner.close()
        self._receiver = None

    # What the transport calls

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Frames came."""
        if self._greeter.is_idle and not self._told:
            if self._receiver is not None:
                self._receiver.received(frames)
            return
        for frame in frames:
            self._greeter.take_from_server(frame)
        self._flush()

    def ended(self, reason: str) -> None:
        """The server says no more; one that was answered for in vain is waited for the next time."""
        self._greeter.end(reason)

    # What the greeter calls

    def tell_edge(self, frame: Frame | Malformed) -> None:
        """Hand this to the edge, after what it says at present."""
        self._told.append(frame)
        if len(self._told) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def tell_server(self, frame: Frame) -> None:
        """Send this to the server."""
        self._inner.send((frame,))

    def recall(self, asked: bytes) -> tuple[Answers, bool]:
        """Return what is remembered, and whether the server is answered for."""
        is_first, self._asked = not self._asked, asked
        if is_first:
            self._asked_s = time.monotonic()
        said = self._known.recall(asked)
        patience_s = self._settings.request_timeout_s
        if said is None or not said.answers:
            return {}, False
        if not is_first or not self._greets or (patience_s is not None and patience_s < 2 * said.took_s):
            return said.answers, False  # who has refused another question is there already
        logger.info("the server took %.1f s to start the last time, and is answered for until it has", said.took_s)
        self._since = said.since
        wait_s = self._settings.init_timeout_s
        self._patience.set(wait_s, lambda: self.end(f"the server has not answered within {wait_s:g} s"))
        return said.answers, True

    def keep(self, asked: bytes, answers: Answers) -> None:
        """Remember this soon, with all that follows until then."""
        self._kept = asked, answers
        if not self._delay.is_set:
            self._delay.set(_PAUSE_S, self._write)

    def arrived(self) -> bool:
        """Record how long the server took, from the question on; one that is fast is forgotten."""
        self._patience.stop()
        self._took_s = time.monotonic() - self._asked_s
        if self._took_s <= SLOW_S:
            self._known.keep(self._asked, None)
        return self._took_s > SLOW_S

    def end(self, reason: str) -> None:
        """Say to the edge that the server is gone."""
        self._flush()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.ended(reason)

    def _flush(self) -> None:
        told, self._told = self._told, []
        if told and self._receiver is not None:
            self._receiver.received(told)

    def _write(self) -> None:
        assert self._kept is not None
        asked, answers = self._kept
        is_slow = self._took_s > SLOW_S
        self._known.keep(asked, Said(answers, self._took_s, self._since) if answers and is_slow else None)
