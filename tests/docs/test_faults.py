"""The page of bad peers names tests that are there, in the folders of their section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_docs import CELLS, ROOT

PAGE = ROOT / "docs" / "internals" / "faults.md"
NAMES = re.compile(r"`([^`]+)`")


def named_tests() -> Iterator[tuple[str, list[Path], str]]:
    """Give for each test that a row names the fault, the folders of its section, and a file or a part of the name."""
    text = PAGE.read_text("utf-8")
    for section in re.split(r"^(?=## |Where )", text, flags=re.MULTILINE):
        folders = [ROOT / path for path in re.findall(r"`(tests/[^`]*)`", section)]
        for line in section.splitlines():
            if line.startswith("| ") and NAMES.search(CELLS.split(line)[3]):
                fault, _, tests = CELLS.split(line)[1:-1]
                yield from ((fault, folders, name) for name in NAMES.findall(tests))


@pytest.mark.parametrize(("fault", "folders", "name"), list(named_tests()))
def test_a_fault_has_the_tests_that_its_row_names(fault: str, folders: list[Path], name: str) -> None:
    files = [path for folder in folders for path in folder.rglob("test_*.py")]
    if name.endswith(".py"):
        assert name in {path.name for path in files}, fault
    else:
        assert any(re.search(rf"def test_\w*{re.escape(name)}", path.read_text("utf-8")) for path in files), fault


def test_every_row_names_a_test() -> None:
    rows = [CELLS.split(line) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert [row[1] for row in rows if row[3] != " test " and not NAMES.search(row[3])] == []
