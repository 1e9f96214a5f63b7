"""What a client posted: checked, as a frame on one line, with the ids that are needed to answer it.

Lives here: everything that is looked at in a body, and which media types are taken. Must not: know sessions. Called by
the fronts beside it.

The body of a POST may be any JSON text and may contain line ends; from here on it is one line. Unlike a line from a
pipe, it is checked completely: something from the network that is not JSON should get no further than here. It is
decoded once, and the frame has everything that was found.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from dragoman.core.batches import MOST_MEMBERS, explain_batches, has_batches
from dragoman.core.codes import INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed, classify, key_of, new_frame
from dragoman.core.exact_json import decode, is_heavier, may_hold_long_integer, outline
from dragoman.core.origin import Origin
from dragoman.core.peek import peek, read_beginning
from dragoman.core.repeats import TWO_FRAMES, repeats_name
from dragoman.core.unchecked import find, is_deeper
from dragoman.core.wholeness import read_broken
from dragoman.transports.http.exchange import RequestRefused

_NOTHING: Final[frozenset[bytes]] = frozenset()

_MEMBERS_OF_REQUEST: Final = 4
"""Where there are no more, only one other than those of `_EDGES` can be at the side of the id."""

_NO_PARAMS: Final[dict[str, Any]] = {}

_ANSWER: Final = frozenset({"result", "error"})

_REFUSED_WEIGHTS: Final = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})

_EDGES: Final = frozenset({"jsonrpc", "id", "method"})
"""What may stand between a member and the edge of its object where a peek finds it."""

_MEMBERS: Final = 1000
"""How many frames a batch may hold: each costs far more than its bytes, and everybody waits meanwhile."""

_VALUES: Final = 500_000
_CONTAINERS: Final = 100_000
"""How many values a body may hold, and how many of them may be arrays and objects. What 16 MiB can hold of them takes
seconds to decode; this takes a tenth of one."""


class Posted(NamedTuple):
    """What a client posted.

    Attributes:
        frame: As the core takes it.
        keys: The ids of the requests in it, as JSON.
        cancelled: The ids of the requests that it cancels.
        is_batch: Whether it is an array.
        initializes: Whether it is an `initialize` request.
    """

    frame: Frame
    keys: frozenset[bytes] = _NOTHING
    cancelled: tuple[bytes, ...] = ()
    is_batch: bool = False
    initializes: bool = False

    @property
    def only_key(self) -> bytes | None:
        """The id of the one request in it; None where there is none, or several."""
        return next(iter(self.keys)) if len(self.keys) == 1 else None


def blame(refused: RequestRefused, value: Any) -> RequestRefused:
    """Note in a refusal what may have answered something: its server waits.

    Args:
        refused: What its client is told.
        value: The message that is refused, decoded.
    """
    members = value[:MOST_MEMBERS] if isinstance(value, list) else [value]
    answers = (one for one in members if isinstance(one, dict) and ("method" not in one or not _ANSWER.isdisjoint(one)))
    keys = dict.fromkeys(key_of(one.get("id")) for one in answers)
    return _note(refused, [Malformed(refused.code, refused.reason, key, is_response=True) for key in keys])


def _note(refused: RequestRefused, found: Iterable[Malformed]) -> RequestRefused:
    refused.garbled = [one._replace(is_told=True) for one in found if one.is_response and one.key is not None]
    return refused


def read_posted(body: bytes, nesting: int, origin: Origin | None = None, keeps_body: bool = False) -> Posted:
    """Read a body.

    Args:
        body: Of a POST, or one WebSocket message.
        nesting: How deep it may be nested.
        origin: Where it comes from, for middleware.
        keeps_body: Whether the frame of a plain request has its body, unless that is not exact.

    Raises:
        RequestRefused: 400, with the JSON-RPC error that says what is wrong; 413 for too many values.
    """
    bare = outline(body)
    if len(bare) > _CONTAINERS and is_heavier(bare, _VALUES, _CONTAINERS):
        reason = f"expected no more than {_VALUES} values, {_CONTAINERS} of them arrays and objects"
        raise _note(RequestRefused(413, reason), [read_beginning(body, INVALID_REQUEST, reason)])
    value = _decode(body)
    if bare.count(b"[") + bare.count(b"{") > nesting and is_deeper(value, nesting):
        raise blame(RequestRefused(400, f"expected no more than {nesting} levels of arrays and objects"), value)
    line = _on_one_line(body, bare)
    seen = peek(line)
    if seen is not None and _is_this_request(value, seen):
        noted = b"" if bare is body else bare
        if (keeps_body or b"progressToken" in bare) and not may_hold_long_integer(bare):
            seen = new_frame(Frame, (line, "request", seen.key, seen.method, value, None, (), "", (), origin, noted))
        elif noted or origin is not None:
            seen = seen._replace(origin=origin, bare=noted)
        return new_frame(Posted, (seen, frozenset((seen.key,)), (), False, seen.method == "initialize"))
    try:
        posted = _read_other(body, value, line, seen)
    except RequestRefused as refused:
        raise blame(refused, value) from None
    return posted if origin is None else posted._replace(frame=posted.frame._replace(origin=origin))


def _read_other(body: bytes, value: Any, line: bytes, seen: Frame | None) -> Posted:
    """Read what is not a plain request."""
    if isinstance(value, list):
        posted = _read_batch(Frame(line, "batch", None, None, value))
        if repeats_name(body):
            raise RequestRefused(400, TWO_FRAMES)
        return posted
    frame = _read_frame(line, value, in_batch=False)
    # The core, or the server, could take it for another frame than we do, and what one waits for the other never see.
    if repeats_name(body) if seen is None else seen[1:4] != frame[1:4] or _is_in_the_middle("id", value):
        raise RequestRefused(400, TWO_FRAMES)
    if seen is None:  # an answer may have to be mended
        seen = frame._replace(body=None if frame.method is not None else _decode_exactly(line))
    return _read_single(frame, seen)


def _is_this_request(value: Any, seen: Frame) -> bool:
    """Whether a value is the request that a peek has seen, and nothing is wrong with it; nearly all are."""
    return (
        seen.kind == "request"
        and type(value) is dict
        and value.get("jsonrpc") == "2.0"
        and value.get("method") == seen.method
        and type(value.get("params", _NO_PARAMS)) is dict
        and key_of(value.get("id")) == seen.key
        and (len(value) <= _MEMBERS_OF_REQUEST or not _is_in_the_middle("id", value))
    )


def _read_single(frame: Frame, told: Frame) -> Posted:
    """Read one frame.

    Args:
        frame: With its body.
        told: As it is handed on: without, for that may be large, and is not exact where an integer is long.
    """
    key, method = frame.key, frame.method
    if method is None:
        return Posted(told)
    if key is None:
        if method != "notifications/cancelled":
            return Posted(told)
        cancelled = key_of(find(frame.body, "params", "requestId"))
        return Posted(_with_body(told, frame), cancelled=() if cancelled is None else (cancelled,))
    if b"progressToken" in frame.raw:
        told = _with_body(told, frame)
    return Posted(told, frozenset((key,)), initializes=method == "initialize")


def _with_body(told: Frame, frame: Frame) -> Frame:
    """Return the body of a frame for those on the way who want to look into it, if it is exact."""
    return told if may_hold_long_integer(frame.raw) else frame


def _read_batch(frame: Frame) -> Posted:
    members = frame.body
    if not members:
        raise RequestRefused(400, "expected a batch to hold at least one frame")
    if len(members) > _MEMBERS:
        raise RequestRefused(413, f"expected a batch to hold no more than {_MEMBERS} frames")
    read = [_read_frame(b"", member, in_batch=True) for member in members]
    parts = [_read_single(one, one) for one in read]
    keys = frozenset(key for part in parts for key in part.keys)
    if len(keys) != sum(len(part.keys) for part in parts):
        raise RequestRefused(400, "expected every request of a batch to have an id of its own")
    return Posted(
        frame,
        keys,
        tuple(key for part in parts for key in part.cancelled),
        is_batch=True,
    )


def check_batch(posted: Posted, revision: str | None) -> None:
    """Check that an array is posted only where arrays are known.

    Raises:
        RequestRefused: 400.
    """
    if not has_batches(revision):
        raise blame(RequestRefused(400, f"expected one JSON-RPC object: {explain_batches()}"), posted.frame.body)


@lru_cache(maxsize=64)
def accepts(header: bytes | None, wanted: str) -> bool:
    """Whether an `Accept` header takes this media type; one that is missing takes all."""
    if header is None:
        return True
    group = wanted.partition("/")[0] + "/*"
    for part in header.decode("latin-1").lower().split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media in (wanted, group, "*/*") and not any(p.replace(" ", "") in _REFUSED_WEIGHTS for p in parameters):
            return True
    return False


def check_content(headers: dict[bytes, bytes]) -> None:
    """Check that a body is said to be JSON, and as it is.

    Raises:
        RequestRefused: 415.
    """
    media, _, parameters = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    charset = parameters.partition("charset=")[2].strip(' "')
    if media.strip() != "application/json" or charset not in ("", "utf-8", "utf8"):
        raise RequestRefused(415, "expected Content-Type application/json, in UTF-8")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise RequestRefused(415, "expected a body without content encoding")


def _decode(body: bytes) -> Any:
    try:
        value = orjson.loads(body)
        if isinstance(value, dict) and not isinstance(value.get("id"), float):
            return value  # orjson is quick, but not exact about ids beyond 64 bits
    except orjson.JSONDecodeError:
        pass
    return _decode_exactly(body)


def _decode_exactly(body: bytes) -> Any:
    try:
        return decode(body)
    except ValueError as error:
        refused = RequestRefused(400, str(error), code=PARSE_ERROR)
        raise _note(refused, read_broken(body, refused.code, refused.reason)) from None


def _read_frame(line: bytes, member: Any, in_batch: bool) -> Frame:
    if in_batch and isinstance(member, list):
        raise RequestRefused(400, "expected a JSON object, found an array inside a batch")
    frame = classify(line, member)
    if not isinstance(frame, Frame):
        raise RequestRefused(400, frame.reason, code=frame.code, key=frame.key if frame.is_owed else None)
    if in_batch and frame.method == "initialize":
        # "The initialize request MUST NOT be part of a JSON-RPC batch" (2025-03-26/basic/lifecycle).
        raise RequestRefused(400, "initialize must not be part of a batch", key=frame.key)
    return frame


def _on_one_line(body: bytes, bare: bytes) -> bytes:
    line, bare = body.rstrip(), bare.rstrip()
    if b"\n" in bare or b"\r" in bare:  # only ever white space in JSON, and that outside of strings
        line = line.replace(b"\n", b" ").replace(b"\r", b" ")
    return line + b"\n"


def _is_in_the_middle(name: str, value: dict[str, Any]) -> bool:
    """Whether a name that a peek has seen at an edge of an object comes first in its middle: then it is there twice.

    A name that is there twice keeps its first place and has its last value.
    """
    if name not in value:
        return False
    names = list(value)
    place = names.index(name)
    return not _EDGES.issuperset(names[:place]) and not _EDGES.issuperset(names[place + 1 :])
