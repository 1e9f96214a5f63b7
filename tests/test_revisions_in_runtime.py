"""What a revision has is generated: no code in `runtime/` names one, nor a key or code of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parent.parent / "runtime"
REVISION = re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b")
RESERVED_KEY = re.compile(r"\bio\.modelcontextprotocol/")

ALLOWED = {
    "dragoman/demo/client.py": "the demo's client stands for other people's, which have what their revision has",
}
"""Files that may name a revision, and why."""


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in the code of a file, with their lines; docstrings and comments cite the specification, and may."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, str):
                yield node.lineno, node.value
            elif isinstance(node.value, bytes):
                yield node.lineno, node.value.decode("latin-1")


@cache
def all_literals() -> list[tuple[str, int, str]]:
    """The files of the runtime with the lines and texts in their code."""
    paths = sorted(RUNTIME.rglob("*.py"))
    return [(path.relative_to(RUNTIME).as_posix(), line, text) for path in paths for line, text in literals(path)]


def found(pattern: re.Pattern[str]) -> dict[str, list[int]]:
    """The lines of each file whose code has a text that matches."""
    lines: dict[str, list[int]] = {}
    for file, line, text in all_literals():
        if pattern.search(text):
            lines.setdefault(file, []).append(line)
    return lines


def test_no_code_names_a_revision() -> None:
    assert {file: lines for file, lines in found(REVISION).items() if file not in ALLOWED} == {}


@pytest.mark.parametrize("file", ALLOWED)
def test_every_exception_is_of_use(file: str) -> None:
    assert file in found(REVISION)


def test_no_code_spells_a_key_that_the_specification_reserves() -> None:
    extension = {"dragoman/core/rules/names.py": 1}  # the name of the tasks extension, which no schema has
    assert {file: len(lines) for file, lines in found(RESERVED_KEY).items()} == extension


@pytest.mark.parametrize(
    ("code", "is_seen"),
    [
        ('SINCE = "2025-06-18"', True),
        ('SINCE = b"2025-06-18"', True),
        ('say(f"only {x} and 2025-06-18")', True),
        ('"""As 2025-06-18 says."""', False),
        ('SINCE = NEWEST\n"""2025-06-18"""  # 2025-06-18', False),
    ],
)
def test_texts_are_seen_and_explanations_are_not(tmp_path: Path, code: str, is_seen: bool) -> None:
    file = tmp_path / "some.py"
    file.write_text(code, "utf-8")
    assert any(REVISION.search(text) for _, text in literals(file)) is is_seen
