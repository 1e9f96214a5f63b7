"""A router: each request reaches the server that it is for, whatever the client and the servers speak."""

from __future__ import annotations

from typing import Any

import pytest

from tests.router.made import HANDSHAKE, PER_REQUEST, MadeServer, routing, session
from tests.support.waiting import run, until

CLIENTS = ("2024-11-05", "2025-06-18", HANDSHAKE, PER_REQUEST)


def two() -> dict[str, MadeServer]:
    """Two servers of two eras, with names that clash and names that do not."""
    return {
        "a": MadeServer("2025-03-26", tools=["one", "both"], prompts=["p", "both"], resources=["a:x", "c:x"]),
        "b": MadeServer(PER_REQUEST, tools=["two", "both"], prompts=["q", "both"], templates=["b://{x}/y"]),
    }


@pytest.mark.parametrize("revision", CLIENTS)
def test_names_get_a_prefix_only_where_they_clash(revision: str) -> None:
    async def main() -> None:
        async with session(routing(two()), revision) as client:
            assert await client.list() == ["one", "a_both", "two", "b_both"]
            assert await client.list("prompts") == ["p", "a_both", "q", "b_both"]

    run(main())


@pytest.mark.parametrize("revision", CLIENTS)
def test_each_server_is_started_once_whatever_the_client_can_do(revision: str) -> None:
    async def main() -> None:
        servers = two()
        async with session(routing(servers), revision, {"sampling": {}}) as client:
            await client.list()
            assert [server.opened for server in servers.values()] == [1, 1]

    run(main())


@pytest.mark.parametrize("revision", CLIENTS)
def test_a_call_reaches_its_server_under_the_name_that_it_has_there(revision: str) -> None:
    async def main() -> None:
        servers = two()
        async with session(routing(servers), revision) as client:
            await client.list()
            assert [await client.call(name) for name in ("one", "two", "a_both", "b_both")] == [
                "one",
                "two",
                "both",
                "both",
            ]
            called = [[frame["params"]["name"] for frame in server.of("tools/call")] for server in servers.values()]
            assert called == [["one", "both"], ["two", "both"]]

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_call_before_any_list_is_routed_too(revision: str) -> None:
    async def main() -> None:
        async with session(routing(two()), revision) as client:
            assert await client.call("b_both") == "both"
            assert "unknown tool: nobody" in await client.call("nobody")

    run(main())


def test_a_call_whose_name_comes_last_is_read_and_routed() -> None:
    async def main() -> None:
        async with session(routing(two())) as client:
            for name in ("one", "b_both"):
                answer = await client.ask("tools/call", {"arguments": {"name": "two"}, "name": name})
                assert answer["result"]["content"][0]["text"] == name.removeprefix("b_")

    run(main())


@pytest.mark.parametrize("revision", CLIENTS)
def test_prompts_resources_templates_and_completion_reach_their_servers(revision: str) -> None:
    async def main() -> None:
        async with session(routing(two()), revision) as client:
            got = await client.ask("prompts/get", {"name": "b_both"})
            assert got["result"]["messages"][0]["content"]["text"] == "both"
            for uri in ("a:x", "b://1/y"):
                read = await client.ask("resources/read", {"uri": uri})
                assert read["result"]["contents"][0]["text"] == uri
            for ref in ({"type": "ref/prompt", "name": "a_both"}, {"type": "ref/resource", "uri": "b://{x}/y"}):
                completed = await client.ask(
                    "completion/complete", {"ref": ref, "argument": {"name": "x", "value": "v"}}
                )
                assert completed["result"]["completion"]["values"] == ["v!"]

    run(main())


def test_a_resource_that_two_servers_have_gets_a_prefix() -> None:
    async def main() -> None:
        servers = {name: MadeServer(resources=["x:y"]) for name in ("a", "b_c")}
        async with session(routing(servers)) as client:
            assert await client.list("resources") == ["a+x:y", "b-c+x:y"]
            await client.ask("resources/read", {"uri": "b-c+x:y"})
            assert servers["b_c"].of("resources/read")[0]["params"] == {"uri": "x:y"}
            assert servers["a"].of("resources/read") == []

    run(main())


def test_a_resource_on_no_list_is_asked_for_everywhere() -> None:
    async def main() -> None:
        servers = two() | {"c": MadeServer(resources=["c:1"])}
        for name in ("a", "b"):
            servers[name].answers["resources/read"] = lambda _: {"error": {"code": -32602, "message": "none"}}
        async with session(routing(servers)) as client:
            read = await client.ask("resources/read", {"uri": "odd:1"})
            assert read["result"]["contents"][0]["uri"] == "odd:1"

    run(main())


def test_every_name_has_a_prefix_if_the_user_wants_that() -> None:
    async def main() -> None:
        router = routing(two(), {"prefix": "always", "separator": "__", "servers": {"a": {"prefix": "first"}}})
        async with session(router) as client:
            assert await client.list() == ["first__one", "first__both", "b__two", "b__both"]
            assert await client.call("first__one") == "one"

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_pages_of_servers_are_gathered_and_cut_anew(revision: str) -> None:
    async def main() -> None:
        servers = {
            "a": MadeServer(tools=[f"a{number}" for number in range(7)]),
            "b": MadeServer(PER_REQUEST, tools=[f"b{number}" for number in range(5)]),
        }
        servers["a"].page_size, servers["b"].page_size = 2, 3
        async with session(routing(servers, {"pageSize": 4}), revision) as client:
            assert await client.list() == servers["a"].tools + servers["b"].tools
            first = (await client.ask("tools/list"))["result"]
            assert len(first["tools"]) == 4
            error = (await client.ask("tools/list", {"cursor": "mine"}))["error"]
            assert error["code"] == -32602

    run(main())


def test_capabilities_and_instructions_are_those_of_all() -> None:
    async def main() -> None:
        servers = two()
        servers["a"].instructions = "Ask a."
        router = routing(servers)
        async with session(router) as client:
            del client
        from tests.router.made import MadeClient

        other = MadeClient(router, HANDSHAKE)
        opened = (await other.open())["result"]
        assert opened["capabilities"] == {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "completions": {},
            "logging": {},
        }
        assert opened["instructions"] == "a:\nAsk a."
        assert opened["serverInfo"]["name"] == "dragoman"
        await other.close()

    run(main())


def test_tools_that_the_file_leaves_out_are_neither_listed_nor_called() -> None:
    async def main() -> None:
        servers = two()
        router = routing(servers, None, a={"excludeTools": ["both"]}, b={"includeTools": ["both"]})
        async with session(router) as client:
            assert await client.list() == ["one", "both"]
            assert await client.call("both") == "both"
            assert "unknown tool" in await client.call("two")
            assert [len(server.of("tools/call")) for server in servers.values()] == [0, 1]

    run(main())


def test_no_other_frame_reaches_a_tool_that_the_file_leaves_out() -> None:
    """A call without an id, with a name that only looks like another, or under the method of something else."""
    call = b'"params":{"name":"both"}'
    odd = [
        b'{"jsonrpc":"2.0","method":"tools/call",%b}\n',
        b'{"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":["both"]}}\n',
        b'{"jsonrpc":"2.0","id":91,"method":"prompts/get",%b,"method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/x",%b,"method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/x",%b,"m\\u0065thod":"tools/call"}\n',
    ]

    async def main() -> None:
        servers = {"a": MadeServer(tools=["both", "one"], prompts=["both"]), "b": MadeServer(tools=["two"])}
        async with session(routing(servers, None, a={"excludeTools": ["both"]})) as client:
            assert await client.list("prompts") == ["both"]
            for line in odd:
                client.connection.transport.write(line.replace(b"%b", call))
            assert await client.list() == ["one", "two"]
            heard = [frame for server in servers.values() for frame in server.heard]
            assert not [frame for frame in heard if "both" in str(frame)]

    run(main())


def test_questions_of_two_servers_with_one_id_are_told_apart_and_name_who_asks() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"ask_{name}"]) for name in ("a", "b")}
        question = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
        waiting: dict[str, Any] = {}
        for name, server in servers.items():

            def ask(frame: Any, name: str = name, server: MadeServer = server) -> None:
                waiting[name] = frame["id"]
                server.say({"id": 1, "method": "elicitation/create", "params": question})

            server.answers["tools/call"] = ask
        async with session(routing(servers), HANDSHAKE, {"elicitation": {}}) as client:
            await client.list()
            client.answers["elicitation/create"] = lambda frame: {
                "action": "accept",
                "content": {"text": frame["params"]["message"]},
            }
            calls = [client.begin("tools/call", {"name": f"ask_{name}", "arguments": {}}) for name in servers]
            for name, server in servers.items():
                await until(lambda server=server: any("result" in frame for frame in server.heard))
                (answer,) = [frame for frame in server.heard if "result" in frame]
                assert answer["id"] == 1
                assert answer["result"]["content"] == {"text": f"{name}: Who?"}
                server.say({"id": waiting[name], "result": {"content": []}})
            for call in calls:
                assert (await client.answer_to(call))["result"] == {"content": []}

    run(main())


def test_progress_and_cancellation_concern_one_server() -> None:
    async def main() -> None:
        servers = two()
        servers["a"].silent.add("tools/call")
        async with session(routing(servers)) as client:
            await client.list()
            call = client.begin("tools/call", {"name": "one", "arguments": {}, "_meta": {"progressToken": "t"}})
            await until(lambda: servers["a"].of("tools/call"))
            token = servers["a"].of("tools/call")[0]["params"]["_meta"]["progressToken"]
            servers["a"].say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            await until(lambda: client.of("notifications/progress"))
            assert client.of("notifications/progress")[0]["params"]["progressToken"] == "t"
            client.tell("notifications/cancelled", {"requestId": call})
            await until(lambda: servers["a"].of("notifications/cancelled"))
            assert servers["b"].of("notifications/cancelled") == []

    run(main())


def test_a_log_level_is_told_to_all_and_to_who_comes_later() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[name]) for name in ("a", "b", "c")}
        for name in ("a", "b"):
            servers[name].capabilities["logging"] = {}
        servers["b"].silent.add("initialize")
        async with session(routing(servers, {"listTimeout": 0.5})) as client:
            assert (await client.ask("logging/setLevel", {"level": "error"}))["result"] == {}
            assert [len(server.of("logging/setLevel")) for server in servers.values()] == [1, 0, 0]
            opening = servers["b"].of("initialize")[0]
            servers["b"].say({"id": opening["id"], "result": servers["b"].result("initialize", opening)})
            await until(lambda: servers["b"].of("logging/setLevel"))
            assert servers["b"].of("notifications/initialized")

    run(main())


def test_subscriptions_reach_the_owner_and_updates_come_back() -> None:
    async def main() -> None:
        servers = {name: MadeServer(resources=["x:y", f"{name}:z"]) for name in ("a", "b")}
        async with session(routing(servers)) as client:
            assert (await client.ask("resources/subscribe", {"uri": "b+x:y"}))["result"] == {}
            assert servers["a"].of("resources/subscribe") == []
            servers["b"].say({"method": "notifications/resources/updated", "params": {"uri": "x:y"}})
            await until(lambda: client.of("notifications/resources/updated"))
            assert client.of("notifications/resources/updated")[0]["params"] == {"uri": "b+x:y"}

    run(main())


def test_a_client_that_listens_hears_all_servers_on_one_stream() -> None:
    async def main() -> None:
        servers = {
            "a": MadeServer(tools=["one"], resources=["a:x"]),
            "b": MadeServer(tools=["two"], resources=["b:x"]),
        }
        for server in servers.values():
            server.capabilities["resources"] = {"subscribe": True, "listChanged": True}
        async with session(routing(servers), PER_REQUEST) as client:
            await client.list("resources")
            wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a:x", "b:x"]}
            stream = client.begin("subscriptions/listen", {"notifications": wanted})
            await until(lambda: client.of("notifications/subscriptions/acknowledged"))
            told = client.of("notifications/subscriptions/acknowledged")[0]["params"]
            assert told["_meta"] == {"io.modelcontextprotocol/subscriptionId": stream}
            assert told["notifications"] == wanted
            servers["b"].say({"method": "notifications/resources/updated", "params": {"uri": "b:x"}})
            servers["a"].say({"method": "notifications/tools/list_changed"})
            await until(lambda: client.of("notifications/resources/updated"))
            await until(lambda: client.of("notifications/tools/list_changed"))
            for method in ("notifications/resources/updated", "notifications/tools/list_changed"):
                assert client.of(method)[0]["params"]["_meta"] == told["_meta"]
            assert servers["a"].of("resources/subscribe")[0]["params"]["uri"] == "a:x"
            assert servers["b"].of("resources/subscribe")[0]["params"]["uri"] == "b:x"
            client.tell("notifications/cancelled", {"requestId": stream})
            await until(lambda: servers["b"].of("resources/unsubscribe"))

    run(main())


def test_input_that_a_server_requires_names_it_and_comes_back_to_it() -> None:
    async def main() -> None:
        servers = two()
        asked = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": {}}}

        def call(frame: Any) -> Any:
            if "inputResponses" in frame["params"]:
                return {"content": [{"type": "text", "text": frame["params"]["requestState"]}]}
            return {"resultType": "input_required", "inputRequests": {"k": asked}, "requestState": "s"}

        servers["b"].answers["tools/call"] = call
        async with session(routing(servers), PER_REQUEST, {"elicitation": {}}) as client:
            await client.list()
            first = (await client.ask("tools/call", {"name": "b_both", "arguments": {}}))["result"]
            assert first["inputRequests"]["k"]["params"]["message"] == "b: Who?"
            answers = {"k": {"action": "decline"}}
            params = {
                "name": "b_both",
                "arguments": {},
                "inputResponses": answers,
                "requestState": first["requestState"],
            }
            second = (await client.ask("tools/call", params))["result"]
            assert second["content"][0]["text"] == "s"

    run(main())


def test_a_router_behind_a_router_is_a_server_like_any_other() -> None:
    async def main() -> None:
        inner = routing(two())

        class Nested(MadeServer):
            def connect(self) -> Any:
                return inner.connect()

        servers = {"n": Nested(), "c": MadeServer(tools=["three", "one"])}
        async with session(routing(servers)) as client:
            assert await client.list() == ["n_one", "a_both", "two", "b_both", "three", "c_one"]
            assert [await client.call(name) for name in ("a_both", "n_one", "three")] == ["both", "one", "three"]

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_two_servers_with_the_same_page_each_show_their_own(revision: str) -> None:
    page = "ui://weather/dash"
    kept = {"ttlMs": 0, "cacheScope": "private"}

    def server(spoken: str, words: str) -> MadeServer:
        made = MadeServer(spoken, tools=[words], resources=["x:1"])
        tool = {"name": words, "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": page}}}
        made.answers["tools/list"] = lambda _: {"tools": [tool], **(kept if spoken == PER_REQUEST else {})}

        def read(frame: Any) -> Any:
            assert frame["params"]["uri"] == page
            return {"contents": [{"uri": page, "text": words}], **(kept if spoken == PER_REQUEST else {})}

        made.answers["resources/read"] = read
        return made

    async def main() -> None:
        servers = {"one": server(HANDSHAKE, "old"), "two": server(PER_REQUEST, "new")}
        async with session(routing(servers), revision) as client:
            for tool in (await client.ask("tools/list"))["result"]["tools"]:
                uri = tool["_meta"]["ui"]["resourceUri"]
                contents = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"]
                assert [(one["uri"], one["text"]) for one in contents] == [(uri, tool["name"])]

    run(main())
