"""`python -m codegen regen`: everything that is generated, from `schema/` and `codegen/overlays/`.

`render` is pure: the same schemas and overlays give the same bytes, with no date and no absolute path in them.
Formatting is part of rendering, so `--check` compares what it would write with what is there. Only `write_output`
touches the tree; what any file says is decided elsewhere.
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
from pathlib import Path

from codegen.ask.blanks import add_blanks, blanks_of
from codegen.ask.skeleton import add_entries, has_defaults, undecided_error
from codegen.errors import CodegenError, StaleOutput, UndecidedChange
from codegen.plan.chains import spare_copies
from codegen.plan.plan import StepPlan, plan_step
from codegen.read.fact_entries import entries_of, said_of
from codegen.read.facts import Source, check_entries, check_era, missing_facts, source_of
from codegen.read.load import spec_of, union_names
from codegen.read.model import Spec
from codegen.read.normalise import read_normalised
from codegen.read.overlay import Tables, overlay_path, parse_overlay, read_overlay, read_text, read_until
from codegen.read.pins import Pin, check_pins, predecessors
from codegen.read.protocol import filled_in
from codegen.read.words import Words, check_words, words_of
from codegen.write.bindings import Beside, render_models
from codegen.write.changes import render_changes
from codegen.write.clients import render_clients
from codegen.write.copies import copy_support
from codegen.write.counterparts import find_counterparts
from codegen.write.docs import render_docs
from codegen.write.nulls import render_nulls
from codegen.write.reasons import render_decisions
from codegen.write.registry import NOTICE, render_registry
from codegen.write.steps import render_steps

GENERATED = "generated"
# Directories that hold generated files and nothing else: what is there and not rendered is an orphan.
OWNED = (GENERATED, "docs/steps")
IGNORED_PARTS = {"__pycache__"}
RUFF = (sys.executable, "-m", "ruff")
RUFF_CONFIG = ("--isolated", "--quiet", "--no-cache", "--line-length=120", "--target-version=py311")
# `datetime.UTC` (UP017) is not in Python 3.10, which the bindings run on.
LINT = (
    "--fix-only",
    "--select=F401,I,UP,E713",
    "--ignore=UP017",
    "--config=lint.isort.known-first-party=['dragoman_spec']",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """What the tree lacks of the output, as paths below the root, in order."""

    stale: tuple[str, ...]
    missing: tuple[str, ...]
    orphans: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.stale or self.missing or self.orphans)


@dataclass(frozen=True, slots=True)
class Tree:
    """What is read of a repository: the pinned revisions, oldest first, and what overlays say of them, by revision.

    `before` has the revision from which the step into each leads; only the oldest has none.
    """

    root: Path
    pins: Mapping[str, Pin]
    before: Mapping[str, str]
    sources: tuple[Source, ...]
    overlays: Mapping[str, Tables]
    words: Words


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
    tree = read_tree(args.root)
    try:
        output = render_tree(tree, accept_defaults=args.accept_defaults)
    except UndecidedChange as error:
        if not args.check:
            _replace(args.root / error.overlay, error.skeleton)
        raise
    asked = _ask_for_words(tree, output)
    output |= {} if args.check else asked
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


def read_tree(root: Path) -> Tree:
    """Read the schemas and the overlays of a repository.

    Raises:
        CodegenError: There are none, or one says what cannot be.
    """
    pins = check_pins(root / "schema")
    if not pins:
        raise CodegenError(f"{root / 'schema'} pins no revision. Run `nox -s pull -- REVISION` first.")
    overlays = dict(read_until(root / overlay_path(max(pins))))
    entries = [
        entry for revision, tables in overlays.items() for entry in entries_of(overlay_path(revision), revision, tables)
    ]
    before, lines, sources = predecessors(pins), dict[str, set[str]](), list[Source]()
    for revision, pin in pins.items():
        lines[revision] = {revision} | lines.get(before.get(revision, ""), set())
        of_line = [entry for entry in entries if entry.revision not in pins.keys() - lines[revision]]
        schema = read_normalised(root, revision)
        check_words(overlays.get(revision, {}), schema)
        said = said_of(of_line, revision, pin.era)
        sources.append(source_of(spec_of(schema, union_names(root, revision)), schema, pin.era, said))
        check_era(sources[-1])
        check_entries(sources[-1], of_line)
    return Tree(root, pins, before, tuple(sources), overlays, words_of(list(overlays.items())))


def _ask_for_words(tree: Tree, output: Mapping[str, str]) -> dict[str, str]:
    """Say what nobody has said of the revisions, and return the overlays with blanks to fill in."""
    overlays, known = {}, set[tuple[str, ...]]()
    for source in tree.sources:
        path = overlay_path(source.revision)
        for place in missing_facts(source):
            print(f"regen: {path} does not place {place}, so nobody acts on it")
        blanks = blanks_of(source.schema, tree.words, known)
        known |= {blank.place for blank in blanks}
        if blanks:
            words = sum(blank.place[0] == "words" for blank in blanks)
            said = {"words yet for {} methods, definitions and fields": words}
            said["order for the fields of {} definitions"] = len(blanks) - words
            lacks = " and no ".join(what.format(count) for what, count in said.items() if count)
            print(f"regen: {path} has no {lacks}; lines for them have been added")
            text = output.get(path) or read_text(tree.root / path)
            overlays[path] = add_blanks(text, blanks)
    return overlays


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
    return render_tree(read_tree(root), accept_defaults=accept_defaults)


def render_tree(tree: Tree, *, accept_defaults: bool) -> dict[str, str]:
    """Render every generated file of what has been read; as `render`."""
    digests = {revision: pin.sha256 for revision, pin in tree.pins.items()}
    schemas, specs = [source.schema for source in tree.sources], [source.spec for source in tree.sources]
    by_revision = {spec.revision: spec for spec in specs}
    pairs = [(by_revision[older], by_revision[newer]) for newer, older in tree.before.items()]
    plans, overlays = plan_steps(tree.root, pairs, accept_defaults=accept_defaults)
    rules = [rule for revision in tree.pins for rule in read_overlay(tree.root, revision).rules]
    fills = {source.revision: filled_in(source.schema, source.said) for source in tree.sources}
    beside = Beside(tree.words, fills, find_counterparts(schemas, plans), tree.before)
    package = render_models(schemas, digests, beside) | render_registry(
        tree.sources, tree.before, digests, rules, tree.words
    )
    package |= copy_support() | render_clients(tree.sources, NOTICE)
    package |= render_steps(plans, digests) | render_nulls(specs, digests) | render_changes(pairs, digests)
    package |= render_decisions(specs, plans, digests)
    output = {f"{GENERATED}/{path}": text for path, text in package.items()}
    return format_python(output) | render_docs(plans) | overlays


def plan_steps(
    root: Path, pairs: Sequence[tuple[Spec, Spec]], *, accept_defaults: bool
) -> tuple[list[StepPlan], dict[str, str]]:
    """Plan the step from the first to the second of each pair.

    Returns:
        The plans, and the overlays that change, by path below the root: with *accept_defaults*, those that got entries.

    Raises:
        UndecidedChange: A step has changes that no entry decides; the error has the overlay with a skeleton of the
        entries.
    """
    plans, overlays = list[StepPlan](), dict[str, str]()
    for older, newer in pairs:
        plan = plan_step(older, newer, read_overlay(root, newer.revision))
        while plan.undecided:
            path = plan.overlay.path
            before = overlays.get(path) or read_text(root / path)
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
