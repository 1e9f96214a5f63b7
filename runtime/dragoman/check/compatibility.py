"""Whether what a server offers now still serves those who use what it offered before.

Lives here: comparing two lists of tools, resources, templates and prompts, as `dragoman list --json` prints them. Must
not: talk to a server. Called by `dragoman.cli.check`.

What breaks depends on who sends a value. A tool's arguments come from clients: they break when the tool takes less than
before. Its structured result goes to clients: they break when it may say more than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from dragoman.core.exact_json import encode, escape


class Effect(StrEnum):
    """What a change does to clients."""

    BREAKING = "breaking"
    RISKY = "risky"
    SAFE = "safe"


class Change(NamedTuple):
    """A difference between two lists.

    Attributes:
        effect: What it does to clients.
        what: Such as `tool add`.
        pointer: Where, in its schema or description; empty for the whole.
        text: For a person.
    """

    effect: Effect
    what: str
    pointer: str
    text: str


class Sender(StrEnum):
    """Who sends the values that a schema describes."""

    CLIENT = "client"
    SERVER = "server"


_NAMED_BY: Final = {"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}
_GONE: Final = {"tools": Effect.BREAKING, "prompts": Effect.BREAKING, "templates": Effect.BREAKING}
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_OPAQUE: Final = ("pattern", "format", "multipleOf", "uniqueItems", "not", "if", "then", "else", "patternProperties")
_ARMS: Final = ("anyOf", "oneOf")
_DEEPEST: Final = 40
_FIRST_WORSE: Final = {Effect.BREAKING: 0, Effect.RISKY: 1, Effect.SAFE: 2}


def compare_offers(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Say what has changed in what a server offers, the worst first.

    Args:
        before: Lists by kind: `tools`, `resources`, `templates`, `prompts`, as `dragoman list --json` prints them.
        now: The same, of today.
    """
    found: list[Change] = []
    for kind, key in _NAMED_BY.items():
        if kind in before:
            found += _compare_lists(kind, key, _by_name(before[kind], key), _by_name(now.get(kind), key))
    return sorted(found, key=lambda change: _FIRST_WORSE[change.effect])


def _by_name(listed: object, key: str) -> dict[str, Mapping[str, Any]]:
    ones = listed if isinstance(listed, list) else []
    return {one[key]: one for one in ones if isinstance(one, dict) and isinstance(one.get(key), str)}


def _compare_lists(
    kind: str, key: str, before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> Iterator[Change]:
    for name, old in before.items():
        what = f"{kind[:-1]} {name}"
        new = now.get(name)
        if new is None:
            yield Change(_GONE.get(kind, Effect.RISKY), what, "", "is not offered any more")
        elif kind == "tools":
            yield from _compare_tools(what, old, new)
        elif kind == "prompts":
            yield from _compare_arguments(what, old.get("arguments") or [], new.get("arguments") or [])
        elif old.get("mimeType") != new.get("mimeType"):
            yield Change(Effect.RISKY, what, "/mimeType", f"{old.get('mimeType')} became {new.get('mimeType')}")
    for name in now.keys() - before.keys():
        yield Change(Effect.SAFE, f"{kind[:-1]} {name}", "", "is new")


def _compare_tools(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    yield from _Comparison(what, "/inputSchema", Sender.CLIENT, old.get("inputSchema"), new.get("inputSchema")).run()
    given, gives = old.get("outputSchema"), new.get("outputSchema")
    if given is not None and gives is None:
        yield Change(Effect.BREAKING, what, "/outputSchema", "structured results are not promised any more")
    elif given is not None:
        yield from _Comparison(what, "/outputSchema", Sender.SERVER, given, gives).run()
    hints, hint = old.get("annotations") or {}, new.get("annotations") or {}
    for name, safe in (("readOnlyHint", True), ("idempotentHint", True), ("destructiveHint", False)):
        if hints.get(name) is safe and hint.get(name) is not safe:
            yield Change(Effect.RISKY, what, f"/annotations/{name}", f"was {str(safe).lower()}, and is not any more")
    if (new.get("execution") or {}).get("taskSupport") == "required" != (old.get("execution") or {}).get("taskSupport"):
        yield Change(Effect.BREAKING, what, "/execution/taskSupport", "it can only be called as a task")


def _compare_arguments(
    what: str, old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> Iterator[Change]:
    before, now = ({one.get("name"): bool(one.get("required")) for one in ones} for ones in (old, new))
    for name in before.keys() - now.keys():
        yield Change(Effect.RISKY, what, f"/arguments/{name}", "the argument is gone")
    for name, is_required in now.items():
        if is_required and not before.get(name, False):
            yield Change(Effect.BREAKING, what, f"/arguments/{name}", "the argument is required")


class _Comparison:
    """Compares two schemas of one thing.

    Args:
        what: The tool.
        pointer: Where the schemas stand.
        sender: Who sends what they describe.
        old: The schema of before.
        new: The schema of now.
    """

    def __init__(self, what: str, pointer: str, sender: Sender, old: Any, new: Any) -> None:
        self._what = what
        self._root = pointer
        self._narrows = Effect.BREAKING if sender is Sender.CLIENT else Effect.SAFE
        self._widens = Effect.SAFE if sender is Sender.CLIENT else Effect.BREAKING
        self._old, self._new = old, new

    def run(self) -> Iterator[Change]:
        """Give the changes."""
        yield from self._walk(self._old, self._new, self._root, 0)

    def _say(self, effect: Effect, pointer: str, text: str) -> Change:
        return Change(effect, self._what, pointer, text)

    def _walk(self, old: Any, new: Any, pointer: str, depth: int) -> Iterator[Change]:
        old, new = _resolve(old, self._old), _resolve(new, self._new)
        if depth > _DEEPEST or not isinstance(old, dict) or not isinstance(new, dict):
            if old != new:
                yield self._say(Effect.RISKY, pointer, "the schema is another one")
            return
        yield from self._types(old, new, pointer)
        yield from self._choices(old, new, pointer)
        yield from self._bounds(old, new, pointer)
        yield from self._members(old, new, pointer, depth)
        yield from self._arms(old, new, pointer)
        if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
            yield from self._walk(old["items"], new["items"], f"{pointer}/items", depth + 1)
        for keyword in _OPAQUE:
            if old.get(keyword) != new.get(keyword):
                yield self._say(Effect.RISKY, f"{pointer}/{keyword}", "is another one")

    def _types(self, old: dict[str, Any], new: dict[str, Any], pointer: str) -> Iterator[Change]:
        before, now = _types_of(old), _types_of(new)
        if before == now:
            return
        yield from self._sets(before, now, f"{pointer}/type", "type", "any type")

    def _choices(self, old: dict[str, Any], new: dict[str, Any], pointer: str) -> Iterator[Change]:
        before, now = _choices_of(old), _choices_of(new)
        if before != now:
            yield from self._sets(before, now, f"{pointer}/enum", "value", "any value")

    def _sets(
        self, before: set[str] | None, now: set[str] | None, pointer: str, thing: str, everything: str
    ) -> Iterator[Change]:
        if before is None or (now is not None and before - now):
            gone = everything if before is None else ", ".join(sorted(before - (now or set())))
            yield self._say(self._narrows, pointer, f"the {thing} {gone} is not taken any more")
        if now is None or (before is not None and now - before):
            come = everything if now is None else ", ".join(sorted(now - (before or set())))
            yield self._say(self._widens, pointer, f"the {thing} {come} is new")

    def _bounds(self, old: dict[str, Any], new: dict[str, Any], pointer: str) -> Iterator[Change]:
        for keywords, sign in ((_LOWER, 1), (_UPPER, -1)):
            for keyword in keywords:
                before, now = old.get(keyword), new.get(keyword)
                if before == now:
                    continue
                tighter = before is None or (now is not None and (now - before) * sign > 0)
                effect = self._narrows if tighter else self._widens
                yield self._say(effect, f"{pointer}/{keyword}", f"{before} became {now}")

    def _members(self, old: dict[str, Any], new: dict[str, Any], pointer: str, depth: int) -> Iterator[Change]:
        before, now = old.get("properties") or {}, new.get("properties") or {}
        for name in before.keys() & now.keys():
            yield from self._walk(before[name], now[name], f"{pointer}/properties/{escape(name)}", depth + 1)
        is_closed = new.get("additionalProperties") is False
        for name in before.keys() - now.keys():
            effect = self._narrows if is_closed else Effect.RISKY
            yield self._say(effect, f"{pointer}/properties/{escape(name)}", "is gone")
        for name in now.keys() - before.keys():
            yield self._say(Effect.SAFE, f"{pointer}/properties/{escape(name)}", "is new")
        needed, needs = set(old.get("required") or ()), set(new.get("required") or ())
        for name in sorted(needs - needed):
            yield self._say(self._narrows, f"{pointer}/required", f"{name} is required")
        for name in sorted(needed - needs):
            yield self._say(self._widens, f"{pointer}/required", f"{name} may be absent")
        if is_closed and old.get("additionalProperties") is not False:
            yield self._say(self._narrows, f"{pointer}/additionalProperties", "no other members are taken any more")
        elif not is_closed and old.get("additionalProperties") is False:
            yield self._say(self._widens, f"{pointer}/additionalProperties", "other members may come")

    def _arms(self, old: dict[str, Any], new: dict[str, Any], pointer: str) -> Iterator[Change]:
        for keyword in _ARMS:
            before, now = (
                {encode(_resolve(arm, root)) for arm in schema.get(keyword) or ()}
                for schema, root in ((old, self._old), (new, self._new))
            )
            if before - now:
                yield self._say(self._narrows, f"{pointer}/{keyword}", "an alternative is gone")
            if now - before:
                yield self._say(self._widens, f"{pointer}/{keyword}", "an alternative is new")


def _resolve(schema: Any, root: Any) -> Any:
    """Return what a reference within a schema leads to; one that leads nowhere stays."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        found = root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        if found is None:
            return schema
        schema = found
    return schema


def _types_of(schema: dict[str, Any]) -> set[str] | None:
    said = schema.get("type")
    types = {said} if isinstance(said, str) else {one for one in said if isinstance(one, str)} if said else None
    return types | {"integer"} if types is not None and "number" in types else types


def _choices_of(schema: dict[str, Any]) -> set[str] | None:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return {encode(value).decode("utf-8", "replace") for value in values} if isinstance(values, list) else None
