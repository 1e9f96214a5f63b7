"""What one server says or has is never taken for another's, whatever it makes up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dragoman.proxy import ProxyConfig
from tests.router.made import HANDSHAKE, PER_REQUEST, Body, MadeServer, configured, routing, session
from tests.support.waiting import pass_time, run, until

NOTES = "notes://{day}"
QUESTION = {"messages": [], "maxTokens": 1}


def two_with_notes() -> dict[str, MadeServer]:
    """Two servers with one template."""
    return {name: MadeServer(tools=[f"{name}_tool"], templates=[NOTES]) for name in ("a", "b")}


def linking(uri: str) -> Callable[[Body], Body]:
    return lambda _: {"content": [{"type": "resource_link", "name": "n", "uri": uri}]}


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_link_to_what_two_servers_have_templates_for_leads_back_to_who_gave_it(revision: str) -> None:
    async def main() -> None:
        servers = two_with_notes()
        servers["b"].answers["tools/call"] = linking("notes://monday")
        async with session(routing(servers), revision) as client:
            assert await client.list("resources/templates") == [f"a+{NOTES}", f"b+{NOTES}"]
            called = await client.ask("tools/call", {"name": "b_tool", "arguments": {}})
            (link,) = called["result"]["content"]
            assert link["uri"] == "b+notes://monday"
            read = (await client.ask("resources/read", {"uri": link["uri"]}))["result"]
            assert read["contents"][0] == {"uri": "b+notes://monday", "text": "notes://monday"}
            assert servers["a"].of("resources/read") == []

    run(main())


def test_updates_come_under_the_uri_that_was_subscribed_to() -> None:
    async def main() -> None:
        servers = two_with_notes()
        async with session(routing(servers)) as client:
            await client.list("resources/templates")
            for name in ("a", "b"):
                assert "result" in await client.ask("resources/subscribe", {"uri": f"{name}+notes://monday"})
            servers["b"].say({"method": "notifications/resources/updated", "params": {"uri": "notes://monday"}})
            await until(lambda: client.of("notifications/resources/updated"))
            (update,) = client.of("notifications/resources/updated")
            assert update["params"]["uri"] == "b+notes://monday"

    run(main())


def test_a_uri_of_a_template_that_was_told_goes_on_to_mean_the_same() -> None:
    async def main() -> None:
        servers = two_with_notes()
        servers["a"].templates.clear()
        async with session(routing(servers)) as client:
            assert await client.list("resources/templates") == [NOTES]
            assert "result" in await client.ask("resources/subscribe", {"uri": "notes://monday"})
            servers["a"].templates.append(NOTES)
            assert await client.list("resources/templates") == [f"a+{NOTES}", f"b+{NOTES}"]
            assert "result" in await client.ask("resources/read", {"uri": "notes://monday"})
            assert (len(servers["a"].of("resources/read")), len(servers["b"].of("resources/read"))) == (0, 1)
            servers["b"].say({"method": "notifications/resources/updated", "params": {"uri": "notes://monday"}})
            await until(lambda: client.of("notifications/resources/updated"))
            (update,) = client.of("notifications/resources/updated")
            assert update["params"]["uri"] == "notes://monday", "the one that the client subscribed to"

    run(main())


def test_a_resource_of_its_own_list_keeps_its_uri_though_a_template_fits() -> None:
    async def main() -> None:
        servers = two_with_notes()
        servers["b"].resources.append("notes://monday")
        servers["b"].answers["tools/call"] = linking("notes://monday")
        async with session(routing(servers)) as client:
            await client.list("resources/templates")
            assert await client.list("resources") == ["notes://monday"]
            called = await client.ask("tools/call", {"name": "b_tool", "arguments": {}})
            assert called["result"]["content"][0]["uri"] == "notes://monday"

    run(main())


@pytest.mark.parametrize("first", ['{"name":', '{"_meta":'])
def test_progress_of_another_servers_call_is_dropped(first: str, caplog: pytest.LogCaptureFixture) -> None:
    """A call is read in one way if its name comes first, and in another way if it does not."""

    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        servers["a"].silent.add("tools/call")
        async with session(routing(servers)) as client:
            await client.list()
            params: Body = {"name": "a_tool", "_meta": {"progressToken": 7}}
            call = client.begin("tools/call", params if first == '{"name":' else dict(reversed(params.items())))
            await until(lambda: servers["a"].of("tools/call"))
            for number, name in enumerate(["b", "b", "a"]):
                told = {"progressToken": 7, "progress": number}
                servers[name].say({"method": "notifications/progress", "params": told})
                await pass_time(0.05)
            servers["b"].say({"method": "notifications/progress", "params": {"progressToken": 8, "progress": 9}})
            await until(lambda: len(client.of("notifications/progress")) == 2)
            assert [note["params"]["progress"] for note in client.of("notifications/progress")] == [2, 9]
            servers["a"].say({"id": servers["a"].of("tools/call")[0]["id"], "result": {"content": []}})
            assert "result" in await client.answer_to(call)
        assert caplog.text.count("it is of a call that a has") == 1

    run(main())


def test_a_server_that_asks_without_end_leaves_room_for_the_questions_of_others() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        async with session(
            routing(servers, None, ProxyConfig(open_requests=20)), capabilities={"sampling": {}}
        ) as client:
            for number in range(50):
                servers["a"].say({"id": number, "method": "sampling/createMessage", "params": QUESTION})
            await until(lambda: len([frame for frame in servers["a"].heard if "error" in frame]) == 40)
            servers["b"].say({"id": "b", "method": "sampling/createMessage", "params": QUESTION})
            await until(lambda: len(client.of("sampling/createMessage")) == 11)
            refused = next(frame["error"] for frame in servers["a"].heard if "error" in frame)
            assert (refused["code"], refused["data"]["limit"]) == (-32000, 10)
            assert [frame for frame in servers["b"].heard if "error" in frame] == []

    run(main())


def test_a_server_has_room_again_once_its_questions_are_answered() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
        async with session(
            routing(servers, None, ProxyConfig(open_requests=4)), capabilities={"sampling": {}}
        ) as client:
            client.answers["sampling/createMessage"] = lambda _: answer
            answered: set[int] = set()
            for number in range(20):
                servers["a"].say({"id": number, "method": "sampling/createMessage", "params": QUESTION})
                answered.add(number)
                await until(lambda: {one["id"] for one in servers["a"].heard if "result" in one} == answered)

    run(main())


def test_a_server_that_was_taken_out_says_nothing_more() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        router = routing(servers)
        async with session(router, capabilities={"sampling": {}}) as client:
            await client.list()
            lines = servers["a"].lines
            assert lines is not None
            router.apply(configured({"b": servers["b"]}))
            lines.say({"method": "notifications/message", "params": {"level": "error", "data": "farewell"}})
            lines.say({"id": 1, "method": "sampling/createMessage", "params": QUESTION})
            await until(lambda: lines.is_over)
            assert await client.call("b_tool") == "b_tool"
            assert [frame["method"] for frame in client.heard if "list_changed" not in frame["method"]] == []

    run(main())


URL_QUESTION = {"mode": "url", "message": "Sign in", "url": "https://example.com/", "elicitationId": "e-1"}


def test_questions_at_a_url_have_ids_of_their_own_and_name_who_asks() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        wanted = {"code": -32042, "message": "sign in first", "data": {"elicitations": [URL_QUESTION]}}
        servers["b"].answers["tools/call"] = lambda _: {"error": wanted}
        async with session(routing(servers), capabilities={"elicitation": {"url": {}}}) as client:
            servers["a"].say({"id": 1, "method": "elicitation/create", "params": URL_QUESTION})
            await until(lambda: client.of("elicitation/create"))
            error = (await client.ask("tools/call", {"name": "b_tool", "arguments": {}}))["error"]
            (asked,) = client.of("elicitation/create")
            (needed,) = error["data"]["elicitations"]
            assert (asked["params"]["message"], needed["message"]) == ("a: Sign in", "b: Sign in")
            assert asked["params"]["elicitationId"] != needed["elicitationId"]
            for name in ("a", "b"):
                servers[name].say({"method": "notifications/elicitation/complete", "params": {"elicitationId": "e-1"}})
            await until(lambda: len(client.of("notifications/elicitation/complete")) == 2)
            done = {note["params"]["elicitationId"] for note in client.of("notifications/elicitation/complete")}
            assert done == {asked["params"]["elicitationId"], needed["elicitationId"]}

    run(main())


def test_a_server_that_declares_what_is_not_a_capability_is_used_for_the_rest() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"], resources=[f"r:{name}"]) for name in ("a", "b")}
        servers["a"].capabilities = {"tools": {}, "resources": "yes"}
        async with session(routing(servers)) as client:
            assert await client.list() == ["a_tool", "b_tool"]
            subscribed = await client.ask("resources/subscribe", {"uri": "r:nobody"})
            assert subscribed.get("result") == {}, "b alone can have it"

    run(main())
