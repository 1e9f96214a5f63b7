"""The form in which a proxy tells its viewer what crosses.

Lives here: batches of what happened: a list of heads as JSON, and the bytes of all their frames as they came. Must not:
decode a frame. Written by `feed`, read by `viewer`; both are of one release.

In a batch, because what is done once for each frame is done four times a call.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed, Refusal
from dragoman.core.exact_json import decode, encode
from dragoman.core.lines import Overlong
from dragoman.core.translate import Crossing
from dragoman.trace.lines import Entry, Noted, Translated
from dragoman_spec import Loss

_LENGTHS: Final = struct.Struct("<II")
_LINE_BYTES: Final = 4096
"""How much of what is not a frame is handed on."""

Fact = tuple[Any, ...]
"""Something else: `status` with its JSON, `dropped` with a time and a number."""

Head = Sequence[Any]


class Lost(NamedTuple):
    """A loss without what was lost, of which a line says the size alone."""

    pointer: str
    kind: str
    bytes: int
    cosmetic: bool


def pack(entries: Iterable[Entry | Fact]) -> bytes:
    """Return the batch of what happened, in its order."""
    heads: list[Head] = []
    bodies: list[bytes] = []
    for entry in entries:
        if type(entry) is Noted:
            time_s, session, connection, side, direction, what = entry
            if type(what) is Frame:
                raw = what.raw
                bodies.append(raw)
                described = _describe(what)
                heads.append(("frame", len(raw), time_s, session, connection, side, direction, *described))
                continue
            said, line = _put(what)
            bodies.append(line)
            heads.append((said, len(line), time_s, session, connection, side, direction, *_reason(what)))
        elif type(entry) is Translated:
            head, body = _pack_crossing(entry)
            heads.append(head)
            bodies.append(body)
        else:
            heads.append(entry)
    said_of_all = encode(heads)
    return b"".join((_LENGTHS.pack(len(said_of_all), sum(map(len, bodies))), said_of_all, *bodies))


def unpack(data: bytearray) -> Iterator[Entry | Fact]:
    """Take all whole batches from the front of what has come."""
    while len(data) >= _LENGTHS.size:
        head_bytes, body_bytes = _LENGTHS.unpack_from(data)
        start = _LENGTHS.size + head_bytes
        if len(data) < start + body_bytes:
            return
        heads = decode(bytes(data[_LENGTHS.size : start]))
        bodies = bytes(data[start : start + body_bytes])
        del data[: start + body_bytes]
        at = 0
        for kind, size, *head in heads:
            if kind in _FACTS:
                yield (kind, size, *head)
                continue
            yield _read(kind, head, bodies[at : at + size])
            at += size


_FACTS: Final = ("status", "dropped")


def _describe(frame: Frame) -> tuple[str, str | None, str | None, str | None]:
    _, kind, key, method, _, stream = frame[:6]
    return (
        kind,
        None if key is None else key.decode("utf-8", "surrogateescape"),
        method,
        None if stream is None else stream.decode("utf-8", "surrogateescape"),
    )


def _put(what: Malformed | Frame | str) -> tuple[str, bytes]:
    if isinstance(what, Malformed):
        raw = what.line.head if isinstance(what.line, Overlong) else what.line
        return "malformed", raw[:_LINE_BYTES]
    return "word", b""


def _reason(what: Malformed | Frame | str) -> tuple[str]:
    return (what.reason if isinstance(what, Malformed) else str(what),)


def _pack_crossing(entry: Translated) -> tuple[Head, bytes]:
    crossing = entry.crossing
    before, after = crossing.before, crossing.after
    refused = [after.code, after.message, after.data] if isinstance(after, Refusal) else None
    losses = [[one.pointer, one.kind, one.bytes, one.cosmetic] for one in crossing.losses]
    said = [entry.time_s, entry.session, crossing.side.value, crossing.source, crossing.target, crossing.method]
    body = before.raw + after.raw if isinstance(after, Frame) else before.raw
    shape = [isinstance(after, Frame), refused, losses, len(before.raw), _describe(before)]
    return ["translated", len(body), *said, *shape], body


def _read(kind: str, head: list[Any], body: bytes) -> Entry:
    if kind == "translated":
        return _read_crossing(head, body)
    time_s, session, connection, side, direction, *rest = head
    what: Frame | Malformed | str = rest[0]
    if kind == "frame":
        what = _frame(body, *rest)
    elif kind == "malformed":
        what = Malformed(0, rest[0], line=body)
    return Noted(time_s, session, connection, side, direction, what)


def _read_crossing(head: list[Any], body: bytes) -> Translated:
    time_s, session, side, source, target, method, is_frame, refused, losses, size, frame = head
    after: Frame | Refusal | None = None if refused is None else Refusal(*refused)
    if is_frame:
        after = _frame(body[size:], *frame)
    lost = cast("list[Loss]", [Lost(*loss) for loss in losses])
    return Translated(
        time_s, session, Crossing(Side(side), source, target, method, _frame(body[:size], *frame), after, lost)
    )


def _frame(raw: bytes, kind: str, key: str | None, method: str | None, stream: str | None) -> Frame:
    return Frame(raw, kind, _bytes(key), method, None, _bytes(stream))


def _bytes(key: str | None) -> bytes | None:
    return None if key is None else key.encode("utf-8", "surrogateescape")
