"""Who may see and use what: rules of a file, before one server and several, for clients of both eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from dragoman.cli.routing import with_rules
from dragoman.config import ConfigError, ServerConfig, parse_config
from dragoman.middleware import Answer, Message, Proceed
from dragoman.middlewares.access import Rules
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.router import Router
from dragoman.router.router import before_router
from dragoman.transports.base import Transport
from dragoman.transports.callers import Callers
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.http.serve import Address, HttpServer, bind
from tests.guard.issuer import Issuer, guard_of, issuer
from tests.router.made import HANDSHAKE, PER_REQUEST, PREFIX, MadeServer
from tests.transports.http.stage import on_loop
from tests.transports.http.wire import Reply, hang_up, request

BOTH = "application/json"
FRONT = "secret-of-front-01"
RULES: list[Any] = [
    {"allow": {"servers": ["files"], "tools": ["read*"], "resources": ["file:///srv/*"]}},
    {"for": {"scopes": ["files:write"]}, "allow": {"servers": ["files"], "tools": ["write"]}},
    {"for": {"principals": ["root by *"]}, "allow": {}},
    {"for": {"claims": {"groups": ["dev", "ops"]}}, "allow": {"servers": ["tracker"]}},
    {"for": {"claims": {"realm.roles": "guest"}}, "deny": {"tools": ["read_all"]}},
    {"deny": {"tools": ["remove*"]}},
]


class Client:
    """A client over HTTP, with a token; of the revision that it is of."""

    def __init__(self, port: int, token: str, revision: str) -> None:
        self.port, self.revision = port, revision
        self.headers = {"accept": BOTH, "authorization": f"Bearer {token}"}
        self.last = 0

    async def open(self) -> None:
        if self.revision != PER_REQUEST:
            info = {"name": "c", "version": "1"}
            params = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": info}
            reply = await self.send("initialize", params)
            assert reply.status == 200, await reply.body()
            self.headers |= {"mcp-session-id": reply.headers["mcp-session-id"]}
            await request(
                self.port, "POST", "/mcp", self.headers, {"jsonrpc": "2.0", "method": "notifications/initialized"}
            )

    async def send(self, method: str, params: dict[str, Any]) -> Any:
        self.last += 1
        headers = self.headers
        if self.revision == PER_REQUEST:
            meta = {f"{PREFIX}protocolVersion": PER_REQUEST, f"{PREFIX}clientCapabilities": {}}
            params = {**params, "_meta": {**params.get("_meta", {}), **meta}}
            headers = {**headers, "mcp-protocol-version": PER_REQUEST, "mcp-method": method}
            if named := params.get("name", params.get("uri")):
                headers["mcp-name"] = named
        frame = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        return await request(self.port, "POST", "/mcp", headers, frame)

    async def ask(self, method: str, **params: Any) -> Any:
        return await (await self.send(method, params)).frame()

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.ask("tools/list"))["result"]["tools"]]

    async def may(self, tool: str) -> bool:
        answer = await self.ask("tools/call", name=tool, arguments={})
        said = answer.get("error", {}).get("message", "")
        assert "result" in answer or "unknown tool" in said or "takes a token" in said
        return "result" in answer


class Place:
    """Two servers behind a router, with rules before them."""

    def __init__(self, one: Issuer, port: int, revision: str) -> None:
        self.one, self.port, self.revision = one, port, revision
        self.router: Router
        self.rules: Rules
        self.made: list[MadeServer]

    async def client(self, **claims: Any) -> Client:
        client = Client(self.port, self.one.give(**claims), self.revision)
        await client.open()
        return client


def file_of(rules: list[Any], **more: Any) -> str:
    servers = {name: {"command": "x"} for name in ("files", "tracker")}
    return json.dumps({"mcpServers": servers, "dragoman": {"rules": rules, **more}})


@contextlib.asynccontextmanager
async def place(
    revision: str, servers_revision: str, scope: Scope, rules: list[Any], *, then: Sequence[Any] = (), **more: Any
) -> AsyncIterator[Place]:
    lists: dict[str, dict[str, list[Any]]] = {
        "files": {
            "tools": ["read", "read_all", "write", "remove_all"],
            "resources": ["file:///srv/a", "file:///etc/b"],
            "templates": ["file:///srv/{x}"],
            "prompts": ["greet"],
        },
        "tracker": {"tools": ["issues", "remove_issue"], "resources": ["issue:1"]},
    }
    made: list[MadeServer] = []

    def open_server(server: ServerConfig) -> Callable[[], Transport]:
        def connect() -> Transport:
            made.append(MadeServer(servers_revision, **lists.get(server.name, {})))
            return made[-1].connect()

        return connect

    configuration = parse_config(file_of(rules, **more), {})
    async with issuer() as one:
        router = Router(configuration, ProxyConfig(shares_server=scope is Scope.SHARED), open_server)
        rules_ = Rules(configuration.options.rules or (), router.find, router.servers.keys)
        config = with_rules(before_router(ProxyConfig(middleware=tuple(then))), rules_)
        pool = UpstreamPool(scope, router.connect)
        known = guard_of(one, clients=("robot",))
        admission = Admission(tokens={"front": FRONT}, guard=known, notes_origins=True, callers=Callers((b"k" * 32,)))
        front = HttpFront(
            lambda transport, caller: pool.proxy(
                config, transport, caller.principal, is_per_request=caller.is_per_request
            ),
            FrontConfig(admission=admission, shares_requests=scope is Scope.SHARED),
        )
        listener = bind(Address())
        server = HttpServer(front, listener, Address())
        ready = asyncio.Event()
        task = asyncio.create_task(server.run(ready.set, pool.close))
        await ready.wait()
        found = Place(one, listener.getsockname()[1], revision)
        found.router, found.rules, found.made = router, rules_, made
        try:
            yield found
        finally:
            await hang_up()
            server.stop("the test is over")
            await task


EVERYWHERE = pytest.mark.parametrize(
    ("revision", "servers", "scope"),
    [
        (client, server, scope)
        for client in (HANDSHAKE, PER_REQUEST)
        for server in (HANDSHAKE, PER_REQUEST)
        for scope in (Scope.CLIENT, Scope.SHARED)
    ],
)


@EVERYWHERE
@on_loop
async def test_lists_show_what_may_be_used_and_nothing_else_may(revision: str, servers: str, scope: Scope) -> None:
    async with place(revision, servers, scope, RULES) as where:
        everybody = await where.client()
        assert await everybody.tools() == ["read", "read_all"]
        writer = await where.client(sub="writer", scope="files:write x")
        assert await writer.tools() == ["read", "read_all", "write"]
        root = await where.client(sub="root")
        assert await root.tools() == ["read", "read_all", "write", "issues"]
        dev = await where.client(sub="dev", groups=["x", "dev"])
        assert await dev.tools() == ["read", "read_all", "issues"]
        guest = await where.client(sub="guest", realm={"roles": ["guest"]})
        assert await guest.tools() == ["read"]
        for client in (everybody, writer, root, dev, guest):
            seen = await client.tools()
            for tool in ("read", "read_all", "write", "remove_all", "issues", "remove_issue"):
                assert await client.may(tool) is (tool in seen), tool


@on_loop
async def test_a_rule_for_a_proxy_is_for_all_of_whom_it_tells() -> None:
    rules = [{"for": {"principals": ["front"]}, "allow": {"tools": ["read"]}}]
    async with place(HANDSHAKE, HANDSHAKE, Scope.CLIENT, rules) as where:
        for told in ({}, Callers((b"k" * 32,)).tell("ada")):
            client = Client(where.port, FRONT, HANDSHAKE)
            client.headers |= told
            await client.open()
            assert await client.tools() == ["read"]


@EVERYWHERE
@on_loop
async def test_what_nobody_has_listed_yet_is_held_to_the_rules_of_its_server(
    revision: str, servers: str, scope: Scope
) -> None:
    for tool, claims, may in (
        ("issues", {}, False),
        ("issues", {"groups": "dev"}, True),
        ("read", {}, True),
        ("write", {}, False),
    ):
        async with place(revision, servers, scope, RULES) as where:
            client = await where.client(**claims)
            assert await client.may(tool) is may
            called = [frame["params"]["name"] for one in where.made for frame in one.of("tools/call")]
            assert called == ([tool] if may else [])


@EVERYWHERE
@on_loop
async def test_a_rule_is_about_names_as_the_server_has_them(revision: str, servers: str, scope: Scope) -> None:
    rules = [{"allow": {"servers": ["files"], "tools": ["write"]}}]
    async with place(revision, servers, scope, rules, prefix="always") as where:
        client = await where.client()
        assert await client.may("files_write"), "which nobody has listed yet"
        for tool in ("files_read", "tracker_issues", "write"):
            assert not await client.may(tool)
        assert await client.tools() == ["files_write"]


@EVERYWHERE
@on_loop
async def test_a_resource_is_sought_at_servers_that_may_be_used(revision: str, servers: str, scope: Scope) -> None:
    async with place(revision, servers, scope, RULES) as where:
        client = await where.client()
        assert "result" in await client.ask("resources/read", uri="file:///srv/a")
        assert "result" in await client.ask("resources/read", uri="file:///srv/made-of-template")
        for uri in ("file:///etc/b", "file:///srv/../etc/b", "issue:1", "issue:2", "other://x"):
            assert "error" in await client.ask("resources/read", uri=uri), uri
        read = [frame["params"]["uri"] for one in where.made for frame in one.of("resources/read")]
        assert read == ["file:///srv/a", "file:///srv/made-of-template"]
        listed = (await client.ask("resources/list"))["result"]["resources"]
        assert [one["uri"] for one in listed] == ["file:///srv/a"]
        made = (await client.ask("resources/templates/list"))["result"]["resourceTemplates"]
        assert [one["uriTemplate"] for one in made] == ["file:///srv/{x}"]


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
@on_loop
async def test_where_only_scopes_are_missing_the_answer_names_them(revision: str) -> None:
    async with place(revision, HANDSHAKE, Scope.CLIENT, RULES) as where:
        client = await where.client(scope="files:read")
        await client.tools()
        reply = await client.send("tools/call", {"name": "write", "arguments": {}})
        assert reply.status == 403
        assert (
            'error="insufficient_scope", scope="files:write", resource_metadata=' in reply.headers["www-authenticate"]
        )
        assert "files:write" in (await reply.frame())["error"]["message"]
        client.headers["authorization"] = f"Bearer {where.one.give(scope='files:read files:write')}"
        assert await client.may("write"), "in the same session, with another token"
        client.headers["authorization"] = f"Bearer {where.one.give(scope='files:read')}"
        assert not await client.may("write"), "what one token is good for, no other is"
        assert (await client.send("tools/call", {"name": "issues", "arguments": {}})).status == 200


@on_loop
async def test_other_rules_count_at_once() -> None:
    async with place(HANDSHAKE, HANDSHAKE, Scope.CLIENT, RULES) as where:
        client = await where.client()
        assert await client.tools() == ["read", "read_all"]
        changed = parse_config(file_of([{"deny": {"tools": ["read"]}}]), {})
        where.rules.change(changed.options.rules or ())
        where.router.apply(changed)
        assert await client.tools() == ["read_all", "write", "remove_all", "issues", "remove_issue"]
        where.rules.change(())
        assert "read" in await client.tools()


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "subscriptions/listen"])
@on_loop
async def test_what_was_found_for_another_one_is_at_no_server_that_is_denied(revision: str, method: str) -> None:
    if (method == "subscriptions/listen") is (revision == HANDSHAKE) and method != "resources/read":
        return
    uri = "odd://on-no-list"
    rules = [{"for": {"principals": ["bob by *"]}, "deny": {"servers": ["files"]}}]
    async with place(revision, revision, Scope.SHARED, rules) as where:
        ada, bob = [await where.client(sub=name) for name in ("ada", "bob")]
        assert "result" in await ada.ask("resources/read", uri=uri)
        for one in where.made:
            if "issue:1" in one.resources:
                one.resources.append(uri)
        await ada.ask("resources/list")
        files = [one for one in where.made if "issue:1" not in one.resources]
        heard = sum(len(one.heard) for one in files)
        if method == "subscriptions/listen":
            for one in where.made:
                one.answers[method] = partial(_acknowledge, one)
            stream = await _listen(bob, {"resourceSubscriptions": [uri]})
            stream.leave()
        else:
            assert "result" in await bob.ask(method, uri=uri)
        assert sum(len(one.heard) for one in files) == heard, "bob may not use it"


@on_loop
async def test_a_list_that_waits_shows_nothing_of_a_server_that_is_gone() -> None:
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def wait(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        if call.method == "tools/list" and not goes_on.is_set():
            reached.set()
            await goes_on.wait()
        return answer

    rules = [{"deny": {"tools": ["rem*"]}}]
    async with place(HANDSHAKE, HANDSHAKE, Scope.CLIENT, rules, then=[wait], prefix="always") as where:
        client = await where.client()
        listing = asyncio.ensure_future(client.tools())
        await reached.wait()
        changed = json.loads(file_of(rules, prefix="always"))
        changed["mcpServers"]["others"] = changed["mcpServers"].pop("files")
        where.router.apply(parse_config(json.dumps(changed), {}))
        goes_on.set()
        assert await listing == ["tracker_issues"]


@pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED])
@on_loop
async def test_a_call_that_waits_is_held_to_the_rules_of_the_server_that_gets_it(scope: Scope) -> None:
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def wait(call: Message, proceed: Proceed) -> Answer:
        if call.method == "tools/call":
            reached.set()
            await goes_on.wait()
        return await proceed(call)

    rules = [{"deny": {"servers": ["tracker"]}}]
    async with place(HANDSHAKE, HANDSHAKE, scope, rules, then=[wait]) as where:
        client = await where.client()
        assert "read" in await client.tools()
        call = asyncio.ensure_future(client.ask("tools/call", name="read", arguments={}))
        await reached.wait()
        changed = json.loads(file_of(rules))
        del changed["mcpServers"]["files"]
        where.router.apply(parse_config(json.dumps(changed), {}))
        trackers = [one for one in where.made if "issues" in one.tools]
        trackers[0].tools[:] = ["read"]  # which all of them have
        other = await where.client()
        assert await other.tools() == []
        assert where.router.owner_of("tool", "read") == "tracker"
        goes_on.set()
        assert "unknown tool" in (await call)["error"]["message"]
        assert not [frame for one in trackers for frame in one.of("tools/call")]


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({}, "expected dragoman.rules to be an array, found an object"),
        ([{}], "rule 1 of dragoman.rules neither allows nor denies anything"),
        ([{"allow": {"tool": ["x"]}}], "allow of rule 1 of dragoman.rules has no key 'tool'"),
        ([{"allow": {"tools": "x"}}], "expected tools of allow of rule 1 of dragoman.rules to be an array of strings"),
        ([{"for": {"scope": ["x"]}, "allow": {}}], "for of rule 1 of dragoman.rules has no key 'scope'"),
        (
            [{"for": {"claims": {"a": 1}}, "allow": {}}],
            "expected a of claims of rule 1 of",
        ),
        ([{"for": ["x"], "allow": {}}], "expected for of rule 1 of dragoman.rules to be an object"),
        (["x"], "expected rule 1 of dragoman.rules to be an object"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_an_error(rules: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(file_of(rules), {})
    assert problem in str(caught.value)


@EVERYWHERE
@on_loop
async def test_what_a_request_names_beside_its_type_goes_nowhere(revision: str, servers: str, scope: Scope) -> None:
    rules = [{"allow": {"servers": ["files"], "prompts": ["greet"]}}]
    async with place(revision, servers, scope, rules) as where:
        client = await where.client()
        await client.ask("prompts/list")
        both = {"name": "greet", "uri": "file:///srv/{x}"}
        for kind, known in (("ref/prompt", True), ("ref/resource", False)):
            answer = await client.ask(
                "completion/complete", ref={"type": kind, **both}, argument={"name": "x", "value": "a"}
            )
            assert ("result" in answer) is known
        asked = [frame["params"]["ref"] for one in where.made for frame in one.of("completion/complete")]
        assert asked == [{"type": "ref/prompt", "name": "greet"}]


@pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED])
@on_loop
async def test_of_a_change_only_those_hear_who_may_use_the_resource(scope: Scope) -> None:
    rules = [{"for": {"principals": ["guest by *"]}, "deny": {"resources": ["file:///srv/*"]}}]
    async with place(PER_REQUEST, HANDSHAKE, scope, rules) as where, contextlib.AsyncExitStack() as streams:
        told: dict[str, Reply] = {}
        for name in ("guest", "ada"):
            wanted = {"resourceSubscriptions": ["file:"]}  # and what is below it
            told[name] = await streams.enter_async_context(await _listen(await where.client(sub=name), wanted))
        for uri in ("file:///srv/a", "file:///etc/b"):
            for server in [one for one in where.made if one.of("resources/subscribe")]:
                server.say({"method": "notifications/resources/updated", "params": {"uri": uri}})
        heard = {name: await _next_changed(stream) for name, stream in told.items()}
        assert heard == {"guest": "file:///etc/b", "ada": "file:///srv/a"}


async def _listen(client: Client, wanted: dict[str, Any]) -> Reply:
    client.headers |= {"accept": "text/event-stream, application/json"}
    stream: Reply = await client.send("subscriptions/listen", {"notifications": wanted})
    assert (await stream.event()) is not None
    return stream


async def _next_changed(stream: Reply) -> str:
    while (event := await stream.event()) is not None:
        if event.data and event.frame["method"] == "notifications/resources/updated":
            return str(event.frame["params"]["uri"])
    raise AssertionError("the stream has ended")


@pytest.mark.parametrize("several", [False, True])
@on_loop
async def test_what_is_said_on_a_stream_for_several_principals_reaches_none_of_them(several: bool) -> None:
    """But what each has asked for by a name that is known."""
    async with place(PER_REQUEST, PER_REQUEST, Scope.SHARED, [{"allow": {}}]) as where:
        clients = [await where.client(sub=name) for name in ("ada", "ben" if several else "ada")]
        await clients[0].tools()
        for server in where.made:
            server.answers["subscriptions/listen"] = partial(_acknowledge, server)
        streams = [await _listen(client, {"toolsListChanged": True, "vendorThing": True}) for client in clients]
        for server in where.made:
            listen = {"_meta": {f"{PREFIX}subscriptionId": server.of("subscriptions/listen")[-1]["id"]}}
            for method in ("notifications/message", "notifications/vendor", "notifications/tools/list_changed"):
                server.say({"method": method, "params": {**listen, "level": "info", "data": "of one of them"}})
        for stream in streams:
            first = await stream.event()
            assert first is not None
            assert first.frame["method"] == f"notifications/{'tools/list_changed' if several else 'message'}"
            stream.leave()


def _acknowledge(server: MadeServer, frame: dict[str, Any]) -> None:
    meta = {f"{PREFIX}subscriptionId": frame["id"]}
    params = {"notifications": frame["params"]["notifications"], "_meta": meta}
    server.say({"method": "notifications/subscriptions/acknowledged", "params": params})
