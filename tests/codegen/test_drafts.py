"""What upstream really did, taken as releases: each state is planned, spelled and run on what came before it.

No state ends in a traceback, makes a valid frame invalid, or refuses one that no entry and no missing method explains.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.errors import UnknownSchemaForm
from tests.support.drafts import ARE_THERE, State, as_next_release, as_next_state, state_of, states, write_package
from tests.support.judge import ROOT
from tests.support.profile import THOROUGH, rounds
from tests.support.releases import NEXT, Made, random_frames

pytestmark = pytest.mark.skipif(not ARE_THERE, reason="upstream's drafts are not here: run `nox -s pull -- --proofs`")
SEEDS = rounds(1, 10)

TABLE = {
    line.split("`")[1]: [cell.strip() for cell in line.split("|")[1:]]
    for line in (ROOT / "docs" / "drafts.md").read_text("utf-8").partition("## Each state")[2].splitlines()
    if line.startswith("| `")
}
"""What `docs/drafts.md` says of each state; `python -m tests.docs.drafts` writes it anew."""
COMMITS = list(TABLE)
NUMBERS = range(len(COMMITS)) if THOROUGH else range(7, len(COMMITS), 24)
"""Which states are tried."""
CONTRADICTION = "5c4a992f"
"""A state in which every result must and may not have its fields: all objects were closed, those of the base, too."""
BROKEN = ["0d217bba", "888f87a6"]
"""States in which some value must be two things at once: see `_fixes` in `tests/support/drafts.py`."""


def test_every_state_is_there() -> None:
    assert [state.commit for state in states()] == COMMITS
    assert len(COMMITS) == 178
    assert [state.commit for state in states() if state.fixes] == BROKEN


@pytest.mark.parametrize("number", NUMBERS)
def test_state_as_the_release_after_the_one_before(number: int) -> None:
    if COMMITS[number] == CONTRADICTION:
        pytest.skip("no value is valid in it: see below")
    there = as_next_release(state_at(number))
    assert TABLE[COMMITS[number]][3:5] == [str(len(there.asked)), str(len(there.overlay.splitlines()))]
    check(there)


@pytest.mark.parametrize("number", NUMBERS)
def test_state_as_the_release_after_the_state_before(number: int) -> None:
    if number and CONTRADICTION not in COMMITS[number - 1 : number + 1]:
        check(as_next_state(state_at(number - 1), state_at(number)))


READ = """
import importlib, json, sys
import dragoman_spec as spec

(revision,) = spec.REVISIONS
package = f"dragoman_spec.v{revision.replace('-', '_')}"
for name in ("models", "methods", "client"):
    importlib.import_module(f"{package}.{name}")
wrong = []
for definition, value in json.load(sys.stdin):
    adapter = spec.adapter(revision, definition)
    found = adapter.dump_python(adapter.validate_python(value))
    if found != value:
        wrong.append([definition, value, found])
print(json.dumps([revision, wrong]))
"""


@pytest.mark.parametrize("number", NUMBERS if THOROUGH else NUMBERS[::4])
def test_models_of_a_state_read_its_frames_and_write_them_as_they_were(number: int, tmp_path: Path) -> None:
    if COMMITS[number] == CONTRADICTION:
        pytest.skip("no value is valid in it")
    side = write_package(state_at(number), tmp_path)
    frames = [
        (method.request if "method" in frame else method.results[0], frame if "method" in frame else frame["result"])
        for name, method in side.spec.methods.items()
        for frame in random_frames(side, name, random.Random(name))
    ]
    assert len(frames) > len(side.spec.methods)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "generated")}
    command = [sys.executable, "-c", READ]
    done = subprocess.run(
        command, input=json.dumps(frames), env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [NEXT, []]


def test_a_state_that_contradicts_itself_is_named() -> None:
    with pytest.raises(UnknownSchemaForm, match=r"CallToolResult: .* both asks for content and forbids it"):
        as_next_release(state_of(CONTRADICTION))


def test_what_no_value_can_be_is_named() -> None:
    """An object and an integer at once: upstream's defect, which a `[[fix]]` repairs."""
    for commit in BROKEN:
        with pytest.raises(UnknownSchemaForm, match=r"/ttl/allOf/1: no rule for an allOf of"):
            as_next_release(replace(state_of(commit), fixes=""))


def state_at(number: int) -> State:
    return state_of(COMMITS[number])


def check(there: Made) -> None:
    """Nothing is asked twice, and no valid frame comes to harm."""
    questions = [str(change) for change in there.asked]
    assert sorted(set(questions)) == sorted(questions)
    assert list(there.broken(SEEDS)) == []
