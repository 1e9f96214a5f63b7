"""`python -m codegen regen`: everything that is generated, from `schema/` and `codegen/overlays/`.

`render` is pure: the same schemas and overlays give the same bytes, with no date and no absolute path in them.
Formatting is part of rendering, so `--check` compares what it would write with what is there. Only `write_output`
touches the tree. Must not live here: what any file says. Called by `codegen.__main__`, nox and the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from codegen.bindings import Beside, render_models
from codegen.chains import spare_copies
from codegen.clients import render_clients
from codegen.copies import copy_support
from codegen.counterparts import find_counterparts
from codegen.diff import render_changes
from codegen.docs import render_docs
from codegen.errors import CodegenError, StaleOutput, UndecidedChange
from codegen.fact_entries import read_entries
from codegen.facts import missing_facts, source_of
from codegen.load import spec_of, union_names
from codegen.model import Spec
from codegen.normalise import read_normalised
from codegen.nulls import render_nulls
from codegen.overlay import parse_overlay, read_overlay
from codegen.pins import check_pins
from codegen.protocol import filled_in, is_whole, read_prose
from codegen.registry import NOTICE, render_registry
from codegen.skeleton import add_entries, has_defaults, undecided_error
from codegen.step_plan import StepPlan, plan_step
from codegen.steps import render_steps
from codegen.words import check_words, missing_words, read_words

GENERATED = "generated"
# Directories that hold generated files and nothing else: what is there and not rendered is an orphan.
OWNED = (GENERATED, "docs/steps")
IGNORED_PARTS = {"__pycache__"}
RUFF = (sys.executable, "-m", "ruff")
RUFF_CONFIG = ("--isolated", "--quiet", "--no-cache", "--line-length=120", "--target-version=py311")
LINT = ("--fix-only", "--select=F401,I,UP,E713", "--config=lint.isort.known-first-party=['dragoman_spec']")


@dataclass(frozen=True, slots=True)
class Difference:
    """What the tree lacks of the output, as paths below the root, in order."""

    stale: tuple[str, ...]
    missing: tuple[str, ...]
    orphans: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.stale or self.missing or self.orphans)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `regen`."""
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the tree is not what would be written"
    )
    parser.add_argument(
        "--accept-defaults",
        action="store_true",
        help="take the safe default for every undecided change and mark it unreviewed",
    )
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="the repository (default: here)")


def run(args: argparse.Namespace) -> int:
    """Regenerate or check as the command line says, and print what happened.

    Raises:
        CodegenError: The schemas or overlays do not allow it, or with `--check` the tree is not up to date.
    """
    try:
        output = render(args.root, accept_defaults=args.accept_defaults)
    except UndecidedChange as error:
        if not args.check:
            _replace(args.root / error.overlay, error.skeleton)
        raise
    for place in missing_words(read_words(), [read_normalised(args.root, revision) for revision in _pinned(args.root)]):
        print(f"regen: codegen/data/words.toml has no words for {place}")
    for place in _unplaced(args.root):
        print(f"regen: codegen/data/protocol.toml does not place {place}, so nobody acts on it")
    difference = compare_output(args.root, output)
    if args.check:
        if difference:
            raise StaleOutput(difference.stale, difference.missing, difference.orphans)
        print(f"regen: {len(output)} generated files are up to date")
        return 0
    write_output(args.root, output, difference)
    for verb, paths in (("wrote", (*difference.missing, *difference.stale)), ("removed", difference.orphans)):
        for path in paths:
            print(f"regen: {verb} {path}")
    print(f"regen: {len(output)} generated files")
    return 0


def _pinned(root: Path) -> list[str]:
    return list(check_pins(root / "schema"))


def _unplaced(root: Path) -> list[str]:
    """What the schemas have and the table of facts has no place for."""
    prose, sources = read_prose(), []
    for revision, pin in check_pins(root / "schema").items():
        schema = read_normalised(root, revision)
        sources.append(source_of(spec_of(schema, union_names(root, revision)), schema, pin.era, prose))
    return missing_facts(sources, read_entries())


def render(root: Path, *, accept_defaults: bool = False) -> dict[str, str]:
    """Render every generated file.

    Args:
        root: A directory with `schema/` and `codegen/overlays/`.
        accept_defaults: Take the safe default for changes that no overlay decides.

    Returns:
        The text of each file by its path below the root, with `/` between the parts.

    Raises:
        CodegenError: A schema or an overlay does not allow it.
    """
    pins = check_pins(root / "schema")
    if not pins:
        raise CodegenError(f"{root / 'schema'} pins no revision. Run `nox -s pull -- REVISION` first.")
    digests = {revision: pin.sha256 for revision, pin in pins.items()}
    schemas = [read_normalised(root, revision) for revision in pins]
    specs = [spec_of(schema, union_names(root, schema.revision)) for schema in schemas]
    plans, overlays = plan_steps(root, specs, accept_defaults=accept_defaults)
    rules = [rule for revision in pins for rule in read_overlay(root, revision).rules]
    eras = {revision: pin.era for revision, pin in pins.items()}
    words = read_words()
    if is_whole(pins):
        check_words(words, schemas)
    prose = read_prose()
    fills = {schema.revision: filled_in(schema, prose) for schema in schemas}
    beside = Beside(words, fills, find_counterparts(schemas, plans))
    package = render_models(schemas, digests, beside) | render_registry(specs, schemas, eras, digests, words)
    package |= copy_support() | render_clients(specs, schemas, eras, NOTICE)
    package |= render_steps(plans, rules, digests) | render_nulls(specs, digests) | render_changes(specs, digests)
    output = {f"{GENERATED}/{path}": text for path, text in package.items()}
    return format_python(output) | render_docs(plans) | overlays


def plan_steps(root: Path, specs: Sequence[Spec], *, accept_defaults: bool) -> tuple[list[StepPlan], dict[str, str]]:
    """Plan every step.

    Returns:
        The plans, and the overlays that change, by path below the root: with *accept_defaults*, those that got entries.

    Raises:
        UndecidedChange: A step has changes that no entry decides; the error has the overlay with a skeleton of the
        entries.
    """
    plans, overlays = [], {}
    for older, newer in pairwise(specs):
        plan = plan_step(older, newer, read_overlay(root, newer.revision))
        if plan.undecided:
            path = plan.overlay.path
            file = root / path
            before = file.read_text(encoding="utf-8") if file.is_file() else ""
            accepted = accept_defaults and has_defaults(plan.undecided)
            text = add_entries(before, plan, complete=accepted)
            if not accepted:
                raise undecided_error(plan, text)
            overlays[path] = text
            plan = plan_step(older, newer, parse_overlay(newer.revision, text))
        plans.append(plan)
    return spare_copies(plans), overlays


def format_python(output: Mapping[str, str]) -> dict[str, str]:
    """Run the Python files through ruff, all at once; the others stay as they are."""
    python = [path for path in sorted(output) if path.endswith(".py")]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for path in python:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(output[path], encoding="utf-8", newline="\n")
        for command in (("check", *LINT), ("format",)):
            done = subprocess.run(
                [*RUFF, *command, *RUFF_CONFIG, "."],
                cwd=place,
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
            )
            if done.returncode:
                raise CodegenError(f"ruff {command[0]} failed on the generated code:\n{done.stdout}{done.stderr}")
        formatted = {path: (place / path).read_text(encoding="utf-8") for path in python}
    return {path: formatted.get(path, output[path]) for path in sorted(output)}


def compare_output(root: Path, output: Mapping[str, str]) -> Difference:
    """Compare the tree with what `render` gave."""
    present = {path for owned in OWNED for path in _files(root, owned)} | {
        path for path in output if (root / path).is_file()
    }
    return Difference(
        stale=tuple(sorted(path for path in output.keys() & present if _read(root / path) != output[path])),
        missing=tuple(sorted(output.keys() - present)),
        orphans=tuple(sorted(present - output.keys())),
    )


def write_output(root: Path, output: Mapping[str, str], difference: Difference) -> None:
    """Make the tree what `render` gave: each file replaced in one go, orphans removed, the rest not touched."""
    for path in (*difference.missing, *difference.stale):
        _replace(root / path, output[path])
    for path in difference.orphans:
        (root / path).unlink()
        for parent in (root / path).relative_to(root).parents:
            with contextlib.suppress(OSError):
                (root / parent).rmdir()


def _replace(target: Path, text: str) -> None:
    """Write a file in one go."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(f".{target.name}.new")
    staged.write_text(text, encoding="utf-8", newline="\n")
    os.replace(staged, target)


def _files(root: Path, owned: str) -> list[str]:
    found = (path.relative_to(root) for path in (root / owned).rglob("*") if path.is_file())
    return [path.as_posix() for path in found if not IGNORED_PARTS & set(path.parts)]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
