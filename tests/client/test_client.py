"""The client, black-box: calls on one side, a scripted server on the other, and the proxy between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

import dragoman
import dragoman_spec
from dragoman.errors import (
    CapabilityNotSupported,
    ConnectionClosed,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    RequestTimeout,
    UnsupportedRevision,
    ValidationFailed,
)
from dragoman_spec import v2025_06_18 as v
from tests.client.server import ALL, ScriptedServer
from tests.support.waiting import pass_time, until
from tests.support.waiting import run as run_loop

LONGEST_S = 30
NEWEST = dragoman_spec.LATEST
TEXT = {"content": [{"type": "text", "text": "3"}]}


def run(work: Awaitable[Any]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(LONGEST_S):
            return await work

    return run_loop(limited())


def talk(
    server: Callable[[], ScriptedServer], work: Callable[[Any, ScriptedServer], Awaitable[Any]], **options: Any
) -> Any:
    """Open a session with a server, let the test work with it, and close it."""

    async def session() -> Any:
        scripted = server()
        async with dragoman.connect(scripted, **{"revision": "2025-06-18", **options}) as client:
            return await work(client, scripted)

    return run(session())


def scripted(**answers: Any) -> Callable[[], ScriptedServer]:
    """Make servers with these answers; `__` stands for `/` in a method."""
    return lambda: ScriptedServer({method.replace("__", "/"): answer for method, answer in answers.items()})


def without_a_handshake(**answers: Any) -> Callable[[], ScriptedServer]:
    """Make the same without a handshake."""
    told = {"supportedVersions": ["2026-07-28"], "capabilities": ALL, "ttlMs": 0, "cacheScope": "private"}
    return scripted(server__discover={"resultType": "complete", **told}, **answers)


# Opening and closing


def test_a_pinned_client_offers_its_revision_and_gets_its_models() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        opening = await server.wait_for_method("initialize")
        assert opening["params"]["protocolVersion"] == "2025-06-18"
        assert isinstance(client.initialized, v.InitializeResult)
        assert (client.revision, client.server_revision) == ("2025-06-18", "2025-06-18")
        await server.wait_for_method("notifications/initialized")

    talk(scripted(), work)


def test_a_server_of_another_revision_is_a_protocol_error_for_a_pinned_client() -> None:
    with pytest.raises(RemoteProtocolError, match="expected revision 2025-06-18, found 2025-03-26") as caught:
        talk(lambda: ScriptedServer(revision="2025-03-26"), never)
    assert caught.value.data == {"supported": ["2025-03-26"], "requested": "2025-06-18"}


def test_a_server_that_rejects_the_revision_is_a_protocol_error_for_a_pinned_client() -> None:
    def reject(server: ScriptedServer, frame: dict[str, Any]) -> None:
        data = {"supported": ["2024-11-05"], "requested": "2025-06-18"}
        server.say(id=frame["id"], error={"code": -32602, "message": "Unsupported protocol version", "data": data})

    with pytest.raises(RemoteProtocolError, match="Unsupported protocol version"):
        talk(scripted(initialize=reject), never)


@pytest.mark.parametrize("spoken", dragoman_spec.HANDSHAKE_REVISIONS)
def test_a_client_of_any_revision_gets_the_newest_models(spoken: str) -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        assert (client.revision, client.server_revision) == (NEWEST, spoken)
        assert type(await client.call("add")) is dragoman_spec.load(NEWEST).CallToolResult

    talk(lambda: ScriptedServer({"tools/call": TEXT}, revision=spoken), work, revision="any")


def test_translation_serves_a_literal_revision_too() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        assert client.server_revision == "2024-11-05"
        assert type(await client.call("add")) is v.CallToolResult

    talk(lambda: ScriptedServer({"tools/call": TEXT}, revision="2024-11-05"), work, policy="translate")


def test_a_revision_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnsupportedRevision):
        dragoman.connect(["true"], revision="1999-01-01")  # type: ignore[call-overload]


def test_a_command_that_does_not_exist_is_a_closed_connection() -> None:
    async def session() -> None:
        async with dragoman.connect(["/nowhere/server"]):
            pytest.fail("opened")

    with pytest.raises(ConnectionClosed, match="/nowhere/server"):
        run(session())


def test_a_server_that_goes_fails_what_waits_and_what_comes_later() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        calling = asyncio.create_task(client.call("add"))
        await server.wait_for_method("tools/call")
        server.hang_up()
        with pytest.raises(ConnectionClosed):
            await calling
        with pytest.raises(ConnectionClosed):
            await client.ping()

    talk(scripted(), work)


def test_what_the_proxy_refuses_at_once_is_refused() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(McpError, match="tasks/list"):
            await client.session.ask("tasks/list", {})  # which only the later revision has

    talk(lambda: ScriptedServer(revision="2024-11-05"), work, revision="2025-11-25", policy="translate")


def test_closing_answers_what_was_asked() -> None:
    async def session() -> Any:
        server = ScriptedServer()
        async with dragoman.connect(server, revision="2025-06-18") as client:
            calling = asyncio.create_task(client.call("add"))
            asked = await server.wait_for_method("tools/call")
            asyncio.get_running_loop().call_later(0.05, lambda: server.say(id=asked["id"], result=TEXT))
        return await calling

    assert run(session()).content[0].text == "3"


async def never(client: Any, server: ScriptedServer) -> None:
    pytest.fail("the session was opened")


# Calls


def test_lists_go_through_all_pages() -> None:
    def page(server: ScriptedServer, frame: dict[str, Any]) -> None:
        cursor = frame["params"].get("cursor")
        tool = {"name": cursor or "first", "inputSchema": {"type": "object"}}
        more = {"nextCursor": {None: "second", "second": "third"}[cursor]} if cursor != "third" else {}
        server.say(id=frame["id"], result={"tools": [tool], **more})

    async def work(client: Any, server: ScriptedServer) -> list[str]:
        return [tool.name async for tool in client.tools()]

    assert talk(scripted(tools__list=page), work) == ["first", "second", "third"]


@pytest.mark.parametrize("size", [1, 5_000_000])
def test_a_list_without_end_is_an_error(size: int) -> None:
    asked: list[None] = []

    def page(server: ScriptedServer, frame: dict[str, Any]) -> None:
        asked.append(None)
        prompt = {"name": f"x{len(asked)}", "description": "x" * size}
        server.say(id=frame["id"], result={"prompts": [prompt], "nextCursor": f"{len(asked)}"})

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(ValidationFailed, match="a list that ends"):
            [prompt async for prompt in client.prompts()]

    talk(scripted(prompts__list=page), work)
    assert len(asked) == (7 if size > 1 else 1_000)


def test_a_list_has_to_end_in_time() -> None:
    def page(server: ScriptedServer, frame: dict[str, Any]) -> None:
        cursor = f"{frame['id']}"
        later = partial(server.say, id=frame["id"], result={"prompts": [], "nextCursor": cursor})
        asyncio.get_running_loop().call_later(0.02, later)

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(RequestTimeout, match="prompts/list"):
            [prompt async for prompt in client.prompts(timeout_s=0.3)]

    talk(scripted(prompts__list=page), work)


def test_pages_that_go_in_a_circle_are_an_error() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(ValidationFailed, match="nextCursor"):
            [prompt async for prompt in client.prompts()]

    talk(scripted(prompts__list={"prompts": [], "nextCursor": "again"}), work)


@pytest.mark.parametrize(
    ("method", "params", "result", "use"),
    [
        ("tools/call", {"name": "add", "arguments": {"a": 1}}, TEXT, lambda c: c.call("add", {"a": 1})),
        ("resources/read", {"uri": "x:y"}, {"contents": []}, lambda c: c.read("x:y")),
        ("prompts/get", {"name": "hi", "arguments": {}}, {"messages": []}, lambda c: c.prompt("hi", {})),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "hi"}, "argument": {"name": "to", "value": "A"}},
            {"completion": {"values": ["Ada"]}},
            lambda c: c.complete_prompt("hi", "to", "A"),
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "x:{y}"}, "argument": {"name": "y", "value": "A"}},
            {"completion": {"values": ["Ada"]}},
            lambda c: c.complete_template("x:{y}", "y", "A"),
        ),
        ("logging/setLevel", {"level": "info"}, {}, lambda c: c.set_log_level("info")),
        ("resources/subscribe", {"uri": "x:y"}, {}, lambda c: c.subscribe("x:y")),
        ("resources/unsubscribe", {"uri": "x:y"}, {}, lambda c: c.unsubscribe("x:y")),
        ("ping", {}, {}, lambda c: c.ping()),
    ],
)
def test_each_call_is_one_request(
    method: str, params: dict[str, Any], result: dict[str, Any], use: Callable[[Any], Awaitable[Any]]
) -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        given = await use(client)
        assert given is None or given.model_dump() == result
        assert (await server.wait_for_method(method)).get("params", {}) == params

    talk(scripted(**{method: result}), work)


@pytest.mark.parametrize("what", ["resources", "templates"])
def test_resources_and_templates_are_listed(what: str) -> None:
    answers = {
        "resources/list": {"resources": [{"uri": "x:y", "name": "one"}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "x:{y}", "name": "one"}]},
    }

    async def work(client: Any, server: ScriptedServer) -> list[str]:
        return [one.name async for one in getattr(client, what)()]

    assert talk(scripted(**answers), work) == ["one"]


@pytest.mark.parametrize("result", [None, 5, [], "text"])
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_a_result_that_is_no_object_is_a_protocol_error(revision: str, result: Any) -> None:
    def answer(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id=frame["id"], result=result)

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises((RemoteProtocolError, McpError), match="object"):
            await client.call("add")

    server: Any = scripted if revision == "2025-06-18" else without_a_handshake
    talk(server(tools__call=answer), work, revision=revision)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "not a response"),
        ({"result": {"content": []}, "error": {"code": 1, "message": "m"}}, "both"),
        ({"error": {"code": 1, "message": "m" * 300}, "result": {"content": []}}, "both"),
        ({"result": {"content": []}, "error": {"code": 1, "message": "m" * 300}}, "both"),
        ({"error": {"message": "no disk"}}, "no disk"),
        ({"error": {"code": 7}}, "without a message"),
    ],
)
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_a_malformed_response_is_an_error_with_a_code(revision: str, said: dict[str, Any], words: str) -> None:
    def answer(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id=frame["id"], **said)

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises((RemoteProtocolError, McpError), match=words) as caught:
            await client.call("add")
        assert isinstance(caught.value.code, int)

    server: Any = scripted if revision == "2025-06-18" else without_a_handshake
    talk(server(tools__call=answer), work, revision=revision)


def test_words_of_another_shape_end_no_session() -> None:
    def answer(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(method="notifications/progress", params=[1])
        server.say(method="notifications/cancelled", params="odd")
        server.say(id=frame["id"], error="odd")

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(McpError):
            await client.call("add")
        await client.ping()

    talk(scripted(tools__call=answer, ping={}), work)


def test_an_error_of_the_server_has_its_code_message_and_data() -> None:
    def fail(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say(id=frame["id"], error={"code": -32000, "message": "no such thing", "data": {"why": 1}})

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(McpError) as caught:
            await client.call("add")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32000, "no such thing", {"why": 1})

    talk(scripted(tools__call=fail), work)


def test_a_result_that_is_not_valid_names_the_place() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(ValidationFailed) as caught:
            await client.call("add")
        assert caught.value.pointer == "/result/content/0/text"
        await client.ping()

    talk(scripted(tools__call={"content": [{"type": "text", "text": 3}]}, ping={}), work)


@pytest.mark.parametrize(
    ("capability", "use"),
    [
        ("tools", lambda c: c.call("add")),
        ("resources.subscribe", lambda c: c.subscribe("x:y")),
        ("completions", lambda c: c.complete_prompt("hi", "to", "A")),
    ],
)
def test_what_the_server_did_not_declare_is_not_sent(capability: str, use: Callable[[Any], Awaitable[Any]]) -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(CapabilityNotSupported) as caught:
            await use(client)
        assert caught.value.capability == capability
        assert [frame["method"] for frame in server.told if "id" in frame] == ["initialize"]

    talk(lambda: ScriptedServer(capabilities={"resources": {"listChanged": True}}), work)


# Patience


def test_cancelling_the_task_tells_the_server() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        calling = asyncio.create_task(client.call("add"))
        asked = await server.wait_for_method("tools/call")
        calling.cancel()
        cancelled = await server.wait_for_method("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]
        with pytest.raises(asyncio.CancelledError):
            await calling
        server.say(id=asked["id"], result=TEXT)  # too late, and nobody minds
        await client.ping()

    talk(scripted(ping={}), work)


async def leaves(connection: Any, server: ScriptedServer, late_s: float) -> float:
    """Leave a session with two calls that are cancelled at the last moment, and later; give how long that takes."""
    loop = asyncio.get_running_loop()
    async with connection as client:
        calls = [asyncio.create_task(client.call(name)) for name in ("soon", "late")]
        await server.wait_for(lambda frame: frame.get("params", {}).get("name") == "late")
        loop.call_later(late_s, calls[1].cancel)
        calls[0].cancel()
        begun_s = loop.time()
    await asyncio.wait(calls)
    assert [frame.get("method") for frame in server.told].count("notifications/cancelled") == 2
    return loop.time() - begun_s


@pytest.mark.parametrize("late_s", [0.0, 2.0])
def test_leaving_does_not_wait_for_calls_that_were_cancelled(late_s: float) -> None:
    server = ScriptedServer()
    took_s = run(leaves(dragoman.connect(server, revision="2025-06-18"), server, late_s))
    assert late_s <= took_s < late_s + 2


def test_a_request_that_is_not_answered_in_time_is_given_up() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises(RequestTimeout, match="tools/call") as caught:
            await client.call("add", timeout_s=0.05)
        assert isinstance(caught.value, TimeoutError)
        await server.wait_for_method("notifications/cancelled")

    talk(scripted(), work)


def test_progress_is_told_and_keeps_a_request_alive() -> None:
    told: list[v.ProgressNotificationParams] = []

    async def work(client: Any, server: ScriptedServer) -> Any:
        calling = asyncio.create_task(client.call("add", progress=told.append, timeout_s=0.6))
        asked = await server.wait_for_method("tools/call")
        token = asked["params"]["_meta"]["progressToken"]
        for step in range(8):  # 0.8 s: longer than the timeout
            await pass_time(0.1)
            server.say(method="notifications/progress", params={"progressToken": token, "progress": step})
        server.say(id=asked["id"], result=TEXT)
        return await calling

    assert talk(scripted(), work).content[0].text == "3"
    assert [one.progress for one in told] == list(range(8))
    assert all(isinstance(one, v.ProgressNotificationParams) for one in told)


def test_progress_callbacks_that_fail_do_not_fail_the_call(caplog: pytest.LogCaptureFixture) -> None:
    def fail(progress: Any) -> None:
        raise RuntimeError("mine")

    def answer(server: ScriptedServer, frame: dict[str, Any]) -> None:
        token = frame["params"]["_meta"]["progressToken"]
        server.say(method="notifications/progress", params={"progressToken": token, "progress": 1})
        server.say(id=frame["id"], result=TEXT)

    async def work(client: Any, server: ScriptedServer) -> None:
        await client.call("add", progress=fail)

    talk(scripted(tools__call=answer), work)
    assert "a callback of the program failed" in caplog.text


# What the server says of itself


async def complete(params: v.CreateMessageRequestParams) -> v.CreateMessageResult:
    said = params.messages[0].content
    assert isinstance(said, v.TextContent)
    return v.CreateMessageResult(role="assistant", model="m", content=v.TextContent(text=said.text.upper()))


async def fill_in(params: v.ElicitRequestParams) -> v.ElicitResult:
    return v.ElicitResult(action="accept", content={"asked": params.message})


async def list_roots() -> v.ListRootsResult:
    return v.ListRootsResult(roots=[v.Root(uri="file:///srv")])


HANDLERS = {"sampling": complete, "elicitation": fill_in, "roots": list_roots}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("method", "params", "member", "value"),
    [
        ("sampling/createMessage", SAMPLE, "content", {"type": "text", "text": "HI"}),
        ("elicitation/create", FORM, "content", {"asked": "who?"}),
        ("roots/list", {}, "roots", [{"uri": "file:///srv"}]),
        ("ping", {}, None, None),
    ],
)
def test_handlers_answer_the_server(method: str, params: dict[str, Any], member: str | None, value: Any) -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        await server.wait_for_method("notifications/initialized")
        server.say(id="q", method=method, params=params)
        answer = await server.wait_for(lambda frame: frame.get("id") == "q")
        assert answer["result"].get(member) == value

    talk(scripted(), work, **HANDLERS)


def test_what_is_declared_follows_from_the_handlers() -> None:
    async def work(client: Any, server: ScriptedServer) -> Any:
        return (await server.wait_for_method("initialize"))["params"]["capabilities"]

    assert talk(scripted(), work) == {}
    assert talk(scripted(), work, roots=list_roots, sampling=complete) == {
        "sampling": {},
        "roots": {"listChanged": True},
    }
    assert talk(scripted(), work, capabilities={"experimental": {"x": {}}}) == {"experimental": {"x": {}}}


def test_a_handler_that_the_revision_does_not_know_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="elicitation"):
        dragoman.connect(["true"], revision="2024-11-05", elicitation=fill_in)  # type: ignore[call-overload]


def test_a_handler_may_refuse_and_may_fail() -> None:
    async def refuse(params: Any) -> Any:
        raise McpError(-1, "not now", {"later": True})

    async def fail(params: Any) -> Any:
        raise RuntimeError("a secret")

    async def work(client: Any, server: ScriptedServer) -> None:
        await server.wait_for_method("notifications/initialized")
        server.say(id="q1", method="sampling/createMessage", params=SAMPLE)
        server.say(id="q2", method="elicitation/create", params=FORM)
        refused = await server.wait_for(lambda frame: frame.get("id") == "q1")
        failed = await server.wait_for(lambda frame: frame.get("id") == "q2")
        assert refused["error"] == {"code": -1, "message": "not now", "data": {"later": True}}
        assert failed["error"]["code"] == -32603
        assert "secret" not in failed["error"]["message"]

    talk(scripted(), work, sampling=refuse, elicitation=fail)


async def wait_for_what_is_cancelled(params: Any) -> Any:
    dialog = asyncio.get_running_loop().create_future()
    dialog.cancel()
    await dialog


def test_a_handler_that_awaits_what_somebody_cancels_has_failed() -> None:
    async def work(client: Any, server: ScriptedServer) -> None:
        await server.wait_for_method("notifications/initialized")
        server.say(id="q", method="elicitation/create", params=FORM)
        failed = await server.wait_for(lambda frame: frame.get("id") == "q")
        assert failed["error"] == {"code": -32603, "message": "the client's handler failed: CancelledError"}

    talk(scripted(), work, elicitation=wait_for_what_is_cancelled)


def test_a_cancelled_question_stops_its_handler() -> None:
    stopped = asyncio.Event()

    async def wait(params: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def work(client: Any, server: ScriptedServer) -> None:
        await server.wait_for_method("notifications/initialized")
        server.say(id="q", method="sampling/createMessage", params=SAMPLE)
        server.say(method="notifications/cancelled", params={"requestId": "q"})
        await stopped.wait()

    talk(scripted(), work, sampling=wait)


def test_notifications_go_to_the_handler_and_to_readers() -> None:
    told: list[Any] = []

    async def work(client: Any, server: ScriptedServer) -> Any:
        await server.wait_for_method("notifications/initialized")
        reader = client.notifications()
        server.say(method="notifications/tools/list_changed")
        server.say(method="notifications/message", params={"level": "info", "data": "hello"})
        first, second = await anext(reader), await anext(reader)
        server.hang_up()
        return [first, second, *[one async for one in reader]]

    read = talk(scripted(), work, on_notification=told.append)
    assert [type(one) for one in read] == [v.ToolListChangedNotification, v.LoggingMessageNotification]
    assert told == read


def test_a_reader_that_nobody_has_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.client.notices.LIMIT", 2)

    async def work(client: Any, server: ScriptedServer) -> Any:
        await server.wait_for_method("notifications/initialized")
        client.notifications()
        reader = client.notifications()
        for _ in range(4):
            server.say(method="notifications/tools/list_changed")
            await anext(reader)
        return client.discarded

    assert talk(scripted(), work) == 0


def test_only_so_many_callbacks_wait_and_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.client.notices.LIMIT", 20)
    at_once, begun, may = 0, list[str](), asyncio.Event()

    async def wait(notice: Any) -> None:
        nonlocal at_once
        begun.append(notice.params.data)
        at_once = max(at_once, len(begun) if not may.is_set() else 0)
        await may.wait()

    async def work(client: Any, server: ScriptedServer) -> Any:
        await server.wait_for_method("notifications/initialized")
        for number in range(200):
            server.say(method="notifications/message", params={"level": "info", "data": str(number)})
        await until(lambda: client.discarded == 80)
        may.set()
        await until(lambda: len(begun) == 120)

    talk(scripted(), work, on_notification=wait)
    assert at_once == 100
    assert begun == [str(number) for number in (*range(100), *range(180, 200))]


def test_a_handler_of_notifications_that_fails_later_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(notice: Any) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("out of paper")

    async def work(client: Any, server: ScriptedServer) -> None:
        await server.wait_for_method("notifications/initialized")
        server.say(method="notifications/tools/list_changed")
        await until(lambda: "out of paper" in caplog.text)

    talk(scripted(), work, on_notification=fail)
    assert "a callback of the program failed" in caplog.text


@pytest.mark.parametrize(
    "frame",
    [
        {"method": "notifications/of/no/revision"},
        {"method": "notifications/message", "params": {"level": "loud", "data": 1}},
    ],
)
def test_a_notification_that_cannot_be_used_is_warned_of_counted_and_discarded(
    frame: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def work(client: Any, server: ScriptedServer) -> Any:
        await server.wait_for_method("notifications/initialized")
        reader = client.notifications()
        server.say(**frame)
        server.say(method="notifications/tools/list_changed")
        assert isinstance(await anext(reader), v.ToolListChangedNotification)
        return client.discarded

    assert talk(scripted(), work) == 1
    assert f"discarded {frame['method']}" in caplog.text


def test_an_answer_that_is_not_json_fails_its_request() -> None:
    def babble(server: ScriptedServer, frame: dict[str, Any]) -> None:
        server.say_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}}' % frame["id"])

    async def work(client: Any, server: ScriptedServer) -> None:
        with pytest.raises((RemoteProtocolError, McpError)):
            await client.call("add")

    talk(scripted(tools__call=babble), work)
