"""`nox -s pull -- draft`: the draft taken for the next release, from a mirror that has one."""

from __future__ import annotations

import datetime
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.maintain.draft import pull_draft
from codegen.read.pins import sha256_hex

ROOT = Path(__file__).parents[2]
LATEST = "2026-07-28"
COMMIT = "0123456789" * 4


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    shutil.copytree(ROOT / "codegen/overlays", tmp_path / "codegen/overlays")
    return tmp_path


def mirror(root: Path, field: dict[str, Any] | None = None) -> Path:
    """The last release as the draft, with a field of tools that they must have."""
    schema = json.loads((ROOT / "schema" / LATEST / "schema.json").read_text("utf-8"))
    if field is not None:
        schema["$defs"]["Tool"]["properties"]["weight"] = field
        schema["$defs"]["Tool"]["required"].append("weight")
    file = root / "mirror/draft/schema.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(schema), "utf-8")
    return root / "mirror"


def test_a_draft_with_a_question_is_told(root: Path) -> None:
    said = pull_draft(str(mirror(root, {"type": "string"})), root=root, progress=io.StringIO())
    assert "the step into the draft has " in said
    assert "Tool/properties/weight: added: required string" in said
    assert "9999" not in said


def test_a_draft_that_asks_nothing_is_told(root: Path) -> None:
    said = pull_draft(str(mirror(root)), root=root, progress=io.StringIO())
    assert "The generator has no questions." in said
    assert f"since {LATEST}, 0 places" in said


def test_a_draft_is_pinned_once(root: Path) -> None:
    data = (mirror(root, {"type": "string"}) / "draft/schema.json").read_bytes()
    day = datetime.date(2031, 2, 3)
    said = pull_draft(str(root / "mirror"), COMMIT, root=root, today=day, progress=io.StringIO())
    assert said.startswith("The draft has changed.")
    row = f'\n[[draft]]\ncommit = "{COMMIT}"\ndate = "2031-02-03"\nsha256 = "{sha256_hex(data)}"\n'
    assert (root / "schema/proofs.toml").read_text("utf-8").endswith(row)
    again = pull_draft(str(root / "mirror"), COMMIT, root=root, today=day, progress=io.StringIO())
    assert again == "The draft is as it was.\n"
    assert (root / "schema/proofs.toml").read_text("utf-8").count(COMMIT) == 1


def test_what_is_no_schema_pins_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mirror(root) / "draft/schema.json").write_text("<html>", "utf-8")
    before = (ROOT / "schema/proofs.toml").read_bytes()
    assert main(["pull", "draft", "--from", str(root / "mirror")]) == 1
    assert "is not the schema of an MCP revision" in capsys.readouterr().err
    assert (ROOT / "schema/proofs.toml").read_bytes() == before
