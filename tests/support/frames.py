"""Frames of bytes, for tests that say what is on the wire."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.core.envelope import Frame, Malformed
from dragoman.core.lines import DEFAULT_LIMIT_BYTES, Overlong
from dragoman.transports.lines import LineFramer


def heard(data: bytes, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[Frame | Malformed]:
    """Give what a transport hands on that has read these lines."""
    return LineFramer(limit_bytes).feed(data)


def cut_off(data: bytes) -> list[Frame | Malformed]:
    """Give what a transport hands on that has read this, and then the end."""
    framer = LineFramer()
    return [*framer.feed(data), *framer.finish()]


def sent(data: bytes) -> list[Frame]:
    """Give frames that a transport writes as these bytes, whatever they are."""
    frames = LineFramer().feed(data)
    if frames and all(isinstance(frame, Frame) for frame in frames):
        return [frame for frame in frames if isinstance(frame, Frame)]
    return [Frame(data, "notification", None, None)]


def bytes_of(frames: Sequence[Frame | Malformed]) -> bytes:
    """Give the lines that frames came as; of one that was too long, its beginning."""
    return b"".join(_line(frame) for frame in frames)


def _line(frame: Frame | Malformed) -> bytes:
    if isinstance(frame, Frame):
        return frame.raw
    return frame.line.head if isinstance(frame.line, Overlong) else frame.line
