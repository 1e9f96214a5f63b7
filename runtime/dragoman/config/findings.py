"""What is found wrong while a file is read, each with its place and a remedy.

Lives here: the list, and the few checks that everything else is made of. Must not: know keys (`keys`), or what they
mean.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.config.document import Node
from dragoman.config.expansion import NotSet, Variables
from dragoman.errors import ConfigProblem


class Findings:
    """What is wrong with a file.

    Args:
        text: The file.
        variables: What fills in strings.

    Attributes:
        variables: What fills in strings.
        problems: What makes it unusable.
        warnings: What is odd.
    """

    def __init__(self, text: str, variables: Variables) -> None:
        self.problems: list[ConfigProblem] = []
        self.warnings: list[ConfigProblem] = []
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self.variables = variables

    def line_of(self, offset: int) -> int:
        """Return the line of a place."""
        return bisect_right(self._lines, offset)

    def take_problems(self, since: int) -> tuple[ConfigProblem, ...]:
        """Remove and return the problems found since there were so many: they concern only a part of the file."""
        taken = tuple(self.problems[since:])
        del self.problems[since:]
        return taken

    def add(self, at: Node | int, problem: str, remedy: str) -> None:
        """Note what makes the file unusable."""
        self.problems.append(self._make(at, problem, remedy))

    def warn(self, at: Node | int, problem: str, remedy: str) -> None:
        """Note what is odd."""
        self.warnings.append(self._make(at, problem, remedy))

    def _make(self, at: Node | int, problem: str, remedy: str) -> ConfigProblem:
        offset = at.offset if isinstance(at, Node) else at
        line = self.line_of(offset)
        return ConfigProblem(line, offset - self._lines[line - 1] + 1, problem, remedy)

    def path_of(self, text: str) -> str:
        """Return where a path of the file leads; relative ones begin where the file is."""
        return os.path.join(self.variables.directory, os.path.expanduser(text))

    # Kinds of values: each gives None, with a problem noted, for what is not of the kind.

    def members(self, node: Node, what: str) -> dict[str, Node] | None:
        """Read an object."""
        if isinstance(node.value, dict):
            return node.value
        self.add(node, f"expected {what} to be an object, found {named(node)}", "put it between { and }")
        return None

    def text(self, node: Node, what: str, *, expands: bool = True) -> str | None:
        """Read a string, with its variables filled in."""
        if not isinstance(node.value, str):
            remedy = f'write "{plain(node)}"' if plain(node) else "put it between double quotes"
            self.add(node, f"expected {what} to be a string, found {named(node)}", remedy)
            return None
        if not expands:
            return node.value
        try:
            found = self.variables.expand(node.value)
        except NotSet as error:
            self.add(node, f"{what}: {error.problem}", error.remedy)
            return None
        if "\0" in found or any("\ud800" <= char <= "\udfff" for char in found):
            self.add(node, f"{what} holds a null character, or half of a surrogate pair", "take it out")
            return None
        return found

    def flag(self, node: Node, what: str) -> bool | None:
        """Read a boolean."""
        if isinstance(node.value, bool):
            return node.value
        self.add(
            node, f"expected {what} to be true or false, found {named(node)}", "write true or false, without quotes"
        )
        return None

    def texts(self, node: Node, what: str) -> list[str] | None:
        """Read an array of strings."""
        if not isinstance(node.value, list):
            words = node.value.split() if isinstance(node.value, str) else [plain(node)] if plain(node) else []
            shown = ", ".join(f'"{word[:40]}"' for word in words[:4])
            remedy = (
                f"write [{shown}]" if shown and len(words) < 5 else 'write ["one", "two"]: each in quotes of its own'
            )
            self.add(node, f"expected {what} to be an array of strings, found {named(node)}", remedy)
            return None
        found = [self.text(item, f"item {number} of {what}") for number, item in enumerate(node.value, 1)]
        return None if None in found else [item for item in found if item is not None]

    def table(self, node: Node, what: str, *, expands: bool = True) -> dict[str, str] | None:
        """Read an object of strings, with their variables filled in or not."""
        if isinstance(node.value, list):
            self.add(node, f"expected {what} to be an object, found an array", 'write {"NAME": "value"}')
            return None
        members = self.members(node, what)
        if members is None:
            return None
        found = {name: self.text(value, f"{name} of {what}", expands=expands) for name, value in members.items()}
        return None if None in found.values() else {name: text for name, text in found.items() if text is not None}


def named(node: Node) -> str:
    """Say what a value is, without repeating what may be secret."""
    match node.value:
        case None:
            return "null"
        case bool():
            return "true" if node.value else "false"
        case int() | float():
            return f"the number {plain(node)}"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def plain(node: Node) -> str:
    """Return a number or boolean as it would stand in a string; empty for anything else."""
    value: Any = node.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 256 else ""
    return repr(value) if isinstance(value, float) and abs(value) < sys.float_info.max else ""


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant."""
    names: Sequence[str] = list(known)
    folded = {one.lower().replace("_", "").replace("-", ""): one for one in reversed(names)}
    same = folded.get(name.lower().replace("_", "").replace("-", ""))
    if same is not None:
        return same
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return found[0] if found else None
