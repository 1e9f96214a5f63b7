"""Bytes to JSON values and back, exactly and fast.

orjson does the work; the standard library takes what orjson cannot carry unchanged: integers beyond 64 bits (orjson
reads them as floats) and lone surrogates. Knows nothing of JSON-RPC. Everything that parses or writes a frame calls it.
"""

import json
import math
from typing import Any

import orjson

# Every digit becomes "0" and every other byte a blank: a run of 19 digits is then a plain substring search, ten times
# as fast as a regular expression. The largest signed 64-bit integer has 19 digits.
_DIGITS = bytes(0x30 if chr(byte) in "0123456789" else 0x20 for byte in range(256))
_LONG_NUMBER = b"0" * 19


def loads(data: bytes) -> Any:
    """Parse one JSON value.

    Args:
        data: UTF-8 text of one value, with or without white space around it.

    Returns:
        The value; integers of any size stay integers, ``1.0`` a float, lone surrogates stay in their strings.

    Raises:
        ValueError: not JSON (``NaN`` and ``Infinity`` are not), not UTF-8, nested too deeply, or with a number
            too large for a float.
    """
    if _LONG_NUMBER not in data.translate(_DIGITS):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass  # it may be a lone surrogate; if not, the standard library words the error
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dumps(value: Any) -> bytes:
    """Write one JSON value as compact UTF-8, without a line ending.

    Args:
        value: what :func:`loads` returns, or JSON-like objects with strings as keys and finite numbers.

    Raises:
        ValueError: nested too deeply.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        # Only lone surrogates cannot be encoded, and their Python escape is the JSON one.
        return text.encode("utf-8", "backslashreplace")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text} is too large for a float")
    return number
