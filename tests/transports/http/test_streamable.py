"""Streamable HTTP as a client sees it, over a real port."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from dragoman.transports.http.config import FrontConfig, Limits, Patience
from tests.support.waiting import pass_time
from tests.transports.http.stage import (
    call,
    content,
    initialize,
    initialized,
    log_message,
    on_loop,
    progress,
    serving,
    text_of,
    until,
    within,
)
from tests.transports.http.wire import request

HTTP_REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
QUICK = FrontConfig(patience=Patience(stream_after_s=0.05))


@pytest.mark.parametrize("revision", HTTP_REVISIONS)
@on_loop
async def test_a_session_opens_answers_and_is_deleted(revision: str) -> None:
    async with serving() as stage:
        opening = await stage.open(revision)
        assert len(stage.session) >= 32
        assert (await opening.frame())["result"]["protocolVersion"] == revision
        calling = stage.call(2)
        assert (await stage.server.hear())["params"]["name"] == "echo"
        stage.server.answer(2, **content("hello"))
        reply = await calling
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert text_of(await reply.frame()) == "hello"
        assert (await stage.delete()).status == 204
        await until(lambda: stage.server.gone is not None)
        assert (await stage.post(call(3))).status == 404
        assert (await stage.delete()).status == 404


@on_loop
async def test_ids_of_sessions_differ() -> None:
    async with serving() as stage:
        await stage.open()
        first, stage.session = stage.session, ""
        stage.servers.clear()
        await stage.open()
        assert stage.session != first


@on_loop
async def test_a_notification_and_a_response_are_accepted_without_a_body() -> None:
    async with serving() as stage:
        await stage.open()
        for frame in (
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "id": 77, "result": {}},
        ):
            reply = await stage.post(frame)
            assert (reply.status, await reply.body()) == (202, b"")


@on_loop
async def test_what_the_server_says_during_a_call_makes_its_answer_a_stream() -> None:
    async with serving() as stage:
        await stage.open()
        calling = stage.call(2, _meta={"progressToken": "t"})
        await stage.server.hear()
        stage.server.say(progress("t", 1), log_message("half-way"))
        reply = await within(calling)
        assert reply.headers["content-type"] == "text/event-stream"
        stage.server.answer(2, **content("done"))
        frames = await reply.frames()
        assert [frame.get("method") for frame in frames] == ["notifications/progress", "notifications/message", None]
        assert text_of(frames[-1]) == "done"


@on_loop
async def test_a_slow_answer_becomes_a_stream() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        assert reply.headers["content-type"] == "text/event-stream"
        stage.server.answer(2, **content("late"))
        assert text_of((await reply.frames())[0]) == "late"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("*/*", "application/json"),
        ("", "application/json"),
        ("text/event-stream;q=0, application/*", "application/json"),
    ],
)
@on_loop
async def test_the_answer_is_what_the_client_accepts(accept: str, expected: str) -> None:
    async with serving() as stage:
        await stage.open()
        calling = asyncio.create_task(stage.post(call(2), accept=accept))
        await stage.server.hear()
        stage.server.answer(2, **content("hello"))
        reply = await within(calling)
        assert reply.headers["content-type"] == expected
        reply.leave()


@on_loop
async def test_a_client_that_takes_only_streams_opens_a_session_too() -> None:
    async with serving() as stage:
        opening = asyncio.create_task(stage.post(initialize(), accept="text/event-stream"))
        await until(lambda: bool(stage.servers))
        stage.server.answer((await stage.server.hear())["id"], **initialized("2025-06-18"))
        reply = await within(opening)
        assert "mcp-session-id" in reply.headers
        assert (await reply.frames())[0]["result"]["protocolVersion"] == "2025-06-18"


@on_loop
async def test_a_client_that_takes_no_streams_gets_the_rest_over_get() -> None:
    async with serving() as stage:
        await stage.open()
        calling = asyncio.create_task(stage.post(call(2), accept="application/json"))
        await stage.server.hear()
        stage.server.say(log_message("meanwhile"))
        stage.server.answer(2, **content("done"))
        assert text_of(await (await within(calling)).frame()) == "done"
        async with await stage.get() as standing:
            event = await standing.event()
            assert event is not None
            assert event.frame["params"]["data"] == "meanwhile"


@on_loop
async def test_a_get_stream_carries_what_belongs_to_no_call() -> None:
    async with serving() as stage:
        await stage.open()
        async with await stage.get() as standing:
            assert standing.headers["content-type"] == "text/event-stream"
            calling = stage.call(2)
            await stage.server.hear()
            stage.server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            stage.server.answer(2, **content("done"))
            assert (await within(calling)).headers["content-type"] == "application/json"
            event = await standing.event()
            assert event is not None
            assert event.frame["method"] == "notifications/tools/list_changed"


@on_loop
async def test_a_request_of_the_server_reaches_the_client_and_is_answered() -> None:
    async with serving() as stage:
        await stage.open("2025-11-25")
        calling = stage.call(2)
        await stage.server.hear()
        stage.server.say({"jsonrpc": "2.0", "id": "s1", "method": "ping"})
        reply = await within(calling)
        events = [await reply.event(), await reply.event()]
        asked = events[-1]
        assert asked is not None
        assert asked.frame["method"] == "ping"
        assert (await stage.post({"jsonrpc": "2.0", "id": "s1", "result": {}})).status == 202
        assert (await stage.server.hear())["id"] == "s1"
        stage.server.answer(2, **content("done"))
        assert text_of((await reply.frames())[0]) == "done"


@on_loop
async def test_progress_goes_to_its_call_among_several() -> None:
    async with serving() as stage:
        await stage.open()
        first = stage.call(2, _meta={"progressToken": "a"})
        await stage.server.hear()
        second = stage.call(3, _meta={"progressToken": 7})
        await stage.server.hear()
        stage.server.say(progress("a", 1), progress(7, 2))
        stage.server.answer(3, **content("second"))
        stage.server.answer(2, **content("first"))
        for reply, done, text in ((await first, 1, "first"), (await second, 2, "second")):
            frames = await reply.frames()
            assert frames[0]["params"]["progress"] == done
            assert text_of(frames[1]) == text


@on_loop
async def test_a_question_is_taken_back_on_the_stream_that_it_came_on() -> None:
    async with serving() as stage:
        await stage.open()
        async with await stage.get() as standing:
            first = stage.call(2)
            await stage.server.hear()
            stage.server.say({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"})
            reply = await within(first)
            second = stage.call(3)
            await stage.server.hear()
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s1"}}
            stage.server.say(cancelled, log_message("of either call"))
            stage.server.answer(2, **content("first"))
            stage.server.answer(3, **content("second"))
            frames = await reply.frames()
            assert [frame.get("method") for frame in frames] == ["roots/list", "notifications/cancelled", None]
            event = await standing.event()
            assert event is not None
            assert event.frame["params"]["data"] == "of either call"
            (await within(second)).leave()


@on_loop
async def test_of_several_get_streams_one_carries_a_message() -> None:
    async with serving() as stage:
        await stage.open()
        async with await stage.get() as one, await stage.get() as other:
            stage.server.say(log_message("once"))
            event = await other.event()
            assert event is not None
            with pytest.raises(TimeoutError):
                await within(one.event(), 0.1)


@pytest.mark.parametrize(
    ("revision", "header", "status"),
    [
        ("2025-06-18", "2025-06-18", 200),
        ("2025-06-18", "", 200),
        ("2025-06-18", "2025-11-25", 200),
        ("2025-06-18", "1999-01-01", 400),
        ("2025-11-25", "2026-07-28", 400),
        ("2025-03-26", "", 200),
        ("2025-03-26", "1999-01-01", 200),  # its page knows no such header
    ],
)
@on_loop
async def test_the_revision_header_is_checked_as_its_revision_has_it(revision: str, header: str, status: int) -> None:
    async with serving() as stage:
        await stage.open(revision)
        calling = asyncio.create_task(stage.post(call(2), mcp_protocol_version=header))
        if status == 200:
            await stage.server.hear()
            stage.server.answer(2, **content("hello"))
        reply = await within(calling)
        assert reply.status == status
        reply.leave()


@pytest.mark.parametrize(
    ("method", "headers", "body", "status"),
    [
        ("POST", {"mcp-session-id": ""}, call(2), 400),
        ("POST", {"mcp-session-id": "guessed"}, call(2), 404),
        ("GET", {"mcp-session-id": ""}, None, 400),
        ("GET", {"mcp-session-id": "guessed"}, None, 404),
        ("DELETE", {"mcp-session-id": ""}, None, 400),
        ("PUT", {}, None, 405),
        ("HEAD", {}, None, 405),
        ("POST", {"accept": "text/html"}, call(2), 406),
        ("GET", {"accept": "application/json"}, None, 406),
        ("POST", {"content-type": "text/plain"}, call(2), 415),
        ("POST", {"content-type": "application/json; charset=latin-1"}, call(2), 415),
        ("POST", {"content-encoding": "gzip"}, call(2), 415),
        ("POST", {}, b"{", 400),
        ("POST", {}, b"[]", 400),
        ("POST", {}, b"[" + b"17," * 1000 + b"17]", 413),
        ("POST", {}, b"17", 400),
        ("POST", {}, [call(2)], 400),
        ("POST", {}, {"jsonrpc": "2.0", "id": None, "method": "ping"}, 400),
        ("POST", {}, b"[" * 300 + b"]" * 300, 400),
        ("GET", {"last-event-id": "p99-1"}, None, 410),
    ],
)
@on_loop
async def test_what_is_not_served_gets_the_status_that_says_why(
    method: str, headers: dict[str, str], body: object, status: int
) -> None:
    async with serving() as stage:
        await stage.open()
        given = stage.headers({"accept": "text/event-stream"} if method == "GET" else {}) | headers
        reply = await request(stage.port, method, "/mcp", given, body)
        assert reply.status == status
        if method != "HEAD":
            assert "error" in await reply.frame()
        assert stage.server.hears_nothing()
        reply.leave()


@on_loop
async def test_pretty_printed_json_is_one_line_to_the_server() -> None:
    async with serving() as stage:
        await stage.open()
        calling = asyncio.create_task(stage.post(b'{\r\n "jsonrpc": "2.0",\n "id": 2,\n "method": "ping"\n}\n'))
        await stage.server.hear()
        stage.server.answer(2)
        assert (await (await within(calling)).frame())["id"] == 2


@on_loop
async def test_an_id_in_use_is_refused_and_the_first_is_answered() -> None:
    async with serving() as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        assert (await stage.post(call(2))).status == 400
        stage.server.answer(2, **content("hello"))
        assert text_of(await (await within(calling)).frame()) == "hello"


@on_loop
async def test_a_batch_is_answered_as_one_where_batches_are_known() -> None:
    async with serving() as stage:
        await stage.open("2025-03-26")
        batch = [call(2), call("b"), {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]
        calling = asyncio.create_task(stage.post(batch))
        heard = await stage.server.hear()
        assert len(heard) == 3
        stage.server.say([{"jsonrpc": "2.0", "id": "b", "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}])
        reply = await within(calling)
        assert {answer["id"] for answer in await reply.frame()} == {2, "b"}


@on_loop
async def test_a_batch_without_requests_is_accepted() -> None:
    async with serving() as stage:
        await stage.open("2025-03-26")
        reply = await stage.post([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}])
        assert (reply.status, await reply.body()) == (202, b"")


@pytest.mark.parametrize("stream_after_s", [0.01, 60])
@on_loop
async def test_a_cancelled_call_ends_without_an_answer_and_not_the_session(stream_after_s: float) -> None:
    async with serving(FrontConfig(patience=Patience(stream_after_s=stream_after_s))) as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        assert (await stage.post(cancel)).status == 202
        assert (await stage.server.hear())["method"] == "notifications/cancelled"
        reply = await within(calling)
        assert (reply.status, await reply.frames()) == (200, [])


@on_loop
async def test_a_call_cancelled_before_it_was_a_stream_leaves_the_session_alone() -> None:
    for accept, status in (("application/json", 202), ("text/event-stream, application/json", 200)):
        async with serving() as stage:
            await stage.open()
            calling = asyncio.create_task(stage.post(call(2), accept=accept))
            await stage.server.hear()
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
            await stage.post(cancel)
            reply = await within(calling)
            assert (reply.status, await reply.body()) == (status, b"")


@on_loop
async def test_a_disconnect_is_no_cancellation() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        reply.leave()
        (session,) = stage.front.sessions.all()
        await until(lambda: not session.visits)
        assert (await stage.post({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).status == 202
        assert (await stage.server.hear())["method"] == "notifications/roots/list_changed"


@on_loop
async def test_a_refused_initialize_opens_no_session() -> None:
    async with serving() as stage:
        opening = asyncio.create_task(stage.post(initialize()))
        await until(lambda: bool(stage.servers))
        key = (await stage.server.hear())["id"]
        stage.server.say({"jsonrpc": "2.0", "id": key, "error": {"code": -32603, "message": "no"}})
        reply = await within(opening)
        assert "mcp-session-id" not in reply.headers
        assert (await reply.frame())["error"]["message"] == "no"
        await until(lambda: not len(stage.front.sessions))


@on_loop
async def test_a_server_that_exits_ends_the_session_and_answers_what_waits() -> None:
    async with serving() as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        stage.server.exit()
        assert "error" in await (await within(calling)).frame()
        await until(lambda: not len(stage.front.sessions))
        assert (await stage.post(call(3))).status == 404


@on_loop
async def test_sessions_beyond_the_cap_are_refused_until_one_ends() -> None:
    async with serving(FrontConfig(limits=Limits(sessions=1))) as stage:
        await stage.open()
        reply = await stage.post(initialize(), mcp_session_id="")
        assert (reply.status, reply.headers["retry-after"]) == (503, "5")
        await stage.delete()
        await until(lambda: not len(stage.front.sessions))
        stage.session = ""
        stage.servers.clear()
        await stage.open()


@on_loop
async def test_sessions_beyond_the_cap_are_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(FrontConfig(limits=Limits(sessions=1))) as stage:
        await stage.open()
        for _ in range(5):
            await stage.post(initialize(), mcp_session_id="")
        assert sum("--max-sessions" in line for line in caplog.messages) == 1


@on_loop
async def test_requests_beyond_the_cap_of_a_session_are_refused() -> None:
    async with serving(replace(QUICK, limits=Limits(streams=2))) as stage:
        await stage.open()
        async with await within(stage.call(2)), await within(stage.call(3)):
            assert (await stage.post(call(4))).status == 429


@on_loop
async def test_get_streams_count_apart_from_requests() -> None:
    async with serving(replace(QUICK, limits=Limits(streams=1))) as stage:
        await stage.open()
        async with await stage.get() as standing, await within(stage.call(2)) as calling:
            assert (standing.status, calling.status) == (200, 200)


@on_loop
async def test_get_streams_that_nobody_reads_any_more_count_no_more() -> None:
    async with serving(replace(QUICK, limits=Limits(streams=2))) as stage:
        await stage.open()
        async with await stage.get(), await stage.get():
            assert (await stage.get()).status == 429
        await until(lambda: all(not session.visits for session in stage.front.sessions.all()))
        async with await stage.get() as fresh:
            assert fresh.status == 200


@on_loop
async def test_an_idle_session_ends_but_not_while_a_stream_is_open() -> None:
    async with serving(FrontConfig(patience=Patience(idle_s=0.2, keepalive_s=0.05))) as stage:
        await stage.open()
        async with await stage.get():
            await pass_time(0.4)
            assert len(stage.front.sessions) == 1
        await until(lambda: not len(stage.front.sessions) and stage.server.gone is not None)
        assert (await stage.post(call(3))).status == 404
