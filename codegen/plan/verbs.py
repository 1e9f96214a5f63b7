"""What a `[[decision]]` may `do`, by the kind of change: the one list, for skeletons, a page and the check.

A verb is declared once. An action of `codegen/support` says under `@action` which kinds of change it is for; the few
that the generator does itself, with no call in a step, are here. Called by `rulings`, `skeleton` and the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen.plan.actions import declared_actions

KINDS = {
    "arm-removed": "lacks one of the alternatives (`arm`)",
    "narrowed": "accepts fewer values",
    "required": "requires a field that may be absent; also one with a single value, where the source says that any key "
    "may be there",
    "field-removed": "does not name a field; by default it is dropped",
    "renamed": "lacks a definition, a field or a method, and has a similar new one; of a field any that came beside "
    "it; of a method any, if it is the only one from the same side",
    "moved": "lacks a field, and has a new one of its name, or one like it, in another object beside it",
    "kind-changed": "has a request of this name where there was a notification, or the reverse",
    "code-changed": "has another code in an error that both have",
    "methods-gone": "has no union of this name, which lists the methods that a side may send (`ClientRequest`, …)",
}
"""Each kind of change, and what it means: the target …"""

BESIDE = {
    "renamed": "or write a `[[rename]]` instead",
    "moved": "or write a `[[move]]` instead",
    "kind-changed": "the request is refused, the notification swallowed; a `[[refuse]]` may say why",
    "code-changed": "or write an `[[error]]` instead",
    "methods-gone": "or write a `[[rename]]` instead; requests that now travel inside of results (`InputRequest`) are "
    "`gone`, although the methods are the same",
}
"""What can be done in the place of a decision, or comes of it."""


@dataclass(frozen=True, slots=True)
class Verb:
    """What may be done about some kinds of change: its arguments, those that it needs first; what its losses are."""

    name: str
    changes: tuple[str, ...]
    needed: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    direction: str = ""
    says: str = ""
    losses: tuple[str, ...] = ()


OWN = (
    Verb("apart", ("renamed", "moved", "kind-changed", "code-changed"), says="They are two different things."),
    Verb("as", ("arm-removed",), ("definition",), says="Convert the value as another definition."),
    Verb("default", ("required",), (), ("value",), says="Fill in a value; without one, `null` where that is valid."),
    Verb("drop", ("field-removed",), says="Leave the field out.", losses=("dropped",)),
    Verb("gone", ("methods-gone",), says="Refuse the requests, and swallow the notifications."),
    Verb("keep", ("arm-removed", "narrowed", "field-removed"), says="Leave the value as it is."),
    Verb("refuse", ("required",), says="Refuse the frame."),
)  # fmt: skip
"""Verbs for which a step calls no action."""


def verbs() -> list[Verb]:
    """Every verb, by name."""
    called = [
        Verb(
            found.name,
            tuple(found.facts["changes"]),
            tuple(sorted(found.needed)),
            tuple(sorted(found.arguments - found.needed - {"cosmetic"})),
            found.facts.get("direction", ""),
            found.says,
            tuple(found.facts.get("losses", ())),
        )
        for found in declared_actions().values()
        if found.facts.get("changes")
    ]
    return sorted([*OWN, *called], key=lambda verb: verb.name)


def verbs_for(change: str, direction: str) -> list[Verb]:
    """The verbs for a kind of change; the last ones are those that refuse and keep."""
    found = [verb for verb in verbs() if change in verb.changes and verb.direction in ("", direction)]
    return sorted(found, key=lambda verb: (verb.name in ("refuse", "keep"), verb.name == "keep"))


def table_of_kinds() -> str:
    """The table of `docs/internals/verbs.md` that says what can be done about which change."""
    rows = ["| change | means that the target … | `do`, with its arguments |", "|---|---|---|"]
    for kind, means in KINDS.items():
        found = verbs_for(kind, "down")
        said = ", ".join(filter(None, [*map(_spelled, found), BESIDE.get(kind, "")]))
        rows.append(f"| `{kind}` | {means} | {said} |")
    return "\n".join(rows)


def table_of_verbs() -> str:
    """The table of `docs/internals/verbs.md` that says what each verb does, and which losses tell of it."""
    rows = ["| `do` | does | losses |", "|---|---|---|"]
    for verb in _once(verbs()):
        only = f" Only {verb.direction}." if verb.direction else ""
        rows.append(f"| `{verb.name}` | {verb.says}{only} | {', '.join(verb.losses)} |")
    return "\n".join(rows)


def _once(found: Iterable[Verb]) -> list[Verb]:
    """One of each name: the action, where the generator does a part of it itself."""
    return list({verb.name: verb for verb in found}.values())


def _spelled(verb: Verb) -> str:
    arguments = [f"`{name}`" for name in (*verb.needed, *verb.more)]
    return f"`{verb.name}`" + (f" ({', '.join(arguments)})" if arguments else "")
