"""Frames on a byte stream, one a line: what pipes, our own standard streams and the transport in memory share.

Lives here: from bytes to frames, and back. Must not: do I/O, or answer what is not a frame. Lines are cut and looked at
here, once; behind a transport there are only frames.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.core.codes import PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.exact_json import outline
from dragoman.core.known_lists import LISTED_BYTES, KnownList
from dragoman.core.lines import DEFAULT_LIMIT_BYTES, LineSplitter, Overlong
from dragoman.core.peek import peek, read_beginning, read_line, read_unseen
from dragoman.core.wholeness import is_one_text, read_last_line
from dragoman.transports.base import Receiver


class LineFramer:
    """Reads the frames of a byte stream.

    Args:
        limit_bytes: The longest line accepted; one that is longer is not kept, and comes as `Malformed`.
        checks_texts: Whether a line is looked at as a whole: it will leave by a transport that has other bounds than
            the ends of lines, where two JSON texts on one line would pass for one message.
    """

    __slots__ = ("_checks_texts", "_known", "_short_bytes", "_splitter")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES, checks_texts: bool = False) -> None:
        self._splitter = LineSplitter(limit_bytes)
        self._checks_texts = checks_texts
        self._known = KnownList()
        self._short_bytes = min(LISTED_BYTES, limit_bytes)

    def feed(self, data: bytes) -> list[Frame | Malformed]:
        """Take the next bytes of the stream; give the frames that have ended, in order."""
        is_short_line = len(data) <= self._short_bytes and data.find(b"\n") + 1 == len(data)
        if is_short_line and not self._splitter.kept_bytes:  # nearly always
            seen = peek(data)
            if seen is not None and not self._checks_texts:
                return [seen]
            frame = read_unseen(data) if seen is None else _check_text(seen)
            return [] if frame is None else [_show(frame, data)]
        frames = []
        for line in self._splitter.feed(data):
            frame = read_line(line) if len(line) <= LISTED_BYTES else self._read_long(line)
            if frame is None:
                continue
            if self._checks_texts and isinstance(frame, Frame) and frame.body is None:
                frame = _check_text(frame)
            frames.append(frame if isinstance(frame, Frame) else _show(frame, line))
        return frames

    def _read_long(self, line: bytes | Overlong) -> Frame | Malformed | None:
        if isinstance(line, Overlong):
            return read_line(line)
        frame = read_line(line, self._known.shorten(line))
        if isinstance(frame, Frame) and frame.kind == "result" and not frame.bare:
            self._known.note(line)
        return frame

    def finish(self) -> list[Frame | Malformed]:
        """Take the end of the stream; give what stood there without a line feed: a frame only if it is whole."""
        lines = self._splitter.finish()
        read = [(read_last_line(line), line) for line in lines]
        return [_show(frame, line) for frame, line in read if frame is not None]


class FramedReceiver:
    """Reads the frames of a byte stream for a receiver of frames; bytes that come after its end are dropped.

    Args:
        receiver: Who is told.
        limit_bytes: As for `LineFramer`.
        checks_texts: The same.
    """

    __slots__ = ("_framer", "_receiver", "broken", "pause_writing", "resume_writing")

    def __init__(self, receiver: Receiver, limit_bytes: int = DEFAULT_LIMIT_BYTES, checks_texts: bool = False) -> None:
        self._receiver: Receiver | None = receiver
        self._framer = LineFramer(limit_bytes, checks_texts)
        self.broken = receiver.broken
        self.pause_writing = receiver.pause_writing
        self.resume_writing = receiver.resume_writing

    def data_received(self, data: bytes) -> None:
        """Bytes came, in pieces of any size."""
        frames = self._framer.feed(data)
        if frames and self._receiver is not None:
            self._receiver.received(frames)

    def ended(self, reason: str) -> None:
        """The peer says no more."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            if last := self._framer.finish():
                receiver.received(last)
            receiver.ended(reason)


def _check_text(frame: Frame) -> Frame | Malformed:
    """Return a frame whose line was only peeked at, if that is one JSON text."""
    if is_one_text(frame.raw, frame.bare or outline(frame.raw)):
        return frame
    return read_beginning(frame.raw, PARSE_ERROR, "the line is not one JSON text")


def _show(frame: Frame | Malformed, line: bytes | Overlong) -> Frame | Malformed:
    """Return what is not a frame the line that it was, for the log."""
    return frame if isinstance(frame, Frame) else frame._replace(line=line)


def join_lines(frames: Sequence[Frame]) -> bytes:
    """Return frames as the lines that go on the wire; who may have one alone, and often, takes its line as it is."""
    return b"".join([frame.raw for frame in frames])
