"""Holding frames against a revision, by its models.

Frames are classified by which keys they have, and a result is read as an answer to its method: never by its shape, for
every object is open. Must not live here: what a revision says (its models and `METHODS`), or how a pydantic error
becomes a pointer (`_locate`). Imports pydantic; `dragoman_spec` loads it when `validate` is first called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ._base import Model
from ._json import NOT_JSON, not_json
from ._locate import Part, Problem, choose, choose_each, describe, nearest, read_errors
from .errors import MethodNeeded, ValidationFailed
from .revisions import load

SHOWN_METHODS = 3

_LONGEST_NAME = 100
"""How much of a name is compared with those that there are."""

MOST_PROBLEMS = 1000
"""How many are read where one is told: to put one into words takes far longer than to find it."""


def validate(frame: Any, revision: str, method: str | None = None, *, allow_null: bool = False) -> None:
    """Hold a JSON-RPC frame against a revision.

    Args:
        frame: One JSON-RPC object, as `json.loads` gives it; batches are taken apart by the caller.
        revision: The revision it should be valid in.
        method: The method of the request that a result answers; other frames say themselves what they are.
        allow_null: Take `null` for an optional member as its absence, which no revision allows and many peers send.

    Raises:
        ValidationFailed: It is not valid; says where, what the schema asks for there, and what was found.
        MethodNeeded: It is a result with a proper envelope, and *method* is not given.
        UnsupportedRevision: There is no such revision here.
    """
    for definitions, prefix in _held_against(frame, revision, method):
        problems = _nearest_problems(frame, definitions, prefix, revision, allow_null)
        if problems:
            raise _failed(revision, choose(problems))
    if (problem := _find_not_json(frame)) is not None:
        raise _failed(revision, problem)


def violations(
    frame: Any, revision: str, method: str | None = None, *, as_usual: bool = False
) -> list[ValidationFailed]:
    """Find everything that is wrong with a JSON-RPC frame, where `validate` tells of one thing.

    Args:
        frame: One JSON-RPC object, as `json.loads` gives it.
        revision: The revision it should be valid in.
        method: The method of the request that a result answers.
        as_usual: Hold a result against the usual one of its method alone, not against every other that it may have:
            some of those ask for so little that nearly everything is valid.

    Returns:
        What `validate` would raise if everything else were right, for each place at most once, in the order of the
        frame; nothing if it is valid.

    Raises:
        MethodNeeded: It is a result with a proper envelope, and *method* is not given.
        UnsupportedRevision: There is no such revision here.
    """
    found: dict[str, ValidationFailed] = {}
    try:
        for definitions, prefix in _held_against(frame, revision, method):
            definitions = definitions[:1] if as_usual else definitions
            for problem in choose_each(_nearest_problems(frame, definitions, prefix, revision, False, most=None)):
                found.setdefault(problem.pointer, _failed(revision, problem))
    except ValidationFailed as error:
        found.setdefault(error.pointer, error)
    if (other := _find_not_json(frame)) is not None:
        found.setdefault(other.pointer, _failed(revision, other))
    return [*found.values()]


def _held_against(frame: Any, revision: str, method: str | None) -> Iterator[tuple[Sequence[str], tuple[str, ...]]]:
    """Give what a frame is to be held against: definitions of which one must fit, and where.

    Raises:
        ValidationFailed: It cannot be held against anything.
        MethodNeeded: It is a result, and *method* is not given.
    """
    package = load(revision)
    envelope = _envelope(frame, revision)
    yield (package.ENVELOPES[envelope],), ()
    if "method" in frame:
        yield (_known(package.METHODS, frame["method"], revision, "/method").frame,), ()
    elif envelope == "result":
        if method is None:
            raise MethodNeeded(revision)
        entry = _known(package.METHODS, method, revision, "")
        if entry.kind != "request":
            raise ValidationFailed(revision, "", f"the method of a request of {revision}", describe(method))
        yield entry.results or ("EmptyResult",), ("result",)


@cache
def adapter(revision: str, definition: str) -> TypeAdapter[Any]:
    """The validator of a definition, be it a model or an alias such as a union.

    Args:
        revision: A revision.
        definition: The name of one of its definitions, `ContentBlock`.

    Returns:
        What pydantic calls a `TypeAdapter`: `validate_python`, `validate_json`, `dump_python`, `dump_json` and
        `json_schema`. The same one each time.

    Raises:
        AttributeError: The revision has no definition of that name.
    """
    package = load(revision)
    found: Any = getattr(package, definition, None) if isinstance(definition, str) else None
    is_model = isinstance(found, type) and issubclass(found, Model)
    if not is_model and definition not in package.DEFINITIONS:
        near = get_close_matches(str(definition), package.DEFINITIONS, n=SHOWN_METHODS, cutoff=0.5)
        hint = f"; there is {' or '.join(near)}" if near else ""
        raise AttributeError(f"{revision} has no definition {definition!r}{hint}")
    return TypeAdapter(found)


def _envelope(frame: Any, revision: str) -> str:
    """Which kind of frame it is, by which keys it has."""
    if isinstance(frame, dict):
        if "method" in frame:
            return "request" if "id" in frame else "notification"
        for kind in ("result", "error"):
            if kind in frame:
                return kind
        raise ValidationFailed(revision, "", "an object with method, result or error", "an object with none of them")
    raise ValidationFailed(revision, "", "a JSON-RPC object", describe(frame))


def _known(methods: Mapping[str, Any], name: Any, revision: str, pointer: str) -> Any:
    if isinstance(name, str) and name in methods:
        return methods[name]
    nearest = get_close_matches(name[:_LONGEST_NAME] if isinstance(name, str) else "", methods, SHOWN_METHODS, 0.5)
    hint = f", such as {' or '.join(nearest)}" if nearest else ""
    raise ValidationFailed(revision, pointer, f"a method of {revision}{hint}", describe(name))


def _nearest_problems(
    frame: Any,
    definitions: Sequence[str],
    prefix: tuple[str, ...],
    revision: str,
    allow_null: bool,
    most: int | None = MOST_PROBLEMS,
) -> list[Problem]:
    """Hold what stands at *prefix* against definitions of which one must fit; of the nearest, what is wrong."""
    for key in prefix:
        frame = frame[key]
    failures: list[list[Problem]] = []
    for definition in definitions:
        problems = _problems(frame, definition, prefix, revision, allow_null, most)
        if not problems:
            return []
        failures.append(problems)
    return nearest(failures, len(prefix))


def _find_not_json(frame: Any) -> Problem | None:
    wrong = not_json(frame)
    return None if wrong is None else Problem(wrong[0], *NOT_JSON[wrong[1]], wrong[1])


def _failed(revision: str, problem: Problem) -> ValidationFailed:
    return ValidationFailed(revision, problem.pointer, problem.expected, problem.found)


def _problems(
    value: Any,
    definition: str,
    prefix: tuple[str, ...],
    revision: str,
    allow_null: bool,
    most: int | None = MOST_PROBLEMS,
) -> list[Problem]:
    most = None if allow_null else most  # each that is a null counts
    judge = adapter(revision, definition)
    while True:
        try:
            judge.validate_python(value)
        except ValidationError as error:
            problems = read_errors(error.errors(include_url=False)[:most], judge.core_schema, prefix)
        else:
            return []
        nulls = {problem.path[len(prefix) :] for problem in problems if problem.null_for_absent}
        if not nulls or not allow_null:
            return problems
        value = _without(value, nulls)


def _without(value: Any, places: Collection[tuple[Part, ...]]) -> Any:
    """The same without the members at these places, of which none is within another.

    What is on the way to them is copied, and nothing beside it, which may be nested more deeply than a recursion goes.
    """
    made = _copy(value)
    copied: dict[tuple[Part, ...], Any] = {(): made}
    for *way, last in places:
        for depth in range(len(way)):
            inner, outer = tuple(way[: depth + 1]), copied[tuple(way[:depth])]
            if inner not in copied:
                copied[inner] = outer[way[depth]] = _copy(outer[way[depth]])
        del copied[tuple(way)][last]
    return made


def _copy(holder: Any) -> Any:
    """An object or an array of the same members; a tuple is a list."""
    return {**holder} if isinstance(holder, dict) else [*holder]
