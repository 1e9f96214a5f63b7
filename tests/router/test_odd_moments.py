"""What happens between one thing and the next: clients that change their mind, servers that go meanwhile."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dragoman.proxy import ProxyConfig
from dragoman.router import Router
from tests.router.made import HANDSHAKE, PER_REQUEST, PREFIX, Body, MadeClient, MadeServer, configured, routing, session
from tests.support.waiting import pass_time, put_forward, run, until


def test_a_call_that_is_cancelled_while_its_owner_is_sought_does_not_run() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["one"]), "b": MadeServer(tools=["two"])}
        servers["b"].silent.add("tools/list")
        async with session(routing(servers, {"listTimeout": 1})) as client:
            call = client.begin("tools/call", {"name": "one", "arguments": {}})
            await until(lambda: servers["a"].of("tools/list"))
            client.tell("notifications/cancelled", {"requestId": call})
            await put_forward(3)
            assert not servers["a"].of("tools/call")

    run(main())


def test_a_resource_on_no_list_is_read_though_a_server_hangs_or_goes() -> None:
    async def main() -> None:
        servers = {name: MadeServer(resources=[f"x:{name}"]) for name in ("a", "b", "c")}
        servers["a"].silent.add("resources/read")
        no: Body = {"error": {"code": -32002, "message": "no"}}
        servers["b"].answers["resources/read"] = lambda _: no
        router = routing(servers, {"listTimeout": 1})
        async with session(router) as client:
            await client.list("resources")
            read = client.begin("resources/read", {"uri": "x:hidden"})
            assert (await client.answer_to(read))["result"]["contents"][0]["text"] == "x:hidden"

    run(main())


@pytest.mark.parametrize("how", ["dies", "is removed"])
def test_a_server_that_goes_while_a_resource_is_sought_is_not_started_for_it(how: str) -> None:
    async def main() -> None:
        servers = {name: MadeServer(resources=[f"x:{name}"]) for name in ("a", "b", "c")}
        servers["a"].silent.add("resources/read")
        router = routing(servers)
        async with session(router) as client:
            await client.list("resources")
            read = client.begin("resources/read", {"uri": "x:hidden"})
            await until(lambda: servers["a"].of("resources/read"))
            if how == "dies":
                servers["b"].die()
            else:
                router.apply(configured({name: servers[name] for name in ("a", "c")}))
            await pass_time(0.3)
            asked = servers["a"].of("resources/read")[0]
            servers["a"].say({"id": asked["id"], "error": {"code": -32002, "message": "no"}})
            assert (await client.answer_to(read))["result"]["contents"][0]["text"] == "x:hidden"
            assert servers["b"].opened == 1
            assert await client.list("resources") == ["x:a", "x:c"]

    run(main())


def test_a_cursor_of_one_list_is_not_good_for_another() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["one", "two", "three"], prompts=["p", "q", "r"])}
        async with session(routing(servers, {"pageSize": 1})) as client:
            cursor = (await client.ask("prompts/list"))["result"]["nextCursor"]
            tampered = cursor.replace("prompts", "tools")
            result = (await client.ask("tools/list", {"cursor": tampered})).get("result", {"tools": []})
            assert "prompts" not in result
            for bad in ("", "x", "dragoman:tools/list:1:" + "9" * 150, "dragoman:tools/list:-1:0", cursor):
                answer = await client.ask("tools/list", {"cursor": bad})
                assert "error" in answer or "tools" in answer["result"]
            assert await client.list() == ["one", "two", "three"]

    run(main())


def test_pages_without_an_entry_are_passed_over() -> None:
    async def main() -> None:
        servers = {"a": MadeServer()}
        pages = [["one"], [], [], ["two"]]

        def page(frame: Body) -> Body:
            at = int((frame.get("params") or {}).get("cursor", 0))
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in pages[at]]
            return {"tools": tools} | ({"nextCursor": str(at + 1)} if at + 1 < len(pages) else {})

        servers["a"].answers["tools/list"] = page
        async with session(routing(servers)) as client:
            assert await client.list() == ["one", "two"]

    run(main())


def test_a_prefixed_name_goes_on_to_mean_the_same() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=["x"]) for name in ("a", "b")} | {"c": MadeServer(tools=["a_x"])}
        router = routing(servers)
        router.apply(configured({name: servers[name] for name in ("a", "b")}))
        async with session(router) as client:
            assert await client.list() == ["a_x", "b_x"]
            router.apply(configured({name: servers[name] for name in ("a", "c")}))
            await until(lambda: servers["c"].opened)
            await client.list()
            await pass_time(0.3)
            listed = await client.list()
            assert len(set(listed)) == 2
            await client.call("a_x")
            assert not servers["c"].of("tools/call")
            assert servers["a"].of("tools/call")
            other = next(name for name in listed if name not in ("x", "a_x"))
            assert await client.call(other) == "a_x"
            assert servers["c"].of("tools/call")

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_another_way_to_name_is_told(revision: str) -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"])}
        router = routing(servers)
        async with session(router, revision) as client:
            if revision == PER_REQUEST:
                client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
                await until(lambda: client.of("notifications/subscriptions/acknowledged"))
            assert await client.list() == ["x"]
            router.apply(configured(servers, {"prefix": "always"}))
            await until(lambda: client.of("notifications/tools/list_changed"), 5)
            assert await client.list() == ["a_x"]
            assert await client.call("x") == "x"
            assert servers["a"].opened == 1

    run(main())


def test_a_question_that_is_taken_back_is_forgotten() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"])}
        async with session(routing(servers), capabilities={"roots": {}}) as client:
            await client.list()
            for _ in range(3):  # under one id, which is free again once it is taken back
                servers["a"].say({"id": "q", "method": "roots/list"})
                servers["a"].say({"method": "notifications/cancelled", "params": {"requestId": "q"}})
            await client.call("x")
            asked = [frame["id"] for frame in client.of("roots/list")]
            taken = [frame["params"]["requestId"] for frame in client.of("notifications/cancelled")]
            assert asked == taken
            assert len(set(asked)) == 3

    run(main())


def test_a_file_that_changes_while_a_session_closes_starts_nothing_in_it() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"]), "b": MadeServer(tools=["y"])}
        router = routing(servers)
        router.apply(configured({"a": servers["a"]}))
        client = MadeClient(router, HANDSHAKE, ProxyConfig(drain_timeout_s=0.2))
        await client.open()
        await client.list()
        servers["a"].silent.add("tools/call")
        client.begin("tools/call", {"name": "x", "arguments": {}})
        await until(lambda: servers["a"].of("tools/call"))
        closing = asyncio.ensure_future(client.close())
        await pass_time(0.2)
        await until(lambda: not router._sessions or router._sessions[0].is_over)
        router.apply(configured(servers))
        await asyncio.wait_for(closing, 60)
        await pass_time(0.1)
        assert len(asyncio.all_tasks()) == 1
        assert servers["b"].opened == 0 or (servers["b"].lines and servers["b"].lines.is_over)

    run(main())


def waiting_for_b(router: Router) -> int:
    (transport,) = router._sessions
    return next(one.link._waiting_bytes for member, one in transport._running.items() if member.name == "b")


def test_notices_for_a_server_that_does_not_read_do_not_pile_up() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"]), "b": MadeServer(tools=["y"])}
        router = routing(servers)
        async with session(router) as client:
            await client.list()
            assert servers["b"].lines is not None
            servers["b"].lines.transport.pause_reading()
            large = "x" * 1_000_000
            for _ in range(60):
                client.tell("notifications/roots/list_changed", {"_meta": {"text": large}})
            assert await client.call("x") == "x"
            assert waiting_for_b(router) < 20_000_000
            servers["b"].lines.transport.resume_reading()
            await until(lambda: not waiting_for_b(router))
            assert await client.call("y") == "y"

    run(main())


def test_what_a_new_server_says_to_a_client_that_does_not_read_does_not_pile_up() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"])}
        router = routing(servers)
        large = {"method": "notifications/message", "params": {"level": "error", "data": "x" * 500_000}}
        async with session(router) as client:
            await client.list()
            client.connection.transport.pause_reading()
            (transport,) = router._sessions
            servers["a"].say(large)
            await until(lambda: transport.is_paused)
            servers["b"] = MadeServer(tools=["y"])
            router.apply(configured(servers))
            await until(lambda: servers["b"].of("initialize"))
            await pass_time(0.1)
            for _ in range(20):
                servers["b"].say(large)
                await pass_time(0.01)
            waits = transport._client._waiting_bytes
            client.connection.transport.resume_reading()
            assert waits < 2_000_000
            await until(lambda: len(client.of("notifications/message")) == 21)
            assert await client.call("y") == "y"

    run(main())


def test_a_task_of_a_server_that_was_changed_is_the_new_ones() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"]), "b": MadeServer(tools=["y"])}
        for server in servers.values():
            server.capabilities["tasks"] = {"list": {}, "requests": {"tools": {"call": {}}}}
        task = {
            "taskId": "t",
            "status": "working",
            "createdAt": "2025-01-01T00:00:00Z",
            "lastUpdatedAt": "2025-01-01T00:00:00Z",
            "ttl": None,
        }
        servers["a"].answers["tasks/list"] = lambda _: {"tasks": [task]}
        servers["a"].answers["tasks/get"] = lambda _: task
        servers["b"].answers["tasks/list"] = lambda _: {"tasks": []}
        router = routing(servers)
        async with session(router) as client:
            assert "result" in await client.ask("tasks/list")
            assert (await client.ask("tasks/get", {"taskId": "a:t"}))["result"]["taskId"] == "a:t"
            router.apply(configured(servers, None, a={"args": ["other"]}))
            await until(lambda: servers["a"].opened == 2)
            await pass_time(0.3)
            await client.ask("tasks/list")
            assert (await client.ask("tasks/get", {"taskId": "a:t"}))["result"]["taskId"] == "a:t"

    run(main())


@pytest.mark.parametrize("revision", ["2024-11-05", PER_REQUEST])
def test_a_server_that_cannot_be_reached_is_one_line_in_the_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        from dragoman.config import parse_config
        from dragoman.router import Router
        from tests.support.ports import free_port

        text = '{"mcpServers": {"none": {"command": "/no/such/program"}, "far": {"url": "http://127.0.0.1:%d/mcp"}}}'
        client = MadeClient(Router(parse_config(text % free_port()), ProxyConfig()), revision)
        await client.open()
        await client.list()
        await client.close()

    with caplog.at_level(logging.WARNING):
        run(main())
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "far" in line or "127.0.0.1" in line]) == 1, lines
    assert len(lines) == 2, lines


def test_a_stream_is_acknowledged_as_soon_as_all_servers_have_done_so() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"]), "b": MadeServer(PER_REQUEST, tools=["y"])}
        servers["b"].answers["subscriptions/listen"] = lambda frame: servers["b"].say(acknowledgement(frame))
        async with session(routing(servers), PER_REQUEST) as client:
            loop = asyncio.get_running_loop()
            began = loop.time()
            for _ in range(3):
                client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await until(lambda: len(client.of("notifications/subscriptions/acknowledged")) == 3)
            assert loop.time() - began < 3
            assert servers["b"].of("subscriptions/listen")

    run(main())


def acknowledgement(frame: Body) -> Body:
    named = {f"{PREFIX}subscriptionId": frame["id"]}
    params = {"_meta": named, "notifications": frame["params"]["notifications"]}
    return {"method": "notifications/subscriptions/acknowledged", "params": params}


def test_the_board_says_which_servers_cannot_be_used_and_forgets_those_that_are_removed() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[name]) for name in ("a", "b", "c")}
        servers["b"].answers["initialize"] = lambda _: {"protocolVersion": "1999-01-01", "capabilities": {}}
        router = routing(servers)
        async with session(router) as client:
            assert await client.list() == ["a", "c"]
            await until(lambda: "b" not in {one.name for one in router.status().servers})
            assert servers["b"].lines is not None
            await until(lambda: servers["b"].lines and servers["b"].lines.is_over)
            assert "1999-01-01" in router.status().problems["b"]
            assert router.status().ready
            servers["c"].die()
            await until(lambda: "c" in router.status().problems)
            assert router.status().ready
            router.apply(configured({"b": servers["b"]}))
            assert set(router.status().problems) == {"b"}
            assert not router.status().ready
            router.apply(configured({"a": servers["a"]}))
            assert router.status().problems == {}
            assert router.status().ready

    run(main())


@pytest.mark.parametrize("how", ["leaves", "is stopped"])
def test_a_client_that_goes_does_not_wait_for_servers_to_open(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["x"]), "b": MadeServer(tools=["y"])}
        servers["b"].silent.add("initialize")
        client = MadeClient(routing(servers, {"listTimeout": 0.1}), HANDSHAKE)
        await client.open()
        loop = asyncio.get_running_loop()
        began = loop.time()
        if how == "leaves":
            await client.close()
        else:
            client.proxy.stop("stopped by a signal")
            await client.task
        assert loop.time() - began < 5
        assert servers["b"].lines is not None
        assert servers["b"].lines.is_over
        assert "cannot be used" not in caplog.text

    run(main())


@pytest.mark.parametrize(("other", "shown"), [("a:b", "a%3Ab:1"), ("a%3Ab", "a%253Ab:1")])
def test_a_task_of_one_server_is_none_of_another_one_whose_name_has_a_colon(other: str, shown: str) -> None:
    """`a` may call its own what makes `a:b:1` of it, which would be the first task of `a:b`."""

    async def main() -> None:
        servers = {"a": MadeServer(tools=["one"]), other: MadeServer(tools=["two"])}
        for server in servers.values():
            server.capabilities["tasks"] = {"list": {}, "requests": {"tools": {"call": {}}}}
            server.answers["tasks/get"] = lambda frame: {"taskId": frame["params"]["taskId"], "status": "working"}
        servers["a"].answers["tasks/list"] = lambda _: {"tasks": [{"taskId": "b:1"}, {"taskId": "%3Ab:1"}]}
        servers[other].answers["tasks/list"] = lambda _: {"tasks": [{"taskId": "1"}]}
        async with session(routing(servers)) as client:
            listed = [task["taskId"] for task in (await client.ask("tasks/list"))["result"]["tasks"]]
            assert listed == ["a:b:1", "a:%3Ab:1", shown]
            for task in listed:
                assert (await client.ask("tasks/get", {"taskId": task}))["result"]["taskId"] == task
        assert [frame["params"]["taskId"] for frame in servers["a"].of("tasks/get")] == ["b:1", "%3Ab:1"]
        assert [frame["params"]["taskId"] for frame in servers[other].of("tasks/get")] == ["1"]

    run(main())
