"""What a generated `steps.py` hands to the translator: its functions in tables. Imports no pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from .losses import At, Losses

Convert: TypeAlias = "Callable[[Any, At, Losses], Any]"
"""A function from one JSON value to another; the same object back where nothing changes."""


_NONE: Mapping[str, Any] = MappingProxyType({})


class Refusal(NamedTuple):
    """Why requests of a method are refused, and the JSON-RPC code to say it with."""

    reason: str
    code: int = -32601


class Repair(NamedTuple):
    """A function of a named repair rule on the frames of one method and kind; `*` is every method."""

    rule: str
    method: str
    kind: str
    convert: Convert


class ErrorRepair(NamedTuple):
    """A function on error responses whose code lies between two, inclusive."""

    lowest: int
    highest: int
    convert: Callable[[Any, str | None, Losses], Any]


class Direction(NamedTuple):
    """One way over a step. A method without an entry passes unchanged.

    `requests`, `notifications` and `results` convert whole frames, by method; `definitions` convert values of a
    definition, by its name in the source revision; `renamed` has the names that differ in the target. `error` converts
    every error response, whatever its code; `odd_errors` says whether the source has errors that are not objects, which
    `errors`, `every_error` and repairs are not made for.
    """

    requests: Mapping[str, Convert] = _NONE
    notifications: Mapping[str, Convert] = _NONE
    results: Mapping[str, Convert] = _NONE
    definitions: Mapping[str, Convert] = _NONE
    refused: Mapping[str, Refusal] = _NONE
    swallowed: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = _NONE
    methods: Mapping[str, str] = _NONE
    error: Convert | None = None
    odd_errors: bool = False
    errors: tuple[ErrorRepair, ...] = ()
    every_error: tuple[Convert, ...] = ()
    repairs: tuple[Repair, ...] = ()


class Step(NamedTuple):
    """The change between two neighbouring revisions, both ways, by profile (`strict`, `minimal`)."""

    older: str
    newer: str
    up: Mapping[str, Direction]
    down: Mapping[str, Direction]


def error_functions(direction: Direction, method: str | None, repairs: list[Convert], *, odd: bool) -> list[Convert]:
    """What is done to error responses.

    Args:
        direction: One way over a step.
        method: The method that they answer.
        repairs: The repairs of rules that are on.
        odd: Whether an error may come that is not an object, from here or from a step before.
    """
    hooks = [*direction.every_error, *([_error_repairs(direction, method)] if direction.errors else [])]
    node = [direction.error] if direction.error else []
    if odd:
        return [*map(_of_objects, repairs), *node, *map(_of_objects, hooks)]
    return [*repairs, *node, *hooks]


def _of_objects(function: Convert) -> Convert:
    return lambda frame, at, out: function(frame, at, out) if isinstance(frame["error"], dict) else frame


def _error_repairs(direction: Direction, method: str | None) -> Convert:
    """What is done to error responses for their codes: the first repair that changes one."""
    repairs: list[tuple[int, int, Callable[[Any, str | None, Losses], Any]]]
    repairs = [(repair.lowest, repair.highest, repair.convert) for repair in direction.errors]

    def convert(frame: Any, at: At, out: Losses) -> Any:
        code = frame["error"].get("code")
        for lowest, highest, function in repairs:
            if type(code) is int and lowest <= code <= highest and (new := function(frame, method, out)) is not frame:
                return new
        return frame

    return convert
