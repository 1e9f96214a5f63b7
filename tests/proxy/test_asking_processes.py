"""`dragoman proxy` as a process, a client without a session, and a server with one that asks it something."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from tests.proxy.test_per_request import TASKS, asks
from tests.proxy.test_processes import PATIENCE_S, Running, running

SERVER = [sys.executable, str(Path(__file__).parent / "servers" / "asking.py")]
FORM = {"elicitation": {"form": {}}}
ADA = {"question-1": {"action": "accept", "content": {"name": "Ada"}}}


def call(key: Any, **params: Any) -> dict[str, Any]:
    return asks(key, "tools/call", has=FORM, name="greet", arguments={}, **params)


def test_recorded_answers_are_good_after_a_restart_with_the_same_key(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    options = ("--questions", "replay", "--state-key-file", str(key))
    with running(command=SERVER, options=options) as run:
        run.say(call(1))
        state = run.hear()["result"]["requestState"]
        run.end()
    with running(command=SERVER, options=options) as run:
        run.say(call(2, inputResponses=ADA, requestState=state))
        assert run.hear()["result"]["content"][0]["text"] == "Hello Ada"
        run.end()
    with running(command=SERVER, options=options[:2]) as run:
        run.say(call(3, inputResponses=ADA, requestState=state))
        assert run.hear()["error"]["data"]["reason"] == "state-unreadable"
        run.end()


def test_a_parked_call_is_not_there_after_a_restart(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    with running(command=SERVER, options=("--state-key-file", str(key))) as run:
        run.say(call(1))
        state = run.hear()["result"]["requestState"]
        run.end()
    with running(command=SERVER, options=("--state-key-file", str(key))) as run:
        run.say(call(2, inputResponses=ADA, requestState=state))
        assert run.hear()["error"]["data"]["reason"] == "other-instance"
        run.end()


def test_a_tool_that_runs_as_a_task_is_one_for_its_client() -> None:
    has = {**FORM, "extensions": TASKS}
    with running(command=SERVER) as run:
        run.say(asks(1, "tools/call", has=has, name="report", arguments={}))
        task = run.hear()["result"]["taskId"]
        found = poll(run, task, has, "input_required")
        assert found["inputRequests"]["question-1"]["params"]["message"] == "Who?"
        run.say(asks("u", "tasks/update", has=has, taskId=task, inputResponses=ADA))
        assert run.hear()["result"]["resultType"] == "complete"
        assert poll(run, task, has, "completed")["result"]["content"][0]["text"] == "Hello Ada"
        run.end()


def poll(run: Running, task: str, has: dict[str, Any], status: str) -> dict[str, Any]:
    """Ask for a task until it is in this state."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        run.say(asks("get", "tasks/get", has=has, taskId=task))
        found: dict[str, Any] = run.hear()["result"]
        if found["status"] == status:
            return found
    raise AssertionError(f"the task is still {found['status']}")


def test_a_key_that_is_none_is_a_mistake_on_the_command_line(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret")
    key.chmod(0o600)
    with running(command=SERVER, options=("--state-key-file", str(key))) as run:
        code, heard = run.end()
    assert (code, heard) == (2, [])
    assert "expected 64 hexadecimal digits" in run.stderr
    assert "secret" not in run.stderr
