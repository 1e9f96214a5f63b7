"""Laws 2 to 6 over all ordered pairs of revisions, every method and kind, both profiles, with and without the repair
rules.

Random valid frames, the same ones every time; `tests/support/laws.py` says what each law is. Hypothesis looks for a
small frame that breaks a law, over the same frames; the loops make sure that every kind of frame has been there.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_spec import DEFAULT_RULES
from tests.support.laws import LAWS, NO_RULES, Case, vendor_keys
from tests.support.profile import hypothesis_settings, rounds
from tests.support.subjects import (
    PAIRS,
    REVISIONS,
    Subject,
    counterpart,
    frame_faults,
    leaky_frames,
    random_frame,
    subjects,
)

SEEDS = rounds(default=4, thorough=300)
LEAKS = rounds(default=2, thorough=60)
PROFILES = ("strict", "minimal")


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_frames_that_laws_are_tried_on_are_valid(revision: str) -> None:
    for subject in subjects(revision):
        for seed in range(SEEDS):
            assert frame_faults(random_frame(random.Random(f"{subject}{seed}"), subject), subject) == [], subject


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("law", LAWS)
def test_law_holds(law: str, source: str, target: str) -> None:
    for subject in subjects(source):
        for seed in range(SEEDS):
            frame = random_frame(random.Random(f"{subject}{seed}"), subject)
            for profile in PROFILES:
                case = Case(subject, target, profile, DEFAULT_RULES if seed % 2 else NO_RULES)
                assert LAWS[law](frame, case) is None, (case, frame)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_vendor_keys_survive_at_any_depth(source: str, target: str) -> None:
    for number, subject in enumerate(subjects(source)):
        rng = random.Random(f"vendor {subject}")
        case = Case(subject, target, PROFILES[number % 2])
        frame = random_frame(rng, subject)
        assert vendor_keys(frame, case, rng) is None, (case, frame)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_keys_of_another_revision_never_make_a_frame_invalid(source: str, target: str) -> None:
    """Law 2, on peers that send keys of a revision that they do not speak, as SDKs do, of any type."""
    for subject in subjects(source):
        other = counterpart(subject, target)
        for seed in range(LEAKS if other is not None and subject.kind != "error" else 0):
            assert other is not None
            for frame in leaky_frames(random.Random(f"leak {subject}{seed}"), subject, other):
                translation = Case(subject, target).over(frame)
                if translation is not None and translation.frame is not None:
                    assert frame_faults(translation.frame, other) == [], frame


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, object], Case]:
    source, target = draw(st.sampled_from(PAIRS))
    subject: Subject = draw(st.sampled_from(subjects(source)))
    frame = random_frame(draw(st.randoms(use_true_random=False)), subject)
    rules = draw(st.sampled_from([DEFAULT_RULES, NO_RULES]))
    return frame, Case(subject, target, draw(st.sampled_from(PROFILES)), rules)


@pytest.mark.parametrize("law", LAWS)
@hypothesis_settings(default=60, thorough=20_000)
@given(cases())
def test_no_small_frame_breaks_the_law(law: str, drawn: tuple[dict[str, object], Case]) -> None:
    frame, case = drawn
    assert LAWS[law](frame, case) is None
