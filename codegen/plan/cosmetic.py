"""Which dropped fields are cosmetic: those that an overlay's `[[cosmetic]]` entries name, always or for one value.

What an entry looks like is `overlay`'s, and what a step does with the answer is the templates'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codegen.plan.nodes import Part
from codegen.plan.rulings import check_default
from codegen.read.model import Json, Object, Ref, Spec
from codegen.read.overlay import Overlay


def cosmetic_fields(
    overlay: Overlay, direction: str, source: Spec, at: str, shape: Object, keys: Iterable[str]
) -> Mapping[str, tuple[Part, ...]]:
    """Those of an object's dropped fields whose loss does not change what is said.

    Args:
        overlay: Whose entries are asked, and marked as used.
        direction: `up` or `down`.
        source: The revision that has the object.
        at: The object's path.
        shape: Its type.
        keys: The fields that are dropped, always or when they are not valid.

    Returns:
        By field, nothing where its loss is always cosmetic, and the parts of the object in it whose loss is, where its
        loss is cosmetic as long as nothing else is in it.
    """
    found: dict[str, tuple[Part, ...]] = {}
    for key in keys:
        entry = overlay.find_cosmetic(direction, f"{at}.{key}")
        if entry is not None and entry.value is None:
            found[key] = ()
        elif key in shape.fields and (parts := _parts(overlay, direction, source, f"{at}.{key}", shape, key)):
            found[key] = parts
    return found


def cosmetic_values(
    overlay: Overlay, direction: str, source: Spec, at: str, shape: Object, keys: Iterable[str]
) -> Mapping[str, Json]:
    """The values that say what their absence says, of an object's dropped fields."""
    found: dict[str, Json] = {}
    for key in shape.fields.keys() & keys:
        entry = overlay.find_cosmetic(direction, f"{at}.{key}", only_values=True)
        if entry is not None:
            check_default(overlay, entry, source, shape.fields[key].type, f"{at}.{key}")
            found[key] = entry.value
    return found


def _parts(overlay: Overlay, direction: str, source: Spec, at: str, shape: Object, key: str) -> tuple[Part, ...]:
    """The cosmetic fields of the object that a field holds."""
    type_ = shape.fields[key].type
    inner = source.resolve(type_)
    if not isinstance(inner, Object):
        return ()
    path = type_.name if isinstance(type_, Ref) else at
    values = cosmetic_values(overlay, direction, source, path, inner, inner.fields)
    asked = [name for name in inner.fields if name not in values]
    return (*(name for name in asked if overlay.find_cosmetic(direction, f"{path}.{name}")), *sorted(values.items()))
