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


def line(text: str) -> str:
    """Text of a schema or an overlay as it may stand in a line of ours, such as a comment: it cannot end the line.

    What cannot be seen is spelled as in a string of TOML or JSON.
    """
    return "".join(one if one.isprintable() else _spelled(one) for one in text)


def toml(value: object) -> str:
    """A text, number, boolean, or a list of such, as TOML; JSON spells rare characters in another way."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if not isinstance(value, str):
        return str(value).lower()
    return f'"{docstring(value)}"'


def docstring(text: str) -> str:
    """Text of a schema or an overlay as it may stand between the quotation marks of a docstring, in one line."""
    return line(text.replace("\\", "\\\\").replace('"', '\\"'))


def _spelled(one: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return short.get(one, f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}")
