"""The plan of a step: both directions in both profiles, every decision used, nothing undecided.

`derive` says what happens to two types; here it is asked for every method, result and definition that both revisions
have, and what spans whole frames is added: refused and swallowed methods, hooks, repair rules, error codes. Called by
`steps`, `docs` and the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from codegen.names import snake
from codegen.plan.actions import declares
from codegen.plan.derive import Derivation
from codegen.plan.nodes import Action, Key, Member, Node, ObjectNode, Work, prune
from codegen.plan.sites import Site
from codegen.plan.twins import ask_definitions, ask_methods, names_with
from codegen.read.model import Json, Method, Object, Ref, Spec, Type, Union
from codegen.read.overlay import Change, ErrorCode, Hook, Overlay, Refusal, matches
from codegen.read.protocol import ENVELOPES

PROFILES = ("strict", "minimal")
METHODS_GONE = "methods-gone"
"""The change that is asked about before all others, and that has no safe default."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A switchable hook on the frames of a method."""

    rule: str
    method: str
    kind: str
    action: Action


@dataclass(frozen=True, slots=True)
class DirectionPlan:
    """One way over the step in one profile: nodes, and which of them serve which frames."""

    source: Spec
    target: Spec
    direction: str
    profile: str
    nodes: Mapping[Key, Node]
    requests: Mapping[str, Key]
    notifications: Mapping[str, Key]
    results: Mapping[str, Key]
    definitions: Mapping[str, Key]
    refused: Mapping[str, Refusal]
    swallowed: tuple[str, ...]
    renamed: Mapping[str, str]
    methods: Mapping[str, str]
    error: Key | None
    """What serves every error response, whatever its code."""
    odd_errors: bool
    """Whether the source has errors that are not objects."""
    errors: tuple[ErrorCode, ...]
    every_error: tuple[Action, ...]
    repairs: tuple[Repair, ...]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A whole step."""

    older: Spec
    newer: Spec
    overlay: Overlay
    ways: Mapping[tuple[str, str], DirectionPlan]
    undecided: tuple[Change, ...] = ()


@dataclass(slots=True)
class _Frames:
    """Which node serves which frames, while it is collected."""

    requests: dict[str, Key] = field(default_factory=dict)
    notifications: dict[str, Key] = field(default_factory=dict)
    results: dict[str, Key] = field(default_factory=dict)
    definitions: dict[str, Key] = field(default_factory=dict)
    refused: dict[str, Refusal] = field(default_factory=dict)
    swallowed: list[str] = field(default_factory=list)


def plan_step(older: Spec, newer: Spec, overlay: Overlay) -> StepPlan:
    """Plan the step between two neighbours.

    Args:
        older: The older revision.
        newer: The newer one, whose overlay holds the decisions.
        overlay: Those decisions; marked as used on the way.

    Returns:
        The plan, with the changes that no entry rules on; for those it has the safe defaults.

    Raises:
        UnusedDecision: An entry that matches nothing, or a change that two entries match.
    """
    ways: dict[tuple[str, str], DirectionPlan] = {}
    undecided: dict[tuple[str, str, str, str], Change] = {}
    none = set[tuple[str, str, str]]()
    for profile in PROFILES:
        filled: dict[str, Json] = {}
        for direction, source, target in (("up", older, newer), ("down", newer, older)):
            derivation = Derivation(source, target, overlay, direction, profile, filled if direction == "down" else {})
            derivation.methods = _renamed_methods(derivation)
            derivation.names = _implied_names(derivation)
            ways[direction, profile] = _plan_direction(derivation)
            filled = derivation.filled
            if profile == "strict":
                ask_definitions(derivation, ask_methods(derivation))
                undecided |= {(direction, *key): change for key, change in derivation.undecided.items()}
                none |= derivation.perhaps_none
    first = [change for change in undecided.values() if change.kind == METHODS_GONE]
    undecided = {
        key: change for key, change in undecided.items() if (change.direction, change.kind, change.at) not in none
    }
    if not first:
        # Before it is known which methods there are, entries on them match nothing, and half of what is asked is noise.
        overlay.check_used()
    return StepPlan(older, newer, overlay, ways, tuple(first or undecided.values()))


def _plan_direction(way: Derivation) -> DirectionPlan:
    frames = _Frames()
    methods = way.methods
    for name, method in way.source.methods.items():
        counterpart = way.target.methods.get(methods.get(name, name))
        if counterpart is None or counterpart.kind != method.kind:
            _refuse(way, method, frames)
        else:
            _convert(way, method, counterpart, frames)
    renamed = {name: new for name in way.source.definitions if (new := way.new_name(name)) != name}
    for name, type_ in way.source.definitions.items():
        other = renamed.get(name, name)
        if other in way.target.definitions and isinstance(way.source.resolve(type_), Object):
            frames.definitions[name] = way.pair(name, other)
    frames.definitions |= _parts(way)
    error = _error(way)
    nodes = prune(way.nodes)
    return DirectionPlan(
        way.source,
        way.target,
        way.direction,
        way.profile,
        nodes,
        requests=_busy(frames.requests, nodes),
        notifications=_busy(frames.notifications, nodes),
        results=_busy(frames.results, nodes),
        definitions=_busy(frames.definitions, nodes),
        refused=frames.refused,
        swallowed=tuple(frames.swallowed),
        renamed=renamed,
        methods=methods,
        error=error if error in nodes else None,
        odd_errors=_odd_errors(way.source),
        errors=tuple(entry for entry in way.overlay.errors if entry.direction == way.direction),
        every_error=tuple(_action(hook) for hook in _frame_hooks(way, "error", None)),
        repairs=tuple(_repairs(way)),
    )


def _parts(way: Derivation) -> dict[str, Key]:
    """Nodes for objects that stand in place in one revision or both, which models name all the same."""
    found = {}
    for name in sorted({*way.source.parts, *way.target.parts}):
        pointers = [
            spec.parts.get(name, f"/$defs/{name}" if name in spec.definitions else "")
            for spec in (way.source, way.target)
        ]
        if all(pointers):
            key = way.part(*pointers)
            if key is not None:
                found[name] = key
    return found


def _envelope(way: Derivation, kind: str) -> ObjectNode | None:
    """What is done to the envelope of responses of a kind; an id that answers a request is never left out."""
    names = [
        next((name for name in ENVELOPES[kind] if name in spec.definitions), "") for spec in (way.source, way.target)
    ]
    node = way.nodes.get(way.pair(*names)) if all(names) else None
    if not isinstance(node, ObjectNode):
        return None
    members = {name: replace(one, needed=one.needed or name == "id") for name, one in node.members.items()}
    return replace(node, members=members)


def _error(way: Derivation) -> Key | None:
    """The node of error responses: that of their envelope."""
    node = _envelope(way, "error")
    if node is None:
        return None
    key = way.free_key("error_frame")
    way.nodes[key] = replace(node, label="error responses")
    return key


def _odd_errors(spec: Spec) -> bool:
    """Whether `error` of an error response may be something else than an object."""
    shapes = [spec.resolve(Ref(name)) for name in ENVELOPES["error"] if name in spec.definitions]
    members = [shape.fields["error"].type for shape in shapes if isinstance(shape, Object) and "error" in shape.fields]
    return any(not isinstance(spec.resolve(arm), Object) for member in members for arm in spec.arms(member))


def _busy(table: Mapping[str, Key], nodes: Mapping[Key, Node]) -> dict[str, Key]:
    return {name: key for name, key in table.items() if key in nodes}


def _convert(way: Derivation, method: Method, counterpart: Method, frames: _Frames) -> None:
    table = frames.requests if method.kind == "request" else frames.notifications
    table[method.name] = way.pair(method.request, counterpart.request)
    if method.kind == "request":
        key = way.free_key(snake(f"{method.name}_result_frame"))
        hooks = tuple(_action(hook) for hook in _frame_hooks(way, "result", method.name))
        envelope = _envelope(way, "result") or ObjectNode("")
        members = {**envelope.members, "result": Member(_result(way, method, counterpart, hooks), needed=True)}
        way.nodes[key] = replace(
            envelope, label=f"result of {method.name}", hooks_before=hooks, members=members, hooks_after=()
        )
        frames.results[method.name] = key


def _result(way: Derivation, method: Method, counterpart: Method, hooks: tuple[Action, ...]) -> Work:
    """The work on a result: by what it can be, where it can be several things; what hooks refuse does not come here."""
    refused = any(declares(hook.name, "refuses") for hook in hooks)
    left = [name for name in method.results[1:] if way.new_name(name) in counterpart.results or not refused]
    if not left:
        told = [way.source.definitions[name] for name in method.results[1:]]
        passing = [shape for shape in told if not any(_refuses(hook, shape) for hook in hooks)]
        usual = way.pair(method.results[0], counterpart.results[0])
        return Work(_whole(way, usual, method, counterpart) if passing else usual)
    site = Site(
        f"{method.name}.result", f"{method.name}.result", f"/$defs/{left[0]}", f"/$defs/{counterpart.results[0]}"
    )
    source, target = (Union(tuple(map(Ref, names))) for names in ((method.results[0], *left), counterpart.results))
    return way.work(source, target, site)


def _refuses(hook: Action, shape: Type) -> bool:
    """Whether a hook refuses every value of a result: it asks for a field that all of them have."""
    field_ = shape.fields.get(str(hook.arguments.get("has"))) if isinstance(shape, Object) else None
    whole = declares(hook.name, "refuses") and "other_than" not in hook.arguments
    return whole and field_ is not None and field_.required


def _whole(way: Derivation, key: Key, method: Method, counterpart: Method) -> Key:
    """The node of the usual result, where what stands there may also be another result that hooks let through: it is
    refused if it lacks what the target requires.
    """
    node, shape = way.nodes.get(key), way.target.definitions[counterpart.results[0]]
    if not isinstance(node, ObjectNode) or not isinstance(shape, Object):
        return key
    made = {*node.fills, *node.computed, *node.facts, *node.demands}
    asked = tuple(name for name, member in shape.fields.items() if member.required and name not in made)
    whole = way.free_key(snake(f"{method.name}_whole_result"))
    way.nodes[whole] = replace(node, demands=(*node.demands, *asked))
    return whole


def _refuse(way: Derivation, method: Method, frames: _Frames) -> None:
    if method.kind == "notification":
        frames.swallowed.append(method.name)
        return
    when = f"before {way.source.revision}" if way.direction == "down" else f"since {way.target.revision}"
    reason = f"{method.name} does not exist {when}"
    frames.refused[method.name] = Refusal("", way.direction, (method.name,), reason)
    for refusal in way.overlay.refusals:
        if refusal.direction == way.direction and method.name in refusal.methods:
            way.overlay.use(method.name, refusal.direction)
            frames.refused[method.name] = refusal


def _implied_names(way: Derivation) -> dict[str, str]:
    """New names of the definitions of methods that have one."""
    names: dict[str, str] = {}
    for old, new in way.methods.items():
        names |= names_with(way, way.source.methods[old], way.target.methods[new])
    return names


def _renamed_methods(way: Derivation) -> dict[str, str]:
    renamed = {}
    for rename in way.overlay.renames:
        old, new = (rename.old, rename.new) if way.direction == "up" else (rename.new, rename.old)
        if rename.what == "method" and old in way.source.methods and new in way.target.methods:
            way.overlay.use(rename.what + rename.old)
            renamed[old] = new
    return renamed


def _frame_hooks(way: Derivation, kind: str, method: str | None) -> Iterator[Hook]:
    for hook in way.overlay.hooks:
        if hook.rule or not hook.method or (hook.direction, hook.kind) != (way.direction, kind):
            continue
        if way.profile in hook.profiles and (method is None or matches(method, hook.method)):
            way.overlay.use(hook.name, hook.method)
            yield hook


def _repairs(way: Derivation) -> Iterator[Repair]:
    known = way.source.methods.keys() & way.target.methods.keys()
    for hook in way.overlay.hooks:
        if hook.rule and hook.direction in ("", way.direction) and way.profile in hook.profiles:
            if hook.method == "*" or hook.method in known:
                way.overlay.use(hook.name, hook.method)
            yield Repair(hook.rule, hook.method, hook.kind, _action(hook))


def _action(hook: Hook) -> Action:
    return Action(hook.do, dict(hook.arguments), entry=hook.name)
