"""`dragoman diff`: what changed between two revisions, as derived from their schemas.

Shows what the generator found, `CHANGES` of every step on the way, and the method tables. Knows no revision and no
definition by name; imports no pydantic. Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import groupby
from typing import Any, Final

import dragoman_spec
from dragoman.cli.ink import REVISIONS, Style, write_painted
from dragoman.cli.options import revision
from dragoman.cli.screen import columns, fit, print_json
from dragoman_spec.revisions import steps_between

INVERSES: Final = {
    "added": "removed",
    "removed": "added",
    "became required": "became optional",
    "became optional": "became required",
}
"""What a change is called by someone who goes from the newer revision to the older; other words hold both ways."""

BECAME: Final = " became "
"""Stands between the old and the new type in the detail of a change."""

SIGNS: Final = {"added": "+", "removed": "-"}
OTHER_SIGN: Final = "~"

_MARKS: Final = {r"^ +\+.*": Style.GOOD, "^ +-.*": Style.LOSS, "^Methods": Style.HEADING, **REVISIONS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `diff`."""
    parser.add_argument("source", type=revision, metavar="REV", help="the revision to come from")
    parser.add_argument("target", type=revision, metavar="REV", help="the revision to go to, newer or older")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.epilog = f"Revisions: {', '.join(dragoman_spec.REVISIONS)}."


def run(args: argparse.Namespace) -> int:
    """Print what changes from the first revision to the second."""
    difference = diff(args.source, args.target)
    if args.json:
        print_json(difference)
    else:
        write_painted(text(difference, columns()), _MARKS)
    return 0


def diff(source: str, target: str) -> dict[str, Any]:
    """Tell what changes between two revisions, as a JSON object.

    Returns:
        `from`, `to`, `methods` with sorted `added`, `removed` and `changed`, and `changes`: one object each with
        `from` and `to` of its step, `definition`, `pointer`, `change` and `detail`, in the order they are walked.
    """
    return {
        "from": source,
        "to": target,
        "methods": diff_methods(dragoman_spec.load(source).METHODS, dragoman_spec.load(target).METHODS),
        "changes": [change for pair in steps_between(source, target) for change in step_changes(*pair)],
    }


def diff_methods(source: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, list[str]]:
    """Compare two method tables by name, kind and sender."""
    return {
        "added": sorted(target.keys() - source.keys()),
        "removed": sorted(source.keys() - target.keys()),
        "changed": sorted(name for name in source.keys() & target.keys() if _role(source[name]) != _role(target[name])),
    }


def step_changes(source: str, target: str) -> list[dict[str, str]]:
    """Return the changes between two neighbours; towards the older one as they look from there."""
    newer = max(source, target)
    module = import_module(f"{dragoman_spec.load(newer).__name__}.changes")
    changes = module.CHANGES if newer == target else [_inverted(change) for change in module.CHANGES]
    return [{"from": source, "to": target, **change} for change in changes]


def _inverted(change: Mapping[str, str]) -> dict[str, str]:
    before, became, after = change["detail"].partition(BECAME)
    detail = f"{after}{became}{before}" if became else change["detail"]
    return {**change, "change": INVERSES.get(change["change"], change["change"]), "detail": detail}


def text(difference: Mapping[str, Any], width: int | None = None) -> str:
    """Lay a difference out for a person; on a terminal, in lines that fit."""
    source, target = difference["from"], difference["to"]
    lines = [f"{source} to {target}"]
    if source > target:
        lines.append(f"(backwards: added means that {target} has it and {source} does not)")
    methods = [(verb, name) for verb, names in difference["methods"].items() for name in names]
    if methods:
        lines += ["", "Methods", *(f"  {_sign(verb)} {name}" for verb, name in methods)]
    for (older, newer), changes in groupby(difference["changes"], lambda change: (change["from"], change["to"])):
        lines += ["", f"Definitions, {older} to {newer}"]
        for definition, group in groupby(changes, lambda change: change["definition"]):
            lines += _definition_lines(definition, list(group))
    if len(lines) == 1:
        lines.append("nothing changes")
    return "\n".join(fit(line, 10, width) for line in lines) + "\n"


def _definition_lines(definition: str, changes: list[Mapping[str, str]]) -> Iterator[str]:
    """Lay out what happened to one definition: one line where it came or went, else one for each place in it."""
    first = changes[0]
    for revision_without, sign in ((first["from"], "+"), (first["to"], "-")):
        if definition not in dragoman_spec.load(revision_without).DEFINITIONS:
            yield f"  {sign} {definition}: {first['detail']}"
            return
    yield f"  {OTHER_SIGN} {definition}"
    for change in changes:
        words = [_path(change["pointer"]), "" if change["change"] in SIGNS else change["change"], change["detail"]]
        yield f"      {_sign(change['change'])} {' '.join(word for word in words if word)}"


def _path(pointer: str) -> str:
    """Spell a pointer into a definition as people do: `/properties/params/properties/name` is `params.name`."""
    path = pointer.replace("/properties/", ".").replace("/items", "[]").replace("/additionalProperties", ".*")
    path = path.removeprefix(".").replace("~1", "/").replace("~0", "~")
    return path and f"{path}:"


def _sign(verb: str) -> str:
    return SIGNS.get(verb, OTHER_SIGN)


def _role(method: Any) -> tuple[str, frozenset[str]]:
    return method.kind, method.sender
