"""Streams that outlive their connections: event ids, `Last-Event-ID`, `retry`, and what is kept for how long."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.transports.http.config import FrontConfig, Limits, Patience
from dragoman.transports.http.streams import Ledger, Stream
from tests.proxy.per_request import complete, discovered
from tests.support.waiting import linger, pass_time
from tests.transports.http.stage import (
    content,
    initialize,
    log_message,
    on_loop,
    progress,
    serving,
    text_of,
    until,
    within,
)
from tests.transports.http.wire import PATIENCE_S, Event, Reply

QUICK = FrontConfig(patience=Patience(stream_after_s=0.05))


async def expect_event(reply: Reply) -> Event:
    event = await reply.event()
    assert event is not None, "the stream has ended"
    return event


@on_loop
async def test_a_cut_stream_goes_on_after_the_last_event() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        stage.server.say(log_message("one"), log_message("two"))
        first = await expect_event(reply)
        reply.leave()
        stage.server.answer(2, **content("done"))
        assert first.id is not None
        async with await stage.get(last_event_id=first.id) as resumed:
            frames = await resumed.frames()
        assert frames[0]["params"]["data"] == "two"
        assert text_of(frames[1]) == "done"


@on_loop
async def test_a_resumed_stream_still_waits_for_its_answer() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        stage.server.say(log_message("one"))
        event = await expect_event(reply)
        reply.leave()
        assert event.id is not None
        async with await stage.get(last_event_id=event.id) as resumed:
            stage.server.answer(2, **content("done"))
            assert text_of((await resumed.frames())[0]) == "done"


@on_loop
async def test_a_call_at_a_server_without_sessions_goes_on_while_its_client_is_away() -> None:
    async with serving(QUICK) as stage:
        opening = asyncio.create_task(stage.post(initialize("2025-06-18")))
        await until(lambda: bool(stage.servers))
        offer = await stage.server.hear()
        stage.server.say({"jsonrpc": "2.0", "id": offer["id"], "error": {"code": -32022, "message": "no"}})
        stage.server.say(discovered((await stage.server.hear())["id"], tools={}))
        stage.session, stage.revision = (await within(opening)).headers["mcp-session-id"], "2025-06-18"
        (await within(stage.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))).leave()
        reply = await within(stage.call(2, _meta={"progressToken": "p"}))
        heard = await stage.server.hear()
        stage.server.say(progress(heard["params"]["_meta"]["progressToken"], 1))
        event = await expect_event(reply)
        reply.leave()  # which is no cancellation in its revision
        await linger(0.1)
        assert stage.server.hears_nothing()
        stage.server.say(complete(heard["id"], **content("done")))
        assert event.id is not None
        async with await stage.get(last_event_id=event.id) as resumed:
            assert text_of((await resumed.frames())[0]) == "done"


@on_loop
async def test_a_stream_resumed_while_its_connection_lives_moves_over() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        async with await stage.get() as old:
            stage.server.say(log_message("one"))
            event = await expect_event(old)
            assert event.id is not None
            async with await stage.get(last_event_id=event.id) as new:
                assert await old.event() is None
                stage.server.say(log_message("two"))
                assert (await expect_event(new)).frame["params"]["data"] == "two"


@on_loop
async def test_nothing_of_another_stream_is_replayed() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        async with await stage.get() as standing:
            stage.server.say(log_message("standing"))
            event = await expect_event(standing)
        calling = await within(stage.call(2))
        await stage.server.hear()
        stage.server.answer(2, **content("done"))
        await calling.frames()
        assert event.id is not None
        async with await stage.get(last_event_id=event.id) as resumed:
            stage.server.say(log_message("more"))
            assert (await expect_event(resumed)).frame["params"]["data"] == "more"


@on_loop
async def test_what_a_lost_get_stream_did_not_take_goes_to_the_next() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        standing = await stage.get()
        standing.leave()
        await until(lambda: all(not session.visits for session in stage.front.sessions.all()))
        stage.server.say(log_message("missed"))
        async with await stage.get() as fresh:
            assert (await expect_event(fresh)).frame["params"]["data"] == "missed"


@on_loop
async def test_what_was_said_while_a_get_stream_was_away_comes_when_it_is_resumed() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        async with await stage.get() as standing:
            stage.server.say(log_message("one"))
            event = await expect_event(standing)
        await until(lambda: all(not session.visits for session in stage.front.sessions.all()))
        stage.server.say(log_message("meanwhile"))
        assert event.id is not None
        async with await stage.get(last_event_id=event.id) as resumed:
            assert (await expect_event(resumed)).frame["params"]["data"] == "meanwhile"


@on_loop
async def test_event_ids_are_unique_within_the_session() -> None:
    async with serving(QUICK) as stage:
        await stage.open("2025-11-25")
        ids = []
        async with await stage.get() as standing:
            for key in (2, 3):
                reply = await within(stage.call(key))
                await stage.server.hear()
                stage.server.answer(key, **content("done"))
                while (event := await reply.event()) is not None:
                    ids.append(event.id)
            ids.append((await expect_event(standing)).id)
        assert len(ids) == len(set(ids)) == 5


@on_loop
async def test_streams_begin_with_an_id_only_from_2025_11_25_on() -> None:
    for revision, data in (("2025-06-18", None), ("2025-11-25", "")):
        async with serving(QUICK) as stage:
            await stage.open(revision)
            reply = await within(stage.call(2))
            await stage.server.hear()
            stage.server.answer(2, **content("done"))
            event = await expect_event(reply)
            assert (event.data if event.data == "" else None) == data
            assert event.id is not None


@on_loop
async def test_a_polled_stream_closes_with_retry_and_goes_on_later() -> None:
    config = FrontConfig(patience=Patience(stream_after_s=0.05, poll_s=0.1, retry_s=0.5))
    async with serving(config) as stage:
        await stage.open("2025-11-25")
        reply = await within(stage.call(2))
        await stage.server.hear()
        primer, retry = await expect_event(reply), await expect_event(reply)
        assert (primer.data, retry.retry) == ("", 500)
        assert await reply.event() is None
        stage.server.answer(2, **content("done"))
        assert primer.id is not None
        async with await stage.get(last_event_id=primer.id) as resumed:
            assert text_of((await resumed.frames())[0]) == "done"


@on_loop
async def test_an_older_client_is_never_asked_to_poll() -> None:
    config = FrontConfig(patience=Patience(stream_after_s=0.05, poll_s=0.1))
    async with serving(config) as stage:
        await stage.open("2025-06-18")
        reply = await within(stage.call(2))
        await stage.server.hear()
        await pass_time(0.3)
        stage.server.answer(2, **content("done"))
        assert text_of((await expect_event(reply)).frame) == "done"


@on_loop
async def test_a_quiet_stream_carries_comments_that_are_no_events() -> None:
    async with serving(FrontConfig(patience=Patience(stream_after_s=0.01, keepalive_s=0.05))) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        async for part in reply.parts():
            assert part == b":\n\n"
            break
        stage.server.answer(2, **content("done"))
        assert text_of((await expect_event(reply)).frame) == "done"


@on_loop
async def test_what_nobody_reads_is_kept_within_bounds(caplog: pytest.LogCaptureFixture) -> None:
    config = FrontConfig(limits=Limits(replay_events=10, replay_bytes=4000))
    async with serving(config) as stage:
        await stage.open()
        for number in range(100):
            stage.server.say(log_message(f"{number}"))
        (session,) = stage.front.sessions.all()
        await until(lambda: bool(session.transport._backlog) and b'"99"' in session.transport._backlog[-1])
        async with await stage.get() as standing:
            seen = [int((await expect_event(standing)).frame["params"]["data"]) for _ in range(10)]
        assert seen == list(range(90, 100))
    assert caplog.text.count("dropped") == 1


@on_loop
async def test_a_finished_stream_can_be_resumed_for_a_while_only() -> None:
    config = FrontConfig(patience=Patience(stream_after_s=0.01, resume_s=1.0, idle_s=30))
    async with serving(config) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        stage.server.answer(2, **content("done"))
        event = await expect_event(reply)
        before = f"{(event.id or '').rpartition('-')[0]}-0"
        async with await stage.get(last_event_id=before) as resumed:
            assert text_of((await resumed.frames())[0]) == "done"
        async with asyncio.timeout(PATIENCE_S):
            while (status := (await stage.get(last_event_id=before)).status) == 200:
                await pass_time(0.1)
        assert status == 410


@on_loop
async def test_a_resumed_stream_belongs_to_its_session() -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        async with await stage.get() as standing:
            stage.server.say(log_message("mine"))
            event = await expect_event(standing)
        stage.session = ""
        stage.servers.clear()
        await stage.open()
        async with await stage.get(last_event_id=f"{(event.id or '').rpartition('-')[0]}-0") as other:
            stage.server.say(log_message("yours"))
            assert (await expect_event(other)).frame["params"]["data"] == "yours"


def keep(ledger: Ledger, name: str, size: int) -> Stream:
    stream = Stream(name, ledger)
    stream.append(b"x" * size + b"\n")
    return stream


def test_of_large_answers_that_nobody_fetches_one_is_kept() -> None:
    ledger = Ledger(lambda _: None, limit_bytes=1000, limit_events=10)
    streams = [keep(ledger, f"p{number}", 5000) for number in range(5)]
    assert [bool(stream.unread) for stream in streams] == [True, False, False, False, False]
    assert ledger.kept < 1000 + 5100


def test_a_small_answer_is_kept_beside_a_large_one() -> None:
    ledger = Ledger(lambda _: None, limit_bytes=1000, limit_events=10)
    assert all(stream.unread for stream in (keep(ledger, "p1", 5000), keep(ledger, "p2", 500)))
