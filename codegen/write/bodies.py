"""The functions of a step, statement by statement: what a node says is to be done, as lines of Python.

In a function, `x` is the value as it came, `y` what is returned: the same object until something changes, and then a
copy. `v` and `w` are a member before and after. What is in a line is in `spelling`; ruff lays the lines out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, assert_never

from codegen.names import line as one_line
from codegen.plan.actions import action, declares
from codegen.plan.nodes import Action, ArrayNode, Case, Member, ObjectNode, UnionNode, Work
from codegen.write.spelling import Speller, negate

MOST_KEYS_ASKED = 6
"""To ask whether an item has none of more keys than this costs as much as the call that it would save."""

COPY: Final = "y = x.copy() if y is x else y"
Lines: TypeAlias = Iterable[str]


def body_of(speller: Speller) -> list[str]:
    """The lines of the function of a node."""
    match node := speller.node:
        case ObjectNode():
            return list(_object(speller, node))
        case ArrayNode():
            return list(_array(speller, node))
        case UnionNode():
            return list(_union(speller, node))
    assert_never(node)


def _block(head: str, lines: Lines) -> list[str]:
    return [head, *(f"    {line}" for line in lines)]


def _comment(action: Action | None) -> list[str]:
    """The overlay entry that asks for what follows."""
    return [one_line(f"# {action.entry}")] if action is not None and action.entry else []


def _put(key: str, value: str) -> list[str]:
    return [COPY, f"y[{key}] = {value}"]


def _leave_out(key: str) -> list[str]:
    return [COPY, f"del y[{key}]"]


def _object(speller: Speller, node: ObjectNode) -> Iterator[str]:
    yield from _block("if type(x) is not dict:", ['raise wrong(at, "an object", x)'])
    owns = _owns_hooked(node)
    v = "y" if owns else "x"
    yield from ["y = x"] if owns else []
    for hook in () if mending(node) else node.hooks_before:
        yield from _hook_before(speller, hook, v)
    work = [line for part in PARTS for line in part(speller, node)]
    if not work:
        yield f"return {v}"
        return
    yield from [] if owns else ["y = x"]
    yield from work
    yield "return y"


def _owns_hooked(node: ObjectNode) -> bool:
    """Whether what the hooks before the rest give may be changed, and nothing looks at what they were given."""
    fresh = all(declares(hook.name, "fresh") for hook in node.hooks_before)
    return fresh and not node.renames and node.extra.idle


def _hook_before(speller: Speller, hook: Action, v: str) -> list[str]:
    lines = [*_comment(hook), f"{v} = {speller.call(hook, v, 'at')}"]
    lines += _block(f"if {v} is GONE:", ["return GONE"]) if declares(hook.name, "gone") else []
    condition = condition_of(hook, v)
    return _block(f"if {condition}:", lines) if condition else lines


def condition_of(hook: Action, v: str) -> str:
    """The condition under which a hook before the rest has something to do with *v*; empty if it always may."""
    parts = [f"{hook.when!r} in {v}"] if hook.when else []
    parts += [f"out.target not in {hook.vain_towards!r}"] if hook.vain_towards else []
    return " and ".join(parts)


def mending(node: ObjectNode) -> dict[str, Action]:
    """The hook before the rest by the guarded key that it mends: it is called only where that would have to go."""
    if len(node.hooks_before) != 1 or node.moves or node.renames or node.computed:
        return {}
    (hook,) = node.hooks_before
    declared = action(hook.name)
    key = declared.facts.get("mends", "") if declared is not None and declared.has("fresh") else ""
    return {key: hook} if key in node.guards and not condition_of(hook, "y") else {}


def _moves(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for one in node.moves:
        more = ("" if one.make else ", make=False") + (", prune=True" if one.prune else "")
        yield f"y = do.move(y, {one.old!r}, {one.new!r}, at, out{more})"


def _renames(speller: Speller, node: ObjectNode) -> Lines:
    return [f"y = do.rename(x, y, at, out, {node.renames!r})"] if node.renames else []


def _computed(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for key, computed in node.computed.items():
        made = [*_comment(computed), f"w = {speller.call(computed, 'y', 'at')}", *_put(repr(key), "w")]
        yield from _block(f"if {key!r} not in y:", made)


def _forgotten(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for key in node.forgotten:
        yield from _block(f"if {key!r} in y:", _leave_out(repr(key)))


def _drops(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for key in node.drops:
        yield from _block(f"if {key!r} in y:", [COPY, _drop(node, key)])


def _drop(node: ObjectNode, key: str) -> str:
    """The call that takes a field away and says what that loses."""
    cosmetic = key in node.cosmetic
    if key in node.silent:
        return f"do.lose_unless(y, {key!r}, {node.silent[key]!r}, at, out{', cosmetic=True' if cosmetic else ''})"
    if key in node.implied:
        return f"do.lose_implied(y, {key!r}, {node.implied[key]!r}, at, out)"
    if node.cosmetic.get(key):
        return f"do.lose_object(y, {key!r}, {node.cosmetic[key]!r}, at, out)"
    return f"do.lose{'_declared' if node.presence_matters else '_cosmetic' if cosmetic else ''}(y, {key!r}, at, out)"


def _guards(speller: Speller, node: ObjectNode) -> Iterator[str]:
    mends = mending(node)
    for key, type_ in node.guards.items():
        wrong = negate(speller.way.checks.expression(type_, f"y[{key!r}]"))
        lines = [COPY, f"do.lose{'_cosmetic' if key in node.cosmetic else ''}(y, {key!r}, at, out)"]
        if key in mends:
            mended = [*_comment(mends[key]), f"y = {speller.call(mends[key], 'y', 'at')}"]
            lines = [*mended, *_block(f"if {wrong}:", lines)]
        yield from _block(f"if {key!r} in y and {wrong}:", lines)


def _members(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for key, member in node.members.items():
        place = f"(at, {key!r})"
        yield from _comment(member.work.before)
        if member.ensure:
            yield from _ensure(speller, key, member, place)
            continue
        lines = [f"w = {speller.work(member.work, 'v', place)}", *_settle(speller, key, member)]
        if not member.optional:
            yield from _block(f"if {key!r} not in y:", [f"raise MissingRequiredField(pointer(at), {key!r})"])
            yield from [f"v = y[{key!r}]", *lines]
        elif member.null_passes:
            yield from [f"v = y.get({key!r})", *_block("if v is not None:", lines)]
        else:
            yield from _block(f"if {key!r} in y:", [f"v = y[{key!r}]", *lines])


def _ensure(speller: Speller, key: str, member: Member, place: str) -> Iterator[str]:
    """Convert a member that has to be there; what is absent is made, without a call where it is always the same."""
    work, made = speller.work(member.work, "v", place), speller.from_nothing(member.made or member.work)
    if not made and member.made is not None:
        made = speller.work(member.made, "{}", place)
    yield f"v = y.get({key!r})"
    if made:
        yield from [*_block("if v is None:", [f"w = {made}"]), *_block("else:", [f"w = {work}"])]
    else:
        yield f"w = {speller.work(member.work, '{} if v is None else v', place)}"
    yield from _block("if w is not v:", _put(repr(key), "w"))


def _settle(speller: Speller, key: str, member: Member) -> list[str]:
    """Put a converted member into the object, or leave it out."""
    changed = _block("if w is not v:", _put(repr(key), "w"))
    if member.prune and not member.optional:
        return [*_block("if w == {} and v != {}:", _leave_out(repr(key))), *_otherwise(changed)]
    if not speller.may_go(member.work):
        return changed
    if member.needed:
        return [*_block("if w is GONE:", [f"raise do.without_counterpart((at, {key!r}), v)"]), *changed]
    return [*_block("if w is GONE:", _leave_out(repr(key))), *_otherwise(changed)]


def _otherwise(lines: Sequence[str]) -> list[str]:
    return [f"el{lines[0]}", *lines[1:]]


def _extra(speller: Speller, node: ObjectNode) -> Lines:
    """The work on the values of all other keys."""
    if node.extra.idle:
        return []
    changed = _block("if w is not v:", _put("k", "w"))
    if speller.may_go(node.extra):
        changed = [*_block("if w is GONE:", _leave_out("k")), *_otherwise(changed)]
    lines = _block(f"if k in {node.extra_except!r}:", ["continue"]) if node.extra_except else []
    there = "v is not None and k in y" if node.extra_null_passes else "k in y"
    lines += _block(f"if {there}:", [f"w = {speller.work(node.extra, 'v', '(at, k)')}", *changed])
    return [*_comment(node.extra.before), *_block("for k, v in x.items():", lines)]


def _demands(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for key in node.demands:
        yield from _block(f"if {key!r} not in y:", [f"raise do.without_field(at, {key!r})"])


def _facts(speller: Speller, node: ObjectNode) -> Iterator[str]:
    """What the target always says; which revision a frame is of first."""
    if node.named_in:
        yield f"named = {speller.way.last}"
    said = dict.fromkeys(node.named_in, "named") | {key: repr(value) for key, value in node.facts.items()}
    for key, value in said.items():
        yield from _block(f"if y.get({key!r}) != {value}:", _put(repr(key), value))


def _fills(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for key, value in node.fills.items():
        entry = [one_line(f"# {node.entries[key]}")] if key in node.entries else []
        yield from _block(f"if {key!r} not in y:", [*entry, *_put(repr(key), repr(value))])


def _hooks_after(speller: Speller, node: ObjectNode) -> Iterator[str]:
    for hook in node.hooks_after:
        yield from [*_comment(hook), f"h = {speller.call(hook, 'y', 'at')}"]
        yield from _block("if h is GONE:", ["return GONE"]) if declares(hook.name, "gone") else []
        yield "y = h"


PARTS: Final[Sequence[Callable[[Speller, ObjectNode], Lines]]] = (
    _moves,
    _renames,
    _computed,
    _forgotten,
    _drops,
    _guards,
    _members,
    _extra,
    _demands,
    _facts,
    _fills,
    _hooks_after,
)
"""What is done to an object between the hooks before and its return, in this order."""


def _array(speller: Speller, node: ArrayNode) -> Iterator[str]:
    gone, untouched = speller.may_go(node.item), _untouched(speller, node.item, "v")
    if not untouched:
        items = f"(x, at, out, {speller.reference(node.item)})"
        yield from _comment(node.item.before)
        yield f"return {_enough(node, f'do.each_left{items}') if gone else f'do.each{items}'}"
        return
    yield from _block("if type(x) is not list:", ['raise wrong(at, "a list", x)'])
    work = [f"w = {speller.work(node.item, 'v', '(at, i)')}", *_block("if w is not v:", _put("i", "w"))]
    yield from ["y = x", *_block("for i, v in enumerate(x):", [*_block(f"if {untouched}:", ["continue"]), *work])]
    yield f"return {_enough(node, 'do.without_gone(x, y, at, out)') if gone else 'y'}"


def _enough(node: ArrayNode, items: str) -> str:
    """An expression for items of which some may have gone, if enough are left of them."""
    return f"do.at_least({items}, at, {node.least})" if node.least else items


def _untouched(speller: Speller, work: Work, v: str) -> str:
    """The condition under which an item passes as it came, without a call; empty where no short one tells."""
    item = speller.node_of(work)
    keys = item.touches() if isinstance(item, ObjectNode) and work.before is None else None
    if keys is None or len(keys) > MOST_KEYS_ASKED:
        return ""
    return " and ".join([f"type({v}) is dict", *(f"{key!r} not in {v}" for key in keys)])


def _union(speller: Speller, node: UnionNode) -> Iterator[str]:
    for case in node.cases:
        test, done = _test(speller, node, case), f"return {speller.work(case.work, 'x', 'at')}"
        yield from _comment(case.work.before)
        yield from [done] if test == "True" else _block(f"if {test}:", [done])
    kinds = {case.json_type for case in node.cases}
    if node.tag_key and "dict" in kinds:
        lists = _block("if type(x) is list:", ["return x"]) if "list" in kinds else []
        untagged = f"type(x) is not dict or type(x.get({node.tag_key!r})) is not str"
        yield from _block(f"if {untagged}:", [*lists, f'raise wrong(at, "an object with {node.tag_key!r}", x)'])
    yield "return x"


def _test(speller: Speller, node: UnionNode, case: Case) -> str:
    """The condition under which a value is of a union's case."""
    if case.json_type == "object":
        return "True"
    if case.json_type == "list":
        return "type(x) is list"
    if case.json_type == "scalar":
        return speller.way.origins.expression(case.scalar, "x")
    parts = ["type(x) is dict"]
    if case.tags:
        same = f"== {case.tags[0]!r}" if len(case.tags) == 1 else f"in {case.tags!r}"
        parts.append(f"x.get({node.tag_key!r}) {same}")
    for key, type_ in case.needs.items():
        parts += [f"{key!r} in x", f"({speller.way.origins.expression(type_, f'x[{key!r}]')})"]
    if case.shows:
        shown = {key: speller.way.origins.expression(type_, f"x[{key!r}]") for key, type_ in case.shows.items()}
        parts.append(f"({' or '.join(f'({key!r} in x and ({test}))' for key, test in shown.items())})")
    return " and ".join(part for part in parts if part != "(True)")
