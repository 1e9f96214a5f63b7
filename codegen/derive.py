"""Source type and target type in, nodes out: what can be proved is derived, and for the rest the overlay is asked.

Called by `plan_step`. A change that no overlay entry rules on is collected, not raised, so that a person sees all of
them at once; its safe default is taken meanwhile. Must not live here: the wording of generated code, or anything
about particular methods or fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codegen.cosmetic import cosmetic_fields
from codegen.model import Anything, Array, Field, Json, Literal, Object, Ref, Scalar, Spec, Type, Union
from codegen.names import path_of, snake
from codegen.overlay import Change, Decision, Overlay
from codegen.plan import Action, ArrayNode, Case, Key, Member, Node, ObjectNode, UnionNode, Work
from codegen.type_facts import fits, json_type, words, words_all

IDLE = Work()
CHECKED = frozenset({"drop-invalid", "map-value", "drop-unless-valid", "wrap-unless-valid"})
"""Actions that are handed a predicate of the target type."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a type stands: a path from a definition, and the pointer, in both revisions."""

    at: str
    target_at: str
    source_pointer: str
    target_pointer: str

    def below(self, path: str, pointer: str) -> Site:
        """The site one step further down, by the same step in both."""
        source, target = self.source_pointer + pointer, self.target_pointer + pointer
        return Site(self.at + path, self.target_at + path, source, target)


@dataclass(slots=True)
class _Parts:
    """The parts of an object node, while they are collected."""

    drops: list[str] = field(default_factory=list)
    silent: dict[str, Json] = field(default_factory=dict)
    guards: dict[str, Type] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    fills: dict[str, Json] = field(default_factory=dict)
    computed: dict[str, Action] = field(default_factory=dict)
    demands: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Derivation:
    """One direction and profile of a step while it is being derived."""

    source: Spec
    target: Spec
    overlay: Overlay
    direction: str
    profile: str = "strict"
    synthesised: Mapping[str, Json] = field(default_factory=dict)
    """From the way up: what it fills in, by path in the newer revision; the way down drops that without a loss."""
    nodes: dict[Key, Node] = field(default_factory=dict)
    filled: dict[str, Json] = field(default_factory=dict)
    undecided: dict[tuple[str, str, str], Change] = field(default_factory=dict)
    _pairs: dict[tuple[str, str], Key] = field(default_factory=dict)

    # --- any two types -----------------------------------------------------------------------------------------------

    def work(self, source: Type, target: Type, site: Site) -> Work:
        """What to do with a valid value of *source* to make it a valid value of *target*."""
        if isinstance(source, Ref) and isinstance(target, Ref):
            return Work(self.pair(source.name, target.name))
        one, two = self.source.resolve(source), self.target.resolve(target)
        if isinstance(two, Anything):
            return IDLE
        if isinstance(one, Union) or isinstance(two, Union):
            return self._union(source, target, site)
        if isinstance(one, Object) and isinstance(two, Object):
            return self._object(one, two, site)
        if isinstance(one, Array) and isinstance(two, Array):
            return self._array(one, two, site)
        return IDLE if fits(one, two) else self._narrowed(site, f"{words(source)} becomes {words(target)}", target)

    def pair(self, source: str, target: str) -> Key:
        """The node for two definitions, derived at first sight."""
        if (source, target) in self._pairs:
            return self._pairs[source, target]
        key = self._free(snake(source) if source == target else f"{snake(source)}_as_{snake(target)}")
        self._pairs[source, target] = key
        site = Site(source, target, f"/$defs/{source}", f"/$defs/{target}")
        work = self.work(self.source.definitions[source], self.target.definitions[target], site)
        if work.before is not None or work.node in set(self._pairs.values()) - {key}:
            # The node of another definition stays where it is: `EmptyResult` is only another name for `Result`.
            self.nodes[key] = UnionNode(source, None, (Case("object", work),))
        elif work.node is not None and work.node != key:
            self.nodes[key] = self.nodes.pop(work.node)
        return key

    def part(self, source: str, target: str) -> Key | None:
        """The node for two objects by their pointers, of which one at least stands in place.

        Its path is that of the place, so that the decisions there hold here too.
        """
        one, two = self.source.at(source), self.target.at(target)
        if not isinstance(self.source.resolve(one), Object) or not isinstance(self.target.resolve(two), Object):
            return None
        place = path_of(source if source.count("/") > 2 else target)
        return self.work(
            self.source.resolve(one), self.target.resolve(two), Site(place, path_of(target), source, target)
        ).node

    def _node(self, site: Site, node: Node) -> Work:
        if isinstance(node, ArrayNode) and node.item.idle:
            return IDLE
        key = self._free(snake(site.at))
        self.nodes[key] = node
        return Work(key)

    def _free(self, key: Key) -> Key:
        """The key, or one like it where it is taken: `RequestParams` and `Request.params` would both like to be
        `request_params`.
        """
        while key in self.nodes or key in self._pairs.values():
            key += "_"
        return key

    # --- arrays and scalars ------------------------------------------------------------------------------------------

    def _array(self, source: Array, target: Array, site: Site) -> Work:
        work = self._node(site, ArrayNode(site.at, self.work(source.item, target.item, site.below("[]", "/items"))))
        if target.max_items is not None and (source.max_items is None or source.max_items > target.max_items):
            cut = self._narrowed(site, f"at most {target.max_items} items", target)
            return Work(work.node, cut.before)
        return work

    def _narrowed(self, site: Site, detail: str, target: Type) -> Work:
        decision = self._rule("narrowed", site, detail)
        if decision is None:
            return Work(before=Action("drop-invalid", {"check": target}))
        if decision.do == "keep":
            return IDLE
        arguments = dict(decision.arguments)
        if decision.do in CHECKED:
            arguments["check"] = target
        return Work(before=Action(decision.do, arguments))

    # --- objects -----------------------------------------------------------------------------------------------------

    def _object(self, source: Object, target: Object, site: Site) -> Work:
        names = self._renamed_fields(site, source, target)
        parts = _Parts()
        self._known(source, target, site, names, parts)
        self._new(source, target, site, set(names.values()), parts)
        guarded = (self.profile == "strict" or self.direction == "down") and isinstance(source.extra, Anything)
        declares = "Capabilities" in site.at
        lost = () if declares else (*parts.drops, *parts.guards)
        node = ObjectNode(
            site.at,
            hooks_before=self._hooks(site, "before"),
            renames={old: new for old, new in names.items() if old != new},
            drops=tuple(parts.drops),
            silent=parts.silent,
            presence_matters=declares,
            guards=parts.guards if guarded else {},
            cosmetic=cosmetic_fields(self.overlay, self.direction, self.source, site.at, source, lost),
            members=parts.members,
            extra=self._extra(source, target, site),
            extra_except=tuple(target.fields),
            fills=parts.fills,
            computed=parts.computed,
            demands=tuple(parts.demands),
            hooks_after=self._hooks(site, "after"),
        )
        return self._node(site, node)

    def _known(self, source: Object, target: Object, site: Site, names: Mapping[str, str], parts: _Parts) -> None:
        """Fields that the source names: converted where the target names them too, else dropped."""
        for old, member in source.fields.items():
            new = names.get(old, old)
            below = site.below(f".{old}", f"/properties/{old}")
            if new in target.fields:
                parts.members[new] = self._member(member, target.fields[new], below)
            elif not self._kept(below, target):
                parts.drops.append(old)
                value = self._restored(member, below)
                if value is not None:
                    parts.silent[old] = value

    def _member(self, source: Field, target: Field, site: Site) -> Member:
        work = self.work(source.type, target.type, site)
        both_objects = isinstance(self.source.resolve(source.type), Object) and isinstance(
            self.target.resolve(target.type), Object
        )
        ensure = target.required and not source.required and both_objects
        prune = source.required and not target.required and both_objects
        nulls = not self._takes_null(source.type)
        return Member(work, ensure, prune, not source.required, nulls, needed=source.required and target.required)

    def _takes_null(self, type_: Type) -> bool:
        kind = self.source.resolve(type_)
        if isinstance(kind, Union):
            return any(self._takes_null(arm) for arm in kind.arms)
        return isinstance(kind, Anything) or (isinstance(kind, Scalar) and "null" in kind.types)

    def _kept(self, site: Site, target: Object) -> bool:
        """Whether a field that the target does not name stays: for the minimal profile, or by a decision."""
        if not isinstance(target.extra, Anything):
            return False
        unclear = target.says_open and self.profile == "strict"
        decision = self._rule("field-removed", site, "the target says that any key may be there", needed=unclear)
        if self.profile == "minimal":
            return True
        return target.says_open if decision is None else decision.do == "keep"

    def _restored(self, member: Field, site: Site) -> Json:
        """What the way back fills in for a field that is dropped, or `None`."""
        kind = self.source.resolve(member.type)
        if member.required and isinstance(kind, Literal) and len(kind.values) == 1:
            return kind.values[0]
        return self.synthesised.get(site.at)

    def _new(self, source: Object, target: Object, site: Site, known: set[str], parts: _Parts) -> None:
        """Fields that only the target names, and those that it requires where the source did not."""
        for name, member in target.fields.items():
            below = site.below(f".{name}", f"/properties/{name}")
            old = source.fields.get(name)
            kind = self.target.resolve(member.type)
            if name not in known and not isinstance(kind, Anything):
                parts.guards[name] = member.type
            renamed = name in known and old is None
            if not member.required or renamed or (old is not None and old.required):
                continue
            if isinstance(kind, Literal) and len(kind.values) == 1:
                parts.fills[name] = self.filled[below.target_at] = kind.values[0]
            elif isinstance(kind, Object) and old is None:
                parts.members[name] = Member(self.work(Object(), member.type, below), ensure=True)
            elif not isinstance(kind, Object):
                self._required(name, below, parts)

    def _required(self, name: str, site: Site, parts: _Parts) -> None:
        decision = self._rule("required", site, f"{name} becomes required")
        if decision is None or decision.do == "refuse":
            parts.demands.append(name)
        elif decision.do == "default":
            parts.fills[name] = self.filled[site.target_at] = decision.arguments["value"]
        else:
            parts.computed[name] = Action(decision.do, dict(decision.arguments))

    def _extra(self, source: Object, target: Object, site: Site) -> Work:
        return self.work(source.extra, target.extra, site.below("{}", "/additionalProperties"))

    def _renamed_fields(self, site: Site, source: Object, target: Object) -> dict[str, str]:
        """Names of the source's fields in the target, for those that the target has."""
        names = {name: name for name in source.fields if name in target.fields}
        for rename in self.overlay.renames:
            old, new = (rename.old, rename.new) if self.direction == "up" else (rename.new, rename.old)
            if rename.what == "field" and site.at == rename.at and old in source.fields and new in target.fields:
                self.overlay.use(rename.what + rename.old, rename.at)
                names[old] = new
        return names

    def _hooks(self, site: Site, when: str) -> tuple[Action, ...]:
        found = []
        for hook in self.overlay.hooks:
            if hook.at == site.at and hook.direction == self.direction and self.profile in hook.profiles:
                self.overlay.use(hook.name, hook.at)
                if hook.kind == when:
                    found.append(Action(hook.do, dict(hook.arguments), hook.when))
        return tuple(found)

    # --- unions ------------------------------------------------------------------------------------------------------

    def _union(self, source: Type, target: Type, site: Site) -> Work:
        arms = list(self.source.arms(source))
        others = list(self.target.arms(target))
        if isinstance(self.source.resolve(source), Anything):
            return self._narrowed(site, f"any value becomes {words(target)}", target)
        tag_key = next((tag[0] for arm in arms if (tag := self.source.tag(arm))), None)
        cases = [self._case(arm, arms, others, site, tag_key) for arm in arms]
        if all(case.work.idle for case in cases):
            return IDLE
        cases.sort(key=lambda case: (not case.needs, not case.tags))
        return self._node(site, UnionNode(site.at, tag_key, tuple(cases)))

    def _case(self, arm: Type, arms: list[Type], others: list[Type], site: Site, tag_key: str | None) -> Case:
        kind = self.source.resolve(arm)
        needs = self._needs(arm, arms) if isinstance(kind, Object) else {}
        tags = self.source.tags(arm, tag_key) if tag_key else ()
        return Case(json_type(kind), self._arm_work(arm, arms, others, site), tags, needs)

    def _arm_work(self, arm: Type, arms: list[Type], others: list[Type], site: Site) -> Work:
        match = self._match(arm, arms, others)
        if match is not None:
            return self.work(arm, match, site)
        name = arm.name if isinstance(arm, Ref) else words(arm)
        decision = self._rule("arm-removed", site, f"{words_all(others)} remain", arm=name)
        if decision is None:
            return Work(before=Action("placeholder", {"name": name}))
        if decision.do == "keep":
            return IDLE
        if decision.do == "as":
            return Work(self.pair(name, str(decision.arguments["definition"])))
        result_is_target = decision.do == "drop-item" or bool(decision.arguments.get("final", False))
        arguments = {key: value for key, value in decision.arguments.items() if key != "final"}
        return Work(before=Action(decision.do, arguments), again=not result_is_target)

    def _match(self, arm: Type, arms: Iterable[Type], others: Iterable[Type]) -> Type | None:
        """The target's arm for this arm's values: by its tag where only one has it, by name, or by its shape."""
        tag = self.source.tag(arm)
        if tag is not None and sum(self.source.tag(a) == tag for a in arms) == 1:
            same = [other for other in others if self.target.tag(other) == tag]
            if len(same) == 1:
                return same[0]
        for other in others:
            if isinstance(arm, Ref) and isinstance(other, Ref) and self.new_name(arm.name) == other.name:
                return other
        kind = self.source.resolve(arm)
        if isinstance(kind, Object):
            fitting = [other for other in others if self._takes(kind, tag, other)]
            return max(fitting, key=lambda other: self._shared(kind, other), default=None)
        return next((other for other in others if fits(kind, self.target.resolve(other))), None) or self._like(
            kind, others
        )

    def _like(self, kind: Type, others: Iterable[Type]) -> Type | None:
        """A list goes to a list, whatever its items."""
        if not isinstance(kind, Array):
            return None
        return next((other for other in others if isinstance(self.target.resolve(other), Array)), None)

    def _takes(self, kind: Object, tag: tuple[str, str] | None, other: Type) -> bool:
        shape = self.target.resolve(other)
        if not isinstance(shape, Object) or self.target.tag(other) != tag:
            return False
        needed = {name for name, member in kind.fields.items() if member.required}
        asked = {name for name, member in shape.fields.items() if member.required}
        return needed <= shape.fields.keys() and asked <= needed

    def _shared(self, kind: Object, other: Type) -> int:
        shape = self.target.resolve(other)
        return len(kind.fields.keys() & shape.fields.keys()) if isinstance(shape, Object) else 0

    def _needs(self, arm: Type, arms: list[Type]) -> dict[str, Type]:
        """Required fields that tell an arm from the other arms with its tag, none of which requires them."""
        tag = self.source.tag(arm)
        shape = self.source.resolve(arm)
        rivals = [
            r
            for a in arms
            if a != arm and self.source.tag(a) == tag and isinstance(r := self.source.resolve(a), Object)
        ]
        if not rivals or not isinstance(shape, Object):
            return {}
        taken = {name for rival in rivals for name, member in rival.fields.items() if member.required}
        own = {name: member.type for name, member in shape.fields.items() if member.required and name not in taken}
        return own or {
            name: m.type for name, m in shape.fields.items() if m.required and (tag is None or name != tag[0])
        }

    # --- rulings -----------------------------------------------------------------------------------------------------

    def ask_renames(self) -> None:
        """Ask about every definition that is gone while a new one has the same fields: is it the same one?"""
        if self.direction == "down":
            return
        gone = self.source.definitions.keys() - self.target.definitions.keys()
        come = self.target.definitions.keys() - self.source.definitions.keys()
        for old in sorted(gone):
            twins = [new for new in sorted(come) if self._alike(old, new)]
            if twins and self.new_name(old) == old:
                site = Site(old, twins[0], f"/$defs/{old}", f"/$defs/{twins[0]}")
                self._rule("renamed", site, f"{', '.join(twins)} has the same fields")

    def _alike(self, old: str, new: str) -> bool:
        one, two = self.source.definitions[old], self.target.definitions[new]
        if not isinstance(one, Object) or not isinstance(two, Object) or len(one.fields) < 2:
            return False
        same_tag = self.source.tag(one) == self.target.tag(two)
        return one.fields.keys() == two.fields.keys() and same_tag and "method" not in one.fields

    def new_name(self, definition: str) -> str:
        """The name of a definition of the source in the target, by the overlay's renames."""
        for rename in self.overlay.renames:
            old, new = (rename.old, rename.new) if self.direction == "up" else (rename.new, rename.old)
            if rename.what == "definition" and definition == old:
                self.overlay.use(rename.what + rename.old, rename.at)
                return new
        return definition

    def _rule(self, kind: str, site: Site, detail: str, *, arm: str = "", needed: bool = True) -> Decision | None:
        change = Change(self.direction, kind, site.at, detail, site.source_pointer, site.target_pointer, arm)
        decision = self.overlay.rule_on(change)
        if decision is None and needed:
            self.undecided[(kind, site.at, arm)] = change
        if decision is not None and self.profile not in decision.profiles:
            return None
        return decision
