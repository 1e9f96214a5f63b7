"""Releases that nobody has made: the newest schema with a change, planned, spelled and tried.

What the generator makes of such a release is executed in this process, in the place of a step of the installed package:
no models, no files. Frames are judged by an independent validator on the changed schema. Must not live here: the
releases themselves (`tests/codegen/releases`).
"""

from __future__ import annotations

import copy
import random
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema

from codegen.ask.questions import Question, ask_once
from codegen.ask.skeleton import add_entries
from codegen.names import module_name
from codegen.plan.actions import declares
from codegen.plan.plan import StepPlan, plan_step
from codegen.read.load import build_spec
from codegen.read.model import Spec
from codegen.read.normalise import Normalised, normalise
from codegen.read.overlay import parse_overlay
from codegen.write.steps import render_steps
from dragoman_spec import DEFAULT_RULES, LATEST, Translation, TranslationError, Untranslatable
from dragoman_spec.translation import Translator
from tests.support.instances import make
from tests.support.judge import _validator, canonical
from tests.support.subjects import ENVELOPES, named

NEXT = "2027-03-01"
Schema = dict[str, Any]
Change = Callable[[Schema], None]


@dataclass(frozen=True)
class Side:
    """One of the two revisions: its schema, and what the generator reads in it."""

    schema: Schema
    spec: Spec
    normal: Normalised

    def validator(self, definition: str) -> jsonschema.protocols.Validator:
        return _validator(self.schema, f"#/$defs/{definition}")

    def faults(self, frame: Any, method: str | None) -> list[str]:
        """Why a frame is not valid, as its method and as the envelope of its kind; of the result, as one it can be."""
        if "error" in frame:
            name = next(name for name in ENVELOPES["error"] if name in self.schema["$defs"])
            return [f"{e.json_path}: {e.message}" for e in self.validator(name).iter_errors(frame)]
        kind = "result" if "method" not in frame else "request" if "id" in frame else "notification"
        found = self.spec.methods.get(str(frame.get("method", method)))
        if found is None:
            return [f"there is no {frame.get('method', method)}"]
        envelope = next(name for name in ENVELOPES[kind] if name in self.schema["$defs"])
        faults = [f"{e.json_path}: {e.message}" for e in self.validator(envelope).iter_errors(frame)]
        value = frame["result"] if kind == "result" else frame
        names = found.results if kind == "result" else (found.request,)
        if not any(self.validator(name).is_valid(value) for name in names):
            faults += [f"{e.json_path}: {e.message}" for e in self.validator(names[0]).iter_errors(value)]
        return faults


@dataclass(frozen=True)
class Made:
    """What became of a release: both sides, the plan, the step in use; what was asked, and the overlay."""

    older: Side
    newer: Side
    plan: StepPlan
    step: Any
    asked: tuple[Question, ...] = ()
    overlay: str = ""

    def translate(
        self, frame: Any, direction: str = "up", method: str | None = None, profile: str = "strict"
    ) -> Translation:
        """Translate a frame over the step alone."""
        translator = Translator(LATEST, LATEST, profile, DEFAULT_RULES)
        older, newer = self.older.spec.revision, self.newer.spec.revision
        translator.source, translator.target = (older, newer) if direction == "up" else (newer, older)
        translator.steps = [getattr(self.step, direction)]
        return translator.translate(frame, method)

    def broken(self, seeds: int) -> Iterator[str]:
        """Random valid frames of the methods that the step touches, both ways and in both profiles: what comes out
        invalid, and what fails in another way than by a refusal.
        """
        for direction in ("up", "down"):
            source, target = (self.older, self.newer) if direction == "up" else (self.newer, self.older)
            for seed in range(seeds):
                frame = random_error(source, random.Random(f"error{seed}"))
                for profile in ("strict", "minimal"):
                    yield from self._judged(frame, "ping", direction, profile, target)
            for name in self.touched(direction):
                for seed in range(seeds):
                    for frame in random_frames(source, name, random.Random(f"{name}{seed}")):
                        for profile in ("strict", "minimal"):
                            yield from self._judged(frame, name, direction, profile, target)

    def touched(self, direction: str) -> list[str]:
        """The methods of which some frames change."""
        way = self.plan.ways[direction, "strict"]
        tables = (way.requests, way.notifications, way.results, way.methods)
        return sorted({name for table in tables for name in table})

    def _judged(self, frame: Any, method: str, direction: str, profile: str, target: Side) -> Iterator[str]:
        before = copy.deepcopy(frame)
        try:
            out = self.translate(frame, direction, method, profile).frame
        except Untranslatable as error:
            if not self._explained(error, direction, method):
                yield f"{direction} {profile} {method}: refused, and no entry says so: {error}: {frame}"
            return
        except TranslationError as error:
            yield f"{direction} {profile} {method}: {error}: {frame}"
            return
        if frame != before:
            yield f"{direction} {profile} {method}: changed what it was given: {before}"
        asked = getattr(self.step, direction)[profile].methods.get(method, method)
        faults = target.faults(out, asked) if out is not None else []
        if faults:
            yield f"{direction} {profile} {method}: {faults[0]}: {frame} became {out}"

    def _explained(self, error: Untranslatable, direction: str, method: str) -> bool:
        """Whether the target lacks the method, or an entry is on what is refused."""
        field_ = error.pointer.rpartition("/")[2].replace("~1", "/")
        decisions = [entry for entry in self.plan.overlay.decisions if entry.direction == direction]
        return (
            method in self.plan.ways[direction, "strict"].refused
            or any(entry.change in ("arm-removed", "narrowed") for entry in decisions)
            or any(entry.change == "required" and any(at.endswith(field_) for at in entry.at) for entry in decisions)
            or any(declares(hook.do, "refuses") for hook in self.plan.overlay.hooks)
        )


def random_frames(side: Side, name: str, rng: random.Random) -> list[dict[str, Any]]:
    """A valid request and an answer, or a notification; none where method and envelope do not agree."""
    method = side.spec.methods[name]
    frame = {"jsonrpc": "2.0", **make(side.normal, method.request, rng)}
    frames = [frame]
    if method.kind == "request":
        frame.setdefault("id", 1)
        result = make(side.normal, method.results[0], rng)
        if "resultType" in result:
            result["resultType"] = "complete"  # any other is refused before anything else is looked at
        frames.append({"jsonrpc": "2.0", "id": 1, "result": result})
    frames = [named(frame, side.spec.revision) for frame in frames]
    return [frame for frame in frames if not side.faults(frame, name)]


def random_error(side: Side, rng: random.Random) -> dict[str, Any]:
    """A valid error response."""
    name = next(name for name in ENVELOPES["error"] if name in side.schema["$defs"])
    frame: dict[str, Any] = make(side.normal, name, rng)
    return frame


def release(*changes: Change, base: Schema | None = None) -> Schema:
    """The newest schema with changes; each is handed the definitions."""
    schema = copy.deepcopy(canonical(LATEST) if base is None else base)
    for change in changes:
        change(schema["$defs"])
    return schema


def asked(schema: Schema, overlay: str = "", older: Schema | None = None) -> list[str]:
    """What a person is asked about a release, each in a few words."""
    plan = _plan(schema, overlay, older)
    return list(map(in_short, ask_once(plan.undecided)))


def in_short(question: Question) -> str:
    """A question in a few words."""
    change, more = question.first, len(question.changes) - 1
    words = [change.direction, change.kind, change.at, change.arm, f"and {more} more" if more else ""]
    return " ".join(filter(None, words))


def made(schema: Schema, overlay: str = "", older: Schema | None = None) -> Made:
    """A release with its overlay; what that leaves undecided has the safe default."""
    return made_of(_older(older), Side(schema, _newer(schema, overlay, older), normalise(NEXT, schema)), overlay)


def made_of(older: Side, newer: Side, overlay: str = "") -> Made:
    """The step between two schemas, with the safe default for what its overlay leaves undecided."""
    revision = newer.spec.revision
    plan, asked = plan_step(older.spec, newer.spec, parse_overlay(revision, overlay)), list[Question]()
    while plan.undecided:
        asked += ask_once(plan.undecided)
        overlay = add_entries(overlay, plan, complete=True)
        plan = plan_step(older.spec, newer.spec, parse_overlay(revision, overlay))
    module = types.ModuleType("step_of_a_release")
    text = render_steps([plan], dict.fromkeys((older.spec.revision, revision), "0" * 64))
    exec(compile(text[f"dragoman_spec/{module_name(revision)}/steps.py"], "steps.py", "exec"), module.__dict__)
    return Made(older, newer, plan, module.STEP, tuple(asked), overlay)


def _plan(schema: Schema, overlay: str, older: Schema | None) -> StepPlan:
    return plan_step(_older(older).spec, _newer(schema, overlay, older), parse_overlay(NEXT, overlay))


def _newer(schema: Schema, overlay: str, older: Schema | None) -> Spec:
    entries = parse_overlay(NEXT, overlay)
    new = {rename.old: rename.new for rename in entries.renames if rename.what == "definition"}
    unions = {role: new.get(name, name) for role, name in _older(older).spec.unions.items()}
    return build_spec(NEXT, schema, unions)


def _older(schema: Schema | None) -> Side:
    return _newest() if schema is None else _side(schema)


@cache
def _newest() -> Side:
    return _side(canonical(LATEST))


def _side(schema: Schema) -> Side:
    return Side(schema, build_spec(LATEST, schema), normalise(LATEST, schema))
