"""A front that is told to end: what is under way is answered first, and nothing new is taken."""

from __future__ import annotations

import asyncio

from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.status import StatusBoard
from dragoman.transports.http.config import FrontConfig, Patience
from tests.proxy.test_per_request import asks
from tests.support.waiting import pass_time
from tests.transports.http.stage import (
    Stage,
    call,
    content,
    initialize,
    log_message,
    on_loop,
    serving,
    text_of,
    until,
    within,
)
from tests.transports.http.test_per_request import begin, playing, posts, told
from tests.transports.http.test_resuming import expect_event
from tests.transports.http.test_websocket import dial, say, shake_hands
from tests.transports.http.wire import Event, Reply

SOON_BACK = FrontConfig(patience=Patience(retry_s=0.2, stream_after_s=0.05))
"""Who is away is waited for a second."""

REASON = "the proxy was stopped by SIGTERM"
ASKED = {"jsonrpc": "2.0", "id": 90, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}


async def under_way(stage: Stage) -> asyncio.Task[Reply]:
    """Open a session, make a call that its server has, and drain the front."""
    await stage.open()
    calling = stage.call(2)
    await stage.server.hear()
    await drain(stage)
    return calling


async def drain(stage: Stage) -> None:
    stage.http.drain(REASON)
    await until(lambda: stage.front.sessions.closing)


async def is_over(stage: Stage) -> None:
    await until(lambda: not stage.front.sessions)


@on_loop
async def test_a_call_that_is_under_way_is_answered() -> None:
    async with serving() as stage:
        calling = await under_way(stage)
        stage.server.answer(2, **content("in the end"))
        assert text_of(await (await within(calling)).frame()) == "in the end"
        await is_over(stage)


@on_loop
async def test_a_call_that_takes_long_is_answered_on_its_stream() -> None:
    async with serving() as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        reply = await within(calling)  # a stream, after a second
        await drain(stage)
        stage.server.answer(2, **content("in the end"))
        assert [text_of(frame) for frame in await reply.frames()] == ["in the end"]


@on_loop
async def test_it_is_not_ready_before_anything_else_changes() -> None:
    async with serving(board=StatusBoard()) as stage:
        calling = await under_way(stage)
        assert (await stage.get("/readyz")).status == 503
        assert (await stage.get("/healthz")).status == 200
        assert not calling.done()


@on_loop
async def test_a_new_session_is_refused() -> None:
    async with serving() as stage:
        await under_way(stage)
        stage.session = ""
        refused = await stage.post(initialize())
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")


@on_loop
async def test_a_new_request_in_an_open_session_is_refused() -> None:
    async with serving() as stage:
        calling = await under_way(stage)
        error = (await (await stage.post(call(3))).frame())["error"]
        assert error == {"code": -32000, "message": REASON}
        assert stage.server.hears_nothing()
        assert not calling.done()


@on_loop
async def test_a_question_of_a_call_is_still_asked_and_answered() -> None:
    async with serving() as stage:
        calling = await under_way(stage)
        stage.server.say(ASKED)
        reply = await within(calling)
        question = await told(reply)
        assert (await stage.post({"jsonrpc": "2.0", "id": question["id"], "result": {"role": "x"}})).status == 202
        assert (await stage.server.hear())["result"] == {"role": "x"}
        stage.server.answer(2, **content("in the end"))
        assert text_of(await told(reply)) == "in the end"


@on_loop
async def test_a_call_that_is_cancelled_does_not_hold_up_the_end() -> None:
    async with serving() as stage:
        await under_way(stage)
        await stage.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        await is_over(stage)


@on_loop
async def test_a_client_without_a_session_that_leaves_does_not_hold_up_the_end() -> None:
    async with playing(drain_timeout_s=600.0) as stage:
        calling = await begin(stage)
        assert (await stage.server.hear())["method"] == "tools/call"
        reply = await within(calling)  # a stream, after a second
        await drain(stage)
        reply.leave()
        await is_over(stage)


async def leave_under_way(stage: Stage) -> Event:
    """Make a call that is answered with a stream, take its first event, go away, and drain the front."""
    await stage.open("2025-11-25")
    calling = stage.call(2)
    await stage.server.hear()
    reply = await within(calling)  # a stream, after a second
    primer = await expect_event(reply)
    reply.leave()
    await until(lambda: not stage.front.sessions.all()[0].visits)
    await drain(stage)
    return primer


@on_loop
async def test_a_client_that_does_not_come_back_for_its_answer_does_not_hold_up_the_end() -> None:
    async with serving(SOON_BACK, drain_timeout_s=600.0) as stage:
        await leave_under_way(stage)
        await is_over(stage)


@on_loop
async def test_a_client_that_has_deleted_its_session_does_not_hold_up_the_end() -> None:
    async with serving(SOON_BACK, drain_timeout_s=600.0) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        (await stage.delete()).leave()
        reply.leave()
        await drain(stage)
        await is_over(stage)


@on_loop
async def test_a_client_that_comes_back_in_time_is_answered() -> None:
    async with serving(SOON_BACK, drain_timeout_s=600.0) as stage:
        primer = await leave_under_way(stage)
        await pass_time(0.2)
        assert primer.id is not None
        async with await stage.get(last_event_id=primer.id) as resumed:
            await pass_time(1.5)  # longer than anybody who is away is waited for
            stage.server.answer(2, **content("in the end"))
            assert [text_of(frame) for frame in await resumed.frames()] == ["in the end"]
        await is_over(stage)


@on_loop
async def test_a_call_that_is_not_answered_fails_when_the_time_is_over() -> None:
    async with serving(drain_timeout_s=2.0) as stage:
        calling = await under_way(stage)
        reply = await within(calling)
        assert (await told(reply))["error"]["message"].startswith("the server did not answer within 2 s")
        await is_over(stage)


@on_loop
async def test_another_signal_ends_it_at_once() -> None:
    async with serving(drain_timeout_s=600.0) as stage:
        calling = await under_way(stage)
        stage.http.stop("the proxy was stopped by SIGINT")
        error = (await (await within(calling)).frame())["error"]
        assert error["message"] == "the proxy was stopped by SIGINT"


@on_loop
async def test_a_session_without_a_call_ends_at_once_and_its_stream_with_a_last_event() -> None:
    async with serving() as stage:
        await stage.open()
        async with await stage.get() as stream:
            stage.server.say(log_message("the last word"))
            stage.server.say({"jsonrpc": "2.0", "id": 91, "method": "ping"})
            await drain(stage)
            assert (await stream.frames())[0]["params"]["data"] == "the last word"
        await is_over(stage)


@on_loop
async def test_a_client_that_leaves_meanwhile_is_waited_for_no_longer() -> None:
    async with serving(drain_timeout_s=600.0) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await say(socket, call(2))
        await stage.server.hear()
        await drain(stage)
        socket.transport.abort()
        stage.server.answer(2, **content("to nobody"))
        await is_over(stage)


@on_loop
async def test_sessions_that_share_a_server_keep_it_until_the_last_call_is_answered() -> None:
    async with serving() as stage:
        pool = UpstreamPool(Scope.SHARED, stage.connect)
        stage.make = lambda transport: pool.proxy(ProxyConfig(), transport)
        calling = await under_way(stage)
        stage.server.answer(stage.server.last["id"], **content("in the end"))
        assert text_of(await (await within(calling)).frame()) == "in the end"
        await pool.close()


@on_loop
async def test_a_request_that_speaks_for_itself_is_answered_and_the_next_refused() -> None:
    async with playing() as stage:
        calling = await begin(stage)
        asked = await stage.server.hear()
        await drain(stage)
        refused = await within(posts(stage, asks(3, "tools/list")))
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        stage.server.answer(asked["id"], **content("in the end"))
        assert text_of(await (await within(calling)).frame()) == "in the end"
        await is_over(stage)


@on_loop
async def test_a_listen_stream_ends_with_its_result() -> None:
    async with playing() as stage:
        listening = await begin(stage, asks(5, "subscriptions/listen", notifications={"toolsListChanged": True}))
        reply = await within(listening)
        assert (await told(reply))["method"] == "notifications/subscriptions/acknowledged"
        await drain(stage)
        last = await told(reply)
        assert (last["id"], last["result"]["resultType"]) == (5, "complete")
        assert await within(reply.event()) is None
        await is_over(stage)


@on_loop
async def test_a_call_is_waited_for_although_its_listener_is_not() -> None:
    async with playing(drain_timeout_s=600.0) as stage:
        calling = await begin(stage)
        asked = await stage.server.hear()
        posts(stage, asks(5, "subscriptions/listen", notifications={}))
        await pass_time(0.1)
        await drain(stage)
        stage.server.answer(asked["id"], **content("in the end"))
        assert text_of(await (await within(calling)).frame()) == "in the end"
        await is_over(stage)
