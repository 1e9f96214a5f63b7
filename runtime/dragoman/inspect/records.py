"""The form in which a proxy tells its viewer what crosses.

Lives here: batches of what happened, in the notation of Python's own `marshal`. Must not: decode a frame. Written by
`feed`, read by `viewer`, which the proxy has started with its own interpreter: nobody else has the socket.

In that notation because it takes the bytes of frames as they are, and a third of the time of JSON.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed, Refusal
from dragoman.core.exact_json import decode, encode
from dragoman.core.lines import Overlong
from dragoman.core.translate import Crossing
from dragoman.trace.lines import Entry, Noted, Translated, What, Where
from dragoman.transports.base import HttpHeads
from dragoman_spec import Loss

_LENGTH: Final = struct.Struct("<I")
_LINE_BYTES: Final = 4096
"""How much of what is not a frame is handed on."""

Fact = tuple[Any, ...]
"""Something else: `status` with its JSON, `dropped` with a time and a number."""


class Lost(NamedTuple):
    """A loss without what was lost, of which a line says the size alone."""

    pointer: str
    kind: str
    bytes: int
    cosmetic: bool


def pack(entries: Iterable[Entry | Fact]) -> bytes:
    """Return the batch of what happened, in its order."""
    told: list[Fact] = []
    places: dict[Where, Fact] = {}
    for entry in entries:
        if isinstance(entry, Translated):
            told.append(_pack_crossing(entry))
        elif isinstance(entry[0], str):
            told.append((entry[0], encode(entry[1:])))
        else:
            time_s, where, direction, what = cast("Noted", entry)
            plain = places.get(where)
            if plain is None:
                plain = places[where] = tuple(where)
            if type(what) is Frame:
                told.append(("frame", time_s, plain, direction, what[0], what[1], what[2], what[3], what[5]))
            else:
                told.append((*_put(what), time_s, plain, direction))
    batch = marshal.dumps(told)
    return _LENGTH.pack(len(batch)) + batch


def unpack(data: bytearray) -> Iterator[Entry | Fact]:
    """Take all whole batches from the front of what has come."""
    while len(data) >= _LENGTH.size:
        (size,) = _LENGTH.unpack_from(data)
        if len(data) < _LENGTH.size + size:
            return
        told = marshal.loads(memoryview(data)[_LENGTH.size : _LENGTH.size + size])
        del data[: _LENGTH.size + size]
        for kind, *said in told:
            yield _read(kind, said)


def _put(what: What) -> Fact:
    match what:
        case Malformed(reason=reason, line=line):
            raw = line.head if isinstance(line, Overlong) else line
            return "malformed", (reason, bytes(raw[:_LINE_BYTES]))
        case HttpHeads():
            return "heads", tuple(what)
    return "word", str(what)


def _pack_crossing(entry: Translated) -> Fact:
    crossing = entry.crossing
    before, after = crossing.before, crossing.after
    refused = encode([after.code, after.message, after.data]) if isinstance(after, Refusal) else None
    losses = [(one.pointer, str(one.kind), one.bytes, one.cosmetic) for one in crossing.losses]
    frames = [
        None if frame is None else (*frame[:4], None, frame[5])
        for frame in (before, after if isinstance(after, Frame) else None)
    ]
    way = crossing.side.value, crossing.source, crossing.target, crossing.method
    return "translated", entry.time_s, entry.session, entry.server, way, frames, refused, losses


def _read(kind: str, said: list[Any]) -> Entry | Fact:
    if kind == "frame":
        time_s, where, direction, raw, frame_kind, key, method, stream = said
        return Noted(time_s, Where(*where), direction, Frame(raw, frame_kind, key, method, None, stream))
    if kind == "translated":
        return _read_crossing(*said)
    if kind in _FACTS:
        return (kind, *decode(said[0]))
    what, time_s, where, direction = said
    if kind == "malformed":
        what = Malformed(0, what[0], line=what[1])
    elif kind == "heads":
        what = HttpHeads(*what)
    return Noted(time_s, Where(*where), direction, what)


_FACTS: Final = ("status", "dropped")


def _read_crossing(
    time_s: float, session: str, server: str, way: Any, frames: list[Any], refused: bytes | None, losses: list[Any]
) -> Translated:
    side, source, target, method = way
    before, after = (None if frame is None else Frame(*frame) for frame in frames)
    assert before is not None
    other: Frame | Refusal | None = after if refused is None else Refusal(*decode(refused))
    lost = cast("list[Loss]", [Lost(*loss) for loss in losses])
    return Translated(time_s, session, Crossing(Side(side), source, target, method, before, other, lost), server)
