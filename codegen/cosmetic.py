"""Which dropped fields are cosmetic: those that an overlay's `[[cosmetic]]` entries name.

Lives here: the choice for one object. What an entry looks like is `overlay`'s, and what a step does with the answer is
the templates'. Called by `derive`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codegen.model import Object, Ref, Spec
from codegen.overlay import Overlay


def cosmetic_fields(
    overlay: Overlay, direction: str, source: Spec, at: str, shape: Object, keys: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """Those of an object's dropped fields whose loss does not change what is said.

    Args:
        overlay: Whose entries are asked, and marked as used.
        direction: `up` or `down`.
        source: The revision that has the object.
        at: The object's path.
        shape: Its type.
        keys: The fields that are dropped, always or when they are not valid.

    Returns:
        By field, no names where its loss is always cosmetic, and the names of fields in it where its loss is cosmetic
        as long as nothing else is in it.
    """
    found: dict[str, tuple[str, ...]] = {}
    for key in keys:
        if overlay.is_cosmetic(direction, f"{at}.{key}"):
            found[key] = ()
        elif key in shape.fields and (parts := _parts(overlay, direction, source, f"{at}.{key}", shape, key)):
            found[key] = parts
    return found


def _parts(overlay: Overlay, direction: str, source: Spec, at: str, shape: Object, key: str) -> tuple[str, ...]:
    """The cosmetic fields of the object that a field holds."""
    type_ = shape.fields[key].type
    inner = source.resolve(type_)
    if not isinstance(inner, Object):
        return ()
    path = type_.name if isinstance(type_, Ref) else at
    return tuple(name for name in inner.fields if overlay.is_cosmetic(direction, f"{path}.{name}"))
