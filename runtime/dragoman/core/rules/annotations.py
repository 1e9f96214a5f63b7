"""Which arguments of a tool are mirrored into HTTP headers: the `x-mcp-header` annotations of its input schema.

Lives here: finding them, judging them, and leaving out tools whose annotations are invalid. Must not: write or read
headers (`headers`). Called where tools are listed and called.

An annotation is valid only below a chain of `properties` from the root, on a parameter whose type is one of three,
under a name that is a token and unique regardless of case (2026-07-28/basic/transports/streamable-http, Schema
Extension). "Clients MUST exclude the invalid tool from the result of `tools/list`."
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dragoman.core.exact_json import decode, encode
from dragoman.core.repeats import may_spell
from dragoman.core.rules.names import FACTS
from dragoman_spec.record import record

KEYWORD: Final = FACTS.headers["argument"].annotation or ""
_WRITTEN: Final = KEYWORD.encode()

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES: Final = ("string", "integer", "boolean")

_NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps names that somebody chose to schemas: such a name is not a keyword."""

_VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords whose value is an instance, not a schema."""


@record
class Mirrored:
    """One argument that is mirrored into a header.

    Attributes:
        path: The names that lead to it from `arguments`.
        name: Of the header, behind its prefix.
        type: `string`, `integer` or `boolean`.
    """

    path: tuple[str, ...]
    name: str
    type: str


class Invalid(NamedTuple):
    """A tool that may not be offered over HTTP, and why."""

    tool: str
    reason: str


class _Found(NamedTuple):
    schema: dict[str, Any]
    path: tuple[str, ...] | None
    """The properties that lead to it; None where anything else does."""


def find_mirrored(input_schema: object) -> tuple[Mirrored, ...]:
    """Return the arguments that are mirrored, in the order of the schema.

    Raises:
        ValueError: An annotation is invalid; the text says where and why.
    """
    if not _mentions(input_schema):
        return ()
    found: list[Mirrored] = []
    names: dict[str, tuple[str, ...]] = {}
    for schema, path in _walk(input_schema):
        if KEYWORD not in schema:
            continue
        mirrored = _read(schema, path)
        earlier = names.setdefault(mirrored.name.lower(), mirrored.path)
        if earlier != mirrored.path:
            raise ValueError(f"{_at(mirrored.path)} has the same name as {_at(earlier)}: {mirrored.name}")
        found.append(mirrored)
    return tuple(found)


def may_mention(line: bytes) -> bool:
    """Whether the keyword may stand in a list of tools, by the line that it came as, or none: that may spell it so."""
    return not line or line.rfind(_WRITTEN) >= 0 or may_spell(line)


def _mentions(input_schema: object) -> bool:
    """Whether the keyword stands anywhere in a schema: to write the schema is ten times faster than to walk it."""
    try:
        return _WRITTEN in encode(input_schema)
    except ValueError:
        return True


def _read(schema: Mapping[str, Any], path: tuple[str, ...] | None) -> Mirrored:
    if not path:
        raise ValueError(f"{KEYWORD} stands where only `properties` may lead to: at the root, or below another keyword")
    name, kind = schema[KEYWORD], schema.get("type")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{_at(path)} is not a name that a header can have")
    if kind not in _TYPES:
        raise ValueError(f"{_at(path)} is on a parameter whose type is not one of {', '.join(_TYPES)}")
    return Mirrored(path, name, kind)


def _at(path: tuple[str, ...]) -> str:
    return f"{KEYWORD} of {'.'.join(path)[:200]}"


def _walk(root: object) -> Iterator[_Found]:
    """Return every schema in a schema, each once, in order; without recursion, for a peer chooses how deep it goes."""
    waiting: list[tuple[object, tuple[str, ...] | None]] = [(root, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, list):
            waiting += [(item, None) for item in reversed(value)]
        elif isinstance(value, dict):
            yield _Found(value, path)
            waiting += reversed([*_below(value, path)])


def _below(schema: dict[str, Any], path: tuple[str, ...] | None) -> Iterator[tuple[object, tuple[str, ...] | None]]:
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            reached = path if keyword == "properties" else None
            for name, member in value.items():
                yield member, None if reached is None else (*reached, name)
        elif keyword not in _VALUES:
            yield value, None


def leave_out_invalid(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Invalid, ...]]:
    """Leave the tools out of a `tools/list` result whose annotations are invalid.

    Args:
        result: Of a server.

    Returns:
        The result, the same object where nothing is left out; and what was, for the log.
    """
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result, ()
    kept, invalid = [], []
    for tool in tools:
        reason = _find_fault(tool)
        if reason is None:
            kept.append(tool)
        else:
            invalid.append(Invalid(str(tool.get("name"))[:200], reason))
    return ({**result, "tools": kept} if invalid else result), tuple(invalid)


def strip_invalid(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Invalid, ...]]:
    """Take the annotations off the tools of a `tools/list` result whose annotations are invalid: all of a tool's.

    For a server that is not reached over HTTP of 2026-07-28, to whom they mean nothing: the tool itself is good.

    Args:
        result: Of a server.

    Returns:
        The result, the same object where nothing is taken off; and which tools, for the log.
    """
    _, invalid = leave_out_invalid(result)
    if not invalid:
        return result, ()
    tools = [tool if _find_fault(tool) is None else _strip(tool) for tool in result["tools"]]
    return {**result, "tools": [tool for tool in tools if tool is not None]}, invalid


def _strip(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a tool without annotations; None if its schema cannot be written, for nobody could be sent it either."""
    try:
        schema = decode(encode(tool["inputSchema"]))
    except ValueError:
        return None
    for found in _walk(schema):
        found.schema.pop(KEYWORD, None)
    return {**tool, "inputSchema": schema}


def _find_fault(tool: object) -> str | None:
    try:
        find_mirrored(tool.get("inputSchema") if isinstance(tool, dict) else None)
    except ValueError as error:
        return str(error)
    return None
