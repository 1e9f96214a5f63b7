"""JSON as people write it: with comments, with a comma too many, and with the place of every value.

Lives here: the reader. Must not: know what a configuration is (`reading`). The standard library's reader does not say
where a value stands, and takes no comments; desktop clients take them, and people want to know the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Value = Any
"""A string, a number, a boolean, None, a list of nodes, or a dict from names to nodes."""

DEPTH: Final = 100
"""How deep values may nest."""

_MOST_DIGITS: Final = 400
"""How long a number may be; Python reads no integer of more than 4,300 digits."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\.)*)"')
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_TYPOGRAPHIC: Final = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2018\u2019"
WORDS: Final[dict[str, Value]] = {"true": True, "false": False, "null": None}
_MEANT: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}


class NotJson(Exception):
    """The text cannot be read.

    Args:
        offset: Where, in characters.
        problem: What was expected and what came.
        remedy: What to do about it.
    """

    def __init__(self, offset: int, problem: str, remedy: str) -> None:
        super().__init__(offset, problem, remedy)
        self.offset = offset
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place.

    Attributes:
        value: What it is.
        offset: Where it begins, in characters.
        names: Where the names of its members begin, if it is an object.
    """

    value: Value
    offset: int
    names: dict[str, int] = field(default_factory=dict)


def parse_document(text: str) -> Node:
    """Read a text.

    Raises:
        NotJson: It cannot be read.
    """
    reader = _Reader(text)
    reader.at = len(text) - len(text.removeprefix("\ufeff"))
    reader.skip()
    if reader.at == len(text):
        raise NotJson(0, "the file is empty", 'begin with {"mcpServers": {}}')
    node = reader.read(0)
    reader.skip()
    if reader.at < len(text):
        raise NotJson(
            reader.at, f"expected the end of the file, found {reader.found()}", _explain_rest(text, reader.at)
        )
    return node


def look(node: Node, path: Sequence[str]) -> Node | None:
    """Return the value at the end of a way through objects."""
    for name in path:
        if not isinstance(node.value, dict) or name not in node.value:
            return None
        node = node.value[name]
    return node


def measure(text: str, offset: int) -> int:
    """Return where the value ends that begins at this character of a text that can be read."""
    reader = _Reader(text)
    reader.at = offset
    reader.read(0)
    return reader.at


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of a character, both counted from 1."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def _explain_rest(text: str, offset: int) -> str:
    if text[offset] in "}]":
        return f"remove this {text[offset]}: there is one more of them than was opened"
    return "put everything inside one pair of braces"


class _Reader:
    """Reads from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        """Go past white space and comments."""
        found = _BLANK.match(self.text, self.at)
        assert found is not None, "it matches nothing as well"
        self.at = found.end()
        if self.text.startswith("/*", self.at):
            raise NotJson(self.at, "the comment that begins here has no end", "close it with */")

    def found(self) -> str:
        """Say what stands here."""
        if self.at >= len(self.text):
            return "the end of the file"
        word = _WORD.match(self.text, self.at)
        return f"{(word[0] if word else self.text[self.at])[:40]!r}"

    def read(self, depth: int) -> Node:
        """Read one value."""
        start, char = self.at, self.text[self.at : self.at + 1]
        if depth > DEPTH:
            raise NotJson(start, f"values nest more than {DEPTH} deep", "a configuration needs four levels")
        if char == "{":
            return self._read_object(depth)
        if char == "[":
            return self._read_array(depth)
        if char == '"':
            return Node(self._read_string(), start)
        number = NUMBER.match(self.text, start)
        if number is not None:
            if len(number[0]) > _MOST_DIGITS:
                raise NotJson(start, f"the number that begins here has {len(number[0])} digits", "write a shorter one")
            self.at = number.end()
            return Node(json.loads(number[0]), start)
        word = _WORD.match(self.text, start)
        if word is not None and word[0] in WORDS:
            self.at = word.end()
            return Node(WORDS[word[0]], start)
        raise NotJson(start, f"expected a value, found {self.found()}", self._explain_value(word))

    def _explain_value(self, word: re.Match[str] | None) -> str:
        char = self.text[self.at : self.at + 1]
        if char == "'" or (char and char in _TYPOGRAPHIC):
            return 'write strings between straight double quotes: "…"'
        if word is not None and word[0] in _MEANT:
            return f"write {_MEANT[word[0]]}"
        if word is not None:
            return f'write "{word[0][:40]}", between double quotes, if it is a string'
        if not char:
            return "close every brace, bracket and quote that is open"
        return "put a string, a number, true, false, null, [ ] or { } here"

    def _read_object(self, depth: int) -> Node:
        start = self.at
        members: dict[str, Node] = {}
        names: dict[str, int] = {}
        self.at += 1
        self.skip()
        while not self._closes("}"):
            name_at = self.at
            name = self._read_name(start)
            if name in members:
                line, _ = place_of(self.text, names[name])
                raise NotJson(
                    name_at, f"{name!r} is here twice", f"rename or remove one of them; the first is in line {line}"
                )
            names[name] = name_at
            self.skip()
            if self.text[self.at : self.at + 1] != ":":
                raise NotJson(
                    self.at, f"expected a colon after {name!r}, found {self.found()}", f'write "{name}": and its value'
                )
            self.at += 1
            self.skip()
            members[name] = self.read(depth + 1)
            self._separate(start, "}")
        return Node(members, start, names)

    def _read_name(self, start: int) -> str:
        if self.text[self.at : self.at + 1] == '"':
            return self._read_string()
        char = self.text[self.at : self.at + 1]
        word = _WORD.match(self.text, self.at)
        if not char:
            raise self._unclosed(start, "{", "}")
        if char == "'" or char in _TYPOGRAPHIC:
            remedy = 'write names between straight double quotes: "…"'
        elif word is not None:
            remedy = f'write "{word[0][:40]}", between double quotes'
        else:
            remedy = "remove it" if char == "," else "write the name of the member between double quotes"
        raise NotJson(self.at, f"expected a name, found {self.found()}", remedy)

    def _read_array(self, depth: int) -> Node:
        start = self.at
        items: list[Node] = []
        self.at += 1
        self.skip()
        while not self._closes("]"):
            if self.at >= len(self.text):
                raise self._unclosed(start, "[", "]")
            items.append(self.read(depth + 1))
            self._separate(start, "]")
        return Node(items, start)

    def _closes(self, bracket: str) -> bool:
        if not self.text.startswith(bracket, self.at):
            return False
        self.at += 1
        return True

    def _separate(self, start: int, bracket: str) -> None:
        """Go past the comma after a value; before the closing bracket there may be none, or one."""
        end = self.at
        self.skip()
        if self.text.startswith(",", self.at):
            self.at += 1
            self.skip()
        elif self.at >= len(self.text):
            raise self._unclosed(start, self.text[start], bracket)
        elif not self.text.startswith(bracket, self.at):
            wrong = self.text[self.at] in "}]"
            remedy = f"write {bracket} here" if wrong else "put a comma after the value before it"
            at = self.at if wrong else end
            raise NotJson(at, f"expected a comma or {bracket}, found {self.found()}", remedy)

    def _unclosed(self, start: int, opening: str, closing: str) -> NotJson:
        line, column = place_of(self.text, start)
        problem = f"the file ends before the {opening} of line {line}, column {column} is closed"
        return NotJson(len(self.text), problem, f"add {closing} where it belongs")

    def _read_string(self) -> str:
        start = self.at
        found = _STRING.match(self.text, start)
        if found is None:
            line_end = self.text.find("\n", start)
            has_end = self.text.find('"', start + 1, None if line_end < 0 else line_end) >= 0
            remedy = "write a tab or another control character as an escape, \\t" if has_end else 'close it with "'
            raise NotJson(start, "the string that begins here does not end in its line", remedy)
        escape = _ESCAPE.search(found[1].replace("\\\\", "xx"))
        if escape is not None:
            offset = start + 1 + escape.start()
            shown = self.text[offset : offset + 2]
            raise NotJson(
                offset, f"{shown} is not an escape of JSON", "write each backslash twice, as in C:\\\\Users\\\\me"
            )
        self.at = found.end()
        text: str = json.loads(found[0])
        return text
