"""Source type and target type in, nodes out: what can be proved is derived, and for the rest the overlay is asked.

Called by `plan_step`. A change that no overlay entry rules on is collected, not raised, so that a person sees all of
them at once; its safe default is taken meanwhile. Must not live here: the wording of generated code, or anything
about particular methods or fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from codegen.compare.arms import Arms, Told
from codegen.compare.type_facts import fits, json_type, words, words_all
from codegen.names import path_of, snake
from codegen.plan.actions import CHECK, declares
from codegen.plan.cosmetic import cosmetic_fields, cosmetic_values
from codegen.plan.moves import arranged, left_and_come, most_like
from codegen.plan.nodes import Action, ArrayNode, Case, Key, Member, Node, ObjectNode, UnionNode, Work
from codegen.plan.rulings import check_arguments, check_copy, check_other, check_rename, check_verb, mapped_values
from codegen.plan.sites import Parts, Site
from codegen.read.fact_entries import CAPABILITIES
from codegen.read.model import Anything, Array, Field, Json, Literal, Object, Ref, Scalar, Spec, Type, Union
from codegen.read.overlay import NO_INSTEAD, Change, Decision, Instead, Overlay, Rename
from codegen.read.protocol import REVISION

IDLE = Work()
NOTHING = Object()
"""What an object is made from that has to be there and is not."""


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
    perhaps_none: set[tuple[str, str, str]] = field(default_factory=set)
    """Changes that are none if a required field has a new name: they are asked about once that is decided."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """The source's methods that have another name in the target."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The source's definitions that have another name in the target, by the overlay's renames and what they imply."""
    _pairs: dict[tuple[str, str], Key] = field(default_factory=dict)
    _places: dict[tuple[str, int, int], Work] = field(default_factory=dict)

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
        if _is_constant(one) and _is_constant(two) and site.at.endswith(".code") and one != two:
            return self._recoded(one, two, site)
        return IDLE if fits(one, two) else self._narrowed(site, self._arms.becomes(source, target), source, target)

    def pair(self, source: str, target: str) -> Key:
        """The node for two definitions, derived at first sight."""
        if (source, target) in self._pairs:
            return self._pairs[source, target]
        key = self.free_key(snake(source) if source == target else f"{snake(source)}_as_{snake(target)}")
        self._pairs[source, target] = key
        site = Site(source, target, f"/$defs/{source}", f"/$defs/{target}")
        work = self.work(self.source.definitions[source], self.target.definitions[target], site)
        if work.before is not None or work.node in set(self._pairs.values()) - {key}:
            # The node of another definition stays where it is: `EmptyResult` is only another name for `Result`.
            self.nodes[key] = UnionNode(source, None, (Case("object", work),))
        elif work.node is not None and work.node != key:
            self.nodes[key] = self.nodes.pop(work.node)
            # Another pair of names may be of these same two objects: it has to find the node where it is now.
            self._places |= {place: Work(key) for place, known in self._places.items() if known == work}
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
        key = self.free_key(snake(site.at))
        self.nodes[key] = node
        return Work(key)

    def free_key(self, key: Key) -> Key:
        """The key, or one like it where it is taken: `RequestParams` and `Request.params` would both like to be
        `request_params`.
        """
        while key in self.nodes or key in self._pairs.values():
            key += "_"
        return key

    # --- arrays and scalars ------------------------------------------------------------------------------------------

    def _array(self, source: Array, target: Array, site: Site) -> Work:
        item = self.work(source.item, target.item, site.below("[]", "/items"))
        work = self._node(site, ArrayNode(site.at, item, target.min_items))
        most, least = target.max_items, target.min_items
        limits = [f"at most {most} items"] * (
            most is not None and (source.max_items is None or source.max_items > most)
        )
        limits += [f"at least {least} items"] * (source.min_items < least)
        if not limits:
            return work
        # Of the list as it comes: what its items have to become is the node's to do, after this.
        counted = Array(Anything(), target.max_items, target.min_items)
        return Work(work.node, self._narrowed(site, " and ".join(limits), source, counted).before)

    def _recoded(self, source: Literal, target: Literal, site: Site) -> Work:
        """The code of an error that has another in the target: what an `[[error]]` says of it holds for frames."""
        old, new = source.values[0], target.values[0]
        entry: dict[str, object] = {"name": f"move-code-{old}", "direction": self.direction, "codes": [old, old]}
        entry |= {"do": "replace-code", "with": {"code": new}}
        if not any(one.rules_on(self.direction, old) for one in self.overlay.errors):
            self.ask("code-changed", site, f"{old} becomes {new}", ("error", entry))
        return Work(before=Action("map-value", {"to": {old: new}, CHECK: target}))

    def _narrowed(self, site: Site, detail: str, source: Type, target: Type) -> Work:
        decision = self._rule("narrowed", site, detail)
        if decision is None:
            return Work(before=Action("drop-invalid", {CHECK: target}))
        if decision.do == "keep":
            return IDLE
        arguments = dict(decision.arguments)
        check_arguments(self.overlay, decision, self.target, target, site.target_at)
        if decision.do == "map-value":
            arguments["to"] = mapped_values(self.overlay, decision, self.source, source, site.at)
        if declares(decision.do, "checked") or decision.do == "refuse":
            arguments[CHECK] = target
        return Work(before=Action(decision.do, arguments, entry=decision.name))

    # --- objects -----------------------------------------------------------------------------------------------------

    def _object(self, source: Object, target: Object, site: Site) -> Work:
        place = site.at, id(source), id(target)
        if place not in self._places:
            # What stands here is the same however one comes here: by its definition, or by the name of its model.
            self._places[place] = self._new_object(source, target, site)
        return self._places[place]

    def _new_object(self, source: Object, target: Object, site: Site) -> Work:
        there = arranged(self.overlay, self.direction, site.at, self.source, source)
        source = there.shape
        names = self._renamed_fields(site, source, target)
        parts = Parts(owners=there.owners)
        parts.asked = self._ask_moves(source, target, site, names)
        self._known(source, target, site, names, parts)
        self._new(source, target, site, names, parts)
        guarded = (self.profile == "strict" or self.direction == "down") and isinstance(source.extra, Anything)
        declares = re.split(r"[.\[{]", site.at, maxsplit=1)[0] in CAPABILITIES.values()
        lost = (*parts.drops, *parts.guards)
        asked = self.overlay, self.direction, self.source, site.at, source
        node = ObjectNode(
            site.at,
            hooks_before=self._hooks(site, "before"),
            moves=there.moves,
            renames={old: new for old, new in names.items() if old != new},
            drops=tuple(parts.drops),
            silent=parts.silent,
            forgotten=tuple(parts.forgotten),
            presence_matters=declares,
            guards=parts.guards if guarded else {},
            cosmetic={} if declares else cosmetic_fields(*asked, lost),
            implied=cosmetic_values(*asked, parts.drops),
            members=parts.members,
            extra=self.work(source.extra, target.extra, site.below("{}", "/additionalProperties")),
            extra_except=tuple(target.fields),
            extra_null_passes=not self.source.takes_null(source.extra),
            fills=parts.fills,
            entries=parts.entries,
            computed=parts.computed,
            facts=parts.facts,
            named_in=tuple(parts.named_in),
            demands=tuple(parts.demands),
            hooks_after=self._hooks(site, "after"),
        )
        return self._node(site, node)

    def _known(self, source: Object, target: Object, site: Site, names: Mapping[str, str], parts: Parts) -> None:
        """Fields that the source names: converted where the target names them too, else dropped."""
        for old, member in source.fields.items():
            new = names.get(old, old)
            below = site.along([old], [old])
            if old in parts.owners:
                below = below.of(parts.owners[old], target.fields.get(new))
            if new in target.fields:
                if self._names_revision(new, target.fields[new]) or self._names_revision(old, member):
                    parts.named_in.append(new)
                elif (method := self._arms.new_method(self.methods, new, member, target.fields[new])) is not None:
                    parts.facts[new] = method
                else:
                    rename = self._rename(site, old, new) if old != new else None
                    parts.members[new] = self._member(member, target.fields[new], below, rename)
            elif self._names_revision(old, member):
                self._kept(below, target)
                self._ask_moved(old, source, target, site, parts.asked)
                parts.forgotten.append(old)
            elif not self._kept(below, target):
                self._ask_moved(old, source, target, site, parts.asked)
                parts.drops.append(old)
                value = self._restored(member, below)
                if value is not None:
                    parts.silent[old] = value

    def _names_revision(self, name: str, member: Field) -> bool:
        """Whether a field has to say which revision a frame is of."""
        says = name.rpartition("/")[2] == REVISION and member.required
        return says and member.type == Scalar(frozenset({"string"}))

    def _ask_moved(self, old: str, source: Object, target: Object, site: Site, asked: set[str]) -> None:
        """Ask about a field that goes where a new one comes beside it: is it the same one?"""
        if self.direction == "down" or not isinstance(target.extra, Anything | Union):
            return
        if old in asked:
            return
        new = {n: member for n, member in target.fields.items() if n not in source.fields and n not in asked}
        like = most_like(old, source.fields[old], new, self._arms.same_type)
        if like is not None:
            entry = {"what": "field", "old": old, "new": like.name, "at": site.at}
            is_open = self.ask("renamed", site.along([old], [like.name]), like.hint, ("rename", entry))
            if is_open and source.fields[old].required:
                self.perhaps_none |= {("up", "required", f"{site.at}.{like.name}")}
                self.perhaps_none |= {("down", "required", f"{site.at}.{old}")}

    def _ask_moves(self, source: Object, target: Object, site: Site, names: Mapping[str, str]) -> set[str]:
        """Ask about fields that one object lost and another one beside it, above it or in it got.

        Returns:
            The fields of this object that are asked about.
        """
        asked: set[str] = set()
        if self.direction == "down" or not isinstance(target.extra, Anything | Union):
            return asked
        for old, new, hint in left_and_come(self.source, self.target, source, target, self._arms.same_type):
            if old[0] not in names or len(old) > 1:
                entry = {"at": site.at, "old": list(old), "new": list(new)}
                self.ask("moved", site.along(old, new), hint, ("move", entry))
                asked |= {old[0], new[0]} - (source.fields.keys() & target.fields.keys())
        return asked

    def _rename(self, site: Site, old: str, new: str) -> Rename | None:
        """The `[[rename]]` of a field that says what becomes of its value."""
        names = (old, new) if self.direction == "up" else (new, old)
        found = [one for one in self.overlay.renames if site.at in one.at and (one.old, one.new) == names]
        return found[0] if found and (found[0].factor != 1 or found[0].negated) else None

    def _member(self, source: Field, target: Field, site: Site, rename: Rename | None = None) -> Member:
        if rename is not None:
            check_rename(self.overlay, rename, source.type, target.type, self.source, self.target, site.at)
            times, over = (rename.factor, 1) if self.direction == "up" else (1, rename.factor)
            scaled = Action("scale", {"times": times, "over": over, CHECK: target.type})
            work = Work(before=Action("negate") if rename.negated else scaled)
            return Member(work, optional=not source.required, needed=source.required and target.required)
        work = self.work(source.type, target.type, site)
        one, two = self.source.resolve(source.type), self.target.resolve(target.type)
        both_objects = isinstance(one, Object) and isinstance(two, Object)
        ensure = target.required and not source.required and both_objects and _asks_for_something(two)
        prune = source.required and not target.required and both_objects
        made = None
        if ensure and isinstance(one, Object) and any(field_.required for field_ in one.fields.values()):
            made = self.work(NOTHING, two, site)
        nulls = not self.source.takes_null(source.type)
        needed = source.required and target.required
        return Member(work, ensure, prune, not source.required, nulls, made, needed)

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
        if member.required and _is_constant(kind):
            return kind.values[0]
        return self.synthesised.get(site.at)

    def _new(self, source: Object, target: Object, site: Site, names: Mapping[str, str], parts: Parts) -> None:
        """Fields that only the target names, and those that it requires where the source did not."""
        olds = {new: old for old, new in names.items()}
        for name, member in target.fields.items():
            below = site.along([name], [name])
            old = source.fields.get(olds.get(name, name))
            kind = self.target.resolve(member.type)
            if name not in olds and not isinstance(kind, Anything) and not self._names_revision(name, member):
                parts.guards[name] = member.type
            if not member.required or name in parts.facts or (old is not None and old.required):
                continue
            if self._names_revision(name, member):
                parts.named_in += [] if name in parts.named_in else [name]
            elif _is_constant(kind) and (old is not None or not (source.says_open or source.lists_none)):
                parts.fills[name] = self.filled[below.target_at] = kind.values[0]
            elif _asks_for_something(kind) and old is None:
                parts.members[name] = Member(self.work(NOTHING, member.type, below), ensure=True)
            elif name not in parts.members or not parts.members[name].ensure:
                self._required(name, member.type, below, source, parts)

    def _required(self, name: str, wanted: Type, site: Site, source: Object, parts: Parts) -> None:
        kind = self.target.resolve(wanted)
        always = f" and is always {json.dumps(kind.values[0])}" if _is_constant(kind) else ""
        decision = self._rule("required", site, f"{name} becomes required{always}")
        if decision is None or decision.do == "refuse":
            parts.demands.append(name)
        elif decision.do == "default":
            check_arguments(self.overlay, decision, self.target, wanted, site.target_at)
            parts.fills[name] = self.filled[site.target_at] = decision.arguments.get("value")
            parts.entries[name] = decision.name
        else:
            copied = source.fields.get(str(decision.arguments.get("field")))
            types = self.source.resolve(copied.type) if copied else None, self.target.resolve(wanted)
            check_copy(self.overlay, decision, *types, site.target_at)
            parts.computed[name] = Action(decision.do, dict(decision.arguments), entry=decision.name)

    def _renamed_fields(self, site: Site, source: Object, target: Object) -> dict[str, str]:
        """Names of the source's fields in the target, for those that the target has."""
        names = {name: name for name in source.fields if name in target.fields}
        for rename in self.overlay.renames:
            old, new = (rename.old, rename.new) if self.direction == "up" else (rename.new, rename.old)
            if rename.what == "field" and site.at in rename.at and old in source.fields and new in target.fields:
                self.overlay.use(rename.what + rename.old, site.at)
                names[old] = new
        return names

    def _hooks(self, site: Site, when: str) -> tuple[Action, ...]:
        found = []
        for hook in self.overlay.hooks:
            if hook.at == site.at and hook.direction == self.direction and self.profile in hook.profiles:
                self.overlay.use(hook.name, hook.at)
                if hook.kind == when:
                    found.append(Action(hook.do, dict(hook.arguments), hook.when, entry=hook.name))
        return tuple(found)

    # --- unions ------------------------------------------------------------------------------------------------------

    def _union(self, source: Type, target: Type, site: Site) -> Work:
        if isinstance(self.source.resolve(source), Anything):
            return self._narrowed(site, f"any value becomes {words(target)}", source, target)
        arms = list(self.source.arms(source))
        tag_key = self._arms.tag_key(arms)
        cases = [self._case(arm, arms, source, target, site, tag_key) for arm in arms]
        if all(case.work.idle for case in cases):
            return IDLE
        cases.sort(key=lambda case: case.rank)
        return self._node(site, UnionNode(site.at, tag_key, tuple(cases)))

    def _case(self, arm: Type, arms: list[Type], source: Type, target: Type, site: Site, tag_key: str | None) -> Case:
        kind = self.source.resolve(arm)
        told = self._arms.told(arm, arms) if isinstance(kind, Object) else Told()
        tags = self.source.tags(arm, tag_key) if tag_key else ()
        work = self._arm_work(arm, source, target, site)
        scalar = kind if json_type(kind) == "scalar" else Anything()
        return Case(json_type(kind), work, tags, told.needs, scalar, told.shows, told.shared)

    def _arm_work(self, arm: Type, source: Type, union: Type, site: Site) -> Work:
        others = list(self.target.arms(union))
        match = self._arms.match(arm, list(self.source.arms(source)), others)
        if match is not None:
            return self.work(arm, match, site.into(self.source.way_to(source, arm), self.target.way_to(union, match)))
        kind = self.source.resolve(arm)
        near = [other for other in others if self._arms.is_near(kind, self.target.resolve(other))]
        if near:
            target = near[0] if len(near) == 1 else Union(tuple(near))
            return self._narrowed(site, self._arms.becomes(arm, target), arm, target)
        name = arm.name if isinstance(arm, Ref) else words(arm)
        decision = self._rule(
            "arm-removed", site, f"{words_all(others)} {'remains' if len(others) == 1 else 'remain'}", arm=name
        )
        if decision is None:
            return Work(before=Action("placeholder", {"name": name}))
        if decision.do == "keep":
            return IDLE
        if decision.do == "as":
            other = check_other(self.overlay, decision, arm, self.target)
            return Work(self.pair(name, other))
        arguments = {key: value for key, value in decision.arguments.items() if key != "final"}
        final = bool(decision.arguments.get("final")) or declares(decision.do, "gone")
        if declares(decision.do, "checked"):
            arguments[CHECK], final = Union(tuple(others)), True
            check_arguments(self.overlay, decision, self.target, arguments[CHECK], site.target_at)
        if decision.do == "map-value":
            arguments["to"] = mapped_values(self.overlay, decision, self.source, arm, site.at)
        return Work(before=Action(decision.do, arguments, entry=decision.name), again=not final)

    @property
    def _arms(self) -> Arms:
        return Arms(self.source, self.target, self.new_name)

    # --- rulings -----------------------------------------------------------------------------------------------------

    def ask(self, kind: str, site: Site, detail: str, instead: Instead = NO_INSTEAD) -> bool:
        """Ask about something that may be the same as what came; the entry *instead* would say that it is.

        Returns:
            Whether nobody has decided it.
        """
        return self._rule(kind, site, detail, instead=instead) is None

    def new_name(self, definition: str) -> str:
        """The name of a definition of the source in the target."""
        for rename in self.overlay.renames:
            old, new = (rename.old, rename.new) if self.direction == "up" else (rename.new, rename.old)
            if rename.what == "definition" and definition == old:
                self.overlay.use(rename.what + rename.old)
                return new
        return self.names.get(definition, definition)

    def _rule(
        self, kind: str, site: Site, detail: str, *, arm: str = "", needed: bool = True, instead: Instead = NO_INSTEAD
    ) -> Decision | None:
        places = self.source.written(site.source_pointer), self.target.written(site.target_pointer)
        change = Change(self.direction, kind, site.at, detail, *places, arm, instead, site.target_pointer)
        decision = self.overlay.rule_on(change)
        if decision is not None:
            check_verb(self.overlay, decision)
        if decision is None and needed:
            self.undecided[(kind, site.at, arm)] = change
        if decision is not None and self.profile not in decision.profiles:
            return None
        return decision


def _is_constant(type_: Type) -> TypeGuard[Literal]:
    """Whether there is one value alone."""
    return isinstance(type_, Literal) and len(type_.values) == 1


def _asks_for_something(type_: Type) -> bool:
    """Whether an object that has to be there can be made of what it has to have: else `{}` would be made up."""
    return isinstance(type_, Object) and any(member.required for member in type_.fields.values())
