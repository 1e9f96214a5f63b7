"""From a line to its frame, without decoding it wherever that can be avoided.

Lives here: reading kind, id and method off the edges of a line, and replacing its id there. Must not: know revisions,
methods or who is waiting for what; JSON is decoded by `core.exact_json`. Called for every line of both peers.

A line is first *peeked at*: its leading and trailing members say kind, id and method in a fraction of a microsecond,
whatever its size. Only lines that a peek cannot read are decoded, so a line that is passed on is not parsed.
A peek is only trusted where it cannot be fooled: leading members of the top-level object are read one by one from
its brace on, trailing ones are those just before its closing brace.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.core.codes import INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed, classify, new_frame
from dragoman.core.exact_json import decode, encode_line, outline
from dragoman.core.lines import HEAD_BYTES, Overlong
from dragoman.core.repeats import TWO_FRAMES, may_call, may_spell, names_method, repeats_name
from dragoman.errors import FrameTooLarge

_TAIL_BYTES = 160
_ERROR: Final = b'"error"'
_RESULT: Final = b'"result"'
_ID_NAME: Final = b'"id"'
_SEARCHED_BYTES: Final = 1024
"""How much of the end of a request is searched for a result, and of a result for a method in whatever spelling. In
front of that, a result is searched without its long strings, and for the one spelling that every reader knows."""

SPLICED_BYTES: Final = 4096
"""From here on it is cheaper to put another id into a line than to encode it anew."""

# Ids and methods are read only where they are plain printable ASCII: anything else is decoded.
_ID = rb'(0|-?[1-9][0-9]{0,17}|"[ !#-\[\]-~]*")'
_HEAD = re.compile(  # `(?(2)(?!))`: no second id
    rb'\s*\{\s*(?:(?:("jsonrpc")\s*:\s*"2\.0"|"id"\s*:\s*(?(2)(?!))'
    + _ID
    + rb'|"method"\s*:\s*(?(3)(?!))"([ !#-\[\]-~]*)")\s*(?:,\s*|(?=\})))*'
    rb'(?:"(params|result|error)"\s*:\s*|(\})\s*\Z)'
)
_TAIL = re.compile(rb'(?:,\s*(?:("jsonrpc")\s*:\s*"2\.0"|"id"\s*:\s*' + _ID + rb")\s*)+\}\s*\Z")


_USUAL = re.compile(
    rb'\{"jsonrpc":"2\.0","id":(0|[1-9][0-9]{0,17}|"[ !#-\[\]-~]*"),'
    rb'(?:"method":"([ !#-\[\]-~]*)","params":|"result":\{)'
)
"""How nearly all requests with params and results begin: to find that out takes a third of the time of `_HEAD`."""


def peek(line: bytes, bare: bytes = b"") -> Frame | None:
    """Read kind, id and method off the edges of a line, without decoding it.

    Args:
        line: With its end.
        bare: The same without its long strings, if somebody has made that.

    Returns:
        The frame, or None where the edges do not tell: then `read_line` decodes. That the middle of the line is
        valid JSON is not looked at: whoever the line is passed on to will.
    """
    if line.endswith(b"}}\n") and (usual := _USUAL.match(line)) is not None:  # what ends so has no id at its end
        key, method = usual.groups()
        if method is None:
            return _read_result(line, key, bare)
        return _read_request(line, key, method)
    head = _HEAD.match(line)
    if head is None or not (line.endswith(b"}\n") or line.rstrip().endswith(b"}")):
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
    if member == b"result":
        is_plain = key is not None and method is None and line.startswith(b"{", head.end())
        return _read_result(line, key, bare) if is_plain else None
    if method is None or member == b"error":
        return None
    if key is not None:
        return _read_request(line, key, method)
    if not method.startswith(b"notifications/"):
        return None
    folded = line if member is None else line.lower()  # some readers do not tell `ID` from `id`
    if member is None or (b'"id"' not in folded and folded.count(b'"method"') == 1 and b"\\u00" not in folded):
        return Frame(line, "notification", None, method.decode())
    return None


def find_result(text: bytes) -> int:
    """Return where the first member of a result stands, if a frame begins as nearly all results do; else 0."""
    usual = _USUAL.match(text)
    return 0 if usual is None or usual[2] is not None else usual.end()


def _read_request(line: bytes, key: bytes, method: bytes) -> Frame | None:
    """Return a request, unless it may hold a result or an error as well: then somebody may wait for it."""
    searched = line if len(line) <= _SEARCHED_BYTES else line[-_SEARCHED_BYTES:]
    if searched.rfind(_RESULT) >= 0 or searched.rfind(_ERROR) >= 0:
        return None
    return new_frame(Frame, (line, "request", key, method.decode(), None, None, (), "", (), None, b""))


def _read_result(line: bytes, key: bytes, bare: bytes) -> Frame | None:
    """Return a result, unless another reader may take it for an error or a request."""
    size, noted = len(line), b""
    # A library that writes both writes the other one at an edge, most likely; an error is small, and decoded.
    if line.rfind(_ERROR, max(0, size - _TAIL_BYTES)) >= 0:
        return None
    if may_call(line if size <= _SEARCHED_BYTES else line[-_SEARCHED_BYTES:]):
        return None
    if size > _SEARCHED_BYTES:
        bare = bare or outline(line)
        if names_method(bare):
            return None
        noted = b"" if bare is line else bare
    return new_frame(Frame, (line, "result", key, None, None, None, (), "", (), None, noted))


def read_line(line: bytes | Overlong, bare: bytes = b"") -> Frame | Malformed | None:
    """Tell what a line holds, by a peek if possible, by decoding if not; None for an empty line.

    Args:
        line: It.
        bare: The same without its long strings, if somebody has made that.
    """
    if isinstance(line, Overlong):
        # Its first bytes say whom to tell: who sent it, or who waits for it.
        return read_beginning(line.head, INVALID_REQUEST, FrameTooLarge("the sender", line.limit_bytes).reason)
    frame = peek(line, bare)
    return read_unseen(line) if frame is None else frame


def read_unseen(line: bytes) -> Frame | Malformed | None:
    """Tell by decoding what a line holds of which a peek did not tell anything; None for an empty line."""
    if line.isspace():
        return None
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
    is_response = isinstance(body, dict) and not {"result", "error"}.isdisjoint(body)
    return Malformed(INVALID_REQUEST, TWO_FRAMES, told.key, is_response)


def read_beginning(line: bytes, code: int, reason: str) -> Malformed:
    """Find out whom to tell of a line that is not a frame, or whose end is missing, if its first members say so."""
    head = _HEAD.match(line, 0, HEAD_BYTES)
    if head is None:
        return Malformed(code, reason)
    return Malformed(code, reason, head[2], head[4] in (b"result", b"error"))


def with_id(frame: Frame, key: bytes) -> bytes:
    """Return the line of a request or response under another id; one that was only peeked at is not decoded.

    Args:
        frame: As it came.
        key: The id that it is to have, as canonical JSON.

    Raises:
        ValueError: It was only peeked at, and cannot be decoded.
    """
    if frame.body is None and (line := _put_id(frame.raw, key)) is not None:
        return line
    body = decode(frame.raw) if frame.body is None else frame.body
    return encode_line({**body, "id": decode(key)})


def splice_id(line: bytes, key: bytes, bare: bytes) -> bytes | None:
    """Return a line under another id; None where more than one name in it could be that of its id.

    Args:
        line: One that was decoded, or whose peer counts on nobody's looking at what it says.
        key: The id that it is to have.
        bare: The same without its long strings.
    """
    is_plain = bare.find(_ID_NAME) == bare.rfind(_ID_NAME) >= 0 and not may_spell(bare)
    return _put_id(line, key) if is_plain else None


def _put_id(line: bytes, key: bytes) -> bytes | None:
    found = _HEAD.match(line)
    if found is None or found[2] is None:
        found = _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
    if found is None or found[2] is None:
        return None
    start, end = found.span(2)
    return b"".join((line[:start], key, memoryview(line)[end:]))  # one copy of a long line, not two
