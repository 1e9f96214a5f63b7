"""Envelopes: from lines to JSON-RPC frames, and back.

Lives here: cutting a byte stream into lines, telling what kind of frame a line holds, decoding and encoding JSON.
Must not: know revisions, methods or who is waiting for what. Called by `core.session` for every line of both peers.

A line is first *glimpsed*: its leading and trailing members say kind, id and method in a fraction of a microsecond,
whatever its size. Only lines that a glimpse cannot read are decoded here, so a line that is passed on is not parsed.
A glimpse is only trusted where it cannot be fooled: leading members of the top-level object are read one by one from
its brace on, trailing ones are those just before its closing brace.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from dragoman.core.pieces import Pieces
from dragoman.core.repeats import TWO_FRAMES, repeats_name
from dragoman.core.weight import is_heavier
from dragoman.errors import FrameTooLarge

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600

DEFAULT_LIMIT_BYTES: Final = 100 * 1024 * 1024
"""The longest line accepted from a peer, unless told otherwise."""

MOST_VALUES: Final = 4_000_000
MOST_CONTAINERS: Final = 1_000_000
"""How many values are decoded at most, and how many of them may be arrays and objects: they take 0.4 s and 0.3 GB; as
many as the longest line can hold would take ten seconds and 3 GB."""

_HEAD_BYTES = 256
_TAIL_BYTES = 160
_SHOWN_BYTES = 120


class Frame(NamedTuple):
    """One JSON-RPC frame, with the bytes it came as.

    Attributes:
        raw: The line, line ending included.
        kind: `request`, `notification`, `result`, `error` or `batch`.
        key: The id as canonical JSON, so that `1` and `"1"` differ; None without id.
        method: Of a request or notification.
        body: The decoded JSON, if somebody had to decode it.
    """

    raw: bytes
    kind: str
    key: bytes | None
    method: str | None
    body: Any = None


class Malformed(NamedTuple):
    """A line that is no JSON-RPC frame.

    Attributes:
        code: The JSON-RPC error code that names the defect.
        reason: What was expected and what came.
        key: The id, where one could be read.
        is_response: Whether it meant to answer a request, so that nobody may answer it.
    """

    code: int
    reason: str
    key: bytes | None = None
    is_response: bool = False


class Overlong(NamedTuple):
    """A line over the limit: its end was never kept.

    Attributes:
        head: Its first bytes, enough for a glimpse at the id.
        limit_bytes: The limit.
    """

    head: bytes
    limit_bytes: int


class LineSplitter:
    """Cuts a byte stream into lines, each with its line feed; remembers a line that has not ended."""

    __slots__ = ("_overlong_head", "_parts", "_size", "limit_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._parts = Pieces()
        self._size = 0
        self._overlong_head: bytes | None = None

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Take the next bytes of the stream; give the lines that have ended, in order."""
        first = data.find(b"\n") + 1
        if first == len(data) and not self._size and 0 < first <= self.limit_bytes:
            return [data]  # the common case: one whole line, handed on without a copy
        lines: list[bytes | Overlong] = []
        start = 0
        while first:
            is_whole = not self._size and first - start <= self.limit_bytes
            lines.append(data[start:first] if is_whole else self._end_line(data[start:first]))
            start = first
            first = data.find(b"\n", start) + 1
        if start < len(data):
            self._keep(data[start:])
        return lines

    def finish(self) -> list[bytes | Overlong]:
        """Take the end of the stream; give what stood there without a line feed, if anything.

        Nobody said that it ended there: `wholeness.read_last_line` tells what it holds.
        """
        return [self._end_line(b"\n")] if self._size else []

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._overlong_head is None:
            self._parts.add(part)
            if self._size > self.limit_bytes:
                self._overlong_head = self._parts.take()[:_HEAD_BYTES]

    def _end_line(self, part: bytes) -> bytes | Overlong:
        self._keep(part)
        head, line = self._overlong_head, self._parts.take()
        self._size, self._overlong_head = 0, None
        return line if head is None else Overlong(head, self.limit_bytes)


# Ids and methods are read only where they are plain printable ASCII: anything else is decoded.
_ID = rb'(0|-?[1-9][0-9]{0,17}|"[ !#-\[\]-~]*")'
_HEAD = re.compile(  # `(?(2)(?!))`: no second id
    rb'\s*\{\s*(?:(?:("jsonrpc")\s*:\s*"2\.0"|"id"\s*:\s*(?(2)(?!))'
    + _ID
    + rb'|"method"\s*:\s*(?(3)(?!))"([ !#-\[\]-~]*)")\s*(?:,\s*|(?=\})))*'
    rb'(?:"(params|result|error)"\s*:|(\})\s*\Z)'
)
_TAIL = re.compile(rb'(?:,\s*(?:("jsonrpc")\s*:\s*"2\.0"|"id"\s*:\s*' + _ID + rb")\s*)+\}\s*\Z")


def glimpse(line: bytes) -> Frame | None:
    """Read kind, id and method off the edges of a line, without decoding it.

    Returns:
        The frame, or None where the edges do not tell: then `read_frame` decodes. That the middle of the line is
        valid JSON is not looked at: whoever the line is passed on to will.
    """
    head = _HEAD.match(line)
    if head is None:
        return None
    version, key, method, member, end = head.groups()
    # What ends with two braces has no id at its end. Anything else that has one already must not have another there.
    if version is None or key is None or (end is None and not line.endswith(b"}}\n")):
        tail = _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
        if tail is not None:
            version = version or tail[1]
            if tail[2] is not None and (key is not None or tail[0].count(b'"id"') > 1):
                return None  # which of two ids counts, a peer may see in another way than we do
            key = key or tail[2]
        if version is None:
            return None
    if member == b"result" or member == b"error":
        if key is None or method is not None or not _ends_with_brace(line):
            return None
        return Frame(line, member.decode(), key, None)
    if method is None or not _ends_with_brace(line):
        return None
    if key is not None:
        return Frame(line, "request", key, method.decode())
    if member is None or method.startswith(b"notifications/"):
        return Frame(line, "notification", None, method.decode())
    return None


def read_line(line: bytes | Overlong) -> Frame | Malformed | None:
    """Tell what a line holds, by a glimpse if possible, by decoding if not; None for an empty line."""
    if isinstance(line, Overlong):
        return _read_overlong(line)
    frame = glimpse(line)
    if frame is not None or line.isspace():
        return frame
    try:
        body = decode(line)
    except ValueError as error:
        found = read_beginning(line, PARSE_ERROR, str(error))
        return found if found.is_response else Malformed(PARSE_ERROR, str(error))  # JSON-RPC: then "it MUST be Null"
    told = classify(line, body)
    if not isinstance(told, Frame) or not repeats_name(line):
        return told
    if told.kind == "batch":
        return told._replace(raw=encode_line(body))  # from here on, everybody reads the same in it
    return Malformed(INVALID_REQUEST, TWO_FRAMES, told.key, told.kind in ("result", "error"))


def show(line: bytes | Overlong) -> str:
    """Give the beginning of a line for a log: on one line of plain ASCII, whatever it holds."""
    text = line.head if isinstance(line, Overlong) else line.rstrip(b"\r\n")
    cut = len(text) > _SHOWN_BYTES or isinstance(line, Overlong)
    return ascii(text[:_SHOWN_BYTES].decode(errors="backslashreplace")) + "..." * cut


def _read_overlong(line: Overlong) -> Malformed:
    """Find out from the first bytes of a line that was not kept whom to tell: who sent it, or who waits for it."""
    return read_beginning(line.head, INVALID_REQUEST, FrameTooLarge("the sender", line.limit_bytes).reason)


def read_beginning(line: bytes, code: int, reason: str) -> Malformed:
    """Find out whom to tell of a line that is no frame, or whose end is missing, if its first members say so."""
    head = _HEAD.match(line, 0, _HEAD_BYTES)
    if head is None:
        return Malformed(code, reason)
    return Malformed(code, reason, head[2], head[4] in (b"result", b"error"))


def classify(line: bytes, body: Any) -> Frame | Malformed:
    """Tell what kind of frame a decoded JSON value is: by key presence alone, as JSON-RPC 2.0 section 4 and 5 say.

    Args:
        line: The bytes it came as.
        body: The decoded value.
    """
    if isinstance(body, list):
        return Frame(line, "batch", None, None, body)
    if not isinstance(body, dict):
        return Malformed(INVALID_REQUEST, f"expected a JSON object, found {_named(body)}")
    key = None
    if "id" in body:
        key = key_of(body["id"])
    is_response = "method" not in body and ("result" in body or "error" in body)
    fault = _find_fault(body, key, is_response)
    if fault is not None:
        return Malformed(INVALID_REQUEST, fault, key, is_response)
    if is_response:
        return Frame(line, "result" if "result" in body else "error", key, None, body)
    return Frame(line, "request" if "id" in body else "notification", key, body["method"], body)


def _find_fault(body: dict[str, Any], key: bytes | None, is_response: bool) -> str | None:
    if body.get("jsonrpc") != "2.0":
        return f'expected "jsonrpc": "2.0", found {_named(body.get("jsonrpc"))}'
    if is_response:
        if "result" in body and "error" in body:
            return "expected either result or error, found both"
        if key is None and ("result" in body or body.get("id") is not None):
            return "expected a response to carry the id of a request"
        member = "result" if "result" in body else "error"
        return None if isinstance(body[member], dict) else f"expected {member} to be an object"
    if not isinstance(body.get("method"), str):
        return f"expected method to be a string, found {_named(body.get('method'))}"
    if "id" in body and key is None:
        return f"expected id to be a string or an integer, found {_named(body['id'])}"
    if not isinstance(body.get("params", {}), dict | None):
        return f"expected params to be an object, found {_named(body['params'])}"
    return None


def key_of(request_id: Any) -> bytes | None:
    """Give an id as canonical JSON: type and value both count; None for what cannot be an id."""
    if type(request_id) is int:  # nearly all are; a bool is an int too, but not by its type
        return b"%d" % request_id
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | float):
        return None
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)  # a JavaScript peer answers 1.0 as 1
    if isinstance(request_id, int):
        return b"%d" % request_id
    return to_keep(encode(request_id))


def to_keep(line: bytes) -> bytes:
    """Give bytes that may be kept for long: however short, what orjson returns holds on to 4 KB."""
    return line if len(line) > 4096 else bytes(memoryview(line))


_DIGITS_TO_ZERO = bytes(48 if 48 <= code <= 57 else 0 for code in range(256))


def with_id(frame: Frame, key: bytes) -> bytes:
    """Give the line of a request or response under another id; one that was only glimpsed at is not decoded.

    Args:
        frame: As it came.
        key: The id that it is to have, as canonical JSON.

    Raises:
        ValueError: It was only glimpsed at, and cannot be decoded.
    """
    if frame.body is None:
        line = frame.raw
        found = _HEAD.match(line)
        if found is None or found[2] is None:
            found = _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
        if found is not None and found[2] is not None:
            start, end = found.span(2)
            return line[:start] + key + line[end:]
    body = decode(frame.raw) if frame.body is None else frame.body
    return encode_line({**body, "id": decode(key)})


def twin_of(key: bytes) -> bytes | None:
    """Give the id that looks the same and has the other type: `3` for `"3"` and back; None where there is none."""
    if key.isdigit():
        return b'"' + key + b'"'
    inner = key[1:-1]
    return inner if key[:1] == b'"' and inner.isdigit() and encode(int(inner)) == inner else None


def decode(line: bytes) -> Any:
    """Decode JSON exactly: integers of any length, lone surrogates and `\\u0000` survive.

    orjson does most lines. It reads integers beyond 64 bits as floats without a word, so a line that may hold one is
    left to the standard library, as is every line that orjson refuses: some of them are legal.

    Raises:
        ValueError: It is not JSON, or nested or long beyond what can be held; the text says which.
    """
    _check_weight(line)
    if not may_hold_long_integer(line):
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
    """Whether a line has a run of 19 digits, in a number or elsewhere: shorter integers fit into 64 bits.

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


def encode_error(key: bytes | None, code: int, message: str, data: Any = None) -> bytes:
    """Write the error response to the request with this id, as a line; a missing id is null, as JSON-RPC says."""
    error = {"code": code, "message": message} if data is None else {"code": code, "message": message, "data": data}
    return b'{"jsonrpc":"2.0","id":' + (key or b"null") + b',"error":' + encode(error) + b"}\n"


def encode_result(key: bytes, result: Any) -> bytes:
    """Write the response to the request with this id, as a line."""
    return b'{"jsonrpc":"2.0","id":' + key + b',"result":' + encode(result) + b"}\n"


def _ends_with_brace(line: bytes) -> bool:
    return line.endswith(b"}\n") or line.rstrip().endswith(b"}")


def _named(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            return f"the {'boolean' if isinstance(value, bool) else 'number'} {encode(value).decode()[:40]}"
        case str():
            return f"the string {value[:40]!r}"
        case list():
            return "an array"
        case _:
            return "an object"
