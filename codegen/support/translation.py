"""Frames of one revision to frames of another: steps composed into routes, one for each kind and method.

*Theory of operation.* A `Translator` knows the chain of directions from source to target. The first frame of a method
composes its route: for each step the functions that touch such frames, repairs first, those of a rule in the first step
that has any; a step with none is left out. A route of no steps is the identity: the same object comes back, and bytes
may pass unparsed. A method that some step on the way refuses or swallows runs no step before it. Losses are noted a
step at a time. Nothing here imports pydantic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

from dragoman_spec._tables import ALIASES, NULLS, STEPS, STRICT_METHODS

from .errors import TranslationError, Untranslatable, blamed
from .losses import At, Loss, Losses, LossGroup, Note, Swallowed, group, is_cosmetic, settle, spell
from .revisions import era, steps_between
from .rules import check_rules
from .step import Convert, Direction, Refusal, Step, error_functions

Kind: TypeAlias = Literal["request", "notification", "result", "error"]
Frame: TypeAlias = dict[str, Any]
PROFILES = ("strict", "minimal")
TABLES: Mapping[str, str] = {"request": "requests", "notification": "notifications", "result": "results"}


class Translation:
    """A translated frame and what it lost.

    Attributes:
        frame: The frame for the other side; the very object given where nothing changes; `None` where nothing must
            reach the other side.
        is_lossless: Whether no step has noted a loss; where some have, it may still be that nothing is lost in the end.
    """

    __slots__ = ("_given", "_losses", "_notes", "_steps", "frame", "is_lossless")

    def __init__(
        self,
        frame: Frame | None,
        losses: tuple[Loss, ...] = (),
        *,
        steps: list[Losses] | None = None,
        given: Frame | None = None,
    ) -> None:
        self.frame = frame
        self.is_lossless = not (steps or losses)
        self._losses: tuple[Loss, ...] | None = None if steps else losses
        self._notes: list[Note] | None = None
        self._steps = steps
        self._given = given

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be carried, in the order in which it was met; spelled when first asked for."""
        if self._losses is None:
            self._losses = spell(self._settled())
        return self._losses

    def count_losses(self, *, cosmetic: bool = True) -> int:
        """How many losses there are, unspelled; with `cosmetic=False`, how many that change what is said."""
        if not cosmetic:
            return len(self._grave()) if self._losses is None else sum(not loss.cosmetic for loss in self._losses)
        return len(self._settled() if self._losses is None else self._losses)

    def group_losses(self, *, cosmetic: bool = True) -> list[LossGroup]:
        """The losses in a few words: those that differ only in where in a list they stand are one group.

        With `cosmetic=False`, only those that change what is said.
        """
        if self._losses is None:
            return group(self._settled() if cosmetic else self._grave())
        found = [loss for loss in self._losses if cosmetic or not loss.cosmetic]
        return [LossGroup(loss.pointer, loss.kind, [loss.value], loss.cosmetic) for loss in found]

    def _grave(self) -> list[Note]:
        return [note for note in self._settled() if not is_cosmetic(note)]

    def _settled(self) -> list[Note]:
        if self._notes is None:
            self._notes = settle(self._steps or [], self._given)
        return self._notes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Translation) and (self.frame, self.losses) == (other.frame, other.losses)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Translation(frame={self.frame!r}, losses={self.losses!r})"


class _Route(NamedTuple):
    """What happens to the frames of one kind and method: functions by step, or the reason why they do not pass.

    Where nothing happens to them, it is `_IDLE` itself.
    """

    steps: tuple[tuple[Convert, ...], ...] = ()
    refusal: Refusal | None = None
    swallowed: bool = False


_IDLE = _Route()


class Translator:
    """Translates frames from one revision to another; make it with `translator`, which keeps them.

    Attributes:
        source: Revision of the frames given.
        target: Revision of the frames returned.
        profile: `strict` drops every field that the target does not name; `minimal` does what validity needs.
        rules: Names of the repair rules that are on.
        steps: The steps from source to target, each as what it does by profile.
    """

    __slots__ = ("_aliases", "_routes", "_strict_methods", "profile", "rules", "source", "steps", "target")

    def __init__(self, source: str, target: str, profile: str, rules: frozenset[str]) -> None:
        self.source = source
        self.target = target
        self.profile = profile
        self.rules = rules
        self.steps = _chain(source, target)
        self._aliases = {old: new for rule in ALIASES if rule in rules for old, new in ALIASES[rule].items()}
        self._strict_methods = frozenset[str]().union(
            *(STRICT_METHODS[rule] for rule in STRICT_METHODS if rule in rules)
        )
        self._routes: dict[tuple[str, str | None], _Route] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _translator, (self.source, self.target, self.profile, self.rules)

    @property
    def identity(self) -> bool:
        """Whether no frame is touched."""
        return self.source == self.target or not (
            self._aliases or any(_busy(way[self.profile], self.rules) for way in self.steps)
        )

    def touches(self, kind: Kind, method: str | None) -> bool:
        """Whether frames like this can change; where not, their bytes may pass unparsed.

        Args:
            kind: What the frame is.
            method: Its method, or the method of the request that it answers.
        """
        return self.source != self.target and self._route(kind, method) is not _IDLE

    def translate(self, frame: Frame, method: str | None = None) -> Translation:
        """Translate one frame.

        Args:
            frame: A JSON-RPC object of the source revision; not changed.
            method: The method of the request that a response frame answers; other frames carry their own.

        Raises:
            Untranslatable: The target has no counterpart; answer the sender with the error's `code` and `data`.
            TranslationError: The frame is not what its revision says, at the error's `pointer`.
        """
        if self.source == self.target:
            return Translation(frame)
        kind, method = _classify(frame, method)
        if kind == "error" and not (isinstance(frame["error"], dict) or self._takes_odd_errors(1)):
            raise TranslationError("/error", "an object", type(frame["error"]).__name__)
        route = self._routes.get((kind, method)) or self._route(kind, method)
        if route is _IDLE:
            return Translation(frame)
        try:
            return self._run(frame, route)
        except TranslationError as error:
            error.method, error.source, error.target = method, self.source, self.target
            raise
        except (RecursionError, TypeError, ValueError) as error:
            raise blamed(error, frame, method, self.source, self.target) from None

    def definition(self, name: str, value: Any) -> tuple[str | None, Any, tuple[Loss, ...]]:
        """Convert a value of a definition.

        Args:
            name: The definition's name in the source revision.
            value: A JSON value of it; not changed.

        Returns:
            The definition's name in the target, the value there, and the losses. A value that must not stay is `None`
            with no name.
        """
        try:
            return self._definition(name, value)
        except (RecursionError, TypeError, ValueError) as error:
            raise blamed(error, value, name, self.source, self.target) from None

    def _definition(self, name: str, value: Any) -> tuple[str | None, Any, tuple[Loss, ...]]:
        collected: list[Losses] = []
        given = value
        for way in self.steps:
            direction = way[self.profile]
            losses = Losses(self.target)
            try:
                value = direction.definitions.get(name, _same)(value, None, losses)
            except Swallowed as reason:
                raise Untranslatable(str(reason), source=self.source, target=self.target) from None
            name = direction.renamed.get(name, name)
            collected.append(losses)
            if not isinstance(value, dict):
                return None, None, spell(settle(collected, given))
        return name, value, spell(settle(collected, given))

    def _run(self, frame: Frame, route: _Route) -> Translation:
        if route.refusal is not None:
            raise Untranslatable(route.refusal.reason, code=route.refusal.code)
        if route.swallowed:
            return Translation(None, (Loss("", "swallowed", frame),))
        collected: list[Losses] = []
        losses = Losses(self.target)
        new = frame
        try:
            for functions in route.steps:
                for function in functions:
                    new = function(new, None, losses)
                if losses.notes:
                    collected.append(losses)
                    losses = Losses(self.target)
        except Swallowed:
            return Translation(None, (Loss("", "swallowed", frame),))
        return Translation(new, steps=collected, given=frame) if collected else Translation(new)

    def _route(self, kind: str, method: str | None) -> _Route:
        route = self._routes.get((kind, method))
        if route is None:
            route = self._compose(kind, method)
            if len(self._routes) < 1024:  # peers choose method names: what is kept must have an end
                self._routes[kind, method] = route
        return route

    def _compose(self, kind: str, method: str | None) -> _Route:
        if kind not in (*TABLES, "error"):
            raise ValueError(f"no kind {kind!r}; there are {', '.join((*TABLES, 'error'))}")
        steps: list[tuple[Convert, ...]] = []
        name = method
        if kind == "notification" and name in self._aliases:
            name = self._aliases[name]
            steps.append((_renaming(name),))
        if NULLS in self.rules and name is not None and (nulls := _nulls(self.source, kind, name)):
            steps.append((nulls,))
        rules = set(self.rules)
        for way in self.steps:
            strict = name in self._strict_methods
            direction = way["strict" if strict else self.profile]
            if name is not None and kind != "error" and name in direction.refused:
                return _Route(refusal=direction.refused[name])
            if name in direction.swallowed:
                return _Route(swallowed=True)
            repairs = [r for r in direction.repairs if r.rule in rules and r.kind == kind and r.method in ("*", name)]
            rules.difference_update([r.rule for r in repairs])  # what one step has mended is whole for the others
            functions = tuple(self._functions(direction, kind, name, [r.convert for r in repairs]))
            steps += [functions] if functions else []
            name = direction.methods.get(name, name) if name is not None else None
        return _Route(tuple(steps)) if steps else _IDLE

    def _takes_odd_errors(self, steps: int | None = None) -> bool:
        """Whether what comes to one of the first steps may be an error that is not an object."""
        return any(way[self.profile].odd_errors for way in self.steps[:steps])

    def _functions(self, direction: Direction, kind: str, name: str | None, found: list[Convert]) -> list[Convert]:
        if kind == "error":
            return error_functions(direction, name, found, odd=self._takes_odd_errors())
        table: Mapping[str, Convert] = getattr(direction, TABLES[kind])
        if name is not None and name in table:
            found.append(table[name])
        if name is not None and kind != "result" and name in direction.methods:
            found.append(_renaming(direction.methods[name]))
        return found


def translator(
    source: str, target: str, *, profile: str = "strict", rules: Collection[str] | None = None
) -> Translator:
    """The translator from one revision to another; composed once and kept.

    Args:
        source: Revision of the frames given.
        target: Revision of the frames wanted.
        profile: `strict` (drop every field that the target does not name) or `minimal` (only what validity needs).
        rules: Names of the repair rules that are on; `None` for those on by default.

    Raises:
        UnsupportedRevision: A revision that is not at hand.
        ValueError: No such profile, or no such rule.
    """
    era(source), era(target)
    if profile not in PROFILES:
        raise ValueError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    return _translator(source, target, profile, check_rules(rules))


def translate(
    frame: Frame,
    *,
    source: str,
    target: str,
    method: str | None = None,
    profile: str = "strict",
    rules: Collection[str] | None = None,
) -> Translation:
    """Translate one frame from one revision to another.

    Args:
        frame: A JSON-RPC request, notification or response of *source*, as parsed JSON; not changed.
        source: Its revision, such as `2025-06-18`.
        target: The revision wanted.
        method: The method of the request that a response frame answers; needed for results, since their shape does not
            tell it.
        profile: `strict` (drop every field that the target does not name) or `minimal` (only what validity needs).
        rules: Names of the repair rules that are on; `None` for those on by default.

    Returns:
        The frame (the same object where nothing changes) and its losses.

    Raises:
        UnsupportedRevision: A revision that is not at hand.
        Untranslatable: The target has no counterpart.
        TranslationError: The frame is not what its revision says.
    """
    return translator(source, target, profile=profile, rules=rules).translate(frame, method)


@lru_cache(maxsize=256)
def _translator(source: str, target: str, profile: str, rules: frozenset[str]) -> Translator:
    return Translator(source, target, profile, rules)


def _chain(source: str, target: str) -> list[Mapping[str, Direction]]:
    pairs = steps_between(source, target)
    return [_step(other).up if STEPS.get(other) == one else _step(one).down for one, other in pairs]


def _step(newer: str) -> Step:
    step: Step = import_module(f"dragoman_spec.v{newer.replace('-', '_')}.steps").STEP
    return step


def _nulls(revision: str, kind: str, method: str) -> Convert | None:
    tables = import_module(f"dragoman_spec.v{revision.replace('-', '_')}.nulls").TABLES
    convert: Convert | None = tables.get(kind, {}).get(method)
    return convert


def _classify(frame: Frame, method: str | None) -> tuple[Kind, str | None]:
    """The kind of a frame by its keys alone, and the method that it carries or answers."""
    if not isinstance(frame, dict):
        raise TranslationError("", "one JSON-RPC object", type(frame).__name__)
    if "method" in frame:
        name = frame["method"]
        if not isinstance(name, str):
            raise TranslationError("/method", "a string", type(name).__name__)
        return ("request" if "id" in frame else "notification"), name
    if "error" in frame:
        return "error", method
    if "result" in frame:
        if method is None:
            raise TranslationError("", "to be told which method this result answers", "no method")
        return "result", method
    raise TranslationError(
        "", "a JSON-RPC frame with 'method', 'result' or 'error'", f"the keys {sorted(map(str, frame))[:8]}"
    )


def _busy(direction: Direction, rules: frozenset[str]) -> bool:
    parts = (
        direction.requests,
        direction.notifications,
        direction.results,
        direction.refused,
        direction.swallowed,
        direction.methods,
    )
    return (
        any(parts)
        or any((direction.error, direction.errors, direction.every_error))
        or any(r.rule in rules for r in direction.repairs)
    )


def _same(value: Any, at: At, out: Losses) -> Any:
    return value


def _renaming(name: str) -> Convert:
    return lambda frame, at, out: {**frame, "method": name}
