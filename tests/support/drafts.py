"""What upstream really did: every state of its `schema/draft`, taken as the next release.

Each state is tried in two ways: on the release before it, in a tree without the later revisions, and on the state
before it. What an overlay leaves undecided has the safe default. Frames of the methods that the step touches are made
from the state's own schema and judged by an independent validator on it. Only where `UPSTREAM` has them, as files or
in an archive.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from codegen.errors import NotASchema
from codegen.maintain.proofs import SHORT, read_proofs
from codegen.maintain.pull import derive_era
from codegen.maintain.regen import compare_output, render, write_output
from codegen.read.canonical import canonical_text, parse_schema
from codegen.read.fixes import apply_fixes
from codegen.read.load import spec_of, union_names
from codegen.read.naming import name_definitions
from codegen.read.normalise import read_normalised
from codegen.read.overlay import overlay_path
from codegen.read.pins import Pin, sha256_hex, write_pins
from dragoman_spec import REVISIONS
from tests.support.judge import ROOT, UPSTREAM
from tests.support.releases import NEXT, Made, Schema, Side, made_of

ARCHIVE = UPSTREAM / "drafts.tar.xz"
FOLDER = UPSTREAM / "drafts"
ARE_THERE = ARCHIVE.is_file() or FOLDER.is_dir()
BEFORE = "2027-01-01"


@dataclass(frozen=True)
class State:
    """One state of the draft: the commit that made it, and the release before."""

    commit: str
    date: str
    schema: Schema = field(repr=False, hash=False, compare=False)
    fixes: str = ""
    """Entries for defects of the state that leave no value valid."""

    @property
    def predecessor(self) -> str:
        return max(revision for revision in REVISIONS if revision < self.date)

    def __str__(self) -> str:
        return self.commit


@cache
def states() -> tuple[State, ...]:
    """The states that differ in more than prose from the one before, oldest first."""
    found: list[State] = []
    for commit in _dates():
        try:
            state = state_of(commit)
        except NotASchema:
            continue  # an empty file, or a reference to what is not there: `pull` says so and changes nothing
        if not any(state.schema == other.schema for other in found):
            found.append(state)
    return tuple(found)


@cache
def state_of(commit: str) -> State:
    """One state; all of them are far more to read."""
    schema = json.loads(canonical_text(parse_schema(_files()[commit], commit)))
    return State(commit, _dates()[commit], schema, _fixes(schema))


@cache
def _dates() -> dict[str, str]:
    """The date of each commit, oldest first."""
    return {proof.commit[:SHORT]: proof.date for proof in read_proofs() if proof.date}


@cache
def _files() -> dict[str, bytes]:
    """What there is, by its names without their ends; an archive is read in one go, as it is packed."""
    found = {path.stem: path.read_bytes() for path in FOLDER.glob("*.json")}
    if found:
        return found
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                found[Path(member.name).stem] = file.read()
    return found


def _fixes(schema: Schema) -> str:
    """Repair a time to live that upstream's generator has made of `integer & { minimum: 0 }`."""
    text = ""
    for name, node in sorted(schema["$defs"].items()):
        found = node.get("properties", {}).get("ttl", {})
        if "allOf" in found:
            minimum = '{ const = 0, type = "integer" }'
            text += f"""
[[fix]]
name = "so"
pointer = "/$defs/{name}/properties/ttl"
replace = {{ type = "integer", minimum = 0 }}
reason = "No value is an object and an integer."

[fix.expect]
allOf = [{{ type = "object", properties = {{ minimum = {minimum} }}, required = ["minimum"] }}, {{ type = "integer" }}]
"""
    return text


def as_next_release(state: State, overlay: str = "") -> Made:
    """A state as the release after the one before it."""
    return _made(state.predecessor, {NEXT: state}, (state.predecessor, NEXT), overlay)


def as_next_state(before: State, state: State, overlay: str = "") -> Made:
    """A state as the release after the state before it."""
    return _made(state.predecessor, {BEFORE: before, NEXT: state}, (BEFORE, NEXT), overlay)


def write_package(state: State, root: Path) -> Side:
    """Write the generated package of a tree that has this state alone, below what overlays of earlier releases say."""
    file, text = root / overlay_path(NEXT), json.dumps(state.schema)
    file.parent.mkdir(parents=True)
    for revision in (revision for revision in REVISIONS if revision <= state.predecessor):
        shutil.copy(ROOT / overlay_path(revision), root / overlay_path(revision))
    file.write_text(state.fixes, encoding="utf-8")
    (root / "schema" / NEXT).mkdir(parents=True)
    (root / "schema" / NEXT / "schema.json").write_text(text, encoding="utf-8")
    era = derive_era(frozenset(state.schema["$defs"]))
    pin = Pin(NEXT, era, "schema/draft", state.commit, "", sha256_hex(text.encode()))
    (root / "schema" / "pins.toml").write_text(write_pins({NEXT: pin}), encoding="utf-8")
    output = render(root)
    write_output(root, output, compare_output(root, output))
    return _side(root, NEXT)


def _made(latest: str, states: Mapping[str, State], step: tuple[str, str], overlay: str) -> Made:
    """The step between two revisions of a tree that ends with *latest* and *states*."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "codegen" / "overlays").mkdir(parents=True)
        for revision in (revision for revision in REVISIONS if revision <= latest):
            shutil.copytree(ROOT / "schema" / revision, root / "schema" / revision)
            if (file := ROOT / overlay_path(revision)).is_file():
                shutil.copy(file, root / overlay_path(revision))
        for revision, state in states.items():
            (root / "schema" / revision).mkdir()
            (root / "schema" / revision / "schema.json").write_text(json.dumps(state.schema), encoding="utf-8")
            text = state.fixes + (overlay if revision == step[1] else "")
            (root / overlay_path(revision)).write_text(text, encoding="utf-8")
        older, newer = (_side(root, revision) for revision in step)
    return made_of(older, newer, overlay)


def _side(root: Path, revision: str) -> Side:
    normal, file = read_normalised(root, revision), root / overlay_path(revision)
    schema = json.loads((root / "schema" / revision / "schema.json").read_text(encoding="utf-8"))
    fixed = name_definitions(apply_fixes(schema, file), file).schema
    return Side(fixed, spec_of(normal, union_names(root, revision)), normal)
