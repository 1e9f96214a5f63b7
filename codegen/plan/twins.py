"""What may be the same thing under another name: definitions, fields and methods that went where one like it came.

Found by shape, asked of a person, decided by `[[rename]]` or by `apart`. Must not live here: what a rename leads to
(`derive`, `plan`). Called by `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.plan.derive import Derivation
from codegen.plan.moves import RESEMBLANCE, resemblance
from codegen.plan.sites import Site
from codegen.read.model import Method, Object, Ref, Spec, Type, Union


def ask_methods(way: Derivation) -> dict[str, str]:
    """Ask about unions of methods that are gone, and about methods that are gone where one of the same shape came.

    Returns:
        The definitions that would be renamed with those methods.
    """
    asked: dict[str, str] = {}
    if way.direction == "down":
        return asked
    for role, union in way.source.unions.items():
        if role not in way.target.unions:
            names = {method.name for method in way.source.methods.values() if role in method.roles}
            like = sorted(
                name
                for name, type_ in way.target.definitions.items()
                if name not in way.source.definitions and _method_names(way.target, type_) & names
            )
            found = f"; {', '.join(like)} has methods of it" if like else ""
            site = Site(union, like[0] if like else union, f"/$defs/{union}", f"/$defs/{like[0] if like else ''}")
            entry = {"what": "definition", "old": union, "new": like[0]} if like else {}
            said = f"it says which methods a {role} is{found}"
            way.ask("methods-gone", site, said, ("rename" if like else "", entry))
    gone = [method for name, method in way.source.methods.items() if name not in way.target.methods]
    come = [method for name, method in way.target.methods.items() if name not in way.source.methods]
    for method in gone:
        twins, said = _candidates(way, method, gone, [new for new in come if new.name not in way.methods.values()])
        if twins and method.name not in way.methods:
            entry = {"what": "method", "old": method.name, "new": twins[0].name}
            site = Site(method.name, twins[0].name, f"/$defs/{method.request}", f"/$defs/{twins[0].request}")
            way.ask("renamed", site, f"{', '.join(new.name for new in twins)} {said}", ("rename", entry))
            asked |= names_with(way, method, twins[0])
    for name, method in way.source.methods.items():
        other = way.target.methods.get(way.methods.get(name, name))
        if other is not None and other.kind != method.kind:
            site = Site(name, other.name, f"/$defs/{method.request}", f"/$defs/{other.request}")
            way.ask("kind-changed", site, f"{name} was a {method.kind}, and is a {other.kind}")
    return asked


def _candidates(way: Derivation, method: Method, gone: list[Method], come: list[Method]) -> tuple[list[Method], str]:
    """The new methods that may be one that is gone, and why: they are alike, or by name, or nothing else can be it."""
    sent = [new for new in come if (new.kind, new.senders) == (method.kind, method.senders)]
    if alike_ := [new for new in sent if _methods_alike(way, method, new)]:
        return alike_, "has the same shape"
    left = [old for old in gone if (old.kind, old.senders) == (method.kind, method.senders)]
    near = [new for new in sent if _names_alike(method.name, new.name)]
    if near and not any(_methods_alike(way, old, near[0]) for old in left):
        return near[:1], "has a similar name, and another shape"
    return (sent, "came from the same side, with another shape") if len(sent) == len(left) == 1 else ([], "")


def _names_alike(one: str, two: str) -> bool:
    """Whether two methods are about the same things (`tools/…`), or have names that are alike."""
    (area, own), (other, new) = (name.removeprefix("notifications/").rpartition("/")[::2] for name in (one, two))
    return (area == other != "") or resemblance(f"{area}/{own}", f"{other}/{new}") >= RESEMBLANCE


def _method_names(spec: Spec, type_: Type) -> set[str]:
    """The methods whose requests or notifications a union lists."""
    if not isinstance(type_, Union):
        return set()
    tags = [spec.tag(arm) for arm in spec.arms(type_)]
    return {tag[1] for tag in tags if tag is not None and tag[0] == "method"}


def _methods_alike(way: Derivation, one: Method, two: Method) -> bool:
    """Whether two methods of the same kind, of source and target, ask the same and answer the same."""
    results = zip(one.results[:1], two.results[:1], strict=True)
    return alike(way, one.request, two.request) and all(alike(way, *names) for names in results)


def names_with(way: Derivation, one: Method, two: Method) -> dict[str, str]:
    """The definitions that a method brings along under another name: those that begin as its request does."""
    ending = "Request" if one.kind == "request" else "Notification"
    old, new = one.request.removesuffix(ending), two.request.removesuffix(ending)
    pairs = {name: new + name.removeprefix(old) for name in way.source.definitions if name.startswith(old)}
    return {
        before: after
        for before, after in pairs.items()
        if before not in way.target.definitions
        and after in way.target.definitions
        and after not in way.source.definitions
    }


def ask_definitions(way: Derivation, asked: Mapping[str, str]) -> None:
    """Ask about every definition that is gone while a new one has the same fields: is it the same one?

    Args:
        asked: Definitions of methods that are asked about themselves.
    """
    if way.direction == "down":
        return
    gone = way.source.definitions.keys() - way.target.definitions.keys()
    come = way.target.definitions.keys() - way.source.definitions.keys()
    for old in sorted(gone - asked.keys()):
        twins = [new for new in sorted(come) if _twins(way, old, new)]
        if twins and way.new_name(old) == old:
            site = Site(old, twins[0], f"/$defs/{old}", f"/$defs/{twins[0]}")
            entry = {"what": "definition", "old": old, "new": twins[0]}
            way.ask("renamed", site, f"{', '.join(twins)} has the same fields", ("rename", entry))


def alike(way: Derivation, old: str, new: str) -> bool:
    """Whether two definitions name the same fields and require the same ones, but for the name of a method."""
    one, two = (way.source.resolve(Ref(old)), way.target.resolve(Ref(new)))
    if not isinstance(one, Object) or not isinstance(two, Object):
        return False
    if _needs_of(one) != _needs_of(two):
        return False
    if "params" not in one.fields or "params" not in two.fields:
        return True
    asked = way.source.resolve(one.fields["params"].type), way.target.resolve(two.fields["params"].type)
    if not isinstance(asked[0], Object) or not isinstance(asked[1], Object):
        return asked[0] == asked[1]
    names = asked[0].fields.keys(), asked[1].fields.keys()
    nested = names[0] <= names[1] or names[1] <= names[0]
    return nested and _required(asked[0]) == _required(asked[1])


def _twins(way: Derivation, old: str, new: str) -> bool:
    one, two = way.source.definitions[old], way.target.definitions[new]
    if not isinstance(one, Object) or not isinstance(two, Object) or len(one.fields) < 2:
        return False
    same_tag = way.source.tag(one) == way.target.tag(two)
    return one.fields.keys() == two.fields.keys() and same_tag and "method" not in one.fields


def _needs_of(shape: Object) -> dict[str, bool]:
    """The fields of an object, and whether they are required."""
    return {name: member.required for name, member in shape.fields.items()}


def _required(shape: Object) -> set[str]:
    return {name for name, member in shape.fields.items() if member.required}
