"""How many values a JSON text has, counted in its bytes before it is decoded.

Lives here: counting values without making any. Must not: check that the text is JSON; the decoder does that. Called
by `core.exact_json` for long lines, by `transports.http.reading` for long bodies, and by `dragoman.check`.

Theory of operation. What decoding costs is not the bytes but the values: 16 MiB of `[[],[],…` are five million arrays.
They take seconds and hundreds of megabytes, and nobody else is served meanwhile: a thread would not help, for the
decoder holds the interpreter's lock. Every value but the first stands behind a comma, or is the first of an array or
object. So commas and opening brackets bound the values. Those inside strings have to be told apart only where there are
too many: a long text, or an image in Base64, is one value. Counting takes a quarter of a millisecond a megabyte and
sign, and a text that is mostly long strings is left without them before (`core.outline`).
"""

from __future__ import annotations

from typing import Final

from dragoman.core.outline import outline

_PIECE_BYTES: Final = 256 * 1024
"""How much of a text is split at once."""


def is_heavier(text: bytes, values: int, containers: int) -> bool:
    """Whether a JSON text holds more values, or more arrays and objects, than this.

    Args:
        text: JSON; of what is not, everything up to the first mistake counts as it does in JSON.
        values: Numbers, strings, literals, arrays and objects; a member of an object is one.
        containers: How many of them may be arrays and objects.
    """
    least = min(containers + 1, values)
    if len(text) <= 2 * least - 1:  # `[]` is the shortest array, `0,` the shortest value among others
        return False
    text = outline(text)
    if not _exceeds(text, values, containers):
        return False
    text = _without_escapes(text)
    if text.count(b'"') > 4 * values:  # two for each name and two for each string
        return True
    return _exceeds(_without_strings(text), values, containers)


def count_members(text: bytes) -> int:
    """Count the members of all objects in a JSON text: a name that an object has twice counts twice."""
    return _without_strings(_without_escapes(text)).count(b":")


def _without_escapes(text: bytes) -> bytes:
    """Return a text without escaped quotation marks, which do not end a string."""
    return text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text


def _without_strings(text: bytes) -> bytearray:
    """Return a text without its strings; piece by piece, for each part of a split text takes forty bytes more."""
    found = bytearray()
    is_inside = False
    for start in range(0, len(text), _PIECE_BYTES):
        parts = text[start : start + _PIECE_BYTES].split(b'"')
        found += b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0
    return found


def _exceeds(text: bytes | bytearray, values: int, containers: int) -> bool:
    opened = text.count(b"[") + text.count(b"{")
    return opened > containers or opened + text.count(b",") >= values
