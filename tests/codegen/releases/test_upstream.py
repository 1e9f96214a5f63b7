"""The newest bytes of upstream, released again under a new date: nothing is asked, and nothing but the date changes.

As a maintainer would do it: pulled from a mirror on disk and rendered, models and all. Only where `UPSTREAM` has
the bytes as upstream published them.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.maintain.pull import pull
from dragoman_spec import LATEST
from tests.support.judge import UPSTREAM, same
from tests.support.profile import takes_long
from tests.support.releases import NEXT, asked, made, random_frames
from tests.support.subjects import named

ROOT = Path(__file__).resolve().parents[3]
BYTES = UPSTREAM / LATEST / "schema.json"
pytestmark = pytest.mark.skipif(
    not BYTES.is_file(), reason="upstream's files are not here: run `nox -s pull -- --proofs`"
)

THERE = """
import dragoman_spec as spec
from dragoman_spec import LATEST, REVISIONS
frame = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"name": "Bob", "half": 0.5}}}
before = REVISIONS[-2]
done = spec.convert(spec.load(LATEST).ElicitResult(action="accept", content={"name": "Bob", "half": 0.5}), to=before)
assert done.model_dump() == frame["result"], done
tool = spec.load(before).Tool.model_validate({"name": "t", "inputSchema": {"type": "object"}})
assert spec.convert(tool, to=LATEST).model_dump() == tool.model_dump()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What regen reads, with the newest bytes pulled a second time."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "schema", tree / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", tree / "codegen" / "overlays")
    place = tmp_path_factory.mktemp("mirror")
    (place / "schema" / NEXT).mkdir(parents=True)
    shutil.copy(BYTES, place / "schema" / NEXT / "schema.json")
    pull(NEXT, origin=str(place), schema_dir=tree / "schema", progress=io.StringIO())
    return tree


@takes_long
def test_release_of_the_same_bytes_asks_nothing(tree: Path) -> None:
    assert main(["regen", "--root", str(tree)]) == 0
    assert not (tree / "codegen" / "overlays" / f"{NEXT}.toml").exists()
    environment = {**os.environ, "PYTHONPATH": str(tree / "generated")}
    done = subprocess.run([sys.executable, "-c", THERE], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_release_of_the_same_bytes_changes_no_frame_but_for_its_date(tree: Path) -> None:
    from tests.support.judge import canonical

    schema = canonical(LATEST)
    assert asked(schema) == []
    there = made(schema)
    for direction, source, target in (("up", there.older, NEXT), ("down", there.newer, LATEST)):
        for name in source.spec.methods:
            for seed in range(6):
                for frame in random_frames(source, name, random.Random(f"{name}{seed}")):
                    out = there.translate(frame, direction, name)
                    assert out.losses == ()
                    assert out.frame is frame or same(out.frame, named(frame, target)), frame
