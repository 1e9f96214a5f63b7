"""Names: how a schema's names become Python's. Every place that needs one asks here, so that they agree."""

from __future__ import annotations

import re

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")


def snake(name: str) -> str:
    """`Tool.inputSchema.properties{}` → `tool_input_schema_properties_value`; `[]` → `_item`."""
    spelled = name.replace("[]", ".item").replace("{}", ".value")
    return _SEPARATOR.sub("_", _BOUNDARY.sub("_", spelled)).strip("_").lower()


def module_name(revision: str) -> str:
    """`2025-06-18` → `v2025_06_18`."""
    return "v" + revision.replace("-", "_")


def path_of(pointer: str) -> str:
    """`/$defs/CallToolRequest/properties/params` → `CallToolRequest.params`."""
    path = pointer.removeprefix("/$defs/").replace("/properties/", ".")
    return unescaped(path.replace("/items", "[]").replace("/additionalProperties", "{}"))


def escaped(part: str) -> str:
    """A part of a JSON pointer as it is written (RFC 6901): `a/b` → `a~1b`."""
    return part.replace("~", "~0").replace("/", "~1")


def unescaped(part: str) -> str:
    """What a written part of a JSON pointer says: `a~1b` → `a/b`."""
    return part.replace("~1", "/").replace("~0", "~")
