"""The modules of the page that draw nothing, in node's own test runner: `tests/inspect/page/*.test.mjs`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.inspect.site import read_reasons
from dragoman_spec import REVISIONS

HERE = Path(__file__).parent / "page"
MODULES = Path(__file__).parents[2] / "runtime" / "dragoman" / "inspect" / "page"
NODE = shutil.which("node")
PATIENCE_S = 120


@pytest.mark.skipif(NODE is None, reason="needs node")
@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*.test.mjs")))
def test_the_page(name: str, tmp_path: Path) -> None:
    assert NODE is not None
    (tmp_path / "page").mkdir()
    for module in MODULES.glob("*.js"):  # as modules, which a folder says in its `package.json`
        shutil.copy(module, tmp_path / "page")
    (tmp_path / "page" / "package.json").write_text('{"type": "module"}')
    for one, other in ((REVISIONS[-2], REVISIONS[0]), (REVISIONS[0], REVISIONS[-1]), (REVISIONS[-1], REVISIONS[-2])):
        (tmp_path / f"{one} {other}.json").write_text(json.dumps(list(read_reasons(one, other))))
    told = {**os.environ, "PAGE": str(tmp_path / "page"), "REASONS": str(tmp_path)}
    done = subprocess.run(
        [NODE, "--test", str(HERE / name)], env=told, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout.decode()
