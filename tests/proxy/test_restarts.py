"""A server that ends or goes silent in the middle of a conversation: real processes, ended at every point."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from tests.proxy.conversation import request
from tests.proxy.test_processes import Running, running

OLDEST, NEWEST = HANDSHAKE_REVISIONS[0], HANDSHAKE_REVISIONS[-1]
MORTAL = str(Path(__file__).parent / "servers" / "mortal.py")
QUICK = ("--restarts", "5")

OPENING = 5
"""How many points there are before the session is open: initialize is read, answered (three), initialized is read."""


def command(directory: Path, point: int | str) -> list[str]:
    return [sys.executable, MORTAL, str(directory), str(point)]


def call(run: Running, key: int, name: str) -> Any:
    run.say(request(key, "tools/call", name=name, arguments={}))
    return hear_answer(run, key)


def hear_answer(run: Running, key: int) -> Any:
    while (frame := run.hear()).get("id") != key:
        assert frame.get("method", "").endswith("/list_changed") or "updated" in frame["method"], frame
    return frame


def runs_in(directory: Path) -> Counter[str]:
    file = directory / "runs"
    return Counter(file.read_text().split()) if file.exists() else Counter()


@pytest.mark.parametrize(
    ("revision", "point"),
    [(NEWEST, point) for point in range(OPENING, OPENING + 9)] + [(OLDEST, OPENING), (OLDEST, OPENING + 1)],
)
def test_no_call_runs_twice_and_the_session_goes_on(tmp_path: Path, point: int, revision: str) -> None:
    with running(command=command(tmp_path, point), options=QUICK) as run:
        run.open(revision)
        answers = [call(run, number, f"tool-{number}") for number in range(10, 14)]
        assert run.end()[0] == 0
    failed = [answer for answer in answers if "error" in answer]
    assert len(failed) <= 1, "one call was under way when the server ended"
    assert all("being started again" in answer["error"]["message"] for answer in failed)
    assert max(runs_in(tmp_path).values()) == 1
    assert len(list(tmp_path.glob("process-*"))) == 2


def test_several_calls_under_way_fail_each_once_and_what_comes_meanwhile_waits(tmp_path: Path) -> None:
    with running(command=command(tmp_path, OPENING), options=QUICK) as run:
        run.open(NEWEST)
        run.say(*(request(number, "tools/call", name=f"tool-{number}", arguments={}) for number in range(10, 13)))
        answers = {number: hear_answer(run, number) for number in range(10, 13)}
        assert "result" in call(run, 20, "tool-20")
        assert run.end()[0] == 0
    assert all("error" in answer for answer in answers.values())
    assert set(runs_in(tmp_path)) == {"tool-20"}


def test_subscriptions_are_made_again_and_lists_may_have_changed(tmp_path: Path) -> None:
    with running(command=command(tmp_path, OPENING + 4), options=QUICK) as run:
        run.open(NEWEST)
        run.say(request(10, "resources/subscribe", uri="a:1"))
        assert "result" in hear_answer(run, 10)
        run.say(request(11, "tools/call", name="tool-11", arguments={}))
        assert "error" in hear_answer(run, 11)
        heard = [run.hear()["method"], run.hear()["method"]]
        assert run.end()[0] == 0
    assert heard == ["notifications/tools/list_changed", "notifications/resources/updated"]
    assert runs_in(tmp_path) == {"resources/subscribe": 2}


def test_without_the_option_the_session_ends_with_its_server(tmp_path: Path) -> None:
    with running(command=command(tmp_path, OPENING)) as run:
        run.open(NEWEST)
        assert "error" in call(run, 10, "tool-10")
        assert run.end()[0] == 3
    assert len(list(tmp_path.glob("process-*"))) == 1


def test_a_server_that_goes_silent_is_replaced(tmp_path: Path) -> None:
    with running(command=command(tmp_path, "hang"), options=(*QUICK, "--health-interval", "1")) as run:
        run.open(NEWEST)
        assert "result" in call(run, 10, "tool-10")
        answer = call(run, 11, "tool-11")
        assert "not even an answer to ping" in answer["error"]["message"]
        assert "result" in call(run, 12, "tool-12")
        assert run.end()[0] == 0
    assert runs_in(tmp_path) == {"tool-10": 1, "tool-12": 1}


def test_a_server_that_never_comes_back_ends_the_session_in_the_end(tmp_path: Path) -> None:
    gone = tmp_path / "server"
    gone.write_text(f"#!{sys.executable}\n{Path(MORTAL).read_text()}")
    gone.chmod(0o700)
    with running(command=[str(gone), str(tmp_path), str(OPENING)], options=("--restarts", "2")) as run:
        run.open(NEWEST)
        gone.unlink()
        assert "error" in call(run, 10, "tool-10")
        run.say(request(11, "tools/list"))
        assert "error" in hear_answer(run, 11)
        assert not run.heard.read(), "the proxy ends by itself"
        assert run.end()[0] == 127


@pytest.mark.parametrize("value", ["-1", "some", "1.5"])
def test_a_number_of_restarts_is_a_whole_number(value: str, tmp_path: Path) -> None:
    with running(command=command(tmp_path, 0), options=("--restarts", value)) as run:
        assert run.end()[0] == 2
    assert "expected a whole number" in run.stderr or "expected one argument" in run.stderr


def speaking_for_itself(key: int, name: str) -> Any:
    info = {"name": "test", "version": "1"}
    told = {"protocolVersion": REVISIONS[-1], "clientInfo": info, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in told.items()}
    return request(key, "tools/call", name=name, arguments={}, _meta=meta)


def test_requests_that_speak_for_themselves_go_on_too(tmp_path: Path) -> None:
    options = (*QUICK, "--server-revision", "2025-11-25")  # so that it is not asked what it is
    with running(command=command(tmp_path, OPENING + 1), options=options) as run:
        answers = []
        for number in range(10, 13):
            run.say(speaking_for_itself(number, f"tool-{number}"))
            answers.append(hear_answer(run, number))
        assert run.end()[0] == 0
    assert "being started again" in answers[0]["error"]["message"]
    assert all(answer["result"]["resultType"] == "complete" for answer in answers[1:])
    assert runs_in(tmp_path) == {"tool-10": 1, "tool-11": 1, "tool-12": 1}


def test_a_server_that_goes_because_its_client_has_gone_is_not_missed(tmp_path: Path) -> None:
    with running(command=command(tmp_path, "never"), options=QUICK) as run:
        run.open(NEWEST)
        assert "result" in call(run, 10, "tool")
        assert run.end()[0] == 0
    assert "starting it again" not in run.stderr
    assert len(list(tmp_path.glob("process-*"))) == 1
