"""Small questions about types: whether one fits another, what carries its values in Python, how to say it in words.

Nothing here knows a revision or a place. Called by `derive` and `diff`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from codegen.read.model import Anything, Array, Literal, Object, Ref, Scalar, Type, Union

Resolve = Callable[[Type], Type]


def fits(source: Type, target: Type) -> bool:
    """Whether every value of a scalar type is a value of another, by what the two types say alone."""
    match source, target:
        case Literal(values), Literal() | Scalar():
            return all(accepts(target, value) for value in values)
        case Scalar(types), Scalar(others):
            wider = others | ({"integer"} if "number" in others else set())
            return types <= wider and _within(source, target)
    return source == target


def _within(source: Scalar, target: Scalar) -> bool:
    """Whether the limits of one scalar type are those of another, or narrower."""
    lowest, highest = (source.minimum, source.above), (source.maximum, source.below)
    return (
        all(_not_below(lowest, bound, strict) for bound, strict in ((target.minimum, False), (target.above, True)))
        and all(_not_above(highest, bound, strict) for bound, strict in ((target.maximum, False), (target.below, True)))
        and source.min_length >= target.min_length
        and target.pattern in (None, source.pattern)
        and (target.max_length is None or (source.max_length is not None and source.max_length <= target.max_length))
    )


def _not_below(lowest: tuple[float | None, float | None], bound: float | None, strict: bool) -> bool:
    least, above = lowest
    if bound is None or (above is not None and above >= bound):
        return True
    return least is not None and (least > bound if strict else least >= bound)


def _not_above(highest: tuple[float | None, float | None], bound: float | None, strict: bool) -> bool:
    most, below = highest
    if bound is None or (below is not None and below <= bound):
        return True
    return most is not None and (most < bound if strict else most <= bound)


def accepts(type_: Type, value: Any, resolve: Resolve = lambda type_: type_) -> bool:
    """Whether a JSON value is valid for a type; *resolve* follows references."""
    type_ = resolve(type_)
    match type_:
        case Anything():
            return True
        case Scalar():
            return any(_is_a(value, name) for name in type_.types) and _in_limits(type_, value)
        case Literal(values):
            return any(isinstance(value, bool) == isinstance(one, bool) and value == one for one in values)
        case Union(arms):
            return any(accepts(arm, value, resolve) for arm in arms)
        case Array(item, most, least):
            if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
                return False
            return all(accepts(item, one, resolve) for one in value)
        case Object(fields, extra):
            return (
                isinstance(value, dict)
                and all(
                    accepts(fields[key].type if key in fields else extra, one, resolve) for key, one in value.items()
                )
                and all(key in value for key, field in fields.items() if field.required)
            )
    return False


def _is_a(value: Any, name: str) -> bool:
    """Whether a value is of a JSON type: 5 is a number, and 5.0 an integer."""
    match value:
        case None | bool():
            return name == ("null" if value is None else "boolean")
        case int() | float():
            return name == "number" or (name == "integer" and (isinstance(value, int) or value.is_integer()))
    return name == "string" and isinstance(value, str)


def _in_limits(type_: Scalar, value: Any) -> bool:
    if isinstance(value, str):
        is_long = type_.min_length <= len(value) and (type_.max_length is None or len(value) <= type_.max_length)
        return is_long and (type_.pattern is None or re.search(type_.pattern, value) is not None)
    if value is None or isinstance(value, bool):
        return True
    return (
        (type_.minimum is None or value >= type_.minimum)
        and (type_.maximum is None or value <= type_.maximum)
        and (type_.above is None or value > type_.above)
        and (type_.below is None or value < type_.below)
    )


def json_type(type_: Type) -> str:
    """What carries a type's values in Python: `dict`, `list`, a `scalar`, or any `object`."""
    match type_:
        case Object():
            return "dict"
        case Array():
            return "list"
        case Literal() | Scalar():
            return "scalar"
    return "object"


def same_kind(one: Type, two: Type) -> bool:
    """Whether two types have a JSON type in common, whatever else they ask for."""
    return not _kinds(one).isdisjoint(_kinds(two))


def _kinds(type_: Type) -> frozenset[str]:
    match type_:
        case Scalar(types):
            return types | ({"integer"} if "number" in types else frozenset())
        case Literal(values):
            names = ("string", "boolean", "integer", "number", "null")
            return frozenset(name for name in names if any(_is_a(value, name) for value in values))
    return frozenset({json_type(type_)})


def words(type_: Type) -> str:
    """A type in a few words, for a person."""
    match type_:
        case Ref(name):
            return name
        case Scalar(types):
            return " or ".join(sorted(types))
        case Literal(values):
            return "one of " + ", ".join(map(str, values)) if len(values) > 1 else repr(values[0])
        case Array(item):
            return f"list of {words(item)}"
        case Union(arms):
            return words_all(arms)
        case Object():
            return "object"
    return "any value"


def words_all(types: Iterable[Type]) -> str:
    """Several types in a few words."""
    return " | ".join(words(type_) for type_ in types) or "nothing"


def limits(type_: Scalar | Array) -> str:
    """How large, long or many values of a type may be, in a few words."""
    said: list[tuple[float | str | None, str]]
    if isinstance(type_, Array):
        said = [(type_.min_items or None, "at least {} items"), (type_.max_items, "at most {} items")]
    else:
        said = [(type_.minimum, "at least {}"), (type_.above, "more than {}")]
        said += [(type_.maximum, "at most {}"), (type_.below, "less than {}")]
        said += [(type_.min_length or None, "at least {} characters"), (type_.max_length, "at most {} characters")]
        said += [(type_.pattern, "matching {}")]
    return " and ".join(text.format(limit) for limit, text in said if limit is not None) or "no limit"
