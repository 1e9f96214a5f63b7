"""The page of bad peers names tests that are there: each part of a name is part of one in the files that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_docs import CELLS, ROOT

PAGE = ROOT / "docs" / "internals" / "faults.md"
NAMES = re.compile(r"`([^`]+)`")


def named_tests() -> Iterator[tuple[str, list[Path], str]]:
    """Give for each fault the files that its row names, or else its section, and a part of a test's name."""
    base: list[Path] = []
    for line in PAGE.read_text("utf-8").splitlines():
        if not line.startswith("|"):
            base = [ROOT / path for path in re.findall(r"`(tests/[^`]*)`", line)] or base
            continue
        fault, _, tests = CELLS.split(line)[1:-1]
        files = base
        for name in NAMES.findall(tests):
            if name.endswith((".py", "/")):
                found = [(one if one.is_dir() else one.parent) / name for one in base]
                files = [path for path in found if path.exists()]
                yield fault, files, ""
            else:
                yield fault, files, name


@pytest.mark.parametrize(("fault", "files", "name"), list(named_tests()))
def test_a_fault_has_the_tests_that_its_row_names(fault: str, files: list[Path], name: str) -> None:
    found = [path for file in files for path in ([file] if file.is_file() else sorted(file.rglob("test_*.py")))]
    assert found, f"the file for {fault!r} is not there"
    if name and name != "the same":
        assert any(re.search(rf"def test_\w*{re.escape(name)}", path.read_text("utf-8")) for path in found), fault
