"""The form in which a proxy tells its viewer what crosses.

Lives here: one record for each thing that happened: a head as JSON, and the bytes of its frames as they came. Must not:
decode a frame. Written by `feed`, read by `viewer`; both are of one release.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed, Refusal
from dragoman.core.exact_json import decode, encode
from dragoman.core.lines import Overlong
from dragoman.core.translate import Crossing
from dragoman.trace.lines import Entry, Noted, Translated
from dragoman_spec import Loss

_LENGTHS: Final = struct.Struct("<II")
_pack_lengths: Final = _LENGTHS.pack
_LINE_BYTES: Final = 4096
"""How much of what is not a frame is handed on."""

Head = list[Any]


class Lost(NamedTuple):
    """A loss without what was lost, of which a line says the size alone."""

    pointer: str
    kind: str
    bytes: int
    cosmetic: bool


def pack(entry: Entry) -> bytes:
    """Return the record of what happened."""
    if isinstance(entry, Translated):
        return _pack_crossing(entry)
    time_s, session, connection, side, direction, what = entry
    if type(what) is Frame:  # four times a call: in this order it takes half as long
        raw, kind, key, method, _, stream = what[:6]
        name = None if key is None else key.decode("utf-8", "surrogateescape")
        where = None if stream is None else _text(stream)
        head = encode(("frame", time_s, session, connection, side, direction, kind, name, method, where))
        return _pack_lengths(len(head), len(raw)) + head + raw
    said = [time_s, session, connection, side, direction]
    match what:
        case Malformed(line=line):
            raw = line.head if isinstance(line, Overlong) else line
            return _join(["malformed", *said, what.reason], raw[:_LINE_BYTES])
        case _:
            return _join(["word", *said, what])


def pack_fact(kind: str, *values: Any) -> bytes:
    """Return the record of something else than a frame: `status` with its JSON, `dropped` with a time and a number."""
    return _join([kind, *values])


def unpack(data: bytearray) -> Iterator[Entry | Head]:
    """Take all whole records from the front of what has come; what is no entry is given as its head."""
    start = 0
    while len(data) - start >= _LENGTHS.size:
        head_bytes, body_bytes = _LENGTHS.unpack_from(data, start)
        middle = start + _LENGTHS.size + head_bytes
        end = middle + body_bytes
        if len(data) < end:
            break
        yield _read(decode(bytes(data[middle - head_bytes : middle])), bytes(data[middle:end]))
        start = end
    del data[:start]


def _describe(frame: Frame) -> tuple[str, str | None, str | None, str | None]:
    return frame.kind, _text(frame.key), frame.method, _text(frame.stream)


def _pack_crossing(entry: Translated) -> bytes:
    crossing = entry.crossing
    before, after = crossing.before, crossing.after
    refused = [after.code, after.message, after.data] if isinstance(after, Refusal) else None
    losses = [[one.pointer, one.kind, one.bytes, one.cosmetic] for one in crossing.losses]
    said = [entry.time_s, entry.session, crossing.side.value, crossing.source, crossing.target, crossing.method]
    raw = after.raw if isinstance(after, Frame) else b""
    shape = [isinstance(after, Frame), refused, losses, len(before.raw), _describe(before)]
    return _join(["translated", *said, *shape], before.raw + raw)


def _join(head: Head, body: bytes = b"") -> bytes:
    said = encode(head)
    return _pack_lengths(len(said), len(body)) + said + body


def _read(head: Head, body: bytes) -> Entry | Head:
    match head:
        case ["frame", time_s, session, connection, side, direction, *frame]:
            return Noted(time_s, session, connection, side, direction, _frame(body, *frame))
        case ["malformed", time_s, session, connection, side, direction, reason]:
            return Noted(time_s, session, connection, side, direction, Malformed(0, reason, line=body))
        case ["word", time_s, session, connection, side, direction, reason]:
            return Noted(time_s, session, connection, side, direction, reason)
        case ["translated", time_s, session, side, source, target, method, is_frame, refused, losses, size, frame]:
            after: Frame | Refusal | None = None if refused is None else Refusal(*refused)
            if is_frame:
                after = _frame(body[size:], *frame)
            lost = cast("list[Loss]", [Lost(*loss) for loss in losses])
            crossing = Crossing(Side(side), source, target, method, _frame(body[:size], *frame), after, lost)
            return Translated(time_s, session, crossing)
    return head


def _frame(raw: bytes, kind: str, key: str | None, method: str | None, stream: str | None) -> Frame:
    return Frame(raw, kind, _bytes(key), method, None, _bytes(stream))


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "surrogateescape")


def _bytes(key: str | None) -> bytes | None:
    return None if key is None else key.encode("utf-8", "surrogateescape")
