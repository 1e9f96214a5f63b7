"""Servers that make a check wait, or flood it: it ends soon, and says what was wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.check.check import check_server
from dragoman.check.findings import CheckReport
from dragoman.check.patience import CheckPatience
from dragoman_spec import REVISIONS
from tests.check.peer import Peer
from tests.support.commands import dragoman
from tests.support.waiting import IdleClockLoop, run

SERVER = str(Path(__file__).parent / "hostile_server.py")
HANDSHAKE = "2025-06-18"
TWO = ("2024-11-05", "2026-07-28")
LONGEST_S = 120


def check(mode: str, start: str, *options: str, timeout: str = "0.3") -> tuple[int, dict[str, Any]]:
    limits = ("--timeout", timeout, "--start-timeout", start, "--overall-timeout", "30", "--json")
    done = dragoman("check", *limits, *options, "--", sys.executable, SERVER, mode, timeout=LONGEST_S)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def found_in(report: dict[str, Any]) -> set[str]:
    return {finding["rule"] for one in report["revisions"] for finding in one["findings"]}


BROKEN = {
    "mute": {"answered"},
    "floods notifications": {"answered", "flood"},
    "floods requests": {"answered", "flood"},
    "floods answers": {"answered", "answer-id", "flood"},
    "endless line": {"answered", "frame-shape"},
    "other ids": {"answered", "answer-id"},
    "drips": {"answered"},
    "pages": {"pages-end"},
    "dies 1": {"alive"},
    "dies 9": {"alive"},
}
FAILS = BROKEN.keys() - {"pages"}
TIMEOUTS = {"pages": "20", "dies 1": "20", "dies 9": "20", "endless line": "2"}
"""Where more is waited for than silence: answers that come, and 100 MB of a line on a busy machine."""


@pytest.mark.parametrize("mode", BROKEN)
def test_whatever_a_server_does_a_check_ends_and_says_it(mode: str) -> None:
    code, report = check(mode, "20", "--revision", HANDSHAKE, timeout=TIMEOUTS.get(mode, "0.3"))
    assert found_in(report) >= BROKEN[mode]
    assert report["served"] == [HANDSHAKE]
    assert code == (1 if mode in FAILS else 0)


@pytest.mark.parametrize(("mode", "code"), [("silent", 5), ("stays", 5), ("dies 0", 3)])
def test_a_server_that_never_answers_is_one_that_did_not_answer_in_time(mode: str, code: int) -> None:
    done, report = check(mode, "0.6", *[word for one in TWO for word in ("--revision", one)])
    outcomes = {5: "silent", 3: "gone"}
    assert {one["outcome"] for one in report["revisions"]} == {outcomes[code]}
    assert report["whole"]
    assert found_in(report) == {"answered" if code == 5 else "alive"}
    assert done == code


# In memory, where time passes only while nothing is done


class Slow(Peer):
    """A peer that takes its time for each answer; or for ever, for some methods."""

    def __init__(self, wait_s: float, never: tuple[str, ...] = ()) -> None:
        super().__init__(HANDSHAKE)
        self.wait_s = wait_s
        self.never = never

    def send(self, frame: dict[str, Any], answer: dict[str, Any]) -> None:
        if frame["method"] not in self.never:
            asyncio.get_running_loop().call_later(self.wait_s, super().send, frame, answer)


def check_memory(peer: Peer, **limits: float) -> tuple[CheckReport, float]:
    async def work() -> tuple[CheckReport, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, IdleClockLoop)
        began = loop.time()
        report = await check_server(peer.connect, revisions=[HANDSHAKE], **limits)  # type: ignore[arg-type]
        return report, loop.time() - began

    return run(work())


def test_a_server_that_is_slow_all_the_time_is_cut_short() -> None:
    report, took_s = check_memory(Slow(0.05), timeout_s=1, overall_timeout_s=0.5)
    assert [one.rule for one in report.findings] == ["in-time"]
    assert report.findings[0].found.startswith("there was more to ask after ")
    assert (report.outcome, report.is_whole) == ("spoken", False)
    assert took_s < 1


def test_a_list_whose_pages_go_on_for_too_long_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.check.lists.LIST_S", 0.3)
    peer = Slow(0.1)
    peer.rule = "pages-end"
    report, took_s = check_memory(peer)
    [found] = [one.found for one in report.findings if one.rule == "pages-end"]
    assert found == "its pages take longer than 0.3 s"
    assert took_s < 10


def answered(report: CheckReport) -> list[str]:
    return [one.about for one in report.findings if one.rule == "answered"]


def test_a_server_that_leaves_out_a_few_answers_is_asked_the_rest() -> None:
    never = ("prompts/list", "resources/list", "resources/templates/list")
    report, _ = check_memory(Slow(0, never), timeout_s=0.05)
    assert sorted({about.split()[2].rstrip(",") for about in answered(report)}) == sorted(never)
    assert report.revisions[0].asked > 15


def test_what_comes_late_only_because_we_were_in_a_hurry_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.check.patience.DOUBTFUL_S", 0.02)
    report, _ = check_memory(Slow(0.05, ("resources/templates/list",)), timeout_s=0.5)
    assert answered(report) == ["the request resources/templates/list"]


def test_a_revision_for_which_there_is_no_time_is_said_not_to_have_been_asked() -> None:
    async def work() -> CheckReport:
        peer = Slow(0.05)
        return await check_server(peer.connect, timeout_s=1, overall_timeout_s=0.12)

    report = run(work())
    assert [one.outcome for one in report.revisions][-1] == "untried"
    assert not report.is_whole


def test_a_server_that_was_only_starting_is_asked_again_what_it_was_silent_in() -> None:
    spoken, current = HANDSHAKE, REVISIONS[-1]
    connected = []

    def connect() -> Any:
        never = () if connected else ("initialize",)
        connected.append(never)
        return Slow(0, never).connect()

    async def work() -> CheckReport:
        return await check_server(connect, revisions=[spoken, current], start_timeout_s=0.05, timeout_s=0.2)

    report = run(work())
    assert {one.revision: one.outcome for one in report.revisions} == {spoken: "spoken", current: "refused"}
    assert "answered" not in {one.rule for one in report.findings}


def test_silence_makes_the_next_waits_shorter() -> None:
    async def work() -> list[float]:
        patience = CheckPatience(10, 12, 180)
        first = patience.for_opening("handshake")
        patience.note_opening("handshake", answered=False)
        return [first, patience.for_opening("handshake"), patience.for_opening("per_request")]

    assert run(work()) == [12, 1, 4]


def test_a_server_that_has_started_is_given_the_usual_time() -> None:
    async def work() -> float:
        patience = CheckPatience(10, 12, 180)
        patience.note_opening("handshake", answered=True)
        return patience.for_opening("handshake")

    assert run(work()) == 10
