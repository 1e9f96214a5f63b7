"""What is left of a stream whose instance is gone: each request has one answer, however often its client comes."""

from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
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


class Slow(InMemory):
    """A directory that does nothing before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.commands = 0

    async def keep(self, key: str, text: str, kept_s: float) -> None:
        await self.may.wait()
        self.commands += 1
        await super().keep(key, text, kept_s)

    async def drop(self, key: str) -> None:
        await self.may.wait()
        self.commands += 1
        await super().drop(key)


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


def test_what_is_over_before_the_store_has_it_takes_nothing() -> None:
    async def flood() -> tuple[int, int, dict[str, str]]:
        directory = Slow()
        log = EventLog(directory, SEAL, os.urandom, 60.0)  # type: ignore[arg-type]
        line = json.dumps(PROGRESS).encode()
        tracemalloc.start()
        for number in range(1, 20_001):
            log.note("bob", "p1", number, line)
            if number > 10:
                log.note("bob", "p1", number - 10, None)
            if number == 100:
                await asyncio.sleep(0)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        directory.may.set()
        await log.end()
        return held, directory.commands, directory.kept

    held, commands, kept = asyncio.run(flood())
    assert held < 200_000
    assert commands < 50
    assert len(kept) == 10


def test_what_a_stream_has_no_longer_is_dropped_from_the_store() -> None:
    async def come_and_go() -> dict[str, str]:
        directory = InMemory()
        log = EventLog(directory, SEAL, os.urandom, 60.0)  # type: ignore[arg-type]
        for number in range(5):
            log.note("session", "p1", number, b"[]")
        await log.end()
        assert len(directory.kept) == 5
        for number in range(5):
            log.note("session", "p1", number, None)
        await log.end()
        return directory.kept

    assert asyncio.run(come_and_go()) == {}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_session_that_floods_a_slow_store_leaves_room_for_others(is_first: bool) -> None:
    async def flood() -> list[bytes] | None:
        directory = Slow()
        log = EventLog(directory, SEAL, os.urandom, 60.0)  # type: ignore[arg-type]
        line = json.dumps(PROGRESS | {"x": "y" * 1000}).encode()

        def ask() -> None:
            log.note("ada", "p1", 0, b"[7]")
            log.note("ada", "p1", 1, json.dumps(PROGRESS).encode())

        if is_first:
            ask()
        for number in range(1, 5001):
            log.note("bob", "p1", number, line)
            if number == 4000 and not is_first:
                ask()
        directory.may.set()
        for _ in range(4):  # each session has its turn
            await asyncio.sleep(0)
        return await log.find_rest("ada", "p1-0")

    found = asyncio.run(flood())
    assert found is not None
    assert [json.loads(line).get("id") for line in found] == [None, 7]
