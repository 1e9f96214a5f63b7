"""JSON that loses nothing: what is decoded and encoded again is the same value.

Lives here: orjson, the standard library for what it cannot do, and how much is decoded at most; a text without its long
strings (`outline`): what stands outside of strings is found in it hundreds of times sooner; and counting values without
making any (`is_heavier`). Must not: know what the JSON means. Called wherever a frame has to be opened or written.

What decoding costs is not the bytes but the values: 16 MiB of `[[],[],…` are five million arrays. They take seconds and
hundreds of megabytes, and nobody else is served meanwhile: a thread would not help, for the decoder holds the
interpreter's lock. Every value but the first stands behind a comma, or is the first of an array or object. So commas
and opening brackets bound the values. Those inside strings have to be told apart only where there are too many: a long
text, or an image in Base64, is one value. Counting takes a quarter of a millisecond a megabyte and sign, and a text
that is mostly long strings is left without them before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any, Final, NoReturn

import orjson

MOST_VALUES: Final = 4_000_000
MOST_CONTAINERS: Final = 1_000_000
"""How many values are decoded at most, and how many of them may be arrays and objects: they take 0.4 s and 0.3 GB; as
many as the longest line can hold would take ten seconds and 3 GB."""

_SHORT_BYTES: Final = 8 * 1024
"""Up to here a text is looked at as it is."""

_LONG_BYTES: Final = 256
"""From here on a string is left out."""

_BYTES_A_QUOTE: Final = 16 * 1024
_QUOTES: Final = 64
"""A text with more quotation marks than so many, and one in so many bytes, is left as it is: to look for each would
cost more than it saves. A request of the newest revision has 42 beside its arguments."""

_SAMPLE_BYTES: Final = 2048
_SAMPLE_QUOTES: Final = 32
"""If so much from the middle of a text has more than so many, the whole is left as it is."""

_BACKSLASH: Final = 0x5C
_MOST_BACKSLASHES: Final = 64

_ENDED: Final = object()

_DIGITS_TO_ZERO = bytes(48 if 48 <= code <= 57 else 0 for code in range(256))
_LONG_RUN: Final = b"000"
"""What a run of 19 digits leaves among every sixth byte."""


def decode(line: bytes) -> Any:
    """Decode JSON exactly: integers of any length, lone surrogates and `\\u0000` survive.

    orjson does most lines. It reads integers beyond 64 bits as floats without a word, so a line that may hold one is
    left to the standard library, as is every line that orjson refuses: some of them are legal.

    Raises:
        ValueError: It is not JSON, or nested or long beyond what can be held; the text says which.
    """
    bare = line
    if len(line) > _SHORT_BYTES:
        bare = outline(line)
        if len(bare) > MOST_CONTAINERS:
            _check_weight(bare)
    if _LONG_RUN not in bare[::6].translate(_DIGITS_TO_ZERO) or not may_hold_long_integer(bare):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            pass
    try:
        return json.loads(line.decode(), parse_constant=_refuse_number, parse_float=_read_float)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte {line[error.start]:#04x} at offset {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None


def skim(line: bytes) -> Any:
    """Decode JSON to look at, not to send on: as `decode`, but integers beyond 64 bits may come as floats.

    Raises:
        ValueError: As `decode`.
    """
    if len(line) > MOST_CONTAINERS:
        _check_weight(line)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return decode(line)


def _check_weight(line: bytes) -> None:
    if is_heavier(line, MOST_VALUES, MOST_CONTAINERS):
        raise ValueError(f"more than {MOST_VALUES} values, or {MOST_CONTAINERS} arrays and objects")


def may_hold_long_integer(line: bytes) -> bool:
    """Whether a line, or its outline, has a run of 19 digits, in a number or elsewhere: shorter ones fit into 64 bits.

    Every sixth byte is looked at first: a run of 19 digits holds three of them in a row, other text rarely does.
    """
    return _LONG_RUN in line[::6].translate(_DIGITS_TO_ZERO) and b"0" * 19 in line.translate(_DIGITS_TO_ZERO)


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"not JSON: {name} is not a number")


def _read_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is beyond what can be held")
    return value


def encode(value: Any) -> bytes:
    """Encode as compact JSON on one line, without line feed; the inverse of `decode`, however deep it is nested."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _encode_what_orjson_cannot(value)


def _encode_what_orjson_cannot(value: Any) -> bytes:
    """Encode integers beyond 64 bits, lone surrogates and more than 254 levels too."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except RecursionError:  # what can be read can be written: an answer that came is not lost for how deep it is
        return "".join(_spell(value)).encode()


def _spell(value: Any) -> Iterator[str]:
    """Write JSON piece by piece, without recursion."""
    levels: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter((("", value),)), "")]
    while levels:
        members, end = levels[-1]
        before, member = next(members, (end, _ENDED))
        yield before
        if member is _ENDED:
            levels.pop()
        elif isinstance(member, dict):
            names = (f"{json.dumps(name)}:" for name in member)
            levels.append((_separate(names, member.values()), "}"))
            yield "{"
        elif isinstance(member, list | tuple):
            levels.append((_separate(repeat(""), member), "]"))
            yield "["
        else:
            yield json.dumps(member, allow_nan=False)


def _separate(names: Iterable[str], members: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Give members, each with what stands before it."""
    return zip(map("".join, zip(chain(("",), repeat(",")), names, strict=False)), members, strict=False)


def encode_line(value: Any) -> bytes:
    """Encode one frame as the line that goes on the wire."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return _encode_what_orjson_cannot(value) + b"\n"


def escape(name: str) -> str:
    """Return a name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def outline(text: bytes) -> bytes:
    """Return a JSON text with its long strings emptied.

    Of what is not JSON, this is exact up to the first mistake. A text that is short, has many strings, or ends within
    one is given as it is.
    """
    middle = len(text) // 2
    if len(text) <= _SHORT_BYTES or text.count(b'"', middle, middle + _SAMPLE_BYTES) > _SAMPLE_QUOTES:
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
