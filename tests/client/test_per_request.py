"""The client without a handshake: metadata, rounds, streams and tasks, at servers of its revision and of older ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import dragoman
import dragoman_spec
from dragoman.errors import (
    CapabilityNotSupported,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    RequestTimeout,
)
from dragoman_spec import v2026_07_28 as v
from tests.client.server import ALL, ScriptedServer
from tests.client.test_client import TEXT, leaves, run, wait_for_what_is_cancelled

META = "io.modelcontextprotocol/"
EXTENSION = META + "tasks"
COMPLETE = {"resultType": "complete"}
DONE = {**COMPLETE, **TEXT}
REVISION: Any = "2026-07-28"
FORM = {"mode": "form", "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
ASKS = {"method": "elicitation/create", "params": FORM}


class StatelessServer(ScriptedServer):
    """The same without a handshake."""

    def _answer(self, frame: dict[str, Any]) -> None:
        if frame["method"] == "server/discover" and "server/discover" not in self.answers:
            told = {"supportedVersions": [REVISION], "capabilities": self.capabilities, "instructions": "Be brief"}
            meta = {META + "serverInfo": {"name": "stateless", "version": "2"}}
            result = {**COMPLETE, **told, "ttlMs": 0, "cacheScope": "private", "_meta": meta}
            self.say(id=frame["id"], result=result)
        else:
            super()._answer(frame)


def talk(
    work: Callable[[Any, Any], Awaitable[Any]],
    server: Callable[..., ScriptedServer] = StatelessServer,
    answers: dict[str, Any] | None = None,
    capabilities: dict[str, Any] = ALL,
    **options: Any,
) -> Any:
    async def session() -> Any:
        scripted = server(answers, capabilities=capabilities)
        async with dragoman.connect(scripted, **{"revision": REVISION, **options}) as client:
            return await work(client, scripted)

    return run(session())


async def fill_in(params: v.ElicitRequestFormParams) -> v.ElicitResult:
    return v.ElicitResult(action="accept", content={"asked": params.message})


async def give_roots() -> v.ListRootsResult:
    return v.ListRootsResult(roots=[v.Root(uri="file:///srv")])


def test_each_request_says_what_the_client_is_and_results_are_models() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        result = await client.call("add", {"a": 1})
        assert type(result) is v.CallToolResult
        params = (await server.wait_for_method("tools/call"))["params"]
        meta = params.pop("_meta")
        assert params == {"name": "add", "arguments": {"a": 1}}
        assert meta[META + "protocolVersion"] == REVISION
        assert meta[META + "clientInfo"]["name"] == "dragoman"
        assert meta[META + "clientCapabilities"] == {"roots": {}}
        assert (client.revision, client.server_revision) == (REVISION, REVISION)
        assert (client.server_info.name, client.instructions) == ("stateless", "Be brief")
        assert isinstance(client.discovered, v.DiscoverResult)
        assert "initialize" not in [frame.get("method") for frame in server.told]

    talk(work, answers={"tools/call": DONE}, roots=give_roots)


def test_a_server_with_a_handshake_is_a_protocol_error_for_a_pinned_client() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        pytest.fail("opened")

    def unknown(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id=frame["id"], error={"code": -32601, "message": "there is no server/discover"})

    with pytest.raises(RemoteProtocolError):
        talk(work, ScriptedServer, {"server/discover": unknown})


def test_lists_pages_templates_and_completion() -> None:
    cached = {**COMPLETE, "ttlMs": 0, "cacheScope": "private"}
    answers = {
        "resources/templates/list": {**cached, "resourceTemplates": [{"uriTemplate": "x:{y}", "name": "one"}]},
        "completion/complete": {**COMPLETE, "completion": {"values": ["Ada"]}},
        "resources/read": {**cached, "contents": [{"uri": "x:y", "text": "z"}]},
    }

    async def work(client: Any, server: ScriptedServer) -> None:
        assert [one.name async for one in client.templates()] == ["one"]
        assert (await client.complete_template("x:{y}", "y", "A")).completion.values == ["Ada"]
        assert (await client.read("x:y")).contents[0].text == "z"

    talk(work, answers=answers)


def test_what_the_revision_does_not_have_is_not_sent() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        for use in (client.ping, lambda: client.subscribe("x:y"), client.roots_changed):
            with pytest.raises(LocalProtocolError, match=f"revision {REVISION} has no"):
                await use()

    talk(work)


@pytest.mark.parametrize("use", [lambda c: c.set_log_level("info"), lambda c: c.call("x")])
def test_what_the_server_did_not_declare_is_not_sent(use: Callable[[Any], Awaitable[Any]]) -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(CapabilityNotSupported):
            await use(client)

    talk(work, capabilities={})


def test_a_log_level_goes_with_each_request() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(LocalProtocolError, match="loud"):
            await client.set_log_level("loud")
        await client.set_log_level("info")
        reader = client.notifications()
        await client.call("add")
        assert (await anext(reader)).params.data == "hello"

    def answer(server: ScriptedServer, frame: dict[str, Any]) -> None:
        assert frame["params"]["_meta"][META + "logLevel"] == "info"
        server.say(method="notifications/message", params={"level": "info", "data": "hello"})
        server.say(id=frame["id"], result=DONE)

    talk(work, answers={"tools/call": answer})


# Rounds


def asking(*rounds: dict[str, Any]) -> Callable[[ScriptedServer, dict[str, Any]], None]:
    """Answer each attempt with the next of these results."""
    left = list(rounds)

    def answer(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id=frame["id"], result=left.pop(0))

    return answer


def test_questions_go_to_the_handlers_and_the_request_is_sent_again() -> None:
    first = {
        "resultType": "input_required",
        "inputRequests": {"who": ASKS, "where": {"method": "roots/list"}},
        "requestState": "opaque",
    }

    async def work(client: Any, server: ScriptedServer) -> None:
        result = await client.call("add", {"a": 1})
        assert result.content[0].text == "3"
        one, other = [frame["params"] for frame in server.told if frame.get("method") == "tools/call"]
        assert "inputResponses" not in one
        assert other["inputResponses"] == {
            "who": {"action": "accept", "content": {"asked": "who?"}},
            "where": {"roots": [{"uri": "file:///srv"}]},
        }
        assert (other["requestState"], other["arguments"]) == ("opaque", {"a": 1})

    talk(work, answers={"tools/call": asking(first, DONE)}, elicitation=fill_in, roots=give_roots)


def test_a_round_without_questions_only_waits() -> None:
    waiting = {"resultType": "input_required", "requestState": "s"}

    async def work(client: Any, server: ScriptedServer) -> None:
        assert (await client.call("add")).content[0].text == "3"

    talk(work, answers={"tools/call": asking(waiting, DONE)})


def test_a_server_that_asks_for_ever_is_given_up() -> None:
    again = {"resultType": "input_required", "inputRequests": {"who": ASKS}}

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(RemoteProtocolError, match="again and again"):
            await client.call("add")

    talk(work, answers={"tools/call": asking(*[again] * 12)}, elicitation=fill_in)


def test_a_handler_that_refuses_fails_the_call() -> None:
    async def refuse(params: Any) -> Any:
        raise McpError(-1, "not now")

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(McpError, match="not now"):
            await client.call("add")

    again = {"resultType": "input_required", "inputRequests": {"who": ASKS}}
    talk(work, answers={"tools/call": asking(again)}, elicitation=refuse)


def test_a_handler_that_awaits_what_somebody_cancels_fails_the_call() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(McpError, match="handler failed: CancelledError"):
            await client.call("add")

    again = {"resultType": "input_required", "inputRequests": {"who": ASKS}}
    talk(work, answers={"tools/call": asking(again)}, elicitation=wait_for_what_is_cancelled)


def test_a_result_of_an_unknown_type_is_a_protocol_error() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises((RemoteProtocolError, McpError)):
            await client.call("add")

    talk(work, answers={"tools/call": {"resultType": "riddle"}})


@pytest.mark.parametrize(
    "asked", [["who"], {"who": "?"}, {"who": {"params": {}}}, {"who": {"method": "roots/list", "params": 5}}]
)
def test_questions_that_cannot_be_read_are_a_protocol_error(asked: Any) -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(RemoteProtocolError):
            await client.call("add")

    talk(work, answers={"tools/call": {"resultType": "input_required", "inputRequests": asked}}, roots=give_roots)


# Streams


def listened(server: ScriptedServer, frame: dict[str, Any]) -> None:
    meta = {META + "subscriptionId": frame["id"]}
    told = {"_meta": meta, "notifications": frame["params"]["notifications"]}
    server.say(method="notifications/subscriptions/acknowledged", params=told)
    server.say(method="notifications/tools/list_changed", params={"_meta": meta})
    server.say(method="notifications/resources/updated", params={"_meta": meta, "uri": "x:y"})


def test_changes_are_listened_to_as_long_as_the_context_lasts() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        async with client.listen("x:y", tools=True) as changes:
            found = [await anext(changes), await anext(changes)]
            asked = await server.wait_for_method("subscriptions/listen")
        assert [type(one) for one in found] == [v.ToolListChangedNotification, v.ResourceUpdatedNotification]
        assert asked["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["x:y"]}
        cancelled = await server.wait_for_method("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]

    talk(work, answers={"subscriptions/listen": listened})


def test_a_stream_that_the_server_ends_ends_the_iteration() -> None:
    def end(server: ScriptedServer, frame: dict[str, Any]) -> None:
        listened(server, frame)
        meta = {META + "subscriptionId": frame["id"]}
        server.say(id=frame["id"], result={**COMPLETE, "_meta": meta})

    async def work(client: Any, server: ScriptedServer) -> None:
        async with client.listen(tools=True) as changes:
            assert len([one async for one in changes]) == 2

    talk(work, answers={"subscriptions/listen": end})


def test_a_stream_that_is_refused_is_an_error() -> None:
    def refuse(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id=frame["id"], error={"code": -32603, "message": "no streams today"})

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(McpError, match="no streams today"):
            async with client.listen(tools=True):
                pytest.fail("opened")

    talk(work, answers={"subscriptions/listen": refuse})


def test_a_stream_that_the_server_does_not_begin_is_given_up() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(RequestTimeout, match="subscriptions/listen"):
            async with client.listen(tools=True):
                pytest.fail("opened")
        await server.wait_for_method("notifications/cancelled")

    talk(work, timeout_s=0.1)


def test_changes_that_the_server_does_not_tell_of_cannot_be_listened_to() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(CapabilityNotSupported, match=r"tools\.listChanged"):
            client.listen(tools=True)

    talk(work, capabilities={"tools": {}})


@pytest.mark.parametrize("revision", ["2025-06-18", "2024-11-05"])
def test_a_session_listens_by_subscribing(revision: Any) -> None:
    models = dragoman_spec.load(revision)

    async def work(client: Any, server: ScriptedServer) -> None:
        await server.wait_for_method("notifications/initialized")
        async with client.listen("x:y", tools=True) as changes, client.listen("x:y") as same:
            await server.wait_for_method("resources/subscribe")
            server.say(method="notifications/prompts/list_changed")
            server.say(method="notifications/tools/list_changed")
            for other in ("z:z", "x:yz"):
                server.say(method="notifications/resources/updated", params={"uri": other})
            server.say(method="notifications/resources/updated", params={"uri": "x:y"})
            found = [await anext(changes), await anext(changes)]
            only = await anext(same)
            assert (type(only), only.params.uri) == (models.ResourceUpdatedNotification, "x:y")
        assert [type(one) for one in found] == [models.ToolListChangedNotification, models.ResourceUpdatedNotification]
        methods = [frame.get("method") for frame in server.told]
        assert (methods.count("resources/subscribe"), methods.count("resources/unsubscribe")) == (1, 1)

    answers = {"resources/subscribe": {}, "resources/unsubscribe": {}}
    talk(work, ScriptedServer, answers, revision=revision)


# Tasks


TASK = {"taskId": "t", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}


def a_task(status: str, **members: Any) -> dict[str, Any]:
    return {**TASK, "status": status, "ttlMs": None, "pollIntervalMs": 1, **members}


HAS_TASKS = {**ALL, "extensions": {EXTENSION: {}}}


def test_a_call_that_the_server_makes_a_task_is_waited_for() -> None:
    made = {"resultType": "task", **a_task("working")}
    asked = {**COMPLETE, **a_task("input_required", inputRequests={"who": ASKS})}
    done = {**COMPLETE, **a_task("completed", result=TEXT)}
    answers = {"tools/call": made, "tasks/get": asking(asked, asked, done), "tasks/update": COMPLETE}

    async def work(client: Any, server: ScriptedServer) -> None:
        result = await client.call("add")
        assert (type(result), result.content[0].text) == (v.CallToolResult, "3")
        updates = [frame["params"] for frame in server.told if frame.get("method") == "tasks/update"]
        assert [update["inputResponses"]["who"]["action"] for update in updates] == ["accept"]
        declared = (await server.wait_for_method("tools/call"))["params"]["_meta"][META + "clientCapabilities"]
        assert declared["extensions"] == {EXTENSION: {}}

    talk(work, answers=answers, capabilities=HAS_TASKS, tasks=True, elicitation=fill_in)


def test_a_task_that_fails_raises_its_error() -> None:
    failed = {**COMPLETE, **a_task("failed", error={"code": -7, "message": "broken"})}
    answers = {"tools/call": {"resultType": "task", **a_task("working")}, "tasks/get": failed}

    async def work(client: Any, server: ScriptedServer) -> None:
        task = await client.start("add")
        assert (task.id, task.status) == ("t", "working")
        with pytest.raises(McpError, match="broken"):
            await task.result()
        assert task.status == "failed"

    talk(work, answers=answers, capabilities=HAS_TASKS, tasks=True)


def test_a_task_without_a_name_is_a_protocol_error() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(RemoteProtocolError, match="without its name"):
            await client.start("add")

    talk(work, answers={"tools/call": {"resultType": "task"}}, capabilities=HAS_TASKS, tasks=True)


def test_a_call_that_is_answered_at_once_is_a_task_that_is_over() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        task = await client.start("add")
        assert (task.status, await task.poll(), (await task.result()).content[0].text) == (
            "completed",
            "completed",
            "3",
        )
        await task.cancel()

    talk(work, answers={"tools/call": DONE}, capabilities=HAS_TASKS, tasks=True)


SESSION_TASKS = {**ALL, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}


def test_a_session_runs_tasks_too() -> None:
    def older(status: str) -> dict[str, Any]:
        return {**TASK, "status": status, "ttl": 1000, "pollInterval": 1}

    answers = {
        "tools/call": {"task": older("working")},
        "tasks/get": asking(older("working"), older("completed")),
        "tasks/result": TEXT,
        "tasks/cancel": older("cancelled"),
        "tasks/list": {"tasks": [older("working")]},
    }

    async def work(client: Any, server: ScriptedServer) -> None:
        task = await client.start("add", {"a": 1}, ttl_ms=1000)
        asked = (await server.wait_for_method("tools/call"))["params"]
        assert asked["task"] == {"ttl": 1000}
        assert (await task.result()).content[0].text == "3"
        assert [one.task_id async for one in client.tasks()] == ["t"]
        other = await client.start("add")
        await other.cancel()
        assert other.status == "cancelled"

    talk(work, ScriptedServer, answers, SESSION_TASKS, revision="2025-11-25")


def test_tasks_need_a_server_that_runs_them() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(CapabilityNotSupported, match=r"tasks\.requests\.tools\.call"):
            await client.start("add")

    talk(work, ScriptedServer, revision="2025-11-25")


# Servers with a handshake, in the newest models


def test_what_a_server_with_a_handshake_asks_goes_to_the_handlers() -> None:
    def ask(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id="q", method="elicitation/create", params={key: FORM[key] for key in FORM if key != "mode"})
        asyncio.get_running_loop().create_task(finish(server, frame["id"]))

    async def finish(server: ScriptedServer, key: Any) -> None:
        answer = await server.wait_for(lambda frame: frame.get("id") == "q")
        text = {"type": "text", "text": answer["result"]["content"]["asked"]}
        server.say(id=key, result={"content": [text]})

    async def work(client: Any, server: ScriptedServer) -> None:
        assert client.server_revision == "2025-11-25"
        result = await client.call("add")
        newest = dragoman_spec.load(dragoman_spec.LATEST)
        assert (type(result), result.content[0].text) == (newest.CallToolResult, "who?")

    talk(work, ScriptedServer, {"tools/call": ask}, revision="any", elicitation=fill_in)


def test_any_revision_is_also_one_without_a_handshake() -> None:
    def refuse(server: ScriptedServer, frame: dict[str, Any]) -> None:
        data = {"supported": [REVISION], "requested": "x"}
        server.say(id=frame["id"], error={"code": -32022, "message": "no handshake", "data": data})

    async def work(client: Any, server: ScriptedServer) -> None:
        assert client.server_revision == REVISION
        assert (await client.call("add")).content[0].text == "3"

    talk(work, answers={"initialize": refuse, "tools/call": DONE}, revision="any")


# Servers that go


def test_a_server_that_is_lost_is_connected_to_again() -> None:
    async def session() -> None:
        server = ScriptedServer({"tools/call": TEXT})
        async with dragoman.connect(server, "2025-06-18", reconnects=3) as client:
            await client.call("add")
            server.hang_up()
            server.told.clear()
            await server.wait_for_method("notifications/initialized")
            assert (await client.call("add")).content

    run(session())


@pytest.mark.parametrize("late_s", [0.0, 2.0])
def test_leaving_does_not_wait_for_calls_that_were_cancelled(late_s: float) -> None:
    server = StatelessServer()
    took_s = run(leaves(dragoman.connect(server, revision=REVISION), server, late_s))
    assert late_s <= took_s < late_s + 2


def test_a_server_that_does_not_speak_what_it_has_to_is_left_in_order(caplog: pytest.LogCaptureFixture) -> None:
    async def session() -> None:
        async with dragoman.connect(ScriptedServer(), revision=REVISION):
            pass

    with pytest.raises(RemoteProtocolError, match="was said to speak 2026-07-28, and does not"):
        run(session())
    assert "internal error" not in caplog.text
