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
    ("core/edges/lifecycle.py", "import time", "dragoman.core.edges.lifecycle -> time"),
    (
        "core/serving/loans.py",
        "from dragoman.transports import base",
        "dragoman.core.serving.loans -> dragoman.transports.base",
    ),
    (
        "core/rules/names.py",
        "from dragoman.core.edges import offer",
        "dragoman.core.rules.names -> dragoman.core.edges.offer",
    ),
    ("core/calls.py", "from dragoman.core.rules import urls", "dragoman.core.calls -> dragoman.core.rules.urls"),
    ("status.py", "from dragoman import pool", "dragoman.status -> dragoman.pool"),
    ("core/batches.py", "import pydantic", "dragoman.core.batches -> pydantic"),
]


def test_every_part_of_the_library_has_its_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(one["layers"] for one in settings["contracts"] if one["type"] == "layers")
    placed = {part.strip() for layer in layers for part in layer.split("|")}
    parts = {path.stem for path in (ROOT / "runtime" / "dragoman").iterdir() if path.suffix in ("", ".py")}
    assert {f"dragoman.{part}" for part in parts if not part.startswith("__")} == placed - {"dragoman_spec"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy of everything that the contracts are about, with all that is planted."""
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    house = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", house)
    for package in ("runtime", "generated", "codegen"):
        shutil.copytree(ROOT / package, house / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module, line, _ in PLANTED:
        place = house / "runtime" / "dragoman" / module
        text = place.read_text("utf-8")
        place.write_text(text.replace("import annotations\n", f"import annotations\n\n{line}\n", 1), "utf-8")
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    places = os.pathsep.join(str(house / place) for place in ("runtime", "generated", "."))
    command = [sys.executable, "-c", program, "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": places}
    return subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("found", [found for _, _, found in PLANTED])
def test_a_planted_import_breaks_its_contract(report: str, found: str) -> None:
    assert f"{found} (l." in report
