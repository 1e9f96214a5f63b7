"""A made-up next revision in which names have changed: what the generator and the runtime follow by themselves.

The generated package is used in a process of its own, from a temporary directory.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.maintain.pull import pull
from tests.codegen.renamed_cases import CASES
from tests.support.next_renames import METHODS, NEXT, write_release

ROOT = Path(__file__).resolve().parents[2]
OVERLAY = f"codegen/overlays/{NEXT}.toml"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the new revision, generated."""
    made = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "schema", made / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", made / "codegen" / "overlays")
    mirror = tmp_path_factory.mktemp("mirror")
    overlay = write_release(mirror)
    pull(NEXT, origin=str(mirror), schema_dir=made / "schema", progress=io.StringIO())
    (made / OVERLAY).write_text(overlay, encoding="utf-8")
    assert main(["regen", "--root", str(made)]) == 0
    return made


def run_there(tree: Path, code: str) -> Any:
    """Run code with the tree's own `dragoman_spec`; return the JSON that it prints last."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'generated'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", f"import json\nimport dragoman_spec as spec\n{code}"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def told(tree: Path, expression: str) -> Any:
    return run_there(tree, f"new = spec.facts({NEXT!r}); print(json.dumps({expression}))")


def test_a_renamed_method_needs_the_capability_of_its_old_name(tree: Path) -> None:
    needed = run_there(
        tree,
        f"methods = spec.load({NEXT!r}).METHODS; "
        f"print(json.dumps({{name: methods[name].capability for name in {list(METHODS.values())!r}}}))",
    )
    assert needed == {
        "completion/suggest": "completions",
        "prompts/render": "prompts",
        "tools/run": "tools",
        "subscriptions/open": None,
        "notifications/tools/changed": "tools.listChanged",
        "notifications/log": "logs",
    }


def test_facts_about_a_renamed_method_are_about_its_new_name(tree: Path) -> None:
    assert told(tree, "dict(new.headers['name'].members)") == {
        "tools/run": "name", "prompts/render": "name", "resources/read": "uri",
    }  # fmt: skip
    assert told(tree, "new.announced['notifications/tools/changed']") == "tools.listChanged"
    assert told(tree, "new.subscriptions['toolsListChanged']") == "notifications/tools/changed"
    assert told(tree, "sorted(new.input_required)") == ["prompts/render", "resources/read", "tools/run"]


def test_the_facts_say_how_methods_were_called_first(tree: Path) -> None:
    names = told(tree, "dict(new.renamed)")
    assert sorted(names.values()) == sorted(METHODS.values())
    assert names["completion/complete"] == "completion/suggest"


def test_nobody_is_asked_for_words_that_there_are_under_the_old_name(tree: Path) -> None:
    words = tomllib.loads((tree / OVERLAY).read_text("utf-8"))["words"]
    assert words == {"definition": {"CallToolResult": {"form": ""}, "ServerCapabilities": {"logs": ""}}}


def test_the_typed_client_calls_a_renamed_method_by_its_python_name(tree: Path) -> None:
    client = (tree / "generated" / "dragoman_spec" / f"v{NEXT.replace('-', '_')}" / "client.py").read_text("utf-8")
    assert "async def call(" in client
    assert "-> models.GetPromptResult:" in client


@pytest.mark.parametrize("case", CASES)
def test_the_runtime_follows_new_names(tree: Path, case: str) -> None:
    assert run_there(tree, f"from tests.codegen.renamed_cases import CASES; CASES[{case!r}](); print('true')") is True
