"""A frame that is held against its models in pieces: what is found is what is found in the whole of it."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

import dragoman_spec
from dragoman.check.judging import member_names
from dragoman.check.slicing import FrameSlicer, Misfit
from dragoman_spec import REVISIONS
from tests.support.hostile import any_json, wrong_in_each_place
from tests.support.profile import SEED, rounds
from tests.support.subjects import random_frame, subjects

CURRENT = REVISIONS[3]


def find(frame: Any, revision: str, method: str | None) -> list[Misfit]:
    found = dragoman_spec.violations(frame, revision, method, as_usual=True)
    return [Misfit(one.pointer, one.expected, one.found) for one in found]


def in_pieces(frame: Any, revision: str, method: str | None, piece: int) -> list[Misfit]:
    sizes: list[int] = []

    def judge(part: Any) -> list[Misfit]:
        sizes.append(len(str(part)))
        return find(part, revision, method)

    found = [*FrameSlicer(partial(member_names, revision), piece).find(frame, judge, lambda: True)]
    assert max(sizes) <= len(str(frame))
    return found


@pytest.mark.parametrize("revision", REVISIONS)
def test_pieces_are_as_valid_as_the_whole(revision: str) -> None:
    rng = random.Random(SEED)
    seen = 0
    for subject in subjects(revision):
        for _ in range(rounds(1, 50)):
            frame = random_frame(rng, subject)
            for wrong in wrong_in_each_place(frame, rng):
                whole = find(wrong, revision, subject.asked)
                seen += len(whole)
                assert sorted(in_pieces(wrong, revision, subject.asked, 2)) == sorted(whole)
    assert seen > 300


def make_list(tools: list[Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}


def make_tool(**members: Any) -> dict[str, Any]:
    return {"name": "a", "inputSchema": {"type": "object"}, **members}


def test_what_is_wrong_far_behind_is_found_where_it_is() -> None:
    properties: dict[str, Any] = {f"p/{number}": {} for number in range(300)}
    tools = [make_tool() for _ in range(1000)]
    tools[900] = make_tool(inputSchema={"type": "object", "properties": {**properties, "p/299": 5}}, title=None)
    tools[999] = make_tool(description=5)
    found = in_pieces(make_list(tools), CURRENT, "tools/list", 128)
    assert sorted(one.pointer for one in found) == [
        "/result/tools/900/inputSchema/properties/p~1299",
        "/result/tools/900/title",
        "/result/tools/999/description",
    ]


def test_what_has_to_be_there_may_stand_behind_much_else() -> None:
    odd = {f"x{number}": None for number in range(1000)}
    assert in_pieces(make_list([{**odd, **make_tool()}]), CURRENT, "tools/list", 128) == []
    found = in_pieces(make_list([{**odd, "name": "a"}]), CURRENT, "tools/list", 128)
    assert [one.pointer for one in found] == ["/result/tools/0/inputSchema"]


def test_it_can_be_stopped() -> None:
    looked = 0

    def judge(part: Any) -> list[Misfit]:
        nonlocal looked
        looked += 1
        return []

    assert [
        *FrameSlicer(frozenset).find(make_list([any_json(random.Random(1), 2)] * 10_000), judge, lambda: looked < 5)
    ] == []
    assert looked == 5
