"""Conversations with a peer of a made-up revision in which names have changed; `test_next_renames` runs them.

Each runs where `dragoman_spec` has that revision.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import dragoman
from dragoman.cli import main
from dragoman.core.rules.headers import check_collected, collect_headers, make_headers
from dragoman.server import Context, Server
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    READY,
    Step,
    an_error,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    initialized,
    notification,
    request,
    result,
    server,
)

OLDEST, SESSION = HANDSHAKE_REVISIONS[0], HANDSHAKE_REVISIONS[-1]
FIRST, NEXT = "2026-07-28", "2027-06-01"
META = "io.modelcontextprotocol/"
VERSION, CAPABILITIES, LEVEL, LISTENER = (
    META + name for name in ("protocolVersion", "clientCapabilities", "logLevel", "subscriptionId")
)
FORMS = {"elicitation": {"form": {}}}
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
FORM_IN_SESSION = {name: value for name, value in FORM.items() if name != "mode"}
ASKS = {"method": "elicitation/create", "params": FORM}
TEXT = [{"type": "text", "text": "hi"}]
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
PROMISED = {"completions": {}, "logs": {}, "prompts": {}, "tools": {"listChanged": True}}
COMPLETING = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}}
COMPLETED = {"completion": {"values": ["c"]}}


def asks(key: Any, method: str, revision: str, /, **params: Any) -> dict[str, Any]:
    """A request that speaks for itself; `has` and `meta` are what it says of its client."""
    has, meta = params.pop("has", {}), params.pop("meta", {})
    return request(key, method, **params, _meta={VERSION: revision, CAPABILITIES: has, **meta})


def complete(**members: Any) -> dict[str, Any]:
    return {"resultType": "complete", **members}


def discovered(key: Any, revision: str, capabilities: Any) -> Step:
    return server(result(key, {"supportedVersions": [revision], "capabilities": capabilities, **CACHED}))


def is_asked(method: str) -> Step:
    return expect_to_server(lambda frame: frame["method"] == method)


def turned_down(key: Any, code: int = -32022) -> Step:
    data = {"supported": [NEXT], "requested": FIRST}
    return server({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": "not this", "data": data}})


def opening_next(client_revision: str, **has: Any) -> list[Step]:
    """A client with a handshake finds a server of the made-up revision."""
    return [
        client(initialize(client_revision, **has)),
        is_asked("initialize"),
        server(error(0, -32601)),
        is_asked("server/discover"),
        turned_down("dragoman-discover-1", -32032),
        expect_to_server(lambda frame: frame["params"]["_meta"][VERSION] == NEXT),
        discovered("dragoman-discover-2", NEXT, PROMISED),
        expect_to_client(lambda frame: frame["result"]["protocolVersion"] == client_revision),
        client(READY),
    ]


def listening(key: int) -> list[Step]:
    """The proxy listens for the client."""
    wanted = {"notifications": {"toolsListChanged": True}}
    return [
        expect_to_server(asks(key, "subscriptions/open", NEXT, **wanted, **IDENTITY)),
        server(
            notification("notifications/subscriptions/acknowledged", **wanted, _meta={LISTENER: key}),
        ),
    ]


IDENTITY: dict[str, Any] = {"meta": {META + "clientInfo": {"name": "test", "version": "1"}}}


def session_client() -> None:
    """A client with a handshake at a server of the made-up revision: plain requests, notifications, the log level."""
    meta = {**IDENTITY["meta"], LEVEL: "info"}
    hold(
        [
            *opening_next(SESSION),
            *listening(1),
            client(request(1, "completion/complete", **COMPLETING)),
            expect_to_server(asks(2, "completion/suggest", NEXT, **COMPLETING, **IDENTITY)),
            server(result(2, complete(**COMPLETED))),
            expect_to_client(result(1, COMPLETED)),
            server(notification("notifications/tools/changed", _meta={LISTENER: 1})),
            expect_to_client(notification("notifications/tools/list_changed")),
            client(request(2, "logging/setLevel", level="info")),
            expect_to_client(result(2, {})),
            client(request(3, "tools/call", name="add", _meta={"progressToken": "t"})),
            expect_to_server(asks(3, "tools/run", NEXT, name="add", meta={**meta, "progressToken": 3})),
            server(notification("notifications/log", level="info", data="x")),
            expect_to_client(notification("notifications/message", level="info", data="x")),
            server(notification("notifications/progress", progressToken=3, progress=1)),
            expect_to_client(notification("notifications/progress", progressToken="t", progress=1)),
            server(result(3, complete(content=TEXT, form="blocks"))),
            expect_to_client(result(3, {"content": TEXT})),
            client(request(4, "tools/call", name="add")),
            expect_to_server(asks(4, "tools/run", NEXT, name="add", meta=meta)),
            client(notification("notifications/cancelled", requestId=4)),
            expect_to_server(notification("notifications/cancelled", requestId=4)),
        ]
    )


def session_client_asked() -> None:
    """The same, with a question in the middle of a call, from the oldest revision and the newest with a handshake."""
    meta = {"has": FORMS, **IDENTITY}
    hold(
        [
            *opening_next(SESSION, elicitation={}),
            *listening_with(1, FORMS),
            client(request(1, "prompts/get", name="p")),
            expect_to_server(asks(2, "prompts/render", NEXT, name="p", **meta)),
            server(result(2, {"resultType": "input_required", "inputRequests": {"q": ASKS}, "requestState": "s"})),
            expect_to_client(request("dragoman-question-1", "elicitation/create", **FORM)),
            client(result("dragoman-question-1", {"action": "accept", "content": {}})),
            expect_to_server(
                asks(
                    3,
                    "prompts/render",
                    NEXT,
                    name="p",
                    inputResponses={"q": {"action": "accept", "content": {}}},
                    requestState="s",
                    **meta,
                )
            ),
            server(result(3, complete(messages=[]))),
            expect_to_client(result(1, {"messages": []})),
        ]
    )


def listening_with(key: int, has: Any) -> list[Step]:
    wanted = {"notifications": {"toolsListChanged": True}}
    return [expect_to_server(asks(key, "subscriptions/open", NEXT, **wanted, has=has, **IDENTITY))]


def opening_session(first: dict[str, Any], revision: str = SESSION, /, **server_has: Any) -> list[Step]:
    """The first request has a server with a handshake opened."""
    return [
        client(first),
        is_asked("server/discover"),
        server(error("dragoman-discover-1", -32601)),
        is_asked("initialize"),
        server(initialized(revision, "dragoman-initialize", **server_has)),
        expect_to_server(READY),
    ]


NAMED = {"_meta": {META + "serverInfo": {"name": "test", "version": "1"}}}


def session_server() -> None:
    """A client of the made-up revision at a server with a handshake."""
    hold(
        [
            *opening_session(
                asks("a", "completion/suggest", NEXT, **COMPLETING),
                completions={},
                tools={"listChanged": True},
                logging={},
            ),
            expect_to_server(request(1, "completion/complete", **COMPLETING)),
            server(result(1, COMPLETED)),
            expect_to_client(result("a", complete(**COMPLETED, **NAMED))),
            client(asks("b", "tools/run", NEXT, name="add", meta={LEVEL: "info", "progressToken": "t"})),
            expect_to_server(request(2, "logging/setLevel", level="info")),
            expect_to_server(request(3, "tools/call", name="add", _meta={"progressToken": 3})),
            server(notification("notifications/message", level="info", data="x")),
            expect_to_client(notification("notifications/log", level="info", data="x")),
            server(notification("notifications/progress", progressToken=3, progress=1)),
            expect_to_client(notification("notifications/progress", progressToken="t", progress=1)),
            server(result(3, {"content": TEXT})),
            expect_to_client(result("b", complete(content=TEXT, form="blocks", **NAMED))),
            client(asks("c", "subscriptions/open", NEXT, notifications={"toolsListChanged": True})),
            expect_to_client(
                notification(
                    "notifications/subscriptions/acknowledged",
                    notifications={"toolsListChanged": True},
                    _meta={LISTENER: "c"},
                )
            ),
            server(notification("notifications/tools/list_changed")),
            expect_to_client(notification("notifications/tools/changed", _meta={LISTENER: "c"})),
            client(asks("d", "completion/complete", NEXT, **COMPLETING)),
            expect_to_client(an_error("d", -32601, "no completion/complete")),
            client(asks("e", "server/discover", NEXT)),
            expect_to_client(lambda frame: "logs" in frame["result"]["capabilities"]),
        ]
    )


def first_at_next() -> None:
    """A client of the first revision without a handshake at a server of the made-up one."""
    hold(
        [
            client(asks("a", "completion/complete", FIRST, **COMPLETING)),
            is_asked("server/discover"),
            turned_down("dragoman-discover-1"),
            expect_to_server(lambda frame: frame["params"]["_meta"][VERSION] == NEXT),
            discovered("dragoman-discover-2", NEXT, PROMISED),
            expect_to_server(asks(1, "completion/suggest", NEXT, **COMPLETING)),
            server(result(1, complete(**COMPLETED))),
            expect_to_client(result("a", complete(**COMPLETED))),
            client(asks("b", "tools/call", FIRST, name="add", meta={LEVEL: "info"})),
            expect_to_server(asks(2, "tools/run", NEXT, name="add", meta={LEVEL: "info"})),
            server(notification("notifications/log", level="info", data="x")),
            expect_to_client(notification("notifications/message", level="info", data="x")),
            server(result(2, complete(content=TEXT, form="blocks"))),
            expect_to_client(result("b", complete(content=TEXT))),
            client(asks("c", "subscriptions/listen", FIRST, notifications={"toolsListChanged": True})),
            expect_to_server(asks(3, "subscriptions/open", NEXT, notifications={"toolsListChanged": True})),
            server(notification("notifications/tools/changed", _meta={LISTENER: 3})),
            expect_to_client(notification("notifications/tools/list_changed", _meta={LISTENER: "c"})),
            client(asks("d", "server/discover", FIRST)),
            expect_to_server(asks(4, "server/discover", NEXT)),
            discovered(4, NEXT, PROMISED),
            expect_to_client(lambda frame: "logging" in frame["result"]["capabilities"]),
        ]
    )


def next_at_first() -> None:
    """A client of the made-up revision at a server of the first one."""
    hold(
        [
            client(asks("a", "prompts/render", NEXT, name="p", has=FORMS)),
            is_asked("server/discover"),
            discovered("dragoman-discover-1", FIRST, {"prompts": {}, "tools": {"listChanged": True}}),
            expect_to_server(asks(1, "prompts/get", FIRST, name="p", has=FORMS)),
            server(result(1, {"resultType": "input_required", "inputRequests": {"q": ASKS}, "requestState": "s"})),
            expect_to_client(
                result("a", {"resultType": "input_required", "inputRequests": {"q": ASKS}, "requestState": "s"})
            ),
            client(asks("b", "tools/run", NEXT, name="add")),
            expect_to_server(asks(2, "tools/call", FIRST, name="add")),
            server(result(2, complete(content=TEXT))),
            expect_to_client(result("b", complete(content=TEXT, form="blocks"))),
            client(asks("c", "tools/run", NEXT, name="add")),
            expect_to_server(asks(3, "tools/call", FIRST, name="add")),
            client(notification("notifications/cancelled", requestId="c")),
            expect_to_server(notification("notifications/cancelled", requestId=3)),
        ]
    )


def libraries() -> None:
    """The client and the server library in the made-up revision."""
    server = Server("named", "1", revision=NEXT, notifies=["notifications/tools/changed"])

    @server.on("tools/run")
    def run_tool(params: Any, context: Context) -> dict[str, Any]:
        return {"content": TEXT, "form": "blocks"}

    @server.on("prompts/render")
    def render(params: Any, context: Context) -> dict[str, Any]:
        return {"messages": []}

    async def talk() -> None:
        made: Any = dragoman.connect(server.connect, revision=NEXT)
        async with made as found:
            assert (await found.call("add")).form == "blocks"
            assert (await found.prompt("p")).messages == []
            async with found.listen(tools=True) as changes:
                server.notify("notifications/tools/changed", {})
                assert (await anext(changes)).method == "notifications/tools/changed"

    asyncio.run(asyncio.wait_for(talk(), 20))


def headers() -> None:
    """The header that repeats a name is made and checked for the new method, too."""
    body = asks(1, "tools/run", NEXT, name="add")
    made = make_headers(body)
    assert ("Mcp-Name", "add") in made
    check_collected(collect_headers(made), body)


def checked() -> None:
    """A check of a server of the made-up revision, which has no `completion/complete`, comes to its end."""
    code = f"from dragoman.server import Server; Server('named', '1', revision={NEXT!r}).run()"
    assert main(["check", "--revision", NEXT, "--", sys.executable, "-c", code]) in (0, 1)


def seen_by_middleware() -> None:
    """Middleware is told what each request is written in, and the notifications on its stream."""
    seen = []

    async def see(message: Any, proceed: Any) -> Any:
        seen.append((message.method, message.sender_revision, message.revision))
        return await proceed(message)

    hold(
        [
            client(asks("a", "tools/run", NEXT, name="add", meta={LEVEL: "info"})),
            is_asked("server/discover"),
            discovered("dragoman-discover-1", FIRST, PROMISED),
            is_asked("tools/call"),
            server(notification("notifications/message", level="info", data="x")),
            expect_to_client(lambda frame: frame["method"] == "notifications/log"),
            server(result(1, complete(content=TEXT))),
            expect_to_client(lambda frame: frame["id"] == "a"),
            client(asks("b", "tools/call", FIRST, name="add")),
            is_asked("tools/call"),
            server(result(2, complete(content=TEXT))),
            expect_to_client(lambda frame: frame["id"] == "b"),
        ],
        middleware=[see],
        notice_middleware=[see],
    )
    assert seen == [
        ("tools/run", NEXT, NEXT),
        ("notifications/log", NEXT, NEXT),
        ("tools/call", FIRST, FIRST),
    ]


_CASES = (
    session_client,
    session_client_asked,
    session_server,
    first_at_next,
    next_at_first,
    libraries,
    headers,
    checked,
    seen_by_middleware,
)
CASES = {case.__name__: case for case in _CASES}
