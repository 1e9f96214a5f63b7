"""Law 1: between equal revisions nothing happens, and a translator says beforehand which frames it will not touch."""

from __future__ import annotations

import random

import pytest

from dragoman_spec import RULES, Untranslatable, translate, translator
from tests.support.profile import rounds
from tests.support.subjects import PAIRS, REVISIONS, random_frame, subjects

SEEDS = rounds(default=2, thorough=50)


@pytest.mark.parametrize("revision", REVISIONS)
def test_equal_revisions_give_the_same_object(revision: str) -> None:
    for subject in subjects(revision):
        frame = random_frame(random.Random(str(subject)), subject)
        translation = translate(frame, source=revision, target=revision, method=subject.asked, rules=RULES)
        assert translation.frame is frame
        assert translation.losses == ()


@pytest.mark.parametrize("revision", REVISIONS)
def test_equal_revisions_give_back_even_what_is_no_frame(revision: str) -> None:
    thing = {"neither": "request nor response"}
    assert translate(thing, source=revision, target=revision).frame is thing


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("profile", ["strict", "minimal"])
def test_frames_that_are_not_touched_come_back_as_they_are(source: str, target: str, profile: str) -> None:
    chosen = translator(source, target, profile=profile)
    for subject in subjects(source):
        if chosen.touches(subject.kind, subject.method):
            continue
        for seed in range(SEEDS):
            frame = random_frame(random.Random(f"{subject}{seed}"), subject)
            assert chosen.translate(frame, subject.asked).frame is frame, subject


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_frames_that_change_were_said_to_be_touched(source: str, target: str) -> None:
    chosen = translator(source, target)
    for subject in subjects(source):
        frame = random_frame(random.Random(f"touch {subject}"), subject)
        try:
            same = chosen.translate(frame, subject.asked).frame is frame
        except Untranslatable:
            same = False
        assert same or chosen.touches(subject.kind, subject.method), subject


def test_minimal_profile_touches_almost_nothing_on_the_way_up() -> None:
    """RULES 2: in the minimal profile all up traffic of the handshake era passes unparsed, but for one named rule; and
    but for `initialize`, which names the revision that it is of."""
    chosen = translator("2024-11-05", "2025-11-25", profile="minimal", rules=())
    assert [
        str(s) for s in subjects("2024-11-05") if chosen.touches(s.kind, s.method) and s.method != "initialize"
    ] == []
