"""The client without an event loop: the same calls, which wait."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.client.sync import EventThread
from dragoman.errors import ConnectionClosed, LocalProtocolError, McpError
from dragoman_spec import v2025_06_18 as v
from tests.client.server import ScriptedServer
from tests.client.test_client import TEXT
from tests.client.test_per_request import SESSION_TASKS, TASK

SERVER = [sys.executable, str(Path(__file__).parent / "echo_server.py")]


def fill_in(params: v.ElicitRequestParams) -> v.ElicitResult:
    return v.ElicitResult(action="accept", content={"name": params.message})


def test_calls_lists_and_errors() -> None:
    with dragoman.connect_sync(SERVER, "2025-06-18", timeout_s=30) as client:
        assert [tool.name for tool in client.tools()][:2] == ["echo", "fail"]
        result = client.call("echo", {"count": 3})
        block = result.content[0]
        assert isinstance(block, v.TextContent)
        assert (block.text, client.server_revision) == ('{"count": 3}', "2025-06-18")
        with pytest.raises(McpError) as caught:
            client.read("x:nothing")
        assert (caught.value.code, caught.value.name) == (-32601, "METHOD_NOT_FOUND")


def test_handlers_are_ordinary_functions() -> None:
    with dragoman.connect_sync(SERVER, "2025-06-18", elicitation=fill_in) as client:
        block = client.call("ask").content[0]
        assert isinstance(block, v.TextContent)
        assert "Who is there?" in block.text


@pytest.mark.parametrize(
    "end", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, concurrent.futures.CancelledError]
)
def test_a_handler_that_wants_to_end_the_program_has_failed(end: type[BaseException]) -> None:
    def leave(params: v.ElicitRequestParams) -> v.ElicitResult:
        raise end

    with dragoman.connect_sync(SERVER, "2025-06-18", timeout_s=30, elicitation=leave) as client:
        assert "handler failed" in str(client.call("ask"))


def test_a_handler_that_gives_nothing_has_failed() -> None:
    with dragoman.connect_sync(SERVER, "2025-06-18", timeout_s=30, elicitation=lambda _: None) as client:  # type: ignore[arg-type,return-value]
        assert "gave no ElicitResult" in str(client.call("ask"))


def test_a_callback_that_wants_to_end_the_program_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    thread = EventThread()
    thread.loop.call_soon_threadsafe(sys.exit)
    assert thread.run(asyncio.to_thread(str, "still there")) == "still there"
    thread.close()
    assert "cannot end it from here" in caplog.text


def test_a_server_that_cannot_be_started_leaves_nothing_behind() -> None:
    with pytest.raises(ConnectionClosed), dragoman.connect_sync(["/nowhere/server"]):
        pytest.fail("opened")
    with pytest.raises(LocalProtocolError):
        dragoman.connect_sync(SERVER, "2024-11-05", elicitation=fill_in)  # type: ignore[call-overload]


def test_streams_and_tasks() -> None:
    def touch(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(method="notifications/resources/updated", params={"uri": "x:y"})
        server.say(id=frame["id"], result={})

    task: Any = {**TASK, "status": "completed", "ttl": 1, "pollInterval": 1}
    answers = {
        "resources/subscribe": touch,
        "resources/unsubscribe": {},
        "tools/call": {"task": {**task, "status": "working"}},
        "tasks/get": task,
        "tasks/result": TEXT,
    }
    server = ScriptedServer(answers, capabilities=SESSION_TASKS)
    with dragoman.connect_sync(server, "2025-11-25") as client:
        with client.listen("x:y") as changes:
            assert next(changes).method == "notifications/resources/updated"
        begun = client.start("add")
        assert begun.status == "working"
        assert begun.result().content
        assert begun.status == "completed"


@pytest.mark.parametrize(("code", "name"), [(-32002, "RESOURCE_NOT_FOUND"), (-32000, "SERVER_ERROR"), (7, "")])
def test_an_error_has_the_name_of_its_code(code: int, name: str) -> None:
    assert McpError(code, "x").name == name
