"""What becomes of a router when one of its servers fails: the others go on, and it can be seen."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.core.exact_json import encode
from dragoman.errors import TransportClosed
from dragoman.proxy import ProxyConfig
from dragoman.transports.memory import MemoryTransport
from tests.router.made import HANDSHAKE, PER_REQUEST, Body, MadeClient, MadeServer, configured, routing, session
from tests.support.waiting import pass_time, put_forward, run, until


def three() -> dict[str, MadeServer]:
    return {
        "a": MadeServer("2025-03-26", tools=["one"]),
        "b": MadeServer(tools=["two"]),
        "c": MadeServer(PER_REQUEST, tools=["three"]),
    }


def warnings(caplog: pytest.LogCaptureFixture, server: str) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.getMessage().startswith(f"{server} ")]


@pytest.mark.parametrize("revision", ["2024-11-05", PER_REQUEST])
def test_a_server_that_dies_takes_nobody_with_it(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        servers = three()
        servers["b"].silent.add("tools/call")
        async with session(routing(servers), revision) as client:
            assert await client.list() == ["one", "two", "three"]
            call = client.begin("tools/call", {"name": "two", "arguments": {}})
            await until(lambda: servers["b"].of("tools/call"))
            servers["b"].die()
            assert "error" in await client.answer_to(call)
            await until(lambda: warnings(caplog, "b"))
            assert await client.list() == ["one", "three"]
            assert [await client.call(name) for name in ("one", "three")] == ["one", "three"]
            assert "b cannot be used" in await client.call("two")
            assert len(warnings(caplog, "b")) == 1
            if revision != PER_REQUEST:
                assert client.of("notifications/tools/list_changed")

    run(main())


def test_a_list_says_who_is_missing() -> None:
    async def main() -> None:
        servers = three()
        async with session(routing(servers)) as client:
            await client.list()
            servers["b"].die()
            await until(lambda: client.of("notifications/tools/list_changed"))
            result = (await client.ask("tools/list"))["result"]
            (missing,) = result["_meta"]["dragoman/missing"]
            assert missing["server"] == "b"
            assert "closed" in missing["reason"]

    run(main())


@pytest.mark.parametrize("names_server", [True, False])
def test_only_the_log_names_the_command_of_a_server_that_cannot_be_started(
    names_server: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> MemoryTransport:
        raise TransportClosed("/opt/hush", "command not found")

    async def main() -> None:
        servers = three()
        servers["b"].connect = refuse  # type: ignore[method-assign]
        router = routing(servers, config=ProxyConfig(names_server=names_server))
        async with session(router) as client:
            listed = (await client.ask("tools/list"))["result"]
            refused = (await client.ask("tools/call", {"name": "two"}))["error"]
            told = json.dumps([listed, refused, router.status().problems])
            assert "command not found" in told
            assert ("/opt/hush" in told) is names_server
        assert "/opt/hush: command not found" in " ".join(warnings(caplog, "b"))

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_server_that_hangs_holds_up_nothing_for_long(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        servers = three()
        servers["b"].silent |= {"tools/list"}
        async with session(routing(servers, {"listTimeout": 0.5}), revision) as client:
            assert await client.list() == ["one", "three"]
            assert "no answer within 0.5 s" in " ".join(warnings(caplog, "b"))
            # It owes that answer: nobody waits for it again.
            assert await client.list() == ["one", "three"]
            assert len(servers["b"].of("tools/list")) == 1
            assert await client.call("one") == "one"
            asked = servers["b"].of("tools/list")[0]
            servers["b"].silent.clear()
            servers["b"].say({"id": asked["id"], "result": servers["b"].result("tools/list", asked)})
            if revision != PER_REQUEST:
                await until(lambda: client.of("notifications/tools/list_changed"))
            await until_listed(client, ["one", "two", "three"])

    run(main())


async def until_listed(client: MadeClient, names: list[str]) -> None:
    for _ in range(100):
        if await client.list() == names:
            return
        await pass_time(0.05)
    assert await client.list() == names


def test_a_server_that_does_not_start_is_left_out_and_joins_later() -> None:
    async def main() -> None:
        servers = three()
        servers["b"].silent.add("initialize")
        router = routing(servers, {"listTimeout": 0.5})
        async with session(router) as client:
            assert await client.list() == ["one", "three"]
            opening = servers["b"].of("initialize")[0]
            servers["b"].say({"id": opening["id"], "result": servers["b"].result("initialize", opening)})
            await until(lambda: client.of("notifications/tools/list_changed"))
            assert await client.list() == ["one", "two", "three"]
            assert await client.call("two") == "two"

    run(main())


def test_a_client_waits_for_a_late_server_as_long_as_the_file_says() -> None:
    async def main() -> None:
        servers = three()
        servers["b"].silent.add("initialize")
        client = MadeClient(routing(servers, {"listTimeout": 0.1, "openTimeout": 30}), HANDSHAKE)
        opening = asyncio.ensure_future(client.open())
        await until(lambda: all(servers[name].of("initialize") for name in "ab"))
        await pass_time(0.3)
        assert not opening.done()
        (asked,) = servers["b"].of("initialize")
        servers["b"].say({"id": asked["id"], "result": servers["b"].result("initialize", asked)})
        assert "result" in await opening
        await client.close()

    run(main())


def test_a_server_that_cannot_be_started_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        from dragoman.config import parse_config
        from dragoman.router import Router

        config = parse_config('{"mcpServers": {"none": {"command": "/no/such/program"}}}')
        client = MadeClient(Router(config), HANDSHAKE)
        opened = await client.open()
        assert opened["result"]["capabilities"] == {"tools": {"listChanged": True}}
        assert await client.list() == []
        await client.close()
        assert sum("/no/such/program" in one for one in warnings(caplog, "none")) >= 1

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_server_that_could_not_be_opened_is_tried_again_where_that_is_wanted(revision: str) -> None:
    async def main() -> None:
        servers = three()
        refused: list[int] = []
        connect = servers["b"].connect

        def refuse_twice() -> MemoryTransport:
            refused.append(1)
            if len(refused) < 3:
                raise TransportClosed("b", "connection refused")
            return connect()

        servers["b"].connect = refuse_twice  # type: ignore[method-assign]
        async with session(routing(servers, None, ProxyConfig(restarts=5)), revision) as client:
            assert await client.list() == ["one", "three"]
            await until_listed(client, ["one", "two", "three"])
            assert await client.call("two") == "two"
            assert len(refused) == 3

    run(main())


def test_a_server_that_stays_away_is_not_tried_for_ever() -> None:
    async def main() -> None:
        servers = three()
        refused: list[int] = []

        def refuse() -> MemoryTransport:
            refused.append(1)
            raise TransportClosed("b", "connection refused")

        servers["b"].connect = refuse  # type: ignore[method-assign]
        async with session(routing(servers, None, ProxyConfig(restarts=2))) as client:
            await until(lambda: len(refused) == 3)
            await put_forward(60)
            assert len(refused) == 3
            assert await client.call("one") == "one"

    run(main())


def test_a_server_that_floods_reaches_the_client_a_few_times_only() -> None:
    async def main() -> None:
        servers = three()
        async with session(routing(servers)) as client:
            await client.list()
            for _ in range(2000):
                servers["b"].say({"method": "notifications/tools/list_changed"})
            assert await client.call("one") == "one"
            await pass_time(0.5)
            assert 1 <= len(client.of("notifications/tools/list_changed")) <= 20
            assert await client.call("three") == "three"

    run(main())


def test_a_server_that_lies_about_its_revision_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        servers = three()
        servers["b"].answers["initialize"] = lambda _: {"protocolVersion": "1999-01-01", "capabilities": {}}
        async with session(routing(servers)) as client:
            assert await client.list() == ["one", "three"]
            assert await client.call("one") == "one"
        assert "1999-01-01" in " ".join(warnings(caplog, "b"))

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        {"tools": 5},
        {"tools": [1, None, {"name": 3}, {}]},
        {"nothing": True},
        {"error": {"code": -32603, "message": "no"}},
        {"tools": [{"name": "x", "inputSchema": {"type": "object"}}], "nextCursor": "again"},
    ],
)
def test_a_list_that_is_nonsense_does_not_spoil_those_of_others(answer: dict[str, Any]) -> None:
    async def main() -> None:
        servers = three()
        servers["b"].answers["tools/list"] = lambda _: answer
        async with session(routing(servers)) as client:
            listed = await client.list()
            assert [name for name in listed if name != "x"] == ["one", "three"]
            assert await client.call("three") == "three"

    run(main())


def test_a_server_that_changes_its_tools_is_listed_anew_and_takes_no_name_over() -> None:
    async def main() -> None:
        servers = three()
        async with session(routing(servers)) as client:
            assert await client.list() == ["one", "two", "three"]
            servers["b"].tools = ["one", "four"]
            servers["b"].say({"method": "notifications/tools/list_changed"})
            await until(lambda: client.of("notifications/tools/list_changed"))
            assert await client.list() == ["a_one", "b_one", "four", "three"]
            # The client was told that `one` is a's: it goes on to be.
            assert await client.call("one") == "one"
            assert len(servers["a"].of("tools/call")) == 1
            servers["a"].die()
            await pass_time(0.3)
            assert await client.list() == ["b_one", "four", "three"]

    run(main())


def test_a_server_that_does_not_read_holds_up_nobody_else() -> None:
    async def main() -> None:
        servers = three()
        async with session(routing(servers)) as client:
            await client.list()
            assert servers["b"].lines is not None
            servers["b"].lines.transport.pause_reading()
            large = "x" * 1_000_000
            for _ in range(30):
                client.begin("tools/call", {"name": "two", "arguments": {"text": large}})
            assert await client.call("one") == "one"
            refused = await client.ask("tools/call", {"name": "two", "arguments": {"text": large}})
            assert "does not read" in refused["error"]["message"]
            servers["b"].lines.transport.resume_reading()

    run(main())


@pytest.mark.parametrize("options", [{"requestTimeout": 0.5}, {"servers": {"b": {"requestTimeout": 0.5}}}])
def test_a_call_that_is_not_answered_ends_where_the_file_says_so(options: dict[str, Any]) -> None:
    async def main() -> None:
        servers = three()
        servers["b"].silent.add("tools/call")
        async with session(routing(servers, options)) as client:
            await client.list()
            assert "error" in await client.ask("tools/call", {"name": "two", "arguments": {}})
            assert await client.call("one") == "one"

    run(main())


def test_a_server_is_offered_the_revision_that_the_file_names() -> None:
    async def main() -> None:
        servers = three()
        async with session(routing(servers, {"servers": {"a": {"revision": "2025-03-26"}}})) as client:
            assert await client.list() == ["one", "two", "three"]
            assert servers["a"].of("initialize")[0]["params"]["protocolVersion"] == "2025-03-26"
            assert servers["b"].of("initialize")[0]["params"]["protocolVersion"] == HANDSHAKE

    run(main())


def test_the_board_shows_every_server_by_its_name() -> None:
    async def main() -> None:
        router = routing(three())
        async with session(router) as client:
            await client.list()
            found = {one.name: (one.state, one.revision) for one in router.status().servers}
            assert found == {
                "a": ("ready", "2025-03-26"),
                "b": ("ready", HANDSHAKE),
                "c": ("ready", PER_REQUEST),
            }
        assert router.status().servers == ()

    run(main())


def test_all_servers_are_closed_with_the_session() -> None:
    async def main() -> None:
        servers = three()
        async with session(routing(servers)) as client:
            await client.list()
        for server in servers.values():
            assert server.lines is not None
            assert server.lines.is_over

    run(main())


# When the file changes


def test_servers_come_change_and_go_and_the_unchanged_are_not_disturbed() -> None:
    async def main() -> None:
        servers = three() | {"d": MadeServer(tools=["four"])}
        known = {name: servers[name] for name in ("a", "b")}
        router = routing(servers)
        router.apply(configured(known))
        async with session(router) as client:
            assert await client.list() == ["one", "two"]
            servers["a"].silent.add("tools/call")
            call = client.begin("tools/call", {"name": "one", "arguments": {}})
            await until(lambda: servers["a"].of("tools/call"))
            router.apply(configured({name: servers[name] for name in ("a", "c", "d")}, None, d={"args": ["x"]}))
            await until(lambda: client.of("notifications/tools/list_changed"))
            await until_listed(client, ["one", "three", "four"])
            asked = servers["a"].of("tools/call")[0]
            servers["a"].say({"id": asked["id"], "result": {"content": []}})
            assert (await client.answer_to(call))["result"] == {"content": []}
            router.apply(configured({name: servers[name] for name in ("a", "c", "d")}, None, d={"args": ["y"]}))
            await until(lambda: servers["d"].opened == 2)
            await until_listed(client, ["one", "three", "four"])
            assert [servers[name].opened for name in ("a", "b", "c", "d")] == [1, 1, 1, 2]
            assert servers["b"].lines is not None
            assert servers["b"].lines.is_over
            assert "unknown tool" in await client.call("two")

    run(main())


def test_a_name_of_a_removed_server_is_free_again() -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["same"]), "b": MadeServer(tools=["same"])}
        router = routing(servers)
        async with session(router) as client:
            assert await client.list() == ["a_same", "b_same"]
            router.apply(configured({"b": servers["b"]}))
            await until_listed(client, ["same"])
            assert await client.call("same") == "same"
            assert servers["b"].of("tools/call")

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_session_that_opens_without_servers_gets_those_that_come(revision: str) -> None:
    async def main() -> None:
        servers = three()
        router = routing(servers)
        router.apply(configured({}))
        async with session(router, revision) as client:
            assert await client.list() == []
            router.apply(configured(servers))
            await until_listed(client, ["one", "two", "three"])
            assert await client.call("three") == "three"

    run(main())


def nested(levels: int) -> dict[str, Any]:
    """Capabilities with something deep in them."""
    deep: dict[str, Any] = {}
    for _ in range(levels):
        deep = {"x": deep}
    return {"experimental": {"deep": deep}}


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("name", ["b", "c"])
def test_a_server_whose_capabilities_are_too_deep_is_missing_alone(name: str, revision: str) -> None:
    async def main() -> None:
        servers = three()
        servers[name].capabilities |= nested(600)
        async with session(routing(servers), revision) as client:
            result = (await client.ask("tools/list"))["result"]
            assert len(result["tools"]) == 2
            (missing,) = result["_meta"]["dragoman/missing"]
            assert (missing["server"], "500 levels" in missing["reason"]) == (name, True)

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_client_whose_capabilities_are_too_deep_is_told_and_loses_no_server(revision: str) -> None:
    async def main() -> None:
        client = MadeClient(routing(three()), revision)
        client.capabilities = nested(600)
        about = {"protocolVersion": revision, "capabilities": client.capabilities, "clientInfo": {}}
        refused = await client.ask(*(("tools/list",) if revision == PER_REQUEST else ("initialize", about)))
        assert (refused["error"]["code"], "levels" in refused["error"]["message"]) == (-32602, True)
        client.capabilities = nested(400)
        if revision != PER_REQUEST:
            await client.ask("initialize", {**about, "capabilities": client.capabilities})
            client.tell("notifications/initialized")
        assert await client.list() == ["one", "two", "three"]
        await client.close()

    run(main())


@pytest.mark.parametrize("depth", [700, 930, 960, 985])
def test_a_request_that_is_too_deep_to_be_written_is_answered(depth: int) -> None:
    async def main() -> None:
        async with session(routing(three())) as client:
            client.connection.transport.write(
                b'{"jsonrpc":"2.0","id":77,"method":"prompts/get","params":{"name":"p","arguments":'
                + b'{"x":' * depth + b"1" + b"}" * depth + b"}}\n"
            )  # fmt: skip
            assert "error" in await client.answer_to(77)
            assert await client.list() == ["one", "two", "three"]

    run(main())


def three_where_one_answers(body: bytes) -> Any:
    """Give three servers, of which `b` has tasks, and answers calls with these members."""
    servers = three()
    own = servers["b"]
    own.capabilities |= {"tasks": {"requests": {"tools": {"call": {}}}}}

    def answer(asked: Body) -> None:
        assert own.lines is not None
        own.lines.transport.write(b'{"jsonrpc":"2.0","id":%s,%s}\n' % (json.dumps(asked["id"]).encode(), body))

    own.answers["tools/call"] = answer
    return servers


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'"result":{"content":[],"taskId":"x","_meta":%s}', b'"b:x"'),
        (b'"result":{"content":[{"type":"text","text":"","uri":"ui://p/q"}],"x":%s}', b"ui://b/"),
        (b'"error":{"code":-32042,"message":"m","data":{"elicitations":[{"elicitationId":"e","x":%s}]}}', b'"b:e"'),
    ],
)
def test_an_answer_that_is_deep_reaches_whoever_waits_for_it(body: bytes, told: bytes) -> None:
    """It is written anew, since it names what is the server's: it ended the server, and was lost itself."""
    deep = b'{"a":' * 980 + b"1" + b"}" * 980

    async def main() -> None:
        async with session(routing(three_where_one_answers(body % deep))) as client:
            told_by = encode(await client.ask("tools/call", {"name": "two", "arguments": {}}))
            assert told in told_by
            assert deep in told_by
            assert await client.list() == ["one", "two", "three"]

    run(main())


def test_a_result_in_a_result_in_a_result_reaches_whoever_waits_for_it() -> None:
    levels = 980
    line = b'{"taskId":"x","result":' * levels + b"{}" + b"}" * levels

    async def main() -> None:
        async with session(routing(three_where_one_answers(b'"result":' + line))) as client:
            assert (await client.ask("tools/call", {"name": "two", "arguments": {}}))["result"]["taskId"] == "b:x"

    run(main())
