"""Envelopes: the kinds of JSON-RPC frames, their ids, and the answers that are written here.

Lives here: what a decoded JSON value is as a frame, ids as keys, writing results and errors. Must not: look at bytes
(`core.peek`), know revisions or who is waiting for what. Called by everything that handles frames.

A server that follows JSON-RPC runs a `tools/call` without an id, like any other notification; whoever counts, refuses
or routes requests would not see it. So one is not a frame, on either side, wherever a frame is read.
"""

from __future__ import annotations

from operator import is_
from typing import Any, Final, NamedTuple

from dragoman.core.codes import INTERNAL_ERROR, INVALID_REQUEST
from dragoman.core.exact_json import decode, encode, encode_line, outline
from dragoman.core.lines import Overlong
from dragoman.core.methods import needs_id
from dragoman.core.origin import Origin
from dragoman.core.repeats import TWO_FRAMES


class Frame(NamedTuple):
    """One JSON-RPC frame, with the bytes it came as.

    Attributes:
        raw: The line, line ending included; empty where it has a body that nobody has written yet.
        kind: `request`, `notification`, `result`, `error` or `batch`.
        key: The id as canonical JSON, so that `1` and `"1"` differ; None without id.
        method: Of a request or notification.
        body: The decoded JSON, if somebody had to decode it.
        stream: The id of the request on whose stream a request or notification came, or goes; None where it is the
            connection's own. A response has none: its key says where it belongs.
        headers: What goes with a request where there are headers; of one that came, those that repeat arguments. With
            an error, when it is worth another try.
        sender: The principal that a request is of, where a connection carries those of several; empty elsewhere.
        source: The connection that a request came on, where nobody has a name: an opaque key of the front. Of what one
            of several servers says, its name, and the ids of the requests that it may be at work on.
        origin: What is known of a client's request beside; None where nobody asks for it.
        bare: The line without its long strings, as `exact_json.outline` gives it, where somebody has made that already
            and it is shorter; another id may stand in it.
    """

    raw: bytes
    kind: str
    key: bytes | None
    method: str | None
    body: Any = None
    stream: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    sender: str = ""
    source: tuple[Any, ...] = ()
    origin: Origin | None = None
    bare: bytes = b""


_NEITHER: Final = "expected a method, a result or an error, found none of them"

new_frame: Final = tuple.__new__
"""Makes a frame of all its fields in a third of the time: for what happens several times a call."""


class Malformed(NamedTuple):
    """A line that is not a JSON-RPC frame.

    Attributes:
        code: The JSON-RPC error code that names the defect.
        reason: What was expected and what came.
        key: The id, where one could be read.
        is_response: Whether it meant to answer a request, perhaps: everything without a method does.
        line: What came, for the log.
        is_told: Whether who sent it knows already: a status has said so.
    """

    code: int
    reason: str
    key: bytes | None = None
    is_response: bool = False
    line: bytes | Overlong = b""
    is_told: bool = False

    @property
    def is_owed(self) -> bool:
        """Whether who sent it may wait for an answer: nobody answers a response, if it is clear that it is one."""
        return not self.is_told and (not self.is_response or self.reason in (_NEITHER, TWO_FRAMES))


def classify(line: bytes, body: Any, stream: bytes | None = None) -> Frame | Malformed:
    """Tell what kind of frame a decoded JSON value is: by key presence, as JSON-RPC 2.0 section 4 and 5 say.

    Args:
        line: The bytes it came as.
        body: The decoded value.
        stream: The stream on which it came, for a member of an array.
    """
    if isinstance(body, list):
        return Frame(line, "batch", None, None, body)
    if not isinstance(body, dict):
        return Malformed(INVALID_REQUEST, f"expected a JSON object, found {_named(body)}")
    key = None
    if "id" in body:
        key = key_of(body["id"])
    is_response = "method" not in body
    fault = _find_fault(body, key, is_response)
    if fault is not None:
        is_answer = is_response or (not isinstance(body["method"], str) and ("result" in body or "error" in body))
        return Malformed(INVALID_REQUEST, fault, key, is_answer)
    if is_response:
        return Frame(line, "result" if body.get("error") is None else "error", key, None, body)
    return Frame(line, "request" if "id" in body else "notification", key, body["method"], body, stream)


def _find_fault(body: dict[str, Any], key: bytes | None, is_response: bool) -> str | None:
    if is_response and "result" not in body and "error" not in body:
        return _NEITHER
    if body.get("jsonrpc") != "2.0":
        return f'expected "jsonrpc": "2.0", found {_named(body.get("jsonrpc"))}'
    if is_response:
        result, error = body.get("result"), body.get("error")  # some libraries write the other one as null
        if result is not None and error is not None:
            return "expected either result or error, found both"
        if key is None and (error is None or body.get("id") is not None):
            return "expected a response to carry the id of a request"
        if error is None and not isinstance(result, dict):
            return "expected result to be an object"  # no peer could read it as what it waits for
        return None if isinstance(error, dict | None) else "expected error to be an object"
    if not isinstance(body.get("method"), str):
        return f"expected method to be a string, found {_named(body.get('method'))}"
    if "id" in body and key is None:
        return f"expected id to be a string or an integer, found {_named(body['id'])}"
    if not isinstance(body.get("params", {}), dict | None):
        return f"expected params to be an object, found {_named(body['params'])}"
    if "id" not in body and needs_id(body["method"].partition("\0")[0]):
        return f"expected {body['method']} to have an id: it is a request"
    return None


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


def key_of(request_id: Any) -> bytes | None:
    """Return an id as canonical JSON: type and value both count; None for what cannot be an id."""
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
    """Return bytes that may be kept for long: however short, what orjson returns holds on to 4 KB."""
    return line if len(line) > 4096 else bytes(memoryview(line))


def id_of(key: bytes) -> Any:
    """Return the id that this is the canonical JSON of."""
    return int(key) if key.isdigit() else decode(key)


def twin_of(key: bytes) -> bytes | None:
    """Return the id that looks the same and has the other type: `3` for `"3"` and back; None where there is none."""
    if key.isdigit():
        return b'"' + key + b'"'
    inner = key[1:-1]  # of any length: Python refuses to read a very long one as a number
    return inner if key[:1] == b'"' and inner.isdigit() and (inner[:1] != b"0" or inner == b"0") else None


def decoded(frame: Frame) -> Frame:
    """Return a frame with its body.

    Raises:
        ValueError: It was only peeked at, and cannot be decoded.
    """
    if frame.body is not None:
        return frame
    raw, kind, key, method, _, *rest = frame  # `_replace` takes three times as long
    return new_frame(Frame, (raw, kind, key, method, decode(raw), *rest))


def outline_of(frame: Frame) -> bytes:
    """Return the line of a frame without its long strings; another id may stand in it."""
    return frame.bare or outline(frame.raw)


def read_params(frame: Frame) -> dict[str, Any]:
    """Return the params of a frame; nothing where it has none, or cannot be decoded."""
    try:
        params = decoded(frame).body.get("params")
    except ValueError:  # whoever it is passed on to will say so
        return {}
    return params if isinstance(params, dict) else {}


def written(frame: Frame) -> Frame:
    """Return a frame with its line, also where nobody has written that yet."""
    if frame.raw:
        return frame
    _, *rest = frame
    return new_frame(Frame, (encode_line(frame.body), *rest))


def rewrite(frame: Frame, body: Any) -> Frame:
    """Give a frame another body: what kind of frame it is, and where it belongs, does not change."""
    return frame._replace(raw=encode_line(body), body=body, bare=b"")


def mend_response(frame: Frame) -> Frame:
    """Return a response, or an array, in which each error has a code and a message: SDKs do not read one without.

    A result or an error that is null, beside the other one, is left out; an id that is written as 7.0 becomes 7.

    Args:
        frame: As it came, decoded; one that a peek has read has a result alone.
    """
    if frame.method is not None:
        return frame
    bodies = frame.body if frame.kind == "batch" else [frame.body]
    mended = [*map(_mend, bodies)]
    if all(map(is_, mended, bodies)):
        return frame
    return rewrite(frame, mended if frame.kind == "batch" else mended[0])


def _mend(body: Any) -> Any:
    if not isinstance(body, dict) or "method" in body:
        return body
    if "result" in body and "error" in body:
        body = {name: member for name, member in body.items() if name not in ("result", "error") or member is not None}
    if isinstance(body.get("id"), float) and body["id"].is_integer():
        body = {**body, "id": int(body["id"])}
    error = body.get("error")
    if not isinstance(error, dict):
        return body
    code, has_message = error.get("code"), isinstance(error.get("message"), str)
    if type(code) is int and has_message:
        return body
    if type(code) is not int:  # "The error code MUST be an integer"; some write one as -32602.0
        code = int(code) if isinstance(code, float) and code.is_integer() else INTERNAL_ERROR
    message = error["message"] if has_message else "an error without a message"
    return {**body, "error": {**error, "code": code, "message": message}}


def show_key(key: bytes | None) -> str:
    """Return an id for people."""
    return (key or b"none")[:60].decode(errors="replace")


def error_frame(key: bytes | None, code: int, message: str, data: Any = None) -> Frame:
    """Make the error response to the request with this id; a missing id is null, as JSON-RPC says."""
    return Frame(encode_error(key, code, message, data), "error", key, None)


def result_frame(key: bytes, result: Any) -> Frame:
    """Make the response to the request with this id."""
    return Frame(encode_result(key, result), "result", key, None)


def request_frame(key: bytes, method: str, params: dict[str, Any] | None) -> Frame:
    """Make a request."""
    body = {"jsonrpc": "2.0", "id": decode(key), "method": method}
    return Frame(encode_line(body if params is None else {**body, "params": params}), "request", key, method)


def notification_frame(method: str, params: dict[str, Any] | None) -> Frame:
    """Make a notification."""
    body = {"jsonrpc": "2.0", "method": method}
    return Frame(encode_line(body if params is None else {**body, "params": params}), "notification", None, method)


def encode_error(key: bytes | None, code: int, message: str, data: Any = None) -> bytes:
    """Write the error response to the request with this id, as a line; a missing id is null, as JSON-RPC says."""
    error = {"code": code, "message": message} if data is None else {"code": code, "message": message, "data": data}
    return b'{"jsonrpc":"2.0","id":' + (key or b"null") + b',"error":' + encode(error) + b"}\n"


def encode_result(key: bytes, result: Any) -> bytes:
    """Write the response to the request with this id, as a line."""
    return b'{"jsonrpc":"2.0","id":' + key + b',"result":' + encode(result) + b"}\n"


class Refusal(NamedTuple):
    """What does not work: the JSON-RPC error for the peer that waits, where an answer is possible."""

    code: int
    message: str
    data: dict[str, Any]

    def answer(self, key: bytes | None) -> Frame:
        """Return it as the response to the request with this id."""
        return error_frame(key, self.code, self.message, self.data or None)

    def answer_to(self, request: Frame) -> Frame:
        """Return it as the response to a request: under the id that its client gave it, which need not be its key."""
        given = request.key if request.body is None else encode(request.body["id"])
        return self.answer(given)._replace(key=request.key)
