"""Clients over HTTP and a server on a pipe whose requests each speak for themselves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.middlewares import Inject
from dragoman.proxy import Proxy, ProxyConfig
from tests.proxy.test_per_request import NEW, asks
from tests.proxy.test_per_request_relay import INTRODUCED
from tests.transports.http.stage import Stage, on_loop, serving, until, within
from tests.transports.http.test_per_request import QUICK, call, posts
from tests.transports.http.wire import Reply

ZONE = {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}
BAD = {"type": "object", "properties": {"zone": {"type": "array", "x-mcp-header": "Zone"}}}
TOOLS = [{"name": "echo", "inputSchema": ZONE}, {"name": "bad", "inputSchema": BAD}]
LISTED = {"resultType": "complete", "tools": TOOLS, "ttlMs": 0, "cacheScope": "private"}


def play(stage: Stage, principal: str = "", **config: Any) -> list[Any]:
    """Serve clients of this principal; give the transports to them."""
    fronts: list[Any] = []

    def make(transport: Any) -> Proxy:
        fronts.append(transport)
        return Proxy(ProxyConfig(**config), transport, stage.connect, principal=principal)

    stage.make = make
    return fronts


async def begin(stage: Stage, frame: dict[str, Any], **headers: str) -> asyncio.Task[Reply]:
    """The first request, whose server says that it has no handshake."""
    task = posts(stage, frame, **headers)
    await until(lambda: bool(stage.servers))
    probe = await stage.server.hear()
    stage.server.answer(probe["id"], **INTRODUCED)
    return task


async def lists(stage: Stage) -> None:
    heard = await stage.server.hear()
    assert (heard["method"], heard["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]) == ("tools/list", NEW)
    stage.server.answer(heard["id"], **LISTED)


@pytest.mark.parametrize("headers", [{}, {"mcp-param-zone": "south"}])
@on_loop
async def test_a_header_that_does_not_repeat_its_argument_is_refused(headers: dict[str, str]) -> None:
    async with serving() as stage:
        play(stage)
        calling = await begin(stage, call(arguments={"zone": "north"}, meta={"progressToken": 1}), **headers)
        await lists(stage)
        reply = await within(calling)
        assert (reply.status, (await reply.frame())["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize(("headers", "status"), [({}, 200), ({"mcp-param-zone": "north"}, 400)])
@on_loop
async def test_headers_repeat_the_arguments_that_came_and_not_those_of_middleware(
    headers: dict[str, str], status: int
) -> None:
    async with serving() as stage:
        play(stage, middleware=(Inject({"zone": "north"}),))
        calling = await begin(stage, call(arguments={"a": 1}), **headers)
        await lists(stage)
        if status == 200:
            heard = await stage.server.hear()
            assert heard["params"]["arguments"] == {"a": 1, "zone": "north"}
            stage.server.answer(heard["id"], resultType="complete", content=[])
        assert (await within(calling)).status == status


@on_loop
async def test_a_call_that_is_cancelled_while_tools_are_listed_does_not_go_on() -> None:
    async with serving(QUICK) as stage:
        fronts = play(stage)
        calling = await begin(stage, call())
        heard = await stage.server.hear()
        assert heard["method"] == "tools/list"
        (await within(calling)).leave()
        await until(lambda: not len(fronts[0]))
        listing = posts(stage, asks(3, "tools/list"))
        stage.server.answer((await stage.server.hear())["id"], **LISTED)
        offered = (await (await within(listing)).frame())["result"]["tools"]
        stripped = {"type": "object", "properties": {"zone": {"type": "array"}}}
        assert offered == [TOOLS[0], {"name": "bad", "inputSchema": stripped}]
        stage.server.answer(heard["id"], **LISTED)
        last = posts(stage, asks(4, "prompts/list"))
        heard = await stage.server.hear()
        assert heard["method"] == "prompts/list"
        stage.server.answer(heard["id"], resultType="complete", prompts=[], ttlMs=0, cacheScope="private")
        await within(last)


@pytest.mark.parametrize("principal", ["", "alice"])
@on_loop
async def test_a_state_of_the_server_is_good_for_its_request_alone(principal: str) -> None:
    async with serving() as stage:
        play(stage, principal)
        calling = await begin(stage, asks(1, "prompts/get", name="a"))
        heard = await stage.server.hear()
        stage.server.answer(heard["id"], resultType="input_required", requestState="secret")
        asked = (await (await within(calling)).frame())["result"]
        assert (asked["requestState"] == "secret") == (principal == "")
        retrying = posts(stage, asks(2, "prompts/get", name="a", requestState=asked["requestState"]))
        heard = await stage.server.hear()
        assert heard["params"]["requestState"] == "secret"
        stage.server.answer(heard["id"], resultType="complete", messages=[])
        await within(retrying)
        if principal:
            other = posts(stage, asks(3, "prompts/get", name="b", requestState=asked["requestState"]))
            answer = await (await within(other)).frame()
            assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32602, "other-request")


async def ask(stage: Stage, method: str, result: dict[str, Any], **params: Any) -> tuple[Any, Any]:
    """Ask something about a task; give what the server heard, and what the client got."""
    asking = posts(stage, asks(2, method, **params))
    heard = await stage.server.hear()
    stage.server.answer(heard["id"], **{"resultType": "complete", **result})
    return heard["params"], (await (await within(asking)).frame())["result"]


async def give_task(stage: Stage) -> Any:
    """Have a call answered with a task of the server; give its id as the client knows it."""
    calling = await begin(stage, call())
    await lists(stage)
    heard = await stage.server.hear()
    stage.server.answer(heard["id"], resultType="task", taskId="task-1", status="working", statusMessage="x" * 100_000)
    return (await (await within(calling)).frame())["result"]["taskId"]


@pytest.mark.parametrize("principal", ["", "alice"])
@on_loop
async def test_a_task_of_the_server_is_that_of_its_caller_alone(principal: str) -> None:
    async with serving() as stage:
        play(stage, principal)
        task = await give_task(stage)
        assert (task == "task-1") == (principal == "")
        ended = {"status": "completed", "result": {"content": [{"type": "text", "text": "x" * 100_000}]}}
        answers = {"tasks/get": {"taskId": "task-1", **ended}, "tasks/update": {}, "tasks/cancel": {}}
        for method, result in answers.items():
            heard, got = await ask(stage, method, result, taskId=task)
            assert heard["taskId"] == "task-1"
            assert got == {"resultType": "complete", **result, **({"taskId": task} if result else {})}
    if principal:
        async with serving() as stage:
            play(stage, "bob")
            await give_task(stage)
            for name, reason in {task: "other-caller", "task-1": "state-unreadable"}.items():
                for method in answers:
                    answer = await (await within(posts(stage, asks(3, method, taskId=name)))).frame()
                    assert answer["error"]["data"]["reason"] == reason
            assert stage.server.hears_nothing()


@on_loop
async def test_a_state_is_no_task_of_the_server() -> None:
    async with serving() as stage:
        play(stage, "alice")
        await give_task(stage)
        asking = posts(stage, asks(1, "prompts/get", name="a"))
        stage.server.answer((await stage.server.hear())["id"], resultType="input_required", requestState="task-1")
        state = (await (await within(asking)).frame())["result"]["requestState"]
        answer = await (await within(posts(stage, asks(3, "tasks/get", taskId=state)))).frame()
        assert answer["error"]["data"]["reason"] == "other-request"


@on_loop
async def test_who_listens_hears_of_its_own_tasks_under_the_ids_that_it_has() -> None:
    async with serving() as stage:
        play(stage, "alice")
        task = await give_task(stage)
        wanted = {"toolsListChanged": True, "taskIds": [task, "task-2", 5]}
        listening = posts(stage, asks(4, "subscriptions/listen", notifications=wanted))
        heard = await stage.server.hear()
        assert heard["params"]["notifications"] == {"toolsListChanged": True, "taskIds": ["task-1"]}
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": heard["id"]}}
        accepted = {"notifications": {"toolsListChanged": True, "taskIds": ["task-1", "task-2"]}, **meta}
        acknowledged = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": accepted}
        about = [
            {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": name, "status": "working", **meta}}
            for name in ("task-2", "task-1")
        ]
        stage.server.say(acknowledged, *about)
        reply = await within(listening)
        told: list[Any] = []
        while len(told) < 2:
            event = await within(reply.event())
            assert event is not None
            told += [event.frame["params"]] if event.data else []
        assert told[0]["notifications"] == {"toolsListChanged": True, "taskIds": [task]}
        assert told[1]["taskId"] == task


@on_loop
async def test_large_bodies_of_a_revision_without_handshake_are_passed_as_the_bytes_they_are() -> None:
    """Decoding and encoding a megabyte several times took most of the time of such a call."""
    async with serving(QUICK) as stage:
        play(stage)
        frame = call(arguments={"zone": "north", "text": "x" * 100_000})
        first = await begin(stage, asks(3, "tools/list"))
        await lists(stage)
        (await within(first)).leave()
        heard: list[bytes] = []
        take = stage.server.data_received
        stage.server.data_received = lambda data: (heard.append(data), take(data))[1]  # type: ignore[method-assign]
        said = json.dumps(frame, separators=(" ,", " : ")).encode()
        headers = {
            "mcp-protocol-version": NEW,
            "mcp-method": "tools/call",
            "mcp-name": "echo",
            "mcp-param-zone": "north",
        }
        calling = asyncio.create_task(stage.post(said, mcp_param_zone="north", **headers))
        asked = await stage.server.hear()
        before, after = said.split(b'"id" : 2')
        assert b"".join(heard) == before + b'"id" : %d' % asked["id"] + after + b"\n"
        content = {"content": [{"type": "text", "text": "y" * 100_000}]}
        answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete", **content}})
        stage.server.end.write(answer.encode() + b"\n")
        assert (
            await (await within(calling)).body() == answer.replace(f'"id": {asked["id"]}', '"id": 2').encode() + b"\n"
        )
