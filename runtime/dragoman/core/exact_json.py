"""JSON that loses nothing: what is decoded and encoded again is the same value.

Lives here: orjson, the standard library for what it cannot do, and how much is decoded at most. Must not: know what
the JSON means. Called wherever a frame has to be opened or written.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import orjson

from dragoman.core.outline import outline
from dragoman.core.weight import is_heavier

MOST_VALUES: Final = 4_000_000
MOST_CONTAINERS: Final = 1_000_000
"""How many values are decoded at most, and how many of them may be arrays and objects: they take 0.4 s and 0.3 GB; as
many as the longest line can hold would take ten seconds and 3 GB."""


_DIGITS_TO_ZERO = bytes(48 if 48 <= code <= 57 else 0 for code in range(256))


def decode(line: bytes) -> Any:
    """Decode JSON exactly: integers of any length, lone surrogates and `\\u0000` survive.

    orjson does most lines. It reads integers beyond 64 bits as floats without a word, so a line that may hold one is
    left to the standard library, as is every line that orjson refuses: some of them are legal.

    Raises:
        ValueError: It is not JSON, or nested or long beyond what can be held; the text says which.
    """
    bare = outline(line)
    _check_weight(bare)
    if not may_hold_long_integer(bare):
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
    _check_weight(line)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return decode(line)


def _check_weight(line: bytes) -> None:
    if len(line) > MOST_CONTAINERS and is_heavier(line, MOST_VALUES, MOST_CONTAINERS):
        raise ValueError(f"more than {MOST_VALUES} values, or {MOST_CONTAINERS} arrays and objects")


def may_hold_long_integer(line: bytes) -> bool:
    """Whether a line, or its outline, has a run of 19 digits, in a number or elsewhere: shorter ones fit into 64 bits.

    Every sixth byte is looked at first: a run of 19 digits holds three of them in a row, other text rarely does.
    """
    return b"000" in line[::6].translate(_DIGITS_TO_ZERO) and b"0" * 19 in line.translate(_DIGITS_TO_ZERO)


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"not JSON: {name} is not a number")


def _read_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is beyond what can be held")
    return value


def encode(value: Any) -> bytes:
    """Encode as compact JSON on one line, without line feed; the inverse of `decode`.

    Raises:
        ValueError: It is nested deeper than can be written.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return _encode_what_orjson_cannot(value)


def _encode_what_orjson_cannot(value: Any) -> bytes:
    """Encode integers beyond 64 bits, lone surrogates and more than 254 levels too."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None


def encode_line(value: Any) -> bytes:
    """Encode one frame as the line that goes on the wire."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return _encode_what_orjson_cannot(value) + b"\n"


def escape(name: str) -> str:
    """Return a name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
