"""Streamable HTTP of the per-request era as its clients see it, over a real port, with a handshake server behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.http.config import Admission, FrontConfig, Patience
from tests.proxy.test_per_request import IDENTITY, LEVEL, NEW, VERSION, asks
from tests.proxy.test_per_request_asked import ACCEPTED, FORM, SCHEMA
from tests.support.waiting import pass_time
from tests.transports.http.stage import (
    Stage,
    content,
    initialized,
    log_message,
    on_loop,
    progress,
    serving,
    text_of,
    until,
    within,
)
from tests.transports.http.wire import Reply

QUICK = FrontConfig(patience=Patience(stream_after_s=0.05, keepalive_s=0.1))


@asynccontextmanager
async def playing(config: FrontConfig | None = None, **proxy: Any) -> AsyncIterator[Stage]:
    """A front for both eras; the server is opened by the first request."""
    async with serving(config, **proxy) as stage:
        made = ProxyConfig(**proxy)
        stage.make = lambda transport: Proxy(made, transport, stage.connect, principal="")
        yield stage


def posts(stage: Stage, frame: dict[str, Any], **headers: str) -> asyncio.Task[Reply]:
    """Post a request with the headers that repeat it."""
    params = frame.get("params") or {}
    said = {"mcp-protocol-version": params.get("_meta", {}).get(VERSION, NEW), "mcp-method": frame["method"]}
    name = params.get("name") or params.get("uri") or params.get("taskId")
    if name is not None:
        said["mcp-name"] = name
    return asyncio.create_task(stage.post(frame, **{**said, **headers}))


def call(key: Any = 2, **how: Any) -> dict[str, Any]:
    return asks(key, "tools/call", name="echo", **how)


async def told(reply: Reply) -> Any:
    """Give the next frame of a stream."""
    event = await within(reply.event())
    assert event is not None
    return event.frame


async def is_offered(stage: Stage) -> Any:
    """Give the offer that the server gets when it does not know what it is asked first."""
    probe = await stage.server.hear()
    assert probe["method"] == "server/discover"
    stage.server.say({"jsonrpc": "2.0", "id": probe["id"], "error": {"code": -32601, "message": "unknown"}})
    return await stage.server.hear()


async def begin(stage: Stage, frame: dict[str, Any] | None = None, **headers: str) -> asyncio.Task[Reply]:
    """The first request, whose server is opened by it."""
    task = posts(stage, frame or call(), **headers)
    await until(lambda: bool(stage.servers))
    offer = await is_offered(stage)
    stage.server.answer(offer["id"], **initialized("2025-11-25"))
    assert (await stage.server.hear())["method"] == "notifications/initialized"
    if (frame or call())["method"] == "tools/call":
        await lists(stage)
    return task


async def lists(stage: Stage, **schema: Any) -> None:
    """The proxy lists the tools before the first call, to know which arguments have headers."""
    heard = await stage.server.hear()
    assert heard["method"] == "tools/list"
    stage.server.answer(heard["id"], tools=[{"name": "echo", "inputSchema": {"type": "object", **schema}}])


@on_loop
async def test_a_request_is_answered_without_a_session() -> None:
    async with playing() as stage:
        calling = await begin(stage)
        heard = await stage.server.hear()
        assert heard["params"] == {"name": "echo"}
        stage.server.answer(heard["id"], **content("hello"))
        reply = await within(calling)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert "mcp-session-id" not in reply.headers
        answer = await reply.frame()
        assert text_of(answer) == "hello"
        assert (answer["id"], answer["result"]["resultType"]) == (2, "complete")
        assert len(stage.servers) == 1


@on_loop
async def test_two_callers_may_use_the_same_id() -> None:
    async with playing() as stage:
        first = await begin(stage)
        one = await stage.server.hear()
        second = posts(stage, call())
        two = await stage.server.hear()
        assert one["id"] != two["id"]
        stage.server.answer(two["id"], **content("second"))
        stage.server.answer(one["id"], **content("first"))
        assert text_of(await (await within(first)).frame()) == "first"
        assert text_of(await (await within(second)).frame()) == "second"


@on_loop
async def test_clients_of_both_eras_are_served_at_one_endpoint() -> None:
    async with playing() as stage:
        calling = await begin(stage)
        stage.server.answer((await stage.server.hear())["id"], **content("new"))
        assert text_of(await (await within(calling)).frame()) == "new"
        before, stage.servers = stage.servers, []
        await stage.open("2025-06-18")
        assert text_of(await stage.call_and_answer(3, "old")) == "old"
        stage.servers = before + stage.servers


@pytest.mark.parametrize(
    ("frame", "headers", "status", "code"),
    [
        (call(), {"mcp-method": "tools/list"}, 400, -32020),
        (call(), {"mcp-name": "other"}, 400, -32020),
        (call(), {"mcp-protocol-version": "2025-11-25"}, 400, -32020),
        (asks(1, "ping"), {}, 404, -32601),
        (asks(1, "initialize"), {}, 404, -32601),
        (asks(1, "tools/list", meta={VERSION: "2031-01-01"}), {}, 400, -32022),
        (asks(1, "tools/list", meta={LEVEL: "loud"}), {}, 400, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, {}, 400, -32602),
    ],
)
@on_loop
async def test_what_is_not_a_request_of_the_revision_is_refused(
    frame: Any, headers: dict[str, str], status: int, code: int
) -> None:
    async with playing() as stage:
        reply = await within(posts(stage, frame, **headers))
        answer = await reply.frame()
        assert (reply.status, answer["error"]["code"], answer["id"]) == (status, code, frame["id"])
        assert not stage.servers


@on_loop
async def test_a_request_without_the_headers_that_repeat_it_is_refused() -> None:
    async with playing() as stage:
        reply = await within(stage.post(call()))
        assert (reply.status, (await reply.frame())["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("method", ["get", "delete"])
@on_loop
async def test_there_is_nothing_but_posts(method: str) -> None:
    async with playing() as stage:
        reply = await within(getattr(stage, method)(**{"mcp-protocol-version": NEW}))
        assert (reply.status, reply.headers["allow"]) == (405, "POST, OPTIONS")


@on_loop
async def test_an_unknown_method_is_not_found() -> None:
    async with playing() as stage:
        calling = await begin(stage, asks(1, "acme/do"))
        heard = await stage.server.hear()
        stage.server.say({"jsonrpc": "2.0", "id": heard["id"], "error": {"code": -32601, "message": "no"}})
        reply = await within(calling)
        assert (reply.status, (await reply.frame())["error"]["code"]) == (404, -32601)


@on_loop
async def test_what_belongs_to_a_request_comes_on_its_stream() -> None:
    async with playing() as stage:
        calling = await begin(stage, call(meta={"progressToken": "p"}))
        heard = await stage.server.hear()
        stage.server.say(progress(heard["params"]["_meta"]["progressToken"], 1), log_message("nobody asked for this"))
        reply = await within(calling)
        assert reply.headers["content-type"].startswith("text/event-stream")
        stage.server.answer(heard["id"], **content("done"))
        assert (await told(reply))["params"] == {"progressToken": "p", "progress": 1}
        assert text_of(await told(reply)) == "done"


@on_loop
async def test_a_client_that_closes_its_stream_has_cancelled() -> None:
    async with playing(QUICK) as stage:
        calling = await begin(stage)
        heard = await stage.server.hear()
        reply = await within(calling)
        reply.leave()
        said = await stage.server.hear()
        assert (said["method"], said["params"]["requestId"]) == ("notifications/cancelled", heard["id"])


@on_loop
async def test_a_question_is_asked_by_a_result_and_answered_by_another_post() -> None:
    async with playing() as stage:
        calling = await begin(stage, call(has=FORM))
        heard = await stage.server.hear()
        params = {"message": "Who?", "requestedSchema": SCHEMA}
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        asked = (await (await within(calling)).frame())["result"]
        assert asked["resultType"] == "input_required"
        retry = call(9, has=FORM, inputResponses={"question-1": ACCEPTED}, requestState=asked["requestState"])
        retrying = posts(stage, retry)
        assert await stage.server.hear() == {"jsonrpc": "2.0", "id": "q", "result": ACCEPTED}
        stage.server.answer(heard["id"], **content("Ada"))
        answer = await (await within(retrying)).frame()
        assert (answer["id"], text_of(answer)) == (9, "Ada")


@on_loop
async def test_a_client_that_lacks_a_capability_is_told_with_the_status_for_it() -> None:
    async with playing() as stage:
        calling = await begin(stage)
        heard = await stage.server.hear()
        reply = await within(posts(stage, asks(9, "tasks/get", taskId="t"), mcp_name="t"))
        stage.server.answer(heard["id"], **content("Ada"))
        await within(calling)
        assert (reply.status, (await reply.frame())["error"]["code"]) == (400, -32021)


@on_loop
async def test_a_listen_stream_is_acknowledged_and_tells_of_changes() -> None:
    async with playing(QUICK) as stage:
        first = asks("l", "subscriptions/listen", notifications={"toolsListChanged": True})
        task = posts(stage, first)
        await until(lambda: bool(stage.servers))
        offer = await is_offered(stage)
        stage.server.answer(
            offer["id"], **{**initialized("2025-11-25"), "capabilities": {"tools": {"listChanged": True}}}
        )
        await stage.server.hear()
        reply = await within(task)
        acknowledged = await told(reply)
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        stage.server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        changed = await told(reply)
        assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "l"}
        reply.leave()


@on_loop
async def test_the_server_that_goes_is_opened_again_by_the_next_request() -> None:
    async with playing() as stage:
        calling = await begin(stage)
        await stage.server.hear()
        stage.server.exit()
        reply = await within(calling)
        assert (await reply.frame())["error"]["code"] == -32000
        await until(lambda: not stage.front.sessions)
        before, stage.servers = stage.servers, []
        calling = await begin(stage)
        stage.server.answer((await stage.server.hear())["id"], **content("again"))
        answer = await (await within(calling)).frame()
        assert text_of(answer) == "again"
        assert answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] != IDENTITY
        stage.servers = before + stage.servers


@on_loop
async def test_a_body_that_cannot_be_read_is_refused_without_a_null() -> None:
    async with playing() as stage:
        reply = await within(stage.post(b"hello", **{"mcp-protocol-version": NEW, "mcp-method": "tools/list"}))
        answer = await reply.frame()
        assert (reply.status, answer["error"]["code"], "id" in answer) == (400, -32700, False)


ZONE = {"properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}


async def calls_with_headers(stage: Stage, **headers: str) -> Reply:
    """A call of a tool whose argument is repeated in a header, for which the proxy asks first."""
    task = posts(stage, {**call(7, arguments={"zone": "north"})}, **headers)
    await until(lambda: bool(stage.servers))
    offer = await is_offered(stage)
    stage.server.answer(offer["id"], **initialized("2025-11-25"))
    assert (await stage.server.hear())["method"] == "notifications/initialized"
    await lists(stage, **ZONE)
    if headers == {"mcp-param-zone": "north"}:
        stage.server.answer((await stage.server.hear())["id"], **content("there"))
    return await within(task)


@pytest.mark.parametrize("headers", [{}, {"mcp-param-zone": "south"}, {"mcp-param-zone": "=?base64?!?="}])
@on_loop
async def test_a_header_that_does_not_repeat_its_argument_is_refused(headers: dict[str, str]) -> None:
    async with playing() as stage:
        reply = await calls_with_headers(stage, **headers)
        answer = await reply.frame()
        assert (reply.status, answer["error"]["code"], answer["id"]) == (400, -32020, 7)
        assert answer["error"]["data"] == {"header": "Mcp-Param-Zone", "pointer": "/params/arguments/zone"}


@on_loop
async def test_a_header_that_repeats_its_argument_is_taken() -> None:
    async with playing() as stage:
        reply = await calls_with_headers(stage, **{"mcp-param-zone": "north"})
        assert text_of(await reply.frame()) == "there"


@on_loop
async def test_a_tool_whose_annotations_are_invalid_is_offered_without_them() -> None:
    async with playing() as stage:
        listing = await begin(stage, asks(1, "tools/list"))
        await lists(stage, properties={"a": {"type": "array", "x-mcp-header": "A"}})
        (tool,) = (await (await within(listing)).frame())["result"]["tools"]
        assert tool["inputSchema"] == {"type": "object", "properties": {"a": {"type": "array"}}}


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-method": "initialize", "mcp-protocol-version": "2025-11-25"},
        {"mcp-method": "initialize"},
        {"mcp-protocol-version": NEW},
        {"mcp-method": "initialize", "mcp-protocol-version": NEW},
    ],
    ids=str,
)
@on_loop
async def test_initialize_opens_a_session_whatever_headers_it_has(headers: dict[str, str]) -> None:
    async with playing() as stage:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OFFER}
        task = asyncio.create_task(stage.post(frame, **headers))
        await until(lambda: bool(stage.servers))
        offer = await stage.server.hear()
        assert offer["method"] == "initialize"
        stage.server.answer(offer["id"], **initialized("2025-11-25"))
        reply = await within(task)
        assert reply.status == 200
        session_id = reply.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        reply = await stage.post(ready, **{"mcp-method": ready["method"], "mcp-session-id": session_id})
        assert reply.status == 202


@on_loop
async def test_initialize_opens_a_session_while_the_server_is_asked_what_it_is() -> None:
    async with playing() as stage:
        asking = posts(stage, asks(1, "server/discover"))
        await until(lambda: bool(stage.servers))
        assert (await stage.server.hear())["method"] == "server/discover"
        frame = {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": OFFER}
        opening = asyncio.create_task(stage.post(frame))
        await until(lambda: len(stage.servers) == 2)
        assert (await stage.server.hear())["method"] == "initialize"
        opening.cancel()
        asking.cancel()


OFFER = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


@pytest.mark.parametrize("params", [{}, {"_meta": {}}, {"_meta": 5}])
@on_loop
async def test_a_request_that_says_nothing_of_itself_is_malformed(params: dict[str, Any]) -> None:
    async with playing() as stage:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
        reply = await stage.post(frame, **{"mcp-method": "tools/list", "mcp-protocol-version": NEW})
        assert (reply.status, (await reply.frame())["error"]["code"]) == (400, -32602)


@on_loop
async def test_a_notification_need_not_say_its_revision() -> None:
    async with playing() as stage:
        frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        reply = await stage.post(frame, **{"mcp-method": "notifications/cancelled", "mcp-protocol-version": NEW})
        assert reply.status == 202


TOKENS = {"ann": "secret-of-ann-0123456789", "ben": "secret-of-ben-0123456789"}
ANN, BEN = ({"authorization": f"Bearer {token}"} for token in TOKENS.values())
ASKED = {"message": "Who?", "requestedSchema": SCHEMA}


@asynccontextmanager
async def sharing(**proxy: Any) -> AsyncIterator[Stage]:
    """A front for two principals that share one server."""
    async with serving(FrontConfig(shares_requests=True, admission=Admission(tokens=TOKENS))) as stage:
        made = ProxyConfig(**proxy)
        stage.make = lambda transport: Proxy(made, transport, stage.connect, principal="", shares_server=True)
        yield stage


async def begin_sharing(stage: Stage, frame: dict[str, Any], **headers: str) -> tuple[asyncio.Task[Reply], Any]:
    """The first call; give it, and what the server hears of it."""
    calling = posts(stage, frame, **headers)
    await until(lambda: bool(stage.servers))
    offer = await is_offered(stage)
    assert offer["params"]["clientInfo"]["name"] == "dragoman"
    stage.server.answer(offer["id"], **initialized("2025-11-25"))
    assert (await stage.server.hear())["method"] == "notifications/initialized"
    await lists(stage)
    return calling, await stage.server.hear()


@on_loop
async def test_behind_a_shared_server_a_state_is_still_its_principals_own() -> None:
    async with sharing() as stage:
        calling, heard = await begin_sharing(stage, call(has=FORM), **ANN)
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ASKED})
        asked = (await (await within(calling)).frame())["result"]
        again = {"inputResponses": {"question-1": ACCEPTED}, "requestState": asked["requestState"]}
        refused = await (await within(posts(stage, call(8, has=FORM, **again), **BEN))).frame()
        assert (refused["error"]["code"], refused["error"]["data"]["reason"]) == (-32602, "other-caller")
        retrying = posts(stage, call(9, has=FORM, **again), **ANN)
        assert await stage.server.hear() == {"jsonrpc": "2.0", "id": "q", "result": ACCEPTED}
        stage.server.answer(heard["id"], **content("Ada"))
        assert text_of(await (await within(retrying)).frame()) == "Ada"
        assert len(stage.servers) == 1


@on_loop
async def test_behind_a_shared_server_no_principal_takes_all_its_sessions() -> None:
    """And what is tried out needs no session of its own."""
    async with sharing() as stage:
        calls = [(await begin_sharing(stage, call(has=FORM), **ANN))[0]]
        calls.append(posts(stage, call(2, has={**FORM, "experimental": {"n": 1}}), **ANN))
        assert (await stage.server.hear())["method"] == "tools/call"
        for number, declared in enumerate(({}, {"sampling": {}}, {"vendor": {}})):
            calls.append(posts(stage, call(3 + number, has=declared), **ANN))
            await open_another(stage, 2 + number)
        calls.append(posts(stage, call(8, has={"other": {}}), **ANN))  # what cannot be asked is left out
        assert (await stage.servers[1].hear())["method"] == "tools/call"
        refused = await (await within(posts(stage, call(9, has={**FORM, "sampling": {}}), **ANN))).frame()
        assert refused["error"]["code"] == -32000
        assert "4 sessions of the server are in use" in refused["error"]["message"]
        calls.append(posts(stage, call(10, has={**FORM, "vendor": {}}), **BEN))
        await open_another(stage, 5)
        for calling in calls:
            calling.cancel()


async def open_another(stage: Stage, number: int) -> None:
    """Let the server open one more session; the call that needs it goes there."""
    await until(lambda: len(stage.servers) == number)
    offer = await is_offered(stage)
    stage.server.answer(offer["id"], **initialized("2025-11-25"))
    assert (await stage.server.hear())["method"] == "notifications/initialized"
    await lists(stage)
    assert (await stage.server.hear())["method"] == "tools/call"


@pytest.mark.parametrize(("whose", "ends"), [(ANN, ""), (BEN, ""), (BEN, "answered"), (BEN, "late")])
@on_loop
async def test_behind_a_shared_server_nobody_is_asked_about_a_call_that_somebody_else_gave_up(
    whose: dict[str, str], ends: str
) -> None:
    """Nor once the server has answered that, or time has passed: it may ask about an answered call, too."""
    async with sharing(parked_s=1.0) as stage:
        calling, heard = await begin_sharing(stage, call(has=FORM), **ANN)
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ASKED})
        assert (await (await within(calling)).frame())["result"]["resultType"] == "input_required"
        assert "did not come back" in (await stage.server.hear())["error"]["message"]
        assert (await stage.server.hear())["method"] == "notifications/cancelled"
        await pass_time(1.5 if ends == "late" else 0.4)
        if ends == "answered":
            stage.server.answer(heard["id"], **content("after all"))
        calling = posts(stage, call(3, has=FORM), **whose)
        while (heard := await stage.server.hear())["method"] != "tools/call":
            pass
        stage.server.say({"jsonrpc": "2.0", "id": "late", "method": "elicitation/create", "params": ASKED})
        if whose is ANN:
            assert (await (await within(calling)).frame())["result"]["resultType"] == "input_required"
        else:
            refused = await stage.server.hear()
            assert (refused["id"], refused["error"]["code"]) == ("late", -32601)
            stage.server.answer(heard["id"], **content("unasked"))
            assert text_of(await (await within(calling)).frame()) == "unasked"


@on_loop
async def test_a_call_that_waits_for_its_client_is_lost_with_its_server_and_the_next_one_goes_on() -> None:
    async with playing() as stage:
        calling = await begin(stage, call(has=FORM))
        await stage.server.hear()
        params = {"message": "Who?", "requestedSchema": SCHEMA}
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        asked = (await (await within(calling)).frame())["result"]
        stage.server.exit()
        await until(lambda: len(stage.front.sessions) == 0)
        stage.servers = []
        again = {"inputResponses": {"question-1": ACCEPTED}, "requestState": asked["requestState"]}
        retrying = await begin(stage, call(8, has=FORM, **again))
        refused = (await (await within(retrying)).frame())["error"]
        assert (refused["code"], refused["data"]["reason"]) == (-32602, "call-unknown")


async def hear_of(stage: Stage, method: str) -> Any:
    """Give the next frame of this method that the server hears."""
    while (frame := await stage.server.hear()).get("method") != method:
        pass
    return frame


@pytest.mark.parametrize("method", ["tools/call", "resources/list"])
@pytest.mark.parametrize(("whose", "hears"), [(ANN, True), (BEN, False)])
@on_loop
async def test_late_words_about_a_request_that_somebody_gave_up_reach_nobody_else(
    whose: dict[str, str], hears: bool, method: str
) -> None:
    """The server speaks of it when the only request that is open is somebody else's."""
    wants = {LEVEL: "debug"}
    async with sharing() as stage:
        given_up = posts(stage, asks(2, method, meta=wants, **({"name": "x"} if method == "tools/call" else {})), **ANN)
        await until(lambda: bool(stage.servers))
        offer = await is_offered(stage)
        stage.server.answer(offer["id"], **{**initialized("2025-11-25"), "capabilities": {"logging": {}}})
        await hear_of(stage, method)
        stage.server.say(log_message("begun"))
        (await within(given_up)).leave()
        await hear_of(stage, "notifications/cancelled")
        await pass_time(0.4)
        calling = posts(stage, asks(3, "prompts/list", meta=wants), **whose)
        heard = await hear_of(stage, "prompts/list")
        stage.server.say(log_message("of the first"))
        stage.server.answer(heard["id"], prompts=[])
        assert (b"of the first" in await (await within(calling)).body()) is hears


@pytest.mark.parametrize(("whose", "is_asked"), [(ANN, True), (BEN, False)])
@on_loop
async def test_a_question_that_a_server_gave_up_is_put_to_nobody_else(whose: dict[str, str], is_asked: bool) -> None:
    """It has asked in one call of two, and answers that call before anybody has answered the question."""
    async with sharing() as stage:
        asked, first = await begin_sharing(stage, call(2, has=FORM), **ANN)
        other = posts(stage, call(3, has=FORM), **whose)
        await hear_of(stage, "tools/call")
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ASKED})
        await pass_time(0.1)
        stage.server.answer(first["id"], content=[])
        await within(asked)
        if is_asked:
            assert (await (await within(other)).frame())["result"]["resultType"] == "input_required"
        else:
            refused = await stage.server.hear()
            assert (refused["id"], refused["error"]["code"]) == ("q", -32601)
