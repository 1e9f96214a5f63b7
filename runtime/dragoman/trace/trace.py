"""Watching what crosses: each frame that comes or goes, and each that is translated.

Lives here: a transport that tells of every frame and is otherwise the one it stands for. Must not: wait for whoever
reads the trace (`writer`), or change anything. Made by `dragoman.cli.proxy` and embedders, used by `dragoman.proxy`.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.label import LABEL
from dragoman.core.translate import Crossing
from dragoman.trace.lines import Entry, Translated, What, Where
from dragoman.trace.writer import LineWriter, open_target
from dragoman.transports.base import Receiver, Transport


class Watcher(Protocol):
    """Who is told what crosses a proxy."""

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, and tells of each frame."""

    def translated(self, crossing: Crossing) -> None:
        """A frame was translated."""

    def behind(self, server: str) -> Watcher:
        """Return who is told what one of several servers says and hears, by its name."""

    def put(self, entry: Entry) -> None:
        """Something happened. Never waits, never fails."""


class Trace:
    """Writes down what crosses the proxies that are given it, in `ProxyConfig(trace=…)`.

    Args:
        path: A file, which is appended to, or a pipe that somebody reads.

    Raises:
        OSError: It cannot be written to.
    """

    def __init__(self, path: str | Path) -> None:
        self._writer = LineWriter(open_target(str(path)), str(path))
        self._numbers = itertools.count(1)

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, each frame of which is written down.

        Args:
            transport: To a peer.
            side: Which one.
        """
        return Watched(transport, next(self._numbers), side, self._writer.put)

    def translated(self, crossing: Crossing) -> None:
        """Write a translation down."""
        self._writer.put(Translated(time.time(), LABEL.get(), crossing))

    def behind(self, server: str) -> Watcher:
        """Return what writes down what one of several servers says and hears, by its name."""
        return OfServer(self._numbers, self._writer.put, server)

    def put(self, entry: Entry) -> None:
        """Write down what happened."""
        self._writer.put(entry)

    def reopen(self) -> None:
        """Open the file anew, if it is not the same any more; else that is noticed in a second."""
        self._writer.reopen()

    def close(self) -> None:
        """Write what waits, and close the file; call it once the proxies have ended."""
        self._writer.close()


class OfServer:
    """Sees what one of several servers says and hears.

    The proxy before it has a client of its own, which is the router: what that says is seen as the client says it.

    Args:
        numbers: Of connections.
        put: Gets each entry.
        server: Its name.
    """

    def __init__(self, numbers: Iterator[int], put: Callable[[Entry], None], server: str) -> None:
        self._numbers, self._put, self._server = numbers, put, server
        self._session: str | None = None  # that of the connection to the server; None before there is one

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, each frame of which is told if the server is at its end."""
        if side is Side.CLIENT:
            return transport
        self._session = session_of(LABEL.get(), self._server)
        return Watched(transport, next(self._numbers), side, self._put, self._server)

    def translated(self, crossing: Crossing) -> None:
        """Tell of a translation."""
        session, own = session_of(LABEL.get(), self._server), self._session
        if own is not None and (not own or session.startswith(f"{own}, ")):
            session = own  # what another server of the session said was the reason: its name is no part of whose it is
        self._put(Translated(time.time(), session, crossing, self._server))

    def behind(self, server: str) -> Watcher:
        """Return the same for a server behind this one."""
        return OfServer(self._numbers, self._put, f"{self._server}, {server}")

    def put(self, entry: Entry) -> None:
        """Something happened."""
        self._put(entry)


def session_of(label: str, server: str) -> str:
    """Return whose session it is: what a label says beside the name of the server."""
    return label.removesuffix(server).removesuffix(", ") if server else label


class Watched:
    """A transport whose frames are written down, and the receiver of that transport.

    Args:
        transport: What it stands for.
        number: Of the connection.
        side: Which peer is at its other end.
        put: Gets each entry.
        server: Which of several servers that is.
    """

    _receiver: Receiver
    _where: Where
    pause_writing: Callable[[], None]
    resume_writing: Callable[[], None]

    def __init__(
        self, transport: Transport, number: int, side: Side, put: Callable[[Entry], None], server: str = ""
    ) -> None:
        self._transport = transport
        self._put = put
        self._where = Where("", number, side.value, server)
        if hasattr(transport, "on_heads"):
            transport.on_heads = functools.partial(self._note, "http")
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.hurry = transport.hurry
        self.was_read: Callable[[], bool] | None = getattr(transport, "was_read", None)
        self.takes_headers: bool = getattr(transport, "takes_headers", False)

    # What the proxy calls.

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        self._where = self._where._replace(session=session_of(LABEL.get(), self._where.server))
        self.pause_writing, self.resume_writing = receiver.pause_writing, receiver.resume_writing
        self._transport.start(self)

    def send(self, frames: Sequence[Frame]) -> None:
        """Send frames. What follows from it, such as what a router hands on at once, comes after it in the trace."""
        now = time.time()
        for frame in frames:
            self._put((now, self._where, "sent", frame))
        self._transport.send(frames)

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()
        self._note("closed", "")

    # What the transport calls.

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Frames came."""
        now = time.time()
        for frame in frames:
            self._put((now, self._where, "received", frame))
        self._receiver.received(frames)

    def failed(self, frame: Frame) -> None:
        """The transport gives up a request."""
        self._note("given up", frame)
        self._receiver.failed(frame)

    def session_lost(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """The peer has forgotten the session."""
        self._note("session lost", "" if frame is None else frame)
        self._receiver.session_lost(frame, error, renewed)

    def unsent(self, frames: Sequence[Frame]) -> None:
        """The transport gives frames back that it has not sent."""
        for frame in frames:
            self._note("unsent", frame)
        self._receiver.unsent(frames)

    def ended(self, reason: str) -> None:
        """The peer says no more."""
        self._note("ended", reason)
        self._receiver.ended(reason)

    def broken(self, reason: str) -> None:
        """The peer does not read any more."""
        self._note("broken", reason)
        self._receiver.broken(reason)

    def _note(self, direction: str, what: What) -> None:
        self._put((time.time(), self._where, direction, what))
