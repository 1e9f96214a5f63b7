"""The rule `sanitize-nulls`: a null where a field may be absent and may not be null says what absence says.

For every kind of frame and every place where that is so, found by the independent validator: the frame with the null
and the rule becomes what the frame without the field becomes. Elsewhere the rule touches nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from dragoman_spec import DEFAULT_RULES, Untranslatable, translate
from tests.support.judge import same
from tests.support.profile import rounds
from tests.support.round_trips import property_names
from tests.support.subjects import PAIRS, Subject, frame_faults, places, put, random_frame, subjects

SEEDS = rounds(default=2, thorough=8)
RULES = DEFAULT_RULES | {"sanitize-nulls"}


def outcome(frame: Any, subject: Subject, target: str, rules: frozenset[str]) -> Any:
    try:
        done = translate(frame, source=subject.revision, target=target, method=subject.asked, rules=rules)
    except Untranslatable as error:
        return error.reason
    return done.frame


def nullable(frame: Any, subject: Subject) -> Iterator[tuple[Any, Any]]:
    """Frames with a null that is not valid in a place where nothing would be, and the same without it."""
    for path in places(frame, ()):
        if path[-1] not in property_names(subject.revision) or path[0] in ("id", "jsonrpc", "method"):
            continue  # the members of maps are data, and their names nobody's fields
        nulled, without = put(frame, path, None), left_out(frame, path)
        if frame_faults(nulled, subject) and not frame_faults(without, subject):
            yield nulled, without


def left_out(value: Any, path: tuple[Any, ...]) -> Any:
    if len(path) == 1:
        return {key: item for key, item in value.items() if key != path[0]}
    return put(value, path[:1], left_out(value[path[0]], path[1:]))


@cache
def all_nullable(revision: str) -> list[tuple[Subject, Any, Any]]:
    """All such frames of a revision, of which the validator has found what they are once."""
    found = []
    for subject in subjects(revision):
        for seed in range(SEEDS if subject.kind != "error" else 0):
            frame = random_frame(random.Random(f"null {subject}{seed}"), subject)
            found += [(subject, nulled, without) for nulled, without in nullable(frame, subject)]
    return found


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_nulls_are_taken_for_absence(source: str, target: str) -> None:
    for subject, nulled, without in all_nullable(source):
        wanted = outcome(without, subject, target, RULES)
        assert same(outcome(nulled, subject, target, RULES), wanted), (subject, nulled)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_valid_frames_are_as_without_the_rule(source: str, target: str) -> None:
    for subject in subjects(source):
        for seed in range(3):
            frame = random_frame(random.Random(f"{subject}{seed}"), subject)
            wanted = outcome(frame, subject, target, DEFAULT_RULES)
            assert same(outcome(frame, subject, target, RULES), wanted), (subject, frame)
