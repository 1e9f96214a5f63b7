"""Regeneration is pure, complete and careful: same bytes always, nothing stale, left over or touched twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.errors import CodegenError, PinMismatch, UndecidedChange
from codegen.maintain.regen import Difference, compare_output, format_python, plan_steps, render, write_output
from codegen.names import module_name
from codegen.read.pins import Pin, read_pins, sha256_hex, write_pins
from tests.support.profile import takes_long
from tests.support.small_specs import META, NEWER, any_of, ref, request, spec

ROOT = Path(__file__).resolve().parents[2]
LATEST = "2026-07-28"
NEXT = "2099-01-01"


@pytest.fixture(scope="module")
def output() -> dict[str, str]:
    return render(ROOT)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what regen reads, and nothing else."""
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", tmp_path / "codegen" / "overlays")
    return tmp_path


def test_committed_tree_is_what_regen_writes(output: dict[str, str]) -> None:
    assert compare_output(ROOT, output) == Difference((), (), ())


@takes_long
def test_output_does_not_depend_on_the_hash_seed_or_the_place(output: dict[str, str], tree: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "codegen", "regen", "--root", str(tree)],
        env=environment, cwd=tree.parent, check=True, capture_output=True, timeout=200,
    )  # fmt: skip
    assert compare_output(tree, output) == Difference((), (), ())


def test_output_has_no_absolute_paths(output: dict[str, str]) -> None:
    assert [path for path, text in output.items() if str(ROOT) in text] == []


def test_generated_python_says_that_it_is(output: dict[str, str]) -> None:
    python = {path: text for path, text in output.items() if path.endswith(".py")}
    assert [path for path, text in python.items() if "do not edit" not in text.split("\n", 2)[0]] == []


def test_stale_missing_and_orphan_files_are_told_apart(tmp_path: Path) -> None:
    write_output(tmp_path, {"generated/a.py": "1", "generated/b.py": "2", "generated/c/d.py": "3"}, _all_missing(3))
    assert compare_output(
        tmp_path, {"generated/a.py": "1", "generated/b.py": "X", "generated/e.py": "4"}
    ) == Difference(stale=("generated/b.py",), missing=("generated/e.py",), orphans=("generated/c/d.py",))


def _all_missing(count: int) -> Difference:
    paths = ("generated/a.py", "generated/b.py", "generated/c/d.py")
    return Difference((), paths[:count], ())


def test_binary_file_in_place_of_text_is_stale(tmp_path: Path) -> None:
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "a.py").write_bytes(b"\xff")
    assert compare_output(tmp_path, {"generated/a.py": ""}).stale == ("generated/a.py",)


@pytest.mark.parametrize("folder", ["generated/dragoman_spec", "docs/steps"])
def test_what_nobody_writes_any_more_is_an_orphan_wherever_files_are_written(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "old").write_text("")
    (tmp_path / "docs" / "by-hand.md").parent.mkdir(exist_ok=True)
    (tmp_path / "docs" / "by-hand.md").write_text("")
    assert compare_output(tmp_path, {}).orphans == (f"{folder}/old",)


def test_byte_code_is_no_orphan(tmp_path: Path) -> None:
    (tmp_path / "generated" / "__pycache__").mkdir(parents=True)
    (tmp_path / "generated" / "__pycache__" / "a.pyc").write_bytes(b"")
    assert not compare_output(tmp_path, {})


def test_orphans_go_with_their_empty_directories(tmp_path: Path) -> None:
    write_output(tmp_path, {"generated/a.py": "1", "generated/b.py": "2", "generated/c/d.py": "3"}, _all_missing(3))
    output = {"generated/a.py": "1", "generated/b.py": "2"}
    write_output(tmp_path, output, compare_output(tmp_path, output))
    assert not (tmp_path / "generated" / "c").exists()


def test_files_that_are_right_are_not_touched(tmp_path: Path) -> None:
    output = {"generated/a.py": "1", "generated/b.py": "2"}
    write_output(tmp_path, output, _all_missing(2))
    os.utime(tmp_path / "generated" / "a.py", (1, 1))
    changed = {**output, "generated/b.py": "3"}
    write_output(tmp_path, changed, compare_output(tmp_path, changed))
    assert (tmp_path / "generated" / "a.py").stat().st_mtime == 1


def test_nothing_staged_is_left_behind(tmp_path: Path) -> None:
    write_output(tmp_path, {"generated/a.py": "1"}, _all_missing(1))
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["a.py"]


def test_python_is_formatted_and_freed_of_unused_imports() -> None:
    text = "import os\nimport sys\nx = {'a':sys}\n"
    assert format_python({"a.py": text, "b.md": "x  \n"}) == {"a.py": 'import sys\n\nx = {"a": sys}\n', "b.md": "x  \n"}


def test_python_that_is_none_is_an_error() -> None:
    with pytest.raises(CodegenError, match="failed on the generated code"):
        format_python({"a.py": "def (:\n"})


def test_schema_changed_by_hand_stops_everything(tree: Path) -> None:
    (tree / "schema" / "2025-06-18" / "schema.json").write_text("{}", encoding="utf-8")
    with pytest.raises(PinMismatch, match="nox -s pull -- 2025-06-18"):
        render(tree)


def test_no_schema_at_all_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CodegenError, match="nox -s pull -- REVISION"):
        render(tmp_path)


def test_check_fails_on_a_bare_tree_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _plant_one("2025-06-18", tmp_path)
    assert main(["regen", "--check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "missing: generated/dragoman_spec/v2025_06_18/models.py" in said
    assert "Run `nox -s regen` and commit the result." in said
    assert not (tmp_path / "generated").exists()


@takes_long
def test_check_passes_on_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regen", "--check", "--root", str(ROOT)]) == 0
    assert "up to date" in capsys.readouterr().out


def test_diff_lists_changes_of_pulled_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "2024-11-05", "2025-03-26", "--root", str(ROOT)]) == 0
    assert "AudioContent: added: " in capsys.readouterr().out


def test_diff_with_a_revision_that_was_not_pulled_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "2024-11-05", "2099-01-01", "--root", str(ROOT)]) == 1
    assert "nox -s pull -- 2099-01-01" in capsys.readouterr().err


def _pin_a_next_revision(tree: Path) -> None:
    """A revision after the latest that asks for a decision: an implementation must say its vendor."""
    schema = json.loads((tree / "schema" / LATEST / "schema.json").read_text(encoding="utf-8"))
    schema["$defs"]["Implementation"]["required"].append("vendor")
    schema["$defs"]["Implementation"]["properties"]["vendor"] = {"type": "string"}
    data = json.dumps(schema).encode()
    (tree / "schema" / NEXT).mkdir()
    (tree / "schema" / NEXT / "schema.json").write_bytes(data)
    fixes = (tree / "codegen" / "overlays" / f"{LATEST}.toml").read_text(encoding="utf-8")
    kept = [table for table in fixes.split("\n\n") if table.startswith("[[fix]]")]
    (tree / "codegen" / "overlays" / f"{NEXT}.toml").write_text("\n\n".join(kept) + "\n", encoding="utf-8")
    pins = read_pins(tree / "schema" / "pins.toml")
    pins[NEXT] = Pin(NEXT, "per_request", "elsewhere", "none", "", sha256_hex(data))
    (tree / "schema" / "pins.toml").write_text(write_pins(pins), encoding="utf-8")


def test_undecided_change_stops_regen_and_leaves_a_skeleton(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _pin_a_next_revision(tree)
    assert main(["regen", "--root", str(tree)]) == 1
    assert "Implementation.vendor" in capsys.readouterr().err
    assert 'at = "Implementation.vendor"' in (tree / "codegen" / "overlays" / f"{NEXT}.toml").read_text(
        encoding="utf-8"
    )
    assert not (tree / "generated").exists()


def test_check_leaves_no_skeleton(tree: Path) -> None:
    _pin_a_next_revision(tree)
    before = (tree / "codegen" / "overlays" / f"{NEXT}.toml").read_bytes()
    assert main(["regen", "--check", "--root", str(tree)]) == 1
    assert (tree / "codegen" / "overlays" / f"{NEXT}.toml").read_bytes() == before


@takes_long
def test_accepted_defaults_are_written_down_and_suffice_from_then_on(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _pin_a_next_revision(tree)
    assert main(["regen", "--accept-defaults", "--root", str(tree)]) == 0
    assert "regen: wrote generated/dragoman_spec/v2099_01_01/models.py" in capsys.readouterr().out
    assert main(["regen", "--check", "--root", str(tree)]) == 0


def test_defaults_are_not_accepted_for_a_union_of_methods_that_is_gone(tmp_path: Path) -> None:
    both = {**META, "AskRequest": request("ask"), "TellRequest": request("tell")}
    union = any_of(ref("AskRequest"), ref("TellRequest"))
    older, newer = spec({**both, "ClientRequest": union}), spec({**both, "ClientMessage": union}, NEWER)
    with pytest.raises(UndecidedChange) as caught:
        plan_steps(tmp_path, [(older, newer)], accept_defaults=True)
    assert len(caught.value.changes) == 1
    assert "ClientMessage has methods of it" in caught.value.changes[0]
    assert 'do = ""  # gone' in caught.value.skeleton


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_a_tree_with_one_revision_is_rendered(revision: str, tmp_path: Path) -> None:
    """What overlays of later revisions say is then for nobody; what those of earlier ones say holds on."""
    _plant_one(revision, tmp_path)
    found = render(tmp_path)
    assert f"generated/dragoman_spec/{module_name(revision)}/models.py" in found
    assert not any(path.endswith("steps.py") for path in found)
    methods = f"generated/dragoman_spec/{module_name(revision)}/methods.py"
    assert found[methods] == (ROOT / methods).read_text("utf-8")


def _plant_one(revision: str, root: Path) -> None:
    """Copy what regen reads for one revision."""
    shutil.copytree(ROOT / "codegen" / "overlays", root / "codegen" / "overlays")
    shutil.copytree(ROOT / "schema" / revision, root / "schema" / revision)
    head, *pins = (ROOT / "schema" / "pins.toml").read_text("utf-8").split("\n[")
    (pin,) = (pin for pin in pins if pin.startswith(f'"{revision}"'))
    (root / "schema" / "pins.toml").write_text(f"{head}\n[{pin}", encoding="utf-8")


def test_templates_only_lay_out() -> None:
    """What is decided is decided in Python; a template is a page."""
    templates = list((ROOT / "codegen" / "templates").rglob("*.jinja*"))
    long = {path.name: count for path in templates if (count := len(path.read_text("utf-8").splitlines())) > 60}
    assert len(templates) > 10
    assert long == {}
