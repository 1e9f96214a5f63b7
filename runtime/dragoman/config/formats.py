"""Configuration files in any of the three notations that clients use: JSON, TOML (Codex) and YAML (Continue).

Lives here: finding out which one a text is in, and making the same `Node`s of each. Must not: know what a configuration
is (`reading`). PyYAML is imported only for a text that is YAML.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman.config.document import DEPTH, NUMBER, WORDS, Node, NotJson, parse_document
from dragoman.core.unchecked import is_deeper

_SUFFIXES: Final = {".toml": "TOML", ".yaml": "YAML", ".yml": "YAML"}
_FIRST_LINE = re.compile(r"\s*(?:#[^\n]*\s*)*([^\n]*)")
_TOML = re.compile(r"\[\[?[\w.\"' -]+\]\]?\s*(#.*)?$|[\w.\"'-]+\s*=")
_YAML = re.compile(r"---|[\w.\"'-]+\s*:(\s|$)|%YAML")

_KEY: Final = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')"
_DOTTED: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_TOML_LINE = re.compile(rf"^[ \t]*(?:(\[\[?)[ \t]*({_DOTTED})[ \t]*\]|({_DOTTED})[ \t]*=)", re.MULTILINE)
_TOML_PLACE = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)

_MOST_NODES: Final = 200_000
"""How many values a YAML text may have once its aliases are filled in: a few lines of them can stand for millions."""


def parse_text(text: str, path: str = "") -> Node:
    """Read a text in whatever notation it is; how it begins says more than how the file is called.

    Raises:
        NotJson: It cannot be read.
    """
    match notation_of(text, path):
        case "TOML":
            return _parse_toml(text)
        case "YAML":
            return _parse_yaml(text)
        case _:
            return parse_document(text)


def notation_of(text: str, path: str) -> str:
    """Return JSON, TOML or YAML, whichever a text is likely to be."""
    found = _FIRST_LINE.match(text)
    first = "" if found is None else found[1].rstrip()
    if not first or first.startswith(("{", "//", "/*")):
        return "JSON"
    for suffix, notation in _SUFFIXES.items():
        if path.lower().endswith(suffix):
            return notation
    return "TOML" if _TOML.match(first) else "YAML" if _YAML.match(first) else "JSON"


# TOML: the standard library reads it, and does not say where a value stands


def _parse_toml(text: str) -> Node:
    places: dict[tuple[str, ...], int] = {}
    for path, offset in _toml_keys(text):  # before it is read: each part of a key is an object in another one
        if len(path) > DEPTH:
            raise _too_deep(offset)
        for length in range(1, len(path) + 1):
            places.setdefault(path[:length], offset)
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found = _TOML_PLACE.match(str(error))
        problem = (found[1] if found else str(error)) or "values nest too deep"
        offset = len(text)
        if found and found[2]:
            starts = [0, *(end.end() for end in re.finditer("\n", text))]
            offset = starts[int(found[2]) - 1] + int(found[3]) - 1
        raise NotJson(offset, f"not TOML: {problem[:1].lower()}{problem[1:]}", "correct this line") from None
    if is_deeper(value, DEPTH):
        raise _too_deep(0)
    return _place(value, (), 0, places)


def _too_deep(offset: int) -> NotJson:
    return NotJson(offset, f"values nest more than {DEPTH} deep", "a configuration needs four levels")


def _toml_keys(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the path to each key that has a line of its own, and where it begins."""
    table: tuple[str, ...] = ()
    for line in _TOML_LINE.finditer(text):
        bracket, header, key = line.groups()
        path = tuple(part.strip("\"'") for part in re.findall(_KEY, header or key))
        table, path = (path, path) if bracket else (table, table + path)
        yield path, line.start(2 if bracket else 3)


def _place(value: Any, path: tuple[str, ...], offset: int, places: Mapping[tuple[str, ...], int]) -> Node:
    """Give a value the place of its key, or that of the nearest one around it."""
    if isinstance(value, dict):
        at = {name: places.get((*path, name), offset) for name in value}
        members = {name: _place(one, (*path, name), at[name], places) for name, one in value.items()}
        return Node(members, offset, at)
    if isinstance(value, list):
        return Node([_place(one, path, offset, places) for one in value], offset)
    return Node(value if isinstance(value, str | bool | int | float) else str(value), offset)


# YAML


def _parse_yaml(text: str) -> Node:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        offset = getattr(error, "position", 0) if mark is None else mark.index
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        remedy = "indent with spaces, and put a value with special characters between quotes"
        raise NotJson(min(offset, len(text)), f"not YAML: {problem}", remedy) from None
    except RecursionError:
        raise _too_deep(0) from None
    return Node({}, 0) if root is None else _Yaml().read(root, 0)


class _Yaml:
    """Makes nodes of PyYAML's, by the rules of YAML 1.2: only `true` and `false` are booleans, and `on` is a word."""

    def __init__(self) -> None:
        self._count = 0

    def read(self, node: Any, depth: int) -> Node:
        """Read one value.

        Raises:
            NotJson: There are too many, or too deep.
        """
        offset = node.start_mark.index
        self._count += 1
        if depth > DEPTH or self._count > _MOST_NODES:
            raise NotJson(offset, "values nest too deep, or aliases stand for too many", "write it without aliases")
        match node.id:
            case "mapping":
                return self._read_mapping(node, depth)
            case "sequence":
                return Node([self.read(one, depth + 1) for one in node.value], offset)
            case _:
                return Node(_scalar(node), offset)

    def _read_mapping(self, node: Any, depth: int) -> Node:
        members: dict[str, Node] = {}
        names: dict[str, int] = {}
        merged: list[Node] = []
        for key, value in node.value:
            name = key.value if isinstance(key.value, str) else ""
            if name == "<<" and key.style is None:
                one = self.read(value, depth + 1)
                merged += one.value if isinstance(one.value, list) else [one]
                continue
            if name in members:
                raise NotJson(key.start_mark.index, f"{name!r} is here twice", "rename or remove one of them")
            names[name] = key.start_mark.index
            members[name] = self.read(value, depth + 1)
        for one in merged:
            for name, value in one.value.items() if isinstance(one.value, dict) else ():
                names.setdefault(name, one.names[name])
                members.setdefault(name, value)
        return Node(members, node.start_mark.index, names)


def _scalar(node: Any) -> Any:
    text: str = node.value
    if node.style is not None:  # between quotes, or a block
        return text
    if text in ("", "~"):
        return None
    if text in WORDS:
        return WORDS[text]
    return json.loads(text) if NUMBER.fullmatch(text) and len(text) < DEPTH else text
