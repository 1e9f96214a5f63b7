"""The repair rule for nulls: `null` goes out of optional fields that do not allow it, as shapes of a revision say.

A null is no loss: it says what absence says. Values of other types than the schema's are left as they are, and nothing
is changed in place. Which shapes there are is in the `nulls.py` of each revision. Nothing here imports pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .losses import At, Losses
from .step import Convert

_NOTHING: Mapping[str, str] = {}


class Shape(NamedTuple):
    """Where nulls may be in values of a type; other shapes are given by name, and no name means: nowhere.

    Attributes:
        drops: The fields of an object that go where they are null.
        members: The shapes of fields.
        extra: The shape of the values of all other fields.
        items: The shape of the items of a list.
        tag: The field whose value says which of the `cases` an object is.
        cases: The shapes of objects by that value.
        rest: The shape of objects of which nothing says what they are.
    """

    drops: tuple[str, ...] = ()
    members: Mapping[str, str] = _NOTHING
    extra: str = ""
    items: str = ""
    tag: str = ""
    cases: Mapping[str, str] = _NOTHING
    rest: str = ""


def cleaners(
    shapes: Mapping[str, Shape], tables: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Mapping[str, Convert]]:
    """What takes the nulls out of frames, by kind and method.

    Args:
        shapes: Every shape, by name.
        tables: The shape of each frame, by kind and method.
    """
    return {kind: {method: _cleaner(shapes, name) for method, name in table.items()} for kind, table in tables.items()}


def _cleaner(shapes: Mapping[str, Shape], name: str) -> Convert:
    def clean(value: Any, at: At, out: Losses) -> Any:
        return _clean(value, name, shapes)

    return clean


def _clean(value: Any, name: str, shapes: Mapping[str, Shape]) -> Any:
    """The value without its nulls; the same object where there is none."""
    if not name:
        return value
    shape = shapes[name]
    if type(value) is dict:
        tag = value.get(shape.tag) if shape.tag else None
        other = shape.cases.get(tag, shape.rest) if type(tag) is str else shape.rest
        return _clean(value, other, shapes) if other else _clean_object(value, shape, shapes)
    if type(value) is list and shape.items:
        items = [_clean(item, shape.items, shapes) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _clean_object(value: dict[str, Any], shape: Shape, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    made = value
    for key, old in value.items():
        if old is None:
            gone, new = key in shape.drops, old
        else:
            name = shape.members.get(key, shape.extra)
            gone, new = False, _clean(old, name, shapes)
        if gone or new is not old:
            made = value.copy() if made is value else made
            if gone:
                del made[key]
            else:
                made[key] = new
    return made
