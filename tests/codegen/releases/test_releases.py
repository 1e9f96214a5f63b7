"""Each made-up release asks what it must ask and converts what it must convert; none breaks a frame in silence."""

from __future__ import annotations

import copy
from functools import cache

import pytest

from codegen.errors import UnknownSchemaForm, UnusedDecision
from dragoman_spec import Untranslatable
from tests.codegen.releases.cases import REFUSED, Frame, Release, both, result
from tests.codegen.releases.errors import ERRORS
from tests.codegen.releases.methods import METHODS
from tests.codegen.releases.refused import MISRULED, UNREADABLE
from tests.codegen.releases.requests import REQUESTS, nothing_more_to_say, nothing_to_say
from tests.codegen.releases.scalars import PAIRS, SCALARS, typed
from tests.codegen.releases.shapes import SHAPES
from tests.codegen.releases.told import MERGED, TOLD, prompts
from tests.support.judge import same
from tests.support.profile import THOROUGH, some
from tests.support.releases import Made, asked, made, release

SEEDS = 60 if THOROUGH else 4
OF_TOOLS = {f"{name}": typed(old, new) for name, old, new, _, _ in PAIRS}
RELEASES = [
    *SCALARS,
    *SHAPES,
    *METHODS,
    *REQUESTS,
    *ERRORS,
    *TOLD,
    *(Release(name, OF_TOOLS[name][1], asks, frames) for name, _, _, asks, frames in PAIRS),
]

TRIED = some(RELEASES, 3)


@cache
def what_was_made(name: str) -> Made:
    found = next(one for one in RELEASES if one.name == name)
    older = release(OF_TOOLS[name][0]) if name in OF_TOOLS else None
    return made(release(found.change), found.overlay, older)


@pytest.mark.parametrize("one", TRIED, ids=str)
def test_release_asks(one: Release) -> None:
    older = release(OF_TOOLS[one.name][0]) if one.name in OF_TOOLS else None
    assert asked(release(one.change), "", older) == one.asks


@pytest.mark.parametrize(
    ("one", "frame"),
    [pytest.param(one, frame, id=f"{one} {frame.direction}") for one in TRIED for frame in one.frames],
)
def test_frame_of_a_release(one: Release, frame: Frame) -> None:
    there = what_was_made(one.name)
    source, target = (there.older, there.newer) if frame.direction == "up" else (there.newer, there.older)
    assert source.faults(frame.given, frame.method) == []
    given = copy.deepcopy(frame.given)
    if frame.expected is REFUSED:
        with pytest.raises(Untranslatable):
            there.translate(given, frame.direction, frame.method)
        return
    out = there.translate(given, frame.direction, frame.method).frame
    assert same(out, frame.expected), out
    assert same(given, frame.given)
    method = there.plan.ways[frame.direction, "strict"].methods.get(str(frame.method), frame.method)
    assert out is None or target.faults(out, method) == []


@pytest.mark.parametrize("one", TRIED, ids=str)
def test_release_makes_no_valid_frame_invalid(one: Release) -> None:
    assert list(what_was_made(one.name).broken(SEEDS)) == []


@pytest.mark.parametrize(("name", "change", "pointer", "found"), UNREADABLE, ids=[row[0] for row in UNREADABLE])
def test_release_that_cannot_be_read_is_refused_by_name(name: str, change: object, pointer: str, found: str) -> None:
    with pytest.raises(UnknownSchemaForm) as caught:
        made(release(both(change)))  # type: ignore[arg-type]
    assert (caught.value.pointer, caught.value.found[: len(found)]) == (pointer, found)
    assert "codegen/read/keywords.py" in str(caught.value)


@pytest.mark.parametrize(("name", "change", "overlay", "said"), MISRULED, ids=[row[0] for row in MISRULED])
def test_overlay_that_would_break_frames_is_refused(name: str, change: object, overlay: str, said: str) -> None:
    with pytest.raises(UnusedDecision) as caught:
        made(release(both(change)), overlay)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_results_that_are_the_same_under_two_names() -> None:
    there = made(release(nothing_more_to_say), older=release(nothing_to_say))
    cheap = result(cost=0.5)
    assert there.translate(copy.deepcopy(cheap), "down", "completion/complete").frame == cheap
    assert list(there.broken(SEEDS)) == []


def test_arms_that_become_one_keep_what_is_valid_for_it() -> None:
    before, after, questions = MERGED
    older = release(before)
    there = made(release(before, after), older=older)
    assert asked(release(before, after), "", older) == questions
    given = prompts(hints=[{"a": "a", "b": "b"}, {"a": "a"}])
    assert there.translate(given, "up", "prompts/list").frame == prompts(hints=[{"a": "a", "b": "b"}])


def test_there_are_forty_releases() -> None:
    assert len(RELEASES) + len(UNREADABLE) + len(MISRULED) >= 40
