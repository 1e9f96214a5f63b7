"""What the generated tree looks like, whatever it does: nothing is there twice, and every entry can be found again."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codegen.read.overlay import read_overlay
from tests.support.judge import ROOT

MODULES = sorted((ROOT / "generated" / "dragoman_spec").rglob("*.py"))
STEPS = sorted((ROOT / "generated" / "dragoman_spec").rglob("steps.py"))
PAGES = [page for page in sorted((ROOT / "docs" / "steps").glob("*.md")) if page.stem != "index"]
WITHOUT_A_LINE = {"keep", "drop", "apart", "gone", "refuse", "as"}
"""What decides that nothing is to be called."""


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def spelled(lines: list[str], node: ast.stmt | ast.expr) -> str:
    """A node as it stands in its module, line by line."""
    assert node.end_lineno is not None
    *first, last = lines[node.lineno - 1 : node.end_lineno]
    return "\n".join([*first, last[: node.end_col_offset]])[node.col_offset :]


def bodies(module: ast.Module) -> Iterator[list[ast.stmt]]:
    """Every block of statements, the outermost first."""
    for node in ast.walk(module):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives something to, but for those that are overloaded."""
    match statement:
        case ast.FunctionDef(name=name, decorator_list=decorators) if not decorators:
            yield name
        case ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_defines_nothing_twice(module: Path) -> None:
    counts = [Counter(name for statement in block for name in defined(statement)) for block in bodies(tree(module))]
    assert [name for found in counts for name, times in found.items() if times > 1] == []


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_says_nothing_twice_in_a_row(module: Path) -> None:
    found, lines = tree(module), module.read_text("utf-8").splitlines()
    rows: list[list[Any]] = [*bodies(found)]
    rows += [
        [item for item in node.elts if isinstance(item, ast.Call | ast.Dict)]
        for node in ast.walk(found)
        if isinstance(node, ast.Tuple | ast.List)
    ]
    again = [(spelled(lines, one), spelled(lines, two)) for row in rows for one, two in pairwise(row)]
    assert [said for said, next_ in again if said == next_] == []


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_table_has_no_key_twice(module: Path) -> None:
    tables = [
        Counter(key.value for key in node.keys if isinstance(key, ast.Constant))
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Dict)
    ]
    assert [key for table in tables for key, times in table.items() if times > 1] == []


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_docstring_has_no_paragraph_twice(module: Path) -> None:
    nodes = [node for node in ast.walk(tree(module)) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    said = [Counter((ast.get_docstring(node) or "").split("\n\n")) for node in nodes]
    assert [text for one in said for text, times in one.items() if text and times > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_names_an_entry_once_in_a_section(page: Path) -> None:
    sections = re.split(r"^#+ ", page.read_text("utf-8"), flags=re.MULTILINE)
    counts = [Counter(re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)) for section in sections]
    assert [name for found in counts for name, times in found.items() if times > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_gives_the_reason_of_every_decision(page: Path) -> None:
    text, overlay = page.read_text("utf-8"), read_overlay(ROOT, page.stem)
    said = [*overlay.decisions, *(hook for hook in overlay.hooks if not hook.rule), *overlay.errors, *overlay.cosmetics]
    assert [entry.old for entry in overlay.renames if entry.reason not in text] == []
    assert [entry.name for entry in said if entry.reason not in text] == []


@pytest.mark.parametrize("steps", STEPS, ids=named)
def test_an_entry_that_acts_is_named_where_it_does(steps: Path) -> None:
    text = steps.read_text("utf-8")
    overlay = read_overlay(ROOT, steps.parent.name.removeprefix("v").replace("_", "-"))
    acting = [*(one for one in overlay.decisions if one.do not in WITHOUT_A_LINE), *overlay.errors]
    acting += [hook for hook in overlay.hooks if not hook.rule]
    assert [entry.name for entry in acting if f"# {entry.name}\n" not in text] == []
