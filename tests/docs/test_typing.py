"""The examples of the documentation pass strict type checkers, without a plugin.

Mypy and pyright; each where it is installed.
"""

from __future__ import annotations

import ast
import doctest
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import PAGES, ROOT, blocks
from tests.support.profile import takes_long

SOURCES = (ROOT / "generated", ROOT / "runtime")
LONGEST_S = 300
WRONG = "with_mistakes.py"
MISTAKES = {
    "v.Tool(name='x', input_schema=5)": "incompatible type",
    "dragoman_spec.v2024_11_05.AudioContent": 'Module has no attribute "AudioContent"',
    "dragoman_spec.v2099_01_01": 'Module has no attribute "v2099_01_01"',
    "dragoman.conect": 'Module has no attribute "conect"',
    "dragoman_spec.convert(v.Tool(name='x', input_schema={'type': 'object'}), to='2025-06-19')": "No overload variant",
    "dragoman_spec.convert(v.AudioContent(data='', mime_type='a/b'), to='2024-11-05')": "No overload variant",
}
"""Lines with one mistake each, and what a type checker says of it."""
RIGHT = """\
for one in dragoman_spec.REVISIONS:
    dragoman_spec.convert(v.AudioContent(data="", mime_type="a/b"), to=one)
dragoman_spec.convert(v.AudioContent(data="", mime_type="a/b"), to=dragoman_spec.Revision(input()))
dragoman_spec.convert(v.Tool(name="x", input_schema={"type": "object"}), to="2024-11-05").input_schema
"""


def _program(page: Path) -> str:
    """What a page shows of Python, as one program, which prints what the interpreter would."""
    lines = list(blocks(page, "python"))
    for block in blocks(page, "pycon"):
        for example in doctest.DocTestParser().get_examples(block):
            is_value = isinstance(ast.parse(example.source).body[0], ast.Expr) and not example.exc_msg
            lines.append(f"print(\n{example.source})" if is_value else example.source)
    return "\n".join(lines)


def _needs_the_sdk(example: Path) -> bool:
    return "mcp" in {name.split(".")[0] for name in _imports(ast.parse(example.read_text(encoding="utf-8")))}


def _imports(tree: ast.Module) -> list[str]:
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return names + [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program for each page that shows Python, and for each example that needs only us."""
    folder = tmp_path_factory.mktemp("typed")
    for page in PAGES:
        if program := _program(page):
            (folder / f"{page.stem.lower().replace('-', '_')}_page.py").write_text(program, encoding="utf-8")
    for example in sorted(ROOT.glob("examples/*.py")):
        if not _needs_the_sdk(example):
            (folder / f"{example.stem}_example.py").write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_there_is_something_to_check(programs: Path) -> None:
    assert {"client_page.py", "python_api_page.py", "embedded_example.py"} <= {path.name for path in programs.iterdir()}


@pytest.fixture(scope="module")
def complaints(programs: Path) -> list[str]:
    """What mypy says of the programs, and of one with mistakes."""
    pytest.importorskip("mypy")
    wrong = programs / WRONG
    first = "import dragoman, dragoman_spec; from dragoman_spec import v2025_06_18 as v"
    wrong.write_text("\n".join([first, *MISTAKES, RIGHT]), encoding="utf-8")
    try:
        return type_errors(programs)
    finally:
        wrong.unlink()


def test_examples_pass_mypy(complaints: list[str]) -> None:
    assert [line for line in complaints if not line.startswith(f"{WRONG}:")] == []


@pytest.mark.parametrize(("number", "line"), list(enumerate(MISTAKES, 2)))
def test_mistake_is_noticed(complaints: list[str], number: int, line: str) -> None:
    (said,) = [found for found in complaints if found.startswith(f"{WRONG}:{number}: error:")]
    assert MISTAKES[line] in said


def test_what_is_no_mistake_is_none(complaints: list[str]) -> None:
    errors = [line for line in complaints if line.startswith(f"{WRONG}:") and ": error:" in line]
    assert len(errors) == len(MISTAKES)


@takes_long
def test_examples_pass_pyright(programs: Path) -> None:
    pytest.importorskip("pyright")
    # The package fetches the checker from npm when it first runs.
    if subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pyright is installed, and could not fetch its program")
    configuration = {"typeCheckingMode": "strict", "extraPaths": [str(path) for path in SOURCES], "include": ["."]}
    (programs / "pyrightconfig.json").write_text(json.dumps(configuration), encoding="utf-8")
    found = _complaints([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", "."], programs)
    assert [line for line in found.splitlines() if not line.startswith("0 errors")] == []


def type_errors(folder: Path) -> list[str]:
    """Give what mypy says of the programs in a folder, a line each, in strict mode and without a plugin."""
    paths = "\n  ".join(map(str, SOURCES))
    configuration = f"[mypy]\nstrict = true\nexplicit_package_bases = true\nmypy_path =\n  {paths}\n"
    (folder / "mypy.ini").write_text(configuration, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--follow-imports=silent", "--no-error-summary"]
    return _complaints([*command, *sorted(path.name for path in folder.glob("*.py"))], folder).splitlines()


def _complaints(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    return done.stdout.strip()
