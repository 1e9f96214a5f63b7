"""What steps do beyond dropping and filling in: the verbs that overlay decisions and hooks name.

Every action takes a value, its place and the losses, then the constant arguments of the overlay entry, and returns the
new value (the same object where nothing changed) or `GONE` to have its container leave it out. An action with an
argument `cosmetic` is told by the entry whether what is said stays the same. No action changes what it is given, and
none knows which revision it serves. `frames` has the actions on whole frames, `schemas` those on JSON Schemas inside
messages. Nothing here imports pydantic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

from .errors import MissingRequiredField, TranslationError, Untranslatable
from .losses import At, Losses, Part, Swallowed, pointer

GONE: Final = object()
"""Returned in place of a value that must not stay."""

_ABSENT: Final[dict[str, Any]] = {}
"""Stands for an object that is not there."""

NUMBERS: Final = frozenset({bool, int, float})
"""Types whose values are never empty, though they can be false."""

Check = Callable[[Any], bool]
Function = TypeVar("Function", bound=Callable[..., Any])


def action(
    on: Literal["value", "frame", "error"],
    *,
    changes: Sequence[str] = (),
    direction: Literal["", "up", "down"] = "",
    losses: Sequence[str] = (),
    gone: bool = False,
    fresh: bool = False,
    checked: bool = False,
    refuses: bool = False,
    copies: str = "",
    mends: str = "",
) -> Callable[[Function], Function]:
    """Declare a function as an action that entries of overlays may name. The generator reads what is said here.

    Args:
        on: What it is called on: a value in a frame, a whole frame, or an error response with the method it answers.
        changes: The kinds of change that a `[[decision]]` may decide by it; with none, it is for hooks and renames.
        direction: The only direction in which it may decide them, if it cannot be both.
        losses: The kinds of loss that it may note.
        gone: Whether it may return `GONE`.
        fresh: Whether what it returns is what it was given or an object of its own, so that it may be changed.
        checked: Whether it is handed, as `check`, the predicate of what the target accepts in the place.
        refuses: Whether it refuses every result that is not the usual one.
        copies: The argument that names the place, an object and a field, where it puts a copy of something.
        mends: The field of an object that is all it looks at: it changes one that the target does not accept, and never
            takes it out.
    """
    return lambda function: function


def wrong(at: At, expected: str, value: Any) -> TranslationError:
    """The error for a value that is not what its revision says."""
    return TranslationError(pointer(at), expected, describe(value))


def without_counterpart(at: At, value: Any) -> Untranslatable:
    """The refusal of a value that cannot stay where something has to stand."""
    where = pointer(at)
    return Untranslatable(f"{where} is required, and {describe(value)} has no counterpart", pointer=where, code=-32602)


def without_field(at: At, field: str) -> Untranslatable:
    """The refusal of an object that lacks what the target requires and nothing can be made up for."""
    return Untranslatable(
        f"it has no {field!r}, which the other side requires", pointer=pointer((at, field)), code=-32602
    )


def describe(value: Any) -> str:
    """A value in a few words: its JSON type, and the value itself where it is short."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"string {value[:40]!r}"
        case int() | float():
            return f"number {str(value)[:40]}"
        case list():
            return f"list of {len(value)}"
        case dict():
            return "object"
    return type(value).__name__


# --- parts of objects, called by generated code ----------------------------------------------------------------------


def lose(y: dict[str, Any], key: str, at: At, out: Losses) -> None:
    """Take a member out of an object of our own; a value that was not empty is a loss."""
    value = y.pop(key)
    if value or type(value) in NUMBERS:
        out.notes.append(((at, key), "dropped", value, False))


def lose_cosmetic(y: dict[str, Any], key: str, at: At, out: Losses) -> None:
    """As `lose`, where what is said stays the same without the value."""
    value = y.pop(key)
    if value or type(value) in NUMBERS:
        out.notes.append(((at, key), "dropped", value, True))


def lose_object(y: dict[str, Any], key: str, cosmetic: tuple[Part, ...], at: At, out: Losses) -> None:
    """As `lose`; the loss is cosmetic where the value is an object with none but these parts."""
    value = y.pop(key)
    if value or type(value) in NUMBERS:
        out.notes.append(((at, key), "dropped", value, cosmetic))


def lose_implied(y: dict[str, Any], key: str, same: Any, at: At, out: Losses) -> None:
    """As `lose_declared`; the loss is cosmetic where the value is *same*, which its absence says too."""
    value = y.pop(key)
    if value is None:
        return
    is_same = type(value) is type(same) and value == same
    out.notes.append(((at, key), "dropped", value, is_same))


def lose_declared(y: dict[str, Any], key: str, at: At, out: Losses) -> None:
    """As `lose`, where an empty object says something too: a capability is declared by being there."""
    value = y.pop(key)
    if value is not None:
        out.notes.append(((at, key), "dropped", value, False))


def lose_unless(y: dict[str, Any], key: str, same: Any, at: At, out: Losses, *, cosmetic: bool = False) -> None:
    """As `lose`, but a value that is *same* is no loss: the way back puts it there again."""
    value = y.pop(key)
    if (value or type(value) in NUMBERS) and not (type(value) is type(same) and value == same):
        out.notes.append(((at, key), "dropped", value, cosmetic))


# --- actions on values -----------------------------------------------------------------------------------------------


@action("value", changes=["arm-removed"], losses=["dropped"], gone=True)
def drop_item(value: Any, at: At, out: Losses) -> Any:
    """Leave the value out."""
    out.add(at, "dropped", value)
    return GONE


@action("value", changes=["arm-removed", "narrowed"])
def refuse(
    value: Any,
    at: At,
    out: Losses,
    *,
    reason: str,
    code: int = -32602,
    show: Sequence[str] = (),
    check: Check | None = None,
) -> Any:
    """Refuse the frame, unless the target accepts the value; `{name}` in *reason* is its field of that name, if *show*
    has it too.
    """
    if check is not None and check(value):
        return value
    fields = {name: value.get(name) for name in show} if isinstance(value, dict) else {}
    raise Untranslatable(reason.format(**fields), pointer=pointer(at), code=code, extra=fields)


@action("value", changes=["required"])
def swallow_without(value: dict[str, Any], at: At, out: Losses, *, field: str) -> Any:
    """The value of a required field that cannot be made up: without it the frame goes nowhere."""
    raise Swallowed(f"it has no {field!r}, which the other side requires")


@action("value", changes=["arm-removed", "narrowed"], losses=["dropped"], gone=True, checked=True)
def drop_invalid(value: Any, at: At, out: Losses, *, check: Check) -> Any:
    """Leave the value out unless the target accepts it."""
    if check(value):
        return value
    if value is not None:
        out.add(at, "dropped", value)
    return GONE


@action("value", changes=["narrowed"], losses=["truncated"])
def truncate(value: Any, at: At, out: Losses, *, most: int) -> Any:
    """Keep the first *most* items of a list."""
    if not isinstance(value, list) or len(value) <= most:
        return value
    out.add(at, "truncated", value[most:])
    return value[:most]


@action("value", changes=["narrowed"], losses=["rewritten"], checked=True)
def wrap_unless_valid(value: Any, at: At, out: Losses, *, key: str, check: Check) -> Any:
    """Make an object of a value that the target does not accept, as the only member of one."""
    if check(value):
        return value
    wrapped = {key: value}
    if not check(wrapped):
        raise without_counterpart(at, value)
    out.add(at, "rewritten", value)
    return wrapped


@action("value", changes=["arm-removed", "narrowed"], losses=["replaced"], gone=True, checked=True)
def map_value(value: Any, at: At, out: Losses, *, to: dict[Any, Any], check: Check, otherwise: Any = None) -> Any:
    """Replace a constant that the target lacks by another; leave it out where neither *to* nor *otherwise* has one.
    Keys of *to* are strings of the source, or spell its other values as JSON does (`true`, `5`).
    """
    if check(value):
        return value
    new = otherwise if isinstance(value, list | dict) else to.get(value, otherwise)
    out.add(at, "replaced", value)
    return GONE if new is None else new


@action("value", changes=["arm-removed", "narrowed"], losses=["rewritten"])
def join_text(value: Any, at: At, out: Losses, *, separator: str) -> Any:
    """One string of a list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong(at, "a list of strings", value)
    out.add(at, "rewritten", value)
    return separator.join(value)


@action("value", changes=["arm-removed", "narrowed"], losses=["rewritten"], checked=True)
def split_text(value: Any, at: At, out: Losses, *, separator: str, check: Check) -> Any:
    """A list of strings of one string: the other way of `join-text`."""
    if check(value):
        return value
    if not isinstance(value, str):
        raise wrong(at, "a string", value)
    out.add(at, "rewritten", value)
    return value.split(separator)


@action("value", changes=["arm-removed", "narrowed"], checked=True)
def as_list(value: Any, at: At, out: Losses, *, check: Check) -> Any:
    """A list of one value, where the target wants a list."""
    if check(value):
        return value
    if not check([value]):
        raise without_counterpart(at, value)
    return [value]


@action("value", changes=["arm-removed", "narrowed"], losses=["truncated"], gone=True, checked=True)
def first_item(value: Any, at: At, out: Losses, *, check: Check) -> Any:
    """The first item of a list that the target accepts, where it wants one value; nothing of a list that has none."""
    if check(value):
        return value
    if not isinstance(value, list):
        raise without_counterpart(at, value)
    fitting = [number for number, item in enumerate(value) if check(item)]
    if len(value) > 1 or not fitting:
        out.add(at, "truncated", value[: fitting[0]] + value[fitting[0] + 1 :] if fitting else value)
    return value[fitting[0]] if fitting else GONE


@action("value", losses=["rewritten"], checked=True)
def scale(value: Any, at: At, out: Losses, *, times: int, over: int, check: Check) -> Any:
    """A number in another unit; rounded down, which is a loss, where the target takes no fraction of it."""
    if type(value) not in (int, float):
        raise wrong(at, "a number", value)
    whole, rest = divmod(value * times, over)
    scaled = whole if type(value) is int and not rest else value * times / over if rest else float(whole)
    if rest and not check(scaled):
        out.add(at, "rewritten", value)
        scaled = int(whole)
    if not check(scaled):
        raise without_counterpart(at, value)
    return scaled


@action("value", changes=["required"])
def digest(value: dict[str, Any], at: At, out: Losses, *, of: str) -> str:
    """A short name that is always the same for the same value of the field *of*."""
    return hashlib.sha256(str(value.get(of)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@action("value", changes=["required"])
def copy_of(value: dict[str, Any], at: At, out: Losses, *, field: str) -> Any:
    """The value of another field of the same object."""
    if field not in value:
        raise MissingRequiredField(pointer(at), field)
    return value[field]


@action("value", fresh=True)
def refuse_field(value: dict[str, Any], at: At, out: Losses, *, field: str, reason: str) -> dict[str, Any]:
    """Refuse the frame when an object has this field, and it is not empty."""
    if value.get(field):
        raise Untranslatable(reason, pointer=pointer((at, field)), code=-32602)
    return value


# --- hooks on objects ------------------------------------------------------------------------------------------------


@action("value", losses=["hidden"], gone=True, fresh=True)
def hide_when(value: dict[str, Any], at: At, out: Losses, *, path: Sequence[str], equals: Any) -> Any:
    """Leave an item out of its list when the value at *path* in it is *equals*."""
    inner: Any = value
    for key in path:
        inner = inner.get(key) if isinstance(inner, dict) else None
    if inner != equals:
        return value
    out.add(at, "hidden", value)
    return GONE


@action("value", losses=["added"], fresh=True, copies="into")
def copy_into(
    value: dict[str, Any], at: At, out: Losses, *, field: str, into: Sequence[str], cosmetic: bool = False
) -> dict[str, Any]:
    """Keep a string that will be dropped by copying it to `into = [object, field]`, where nothing stands there yet."""
    parent, name = into
    text, inner = value.get(field), value.get(parent, _ABSENT)
    if not isinstance(text, str) or not isinstance(inner, dict) or name in inner:
        return value
    added = {name: text}
    out.notes.append(((at, parent) if inner is _ABSENT else ((at, parent), name), "added", added, cosmetic))
    new = value.copy()
    new[parent] = {**inner, **added}
    return new


def rename(x: dict[str, Any], y: dict[str, Any], at: At, out: Losses, names: dict[str, str]) -> dict[str, Any]:
    """Give members their new names, each in its place; a member that has the new name already stays."""
    if names.keys().isdisjoint(x):
        return y
    out.move(at, {(at, new): (at, old) for old, new in names.items() if old in y and new not in y})
    return {(names[key] if key in names and names[key] not in y else key): value for key, value in y.items()}


def move(
    y: dict[str, Any],
    old: Sequence[str],
    new: Sequence[str],
    at: At,
    out: Losses,
    *,
    make: bool = True,
    prune: bool = False,
) -> dict[str, Any]:
    """Take a member from one place in an object to another.

    Objects on the way that are absent are made, if `make`, and those left with nothing go, if `prune`. Where it cannot
    go there, or something stands there already, it is lost.
    """
    holder: Any = y
    for key in old[:-1]:
        holder = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or old[-1] not in holder:
        return y
    value = holder[old[-1]]
    rest = _without(y, old, prune)
    moved = _put(rest, new, value, make)
    places: list[At] = [at, at]
    for number, way in enumerate((old, new)):
        for key in way:
            places[number] = (places[number], key)
    if moved is None:
        out.add(places[0], "dropped", value)
        return rest
    out.move(at, {places[1]: places[0]})
    return moved


def _without(y: dict[str, Any], way: Sequence[str], prune: bool) -> dict[str, Any]:
    """A copy of an object that lacks a member, and objects on the way that are left with nothing, if `prune`."""
    key, *rest = way
    inner = _without(y[key], rest, prune) if rest else None
    kept = rest and (inner or not prune)
    return {name: inner if name == key else value for name, value in y.items() if name != key or kept}


def _put(y: dict[str, Any], way: Sequence[str], value: Any, make: bool) -> dict[str, Any] | None:
    """A copy of an object that has a member more; `None` if there is no place for it."""
    key, *rest = way
    held = y.get(key)
    if not rest:
        return None if key in y else {**y, key: value}
    if held is None and not make:
        return None
    inner = _put(held or {}, rest, value, make) if held is None or isinstance(held, dict) else None
    return None if inner is None else {**y, key: inner}


def each(x: Any, at: At, out: Losses, convert: Callable[[Any, At, Losses], Any]) -> Any:
    """Convert each item of a list; items that are gone leave it."""
    if type(x) is not list:
        raise wrong(at, "a list", x)
    y = x
    for i, item in enumerate(x):
        new = convert(item, (at, i), out)
        if new is not item:
            if y is x:
                y = x.copy()
            y[i] = new
    return y


def each_left(x: Any, at: At, out: Losses, convert: Callable[[Any, At, Losses], Any]) -> Any:
    """As `each`, where items can be gone: those leave the list."""
    return without_gone(x, each(x, at, out, convert), at, out)


def at_least(y: list[Any], at: At, least: int) -> list[Any]:
    """A list of which items may have gone, if it is still as long as it has to be."""
    if len(y) < least:
        said = f"{pointer(at)} must have at least {least}, and {len(y)} are left"
        raise Untranslatable(said, pointer=pointer(at), code=-32602)
    return y


def without_gone(x: list[Any], y: list[Any], at: At, out: Losses) -> list[Any]:
    """*y*, made of *x*, without the items that are gone."""
    if y is x or all(item is not GONE for item in y):
        return y
    left = [i for i, item in enumerate(y) if item is not GONE]
    out.reorder(at, left)
    return [y[i] for i in left]
