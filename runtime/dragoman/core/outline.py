"""A JSON text without its long strings: what stands outside of strings is found in it hundreds of times sooner.

Lives here: leaving them out. Nearly all large messages are a few long strings: a file, an image. Whoever counts
brackets, or looks for numbers, names and line ends, need not look into those.
"""

from __future__ import annotations

from typing import Final

_SHORT_BYTES: Final = 8 * 1024
"""Up to here a text is looked at as it is."""

_LONG_BYTES: Final = 256
"""From here on a string is left out."""

_BYTES_A_QUOTE: Final = 16 * 1024
_QUOTES: Final = 16
"""A text with more quotation marks than so many, and one in so many bytes, is left as it is: to look for each would
cost more than it saves."""

_BACKSLASH: Final = 0x5C
_MOST_BACKSLASHES: Final = 64


def outline(text: bytes) -> bytes:
    """Return a JSON text with its long strings emptied.

    Of what is not JSON, this is exact up to the first mistake. A text that is short, has many strings, or ends within
    one is given as it is.
    """
    if len(text) <= _SHORT_BYTES:
        return text
    parts, kept, left = [], 0, _QUOTES + len(text) // _BYTES_A_QUOTE
    start = text.find(b'"')
    while start >= 0:
        end = start
        while end == start or _count_backslashes(text, end) % 2:
            end, left = text.find(b'"', end + 1), left - 1
            if end < 0 or left < 0 or _count_backslashes(text, end) == _MOST_BACKSLASHES:
                return text
        if end - start > _LONG_BYTES:
            parts.append(text[kept : start + 1])
            kept = end
        start = text.find(b'"', end + 1)
    return b"".join((*parts, text[kept:])) if parts else text


def _count_backslashes(text: bytes, place: int) -> int:
    """Return how many stand right before a place, as far as it is looked."""
    if text[place - 1] != _BACKSLASH:
        return 0
    before = text[max(0, place - _MOST_BACKSLASHES) : place]
    return len(before) - len(before.rstrip(b"\\"))
