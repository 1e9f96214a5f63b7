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
from dragoman.cli.screen import FORMATS, columns, fit, print_json
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

EFFECTS: Final[Mapping[str, tuple[str, str]]] = {
    "definition-added": ("safe", "safe"),  # what refers to it says more
    "definition-removed": ("safe", "safe"),
    "value-added": ("safe", "breaking"),
    "value-removed": ("breaking", "safe"),
    "alternative-added": ("safe", "breaking"),
    "alternative-removed": ("breaking", "safe"),
    "optional-field-added": ("safe", "safe"),
    "optional-field-removed": ("risky", "safe"),  # it is sent to somebody who does not read it
    "required-field-added": ("breaking", "safe"),
    "required-field-removed": ("risky", "breaking"),
    "field-became-required": ("breaking", "safe"),
    "field-became-optional": ("safe", "breaking"),
    "type-widened": ("safe", "breaking"),
    "type-narrowed": ("breaking", "safe"),
    "type-changed": ("breaking", "breaking"),
    "limit-widened": ("safe", "breaking"),
    "limit-narrowed": ("breaking", "safe"),
    "limit-changed": ("breaking", "breaking"),
}
"""What each kind of change does to peers that stay as they are: to those who send what it is about, and to those who
get it. So a new value is safe in a request, and in a result it breaks clients."""

PEERS: Final = ("client", "server")
_WORSE: Final = ("safe", "risky", "breaking")
_BACKWARDS: Final = {
    "added": "removed",
    "removed": "added",
    "required": "optional",
    "optional": "required",
    "widened": "narrowed",
    "narrowed": "widened",
    "changed": "changed",
}
_METHODS: Final = {"added": "method-added", "removed": "method-removed", "changed": "method-changed"}

SIGNS: Final = {"added": "+", "removed": "-"}
OTHER_SIGN: Final = "~"

_MARKS: Final = {
    r"\[breaks .*\]": Style.ERROR,
    r"^ +\+[^\[\n]*": Style.GOOD,
    r"^ +-[^\[\n]*": Style.LOSS,
    "^Methods": Style.HEADING,
    **REVISIONS,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `diff`."""
    parser.add_argument("source", type=revision, metavar="REV", help="the revision to come from")
    parser.add_argument("target", type=revision, metavar="REV", help="the revision to go to, newer or older")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument(
        "--error-format",
        choices=FORMATS,
        help="print what each change does to clients that stay as they are, as `check --against` does, and exit with 1 "
        "if one breaks them",
    )
    parser.add_argument("--for", dest="peer", choices=PEERS, default="client", help="for whom (default: client)")
    parser.epilog = f"Revisions: {', '.join(dragoman_spec.REVISIONS)}."


def run(args: argparse.Namespace) -> int:
    """Print what changes from the first revision to the second."""
    difference = diff(args.source, args.target)
    if args.error_format:
        return _judge(difference, args.peer, args.error_format)
    if args.json:
        print_json(difference)
    else:
        write_painted(text(difference, columns()), _MARKS)
    return 0


def diff(source: str, target: str) -> dict[str, Any]:
    """Tell what changes between two revisions, as a JSON object.

    Returns:
        `from`, `to`, `methods` with sorted `added`, `removed` and `changed`, and `changes`: one object each with
        `from` and `to` of its step, `definition`, `pointer`, `change` and `detail`, in the order they are walked;
        `rule` names its kind, `senders` who sends what it is about, `client` and `server` what it does to one that
        stays as it is while its peers go on: `safe`, `risky` or `breaking`.
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
    return [{"from": source, "to": target, **change, **_effects(change)} for change in changes]


def _effects(change: Mapping[str, str]) -> dict[str, str]:
    """Return what a change does to each peer that stays as it is."""
    to_sender, to_reader = EFFECTS[change["rule"]]
    senders = change["senders"].split()
    felt = {peer: [to_sender if sender == peer else to_reader for sender in senders] for peer in PEERS}
    return {peer: max(effects, key=_WORSE.index, default="safe") for peer, effects in felt.items()}


def _judge(difference: Mapping[str, Any], peer: str, form: str) -> int:
    """Print what each change does to a peer that stays as it is; 1 if something breaks it."""
    from dragoman.check.compatibility import Change, Effect
    from dragoman.cli.against import EXIT_BREAKING, print_changes

    found = []
    for verb, names in difference["methods"].items():
        for name in names:
            method = dragoman_spec.load(difference["to" if verb == "added" else "from"]).METHODS[name]
            is_used = peer in method.sender
            effect = Effect.SAFE if verb == "added" or not is_used else Effect.BREAKING
            found.append(Change(effect, f"method {name}", "", f"{_METHODS[verb]}: {verb}"))
    for change in difference["changes"]:
        text = f"{change['rule']}: {change['change']}: {change['detail']}"
        found.append(Change(Effect(change[peer]), change["definition"], change["pointer"], text))
    found.sort(key=lambda one: -_WORSE.index(one.effect))
    print_changes(found, form, f"for a {peer}, from {difference['from']} to {difference['to']}")
    return EXIT_BREAKING if any(one.effect is Effect.BREAKING for one in found) else 0


def _inverted(change: Mapping[str, str]) -> dict[str, str]:
    before, became, after = change["detail"].partition(BECAME)
    detail = f"{after}{became}{before}" if became else change["detail"]
    of_what, _, how = change["rule"].rpartition("-")
    rule = f"{of_what}-{_BACKWARDS[how]}"
    return {**change, "change": INVERSES.get(change["change"], change["change"]), "detail": detail, "rule": rule}


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
        broken = " and ".join(f"{peer}s" for peer in PEERS if change[peer] == "breaking")
        breaks = f" [breaks {broken}]" if broken else ""
        yield f"      {_sign(change['change'])} {' '.join(word for word in words if word)}{breaks}"


def _path(pointer: str) -> str:
    """Spell a pointer into a definition as people do: `/properties/params/properties/name` is `params.name`."""
    path = pointer.replace("/properties/", ".").replace("/items", "[]").replace("/additionalProperties", ".*")
    path = path.removeprefix(".").replace("~1", "/").replace("~0", "~")
    return path and f"{path}:"


def _sign(verb: str) -> str:
    return SIGNS.get(verb, OTHER_SIGN)


def _role(method: Any) -> tuple[str, frozenset[str]]:
    return method.kind, method.sender
