"""Bodies in many short chunks: how much of them is parsed at once, and for how long others have a turn then.

Lives here: what both sides of HTTP have in common about it. Must not: know a parser, or a transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

PARTS_AT_ONCE: Final = 100
"""After more parts of a body others have a turn: each takes time, however short it is, and a loop may read on before it
looks at anybody else."""

_REST_S: Final = 5e-6
"""How long that is, for each part: about as long as it took."""

PIECE_BYTES: Final = 4096
_MORE: Final = 4
"""So much of what came in chunks is parsed before it is known whether they are short; then so many times as much."""

_until_s: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""When all connections that have had so many parts have rested, by the clock of their loop."""


def rest_after(loop: asyncio.AbstractEventLoop, parts: int) -> float:
    """Return for how long a connection rests after so many parts: one behind the other, however many there are."""
    now = loop.time()
    until_s = _until_s[loop] = max(now, _until_s.get(loop, 0.0)) + parts * _REST_S
    return until_s - now


def has_chunks(data: bytes) -> bool:
    """Whether what begins a message says that it is in chunks."""
    return b"chunked" in data[: data.find(b"\r\n\r\n")].lower()


def parse_pieces(data: bytes, parse: Callable[[bytes], bool]) -> bytes:
    """Parse one piece after the other, as long as that says that it goes on; return what is left."""
    at, size = 0, PIECE_BYTES
    while at < len(data) and parse(data[at : at + size]):
        at += size
        size *= _MORE
    return data[at + size :]
