"""The HTTP headers that repeat what the body of a request of 2026-07-28 says.

Lives here: making them from the body that goes out, and holding those that came against the body that came. Must not:
know HTTP beyond names and values, nor which tool has which annotations (`annotations`). Called at each hop: headers
are made anew from what is sent, and never copied from what came.

Source: 2026-07-28/basic/transports/streamable-http, Request Metadata. "Servers MUST reject requests where the values
specified in the headers do not match the corresponding values in the request body."
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.exact_json import escape
from dragoman.core.rules.annotations import Mirrored
from dragoman.core.rules.names import FACTS, HEADER_MISMATCH, META_VERSION, TASK_METHODS
from dragoman.core.unchecked import find, find_object
from dragoman.errors import RemoteProtocolError
from dragoman_spec import PER_REQUEST_REVISIONS, facts

VERSION: Final = FACTS.headers["revision"].name
METHOD: Final = FACTS.headers["method"].name
NAME: Final = FACTS.headers["name"].name
PARAM_PREFIX: Final = FACTS.headers["argument"].name

_MEMBERS: Final = [facts(revision).headers["name"].members.items() for revision in PER_REQUEST_REVISIONS]
NAMED_BY: Final[Mapping[str, str]] = MappingProxyType({**dict(chain(*_MEMBERS)), **TASK_METHODS})
"""The param that `Mcp-Name` repeats, by method, in any revision that has the header."""

CollectedHeaders = Mapping[str, list[str]]
"""The values of each header, by its name in lower case."""

_OURS: Final = ("mcp-",)
"""How the names of all these headers begin, in lower case."""

_PLAIN: Final = re.compile(r"[\t\x20-\x7e]*")
_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_INTEGER: Final = re.compile(r"[+-]?\d{1,400}(\.0*)?")


def make_headers(body: Mapping[str, Any], mirrored: Sequence[Mirrored] = ()) -> list[tuple[str, str]]:
    """Return the headers for a request or notification that is about to be sent, as names and values in ASCII.

    Args:
        body: It, metadata included.
        mirrored: The annotations of the tool that it calls.
    """
    method, params = body["method"], find_object(body, "params")
    headers = [(METHOD, method)]
    version = find(params, "_meta", META_VERSION)
    if isinstance(version, str):
        headers.insert(0, (VERSION, version))
    name = params.get(NAMED_BY.get(method, ""))
    if isinstance(name, str):
        headers.append((NAME, encode_value(name)))
    for argument in mirrored:
        text = _as_text(_look_up(params.get("arguments"), argument.path))
        if text is not None:
            headers.append((PARAM_PREFIX + argument.name, encode_value(text)))
    return headers


def list_repeated(body: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what of a request the headers repeat: two with the same of it are judged alike by `check_collected`."""
    method, params = body["method"], find_object(body, "params")
    return method, find(params, "_meta", META_VERSION), params.get(NAMED_BY.get(method, ""))


def check_collected(found: CollectedHeaders, body: Mapping[str, Any]) -> None:
    """Hold the headers of a request that came against its body, but for those of arguments.

    Raises:
        RemoteProtocolError: One is missing, malformed, or says something else (-32020); the data name header and
            pointer.
    """
    method, params = body["method"], find_object(body, "params")
    _compare(found, METHOD, method, "/method")
    version = find(params, "_meta", META_VERSION)
    if "id" in body or version is not None:  # a notification need not say it
        _compare(found, VERSION, version, "/params/_meta/" + META_VERSION.replace("/", "~1"))
    field = NAMED_BY.get(method)
    if field is not None and isinstance(params.get(field), str):
        _compare(found, NAME, params[field], f"/params/{field}", encoded=True)
    elif field is not None and NAME.lower() in found:
        raise _mismatch(NAME, f"/params/{field}", "is there, but the body names nothing")


def select_arguments(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the headers that repeat arguments."""
    return tuple((name, value) for name, value in headers if name.lower().startswith(PARAM_PREFIX.lower()))


def check_arguments(headers: Iterable[tuple[str, str]], arguments: object, mirrored: Sequence[Mirrored]) -> None:
    """Hold the headers that repeat arguments against a call of a tool.

    Args:
        headers: As they came.
        arguments: Of the call, as they came.
        mirrored: The annotations of the tool.

    Raises:
        RemoteProtocolError: As for `check_collected`.
    """
    found = collect_headers(headers)
    for argument in mirrored:
        _compare_argument(found, argument, _look_up(arguments, argument.path))


def encode_value(value: str) -> str:
    """Return a text as a header value: itself, or in base64 between marks if no header can hold it."""
    looks_encoded = value.startswith("=?base64?") and value.endswith("?=")
    if _PLAIN.fullmatch(value) and value == value.strip(" \t") and not looks_encoded:
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


def decode_value(value: str) -> str:
    """Return the text that a header value stands for; the inverse of `encode_value`.

    Raises:
        ValueError: It has characters that no header may have, or is not base64 of UTF-8 although it says so.
    """
    if not _PLAIN.fullmatch(value):
        raise ValueError("it contains invalid characters")
    marked = _SENTINEL.fullmatch(value)
    if marked is None:
        return value
    try:
        decoded = base64.b64decode(marked[1], validate=True)
        text = decoded.decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("it is not base64 of UTF-8") from None
    if base64.b64encode(decoded).decode() != marked[1]:
        raise ValueError("it is not base64 of UTF-8")  # two spellings of one value would pass two different filters
    return text


def _compare(found: Mapping[str, list[str]], name: str, expected: object, pointer: str, encoded: bool = False) -> None:
    value = _only(found, name, pointer)
    if value is None:
        raise _mismatch(name, pointer, "is missing")
    said = _decode(name, value, pointer) if encoded else value
    if said != expected:
        raise _mismatch(name, pointer, "does not say what the body says")


def _compare_argument(found: Mapping[str, list[str]], argument: Mirrored, expected: object) -> None:
    name, pointer = PARAM_PREFIX + argument.name, "/params/arguments/" + "/".join(map(escape, argument.path))
    value, text = _only(found, name, pointer), _as_text(expected)
    if text is None:
        if value is not None:
            raise _mismatch(name, pointer, "is there, but the body has no such argument")
        return
    if value is None:
        raise _mismatch(name, pointer, "is missing")
    said = _decode(name, value, pointer)
    if said != text and not _is_same_number(said, expected):
        raise _mismatch(name, pointer, "does not say what the body says")


def _is_same_number(said: str, expected: object) -> bool:
    """ "Servers SHOULD compare the header value and the body value numerically rather than as strings"."""
    if isinstance(expected, bool) or not isinstance(expected, int | float) or not _INTEGER.fullmatch(said):
        return False
    return int(said.partition(".")[0]) == expected


def _as_text(value: object) -> str | None:
    """Return what is mirrored of an argument: nothing of null, nor of what has no text form of its own."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if -(2**63) <= value < 2**64:
            return str(value)
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        case _:
            return None


def _look_up(arguments: object, path: Sequence[str]) -> object:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def collect_headers(headers: Iterable[tuple[str, str]]) -> CollectedHeaders:
    """Find those that repeat something of a body."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        lowered = name.lower()
        if lowered.startswith(_OURS):
            found.setdefault(lowered, []).append(value.strip(" \t"))
    return found


def _only(found: Mapping[str, list[str]], name: str, pointer: str) -> str | None:
    values = found.get(name.lower(), [])
    if len(values) > 1:
        raise _mismatch(name, pointer, "is there more than once")
    return values[0] if values else None


def _decode(name: str, value: str, pointer: str) -> str:
    try:
        return decode_value(value)
    except ValueError as error:
        raise _mismatch(name, pointer, f"cannot be read: {error}") from None


def _mismatch(name: str, pointer: str, reason: str) -> RemoteProtocolError:
    data = {"header": name, "pointer": pointer}
    return RemoteProtocolError(HEADER_MISMATCH, f"Header mismatch: {name} {reason} at {pointer}", data)
