"""Several clients at one router: what a server asks or says about a call of one of them no other one hears."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from tests.router.made import HANDSHAKE, PER_REQUEST, PREFIX, Body, MadeClient, MadeServer, routing, session
from tests.support.waiting import pass_time, run, until

QUESTION: Body = {"messages": [], "maxTokens": 1}


@contextlib.asynccontextmanager
async def sharing(
    servers: dict[str, MadeServer], options: Body | None = None, clients: int = 2
) -> AsyncIterator[list[MadeClient]]:
    """Open sessions at one router, whose servers leave calls open."""
    for server in servers.values():
        server.silent.add("tools/call")
    router = routing(servers, options)
    pool = UpstreamPool(Scope.SHARED, router.connect)
    opened = [MadeClient(router, HANDSHAKE, ProxyConfig(), pool) for _ in range(clients)]
    for client in opened:
        client.capabilities = {"sampling": {}}
        await client.open()
        await client.list()
    yield opened
    for client in opened:
        client.proxy.stop("the test is over")
        await client.task
    await pool.close()


async def call(client: MadeClient, server: MadeServer, tool: str) -> int:
    """Begin a call, and wait until the server has it."""
    before = len(server.of("tools/call"))
    key = client.begin("tools/call", {"name": tool, "arguments": {}})
    await until(lambda: len(server.of("tools/call")) > before)
    return key


async def ask(server: MadeServer, key: int = 1) -> Body | None:
    """Let a server ask; give its answer, or None where a client was asked."""
    server.say({"id": key, "method": "sampling/createMessage", "params": QUESTION})
    await pass_time(0.05)
    return next((one for one in server.heard if one.get("id") == key and "method" not in one), None)


async def leave(leaver: MadeClient, key: int) -> None:
    leaver.proxy.stop("the client is gone")
    await leaver.task


async def cancel(leaver: MadeClient, key: int) -> None:
    leaver.tell("notifications/cancelled", {"requestId": key})


@pytest.mark.parametrize("end", [leave, cancel])
def test_a_question_about_a_call_that_is_over_reaches_nobody_else(end: Any) -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        async with sharing(servers) as (one, other):
            key = await call(one, servers["a"], "a_tool")
            await end(one, key)
            await until(lambda: servers["a"].of("notifications/cancelled"))
            await call(other, servers["a"], "a_tool")
            refused = await ask(servers["a"])
            assert refused is not None
            assert "error" in refused
            assert other.of("sampling/createMessage") == []

    run(main())


def test_a_question_about_a_call_that_was_given_up_before_its_server_reaches_nobody_else() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        async with sharing(servers, {"requestTimeout": 0.2}) as (one, other):
            key = await call(one, servers["a"], "a_tool")
            assert (await one.answer_to(key))["error"]["data"]["dragoman/unanswered"] is True
            await call(other, servers["a"], "a_tool")
            refused = await ask(servers["a"])
            assert refused is not None
            assert "error" in refused
            assert other.of("sampling/createMessage") == []

    run(main())


def test_calls_at_another_server_do_not_make_a_question_unclear() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        async with sharing(servers) as (one, other):
            await call(one, servers["a"], "a_tool")
            await call(other, servers["b"], "b_tool")
            assert await ask(servers["a"]) is None
            assert len(one.of("sampling/createMessage")) == 1
            assert other.of("sampling/createMessage") == []

    run(main())


def test_a_server_without_a_call_asks_nobody_who_has_one_at_another() -> None:
    async def main() -> None:
        servers = {name: MadeServer(tools=[f"{name}_tool"]) for name in ("a", "b")}
        async with sharing(servers) as (_, other):
            await call(other, servers["b"], "b_tool")
            refused = await ask(servers["a"])
            assert refused is not None
            assert "error" in refused
            assert other.of("sampling/createMessage") == []

    run(main())


UPDATED = "notifications/resources/updated"


@pytest.mark.parametrize("first", [0, 1])
def test_who_knows_a_resource_by_another_uri_hears_of_it_too(first: int) -> None:
    async def main() -> None:
        servers = {"a": MadeServer(resources=["x:y"]), "b": MadeServer(resources=["x:z"])}
        async with sharing(servers) as clients:
            assert await clients[0].list("resources") == ["x:y", "x:z"]
            servers["b"].resources.append("x:y")
            assert "a+x:y" in await clients[1].list("resources")
            watched = list(zip(clients, ("x:y", "a+x:y"), strict=True))
            for client, uri in watched if first == 0 else reversed(watched):
                assert (await client.ask("resources/subscribe", {"uri": uri}))["result"] == {}
            servers["a"].say({"method": UPDATED, "params": {"uri": "x:y"}})
            for client, uri in watched:
                await until(lambda client=client: client.of(UPDATED))
                assert [one["params"]["uri"] for one in client.of(UPDATED)] == [uri]
            assert (await clients[0].ask("resources/unsubscribe", {"uri": "x:y"}))["result"] == {}
            assert servers["a"].of("resources/unsubscribe") == [], "somebody watches it under its other name"
            servers["a"].say({"method": UPDATED, "params": {"uri": "x:y"}})
            await until(lambda: len(clients[1].of(UPDATED)) == 2)
            assert len(clients[0].of(UPDATED)) == 1
            await clients[1].ask("resources/unsubscribe", {"uri": "a+x:y"})
            assert len(servers["a"].of("resources/unsubscribe")) == 1

    run(main())


def test_each_stream_hears_of_a_resource_by_the_uri_that_it_asked_for() -> None:
    async def main() -> None:
        servers = {name: MadeServer(PER_REQUEST, resources=["x:y"]) for name in "ab"}
        del servers["b"].resources[:]

        def agree(frame: Body) -> None:
            meta = {f"{PREFIX}subscriptionId": frame["id"]}
            params = {"notifications": frame["params"]["notifications"], "_meta": meta}
            servers["a"].say({"method": "notifications/subscriptions/acknowledged", "params": params})

        servers["a"].answers["subscriptions/listen"] = agree
        async with session(routing(servers), PER_REQUEST) as client:
            assert await client.list("resources") == ["x:y"]
            servers["b"].resources.append("x:y")
            assert "a+x:y" in await client.list("resources")
            for number, uri in enumerate(("a+x:y", "x:y"), 1):
                client.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
                await until(lambda number=number: len(client.of("notifications/subscriptions/acknowledged")) == number)
            agreed = [one["params"]["notifications"] for one in client.of("notifications/subscriptions/acknowledged")]
            assert agreed == [{"resourceSubscriptions": ["a+x:y"]}, {"resourceSubscriptions": ["x:y"]}]
            meta = {f"{PREFIX}subscriptionId": servers["a"].of("subscriptions/listen")[-1]["id"]}
            servers["a"].say({"method": UPDATED, "params": {"uri": "x:y", "_meta": meta}})
            await until(lambda: len(client.of(UPDATED)) == 2)
            assert sorted(one["params"]["uri"] for one in client.of(UPDATED)) == ["a+x:y", "x:y"]

    run(main())
