"""The import contracts of `pyproject.toml` notice what they forbid: one import planted in a copy breaks each."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLANTED = [
    ("core/edges/lifecycle.py", "import time", "The core does no I/O, starts nothing, and asks no clock"),
    (
        "core/switch/shared/loans.py",
        "from dragoman.transports import base",
        "From the command line down to the bindings",
    ),
    ("status.py", "from dragoman import pool", "From the command line down to the bindings"),
    ("core/batches.py", "import pydantic", "Only the models know pydantic"),
]


def test_every_part_of_the_library_has_its_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = [one["layers"] for one in settings["contracts"] if one["type"] == "layers"]
    placed = {part.strip() for layer in layers for part in layer.split("|")}
    parts = {path.stem for path in (ROOT / "runtime" / "dragoman").iterdir() if path.suffix in ("", ".py")}
    assert {f"dragoman.{part}" for part in parts if not part.startswith("__")} == placed - {"dragoman_spec"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of everything that the contracts are about."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("runtime", "generated", "codegen"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def broken_contracts(house: Path) -> str:
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    places = os.pathsep.join(str(house / place) for place in ("runtime", "generated", "."))
    command = [sys.executable, "-c", program, "--no-cache"]
    run = subprocess.run(
        command, cwd=house, env={**os.environ, "PYTHONPATH": places}, capture_output=True, text=True, timeout=60
    )
    return "\n".join(line for line in run.stdout.splitlines() if "BROKEN" in line)


@pytest.mark.parametrize(("module", "line", "contract"), PLANTED)
def test_a_planted_import_breaks_its_contract(house: Path, module: str, line: str, contract: str) -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    place = house / "runtime" / "dragoman" / module
    before = place.read_text("utf-8")
    place.write_text(before.replace("import annotations\n", f"import annotations\n\n{line}\n", 1), "utf-8")
    try:
        assert contract in broken_contracts(house)
    finally:
        place.write_text(before, "utf-8")
