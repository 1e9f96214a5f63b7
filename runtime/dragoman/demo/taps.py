"""Taps that write down what passes, and the record that they write.

Lives here: a transport around a transport, a translator around a translator. The proxy does not know about them, and
they change nothing. Must not: interpret what was written down. Called by `demo.stage`; read by `demo.crossings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.translate import Translator
from dragoman.transports.base import Receiver, Transport
from dragoman_spec import Loss, Translation


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a peer sent, or that was sent to it.

    Attributes:
        side: The peer.
        sent: Whether it is the peer who sent it.
        data: The bytes, line ending included.
    """

    side: Side
    sent: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class DemoTranslation:
    """A frame that was translated, and what was lost.

    Attributes:
        source: The revision of the frame.
        frame: The frame, as it came.
        losses: What could not be carried.
    """

    source: str
    frame: dict[str, Any]
    losses: tuple[Loss, ...]


@dataclass(slots=True)
class Record:
    """What happened, in order.

    Attributes:
        client_revision: What the client speaks.
        server_revision: What the server speaks.
        lines: Every line at both ends.
        translations: Every translation.
        problem: Why the conversation did not come to its end; empty if it did.
    """

    client_revision: str
    server_revision: str
    lines: list[Line] = field(default_factory=list)
    translations: list[DemoTranslation] = field(default_factory=list)
    problem: str = ""


class TransportTap:
    """A transport that writes down what passes through another.

    Args:
        inner: The transport that does the work.
        side: Whose it is.
        record: Where lines are written down.
    """

    def __init__(self, inner: Transport, side: Side, record: Record) -> None:
        self._inner = inner
        self._side = side
        self._record = record
        self.pause_reading = inner.pause_reading
        self.resume_reading = inner.resume_reading
        self.hurry = inner.hurry
        self.close = inner.close

    def start(self, receiver: Receiver) -> None:
        """Begin to read, with a tap in the receiver's place."""
        self._inner.start(ReceiverTap(receiver, self._side, self._record))

    def send(self, frames: Sequence[Frame]) -> None:
        """Write down what the peer is sent."""
        self._record.lines += [Line(self._side, False, frame.raw) for frame in frames]
        self._inner.send(frames)


class ReceiverTap:
    """A receiver that writes down what passes to another.

    Args:
        inner: The receiver that does the work.
        side: Whose words it receives.
        record: Where lines are written down.
    """

    def __init__(self, inner: Receiver, side: Side, record: Record) -> None:
        self._inner = inner
        self._side = side
        self._record = record
        self.failed = inner.failed
        self.session_lost = inner.session_lost
        self.unsent = inner.unsent
        self.ended = inner.ended
        self.broken = inner.broken
        self.pause_writing = inner.pause_writing
        self.resume_writing = inner.resume_writing

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Write down the frames that came, before anything follows from them."""
        self._record.lines += [Line(self._side, True, frame.raw) for frame in frames if isinstance(frame, Frame)]
        self._inner.received(frames)


class TranslatorTap:
    """A translator that writes down what another was given and could not carry.

    Args:
        inner: The translator that does the work.
        record: Where translations are written down.
    """

    def __init__(self, inner: Translator, record: Record) -> None:
        self._record = record
        self._translate = inner.translate
        self.source = inner.source
        self.target = inner.target
        self.identity = inner.identity
        self.touches = inner.touches

    def translate(self, frame: Any, method: str | None = None) -> Translation:
        """Translate one frame, and write it down."""
        translation = self._translate(frame, method)
        self._record.translations.append(DemoTranslation(self.source, frame, translation.losses))
        return translation
