"""What is left of a stream whose instance is gone: each request has one answer, however often its client comes."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from dragoman.core.rules.state import INSTANCE_BYTES, KEY_BYTES, Seal
from dragoman.instances.events import GONE, EventLog

SEAL = Seal((bytes(KEY_BYTES),), bytes(INSTANCE_BYTES), b"test")


class InMemory:
    """A directory that only keeps."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def keep(self, key: str, text: str, kept_s: float) -> None:
        self.kept[key] = text

    async def read(self, key: str) -> str | None:
        return self.kept.get(key)

    async def drop(self, key: str) -> None:
        self.kept.pop(key, None)


def answer(key: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "result": {}}


PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}


def rest(asked: list[int], events: list[Any], last: int, dropped: int = 0) -> list[Any]:
    """Give what comes after an event of a stream: `gone`, or the frame, a line each."""

    async def find() -> list[bytes] | None:
        log = EventLog(InMemory(), SEAL, os.urandom, 60.0)  # type: ignore[arg-type]
        for number, frame in enumerate([asked, *events]):
            log.note("session", "pa1", number, json.dumps(frame).encode())
        for number in range(1, dropped + 1):
            log.note("session", "pa1", number, None)
        await log.end()
        return await log.find_rest("session", f"pa1-{last}")

    found = asyncio.run(find())
    assert found is not None
    told = [json.loads(line) for line in found]
    return [("gone", one["id"]) if one.get("error", {}).get("message") == GONE else one for one in told]


def test_what_was_not_answered_is_answered_after_what_is_kept() -> None:
    assert rest([1], [PROGRESS, PROGRESS], 1) == [PROGRESS, ("gone", 1)]


def test_what_its_client_had_the_answer_to_is_not_answered_again() -> None:
    assert rest([1, 2], [answer(1), PROGRESS], 2) == [("gone", 2)]
    assert rest([1], [PROGRESS, answer(1)], 2) == []


def test_an_array_answers_all_that_is_in_it() -> None:
    assert rest([1, 2], [PROGRESS, [answer(1), answer(2)]], 2) == []


@pytest.mark.parametrize(("last", "gone"), [(1, [1, 2]), (2, [2]), (3, [])])
def test_who_comes_back_has_had_the_errors(last: int, gone: list[int]) -> None:
    assert rest([1, 2], [PROGRESS], last) == [("gone", key) for key in gone]


def test_where_nothing_was_told_the_errors_come_once() -> None:
    assert [rest([1], [], last) for last in (0, 1)] == [[("gone", 1)], []]


def test_what_the_store_keeps_no_longer_does_not_count_as_told() -> None:
    assert rest([1], [PROGRESS] * 4, 3, dropped=3) == [PROGRESS, ("gone", 1)]
