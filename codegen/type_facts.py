"""Small questions about types: whether one fits another, what carries its values in Python, how to say it in words.

Nothing here knows a revision or a place. Called by `derive` and `diff`.
"""

from __future__ import annotations

from collections.abc import Iterable

from codegen.model import Array, Literal, Object, Ref, Scalar, Type, Union

JSON_TYPES = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "null": "NoneType"}


def fits(source: Type, target: Type) -> bool:
    """Whether every value of a scalar type is a value of another, by what the two types say alone."""
    match source, target:
        case Literal(values), Literal(others):
            return set(values) <= set(others)
        case Literal(values), Scalar(types):
            return types >= {"string" if isinstance(value, str) else "integer" for value in values}
        case Scalar(types, low, high), Scalar(others, other_low, other_high):
            wider = others | ({"integer"} if "number" in others else set())
            above = other_low is None or (low is not None and low >= other_low)
            below = other_high is None or (high is not None and high <= other_high)
            return types <= wider and above and below
    return source == target


def json_type(type_: Type) -> str:
    """The name of the Python type that carries a type's values: `dict`, `list`, or a scalar's."""
    match type_:
        case Object():
            return "dict"
        case Array():
            return "list"
        case Literal(values):
            return type(values[0]).__name__
        case Scalar(types):
            return "|".join(sorted(JSON_TYPES[name] for name in types))
    return "object"


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
    return " | ".join(words(type_) for type_ in types)
