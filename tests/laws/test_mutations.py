"""The laws can fail: plans are broken on purpose, one thing at a time, and a law sees it.

Every n-th of all breaks by default, every one in the larger profiles. What no law can see is listed, with the reason.
"""

from __future__ import annotations

import random
import re

import pytest

from dragoman_spec import TranslationError
from tests.support.broken_plans import Break, breaks, in_place, plans
from tests.support.laws import LAWS, NO_RULES, Case
from tests.support.profile import some
from tests.support.subjects import Subject, counterpart, frame_faults, leaky_frames, random_frame, subjects

SEEDS = 150

UNSEEN = {
    r"up: \w+Result does not guard resultType": "the hook drop-accidental-result-types takes it out before",
    r"down: SamplingMessage.content does not convert list": "the hook split-sampling-messages leaves no lists",
    r"down: Tool.outputSchema does not (fill in|guard) type": "the hook wrap-output-schemas gives one to every schema",
    r"down: \w+Request(Params)? drops (params|_meta) as well": "put back whole, it has reserved keys: no need to see",
    r"down: CallToolRequestParams keeps requestState": "a call that has one is refused before",
    r"2025-06-18 down: (SamplingMessage.content|CreateMessageRequest(.params)?) does not convert": "it is a date",
    r"LegacyTitledEnumSchema|does not guard enumNames": "such a value is an UntitledSingleSelectEnumSchema first",
    r"EmbeddedResource.resource does not convert|PrimitiveSchemaDefinition does not convert": "one of two arms alike",
}
"""What no law sees, by pattern, with the reason why not."""


def way_of(broken: Break) -> tuple[str, str]:
    """The source and the target of the broken direction."""
    plan = plans()[broken.revision]
    ends = (plan.older.revision, plan.newer.revision)
    return ends if broken.direction == "up" else (ends[1], ends[0])


def seen_by(subject: Subject, target: str, seed: int) -> str | None:
    """The law that a random frame breaks, or a frame with keys of the other revision."""
    frame = random_frame(random.Random(f"{subject}{seed}"), subject)
    case = Case(subject, target, "strict", NO_RULES)
    for name, law in LAWS.items():
        try:
            said = law(frame, case)
        except TranslationError:
            return "totality"
        if said:
            return name
    other = counterpart(subject, target)
    leaks = (
        leaky_frames(random.Random(f"leak {subject}{seed}"), subject, other)
        if other and subject.kind != "error"
        else ()
    )
    for leak in leaks:
        try:
            translation = case.over(leak)
        except TranslationError:
            return "totality"
        arrived = translation.frame if translation is not None else None
        if arrived is not None and frame_faults(arrived, other):
            return "newer keys"
    return None


@pytest.mark.parametrize("broken", some(breaks(), 46), ids=str)
def test_a_broken_plan_breaks_a_law(broken: Break) -> None:
    source, target = way_of(broken)
    concerned = [subject for subject in subjects(source) if (subject.kind, subject.method) in broken.methods]
    with in_place(broken):
        seen = next((law for seed in range(SEEDS) for s in concerned if (law := seen_by(s, target, seed))), None)
    assert seen is not None or any(re.search(pattern, str(broken)) for pattern in UNSEEN), broken


def test_good_plans_break_no_law() -> None:
    """The same eyes see nothing wrong with the plans as they are."""
    for broken in breaks()[::170]:
        source, target = way_of(broken)
        for subject in subjects(source):
            assert [law for seed in range(3) if (law := seen_by(subject, target, seed))] == [], subject


def test_what_is_listed_as_unseen_is_there() -> None:
    names = [str(broken) for broken in breaks()]
    assert [pattern for pattern in UNSEEN if not any(re.search(pattern, name) for name in names)] == []
