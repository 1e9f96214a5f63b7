"""Bad event streams and bad sessions: the other rows of `docs/internals/faults.md`."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest

from dragoman.transports.upstream.following import choose_wait
from tests.support.waiting import hang, linger, until
from tests.transports.upstream.stage import (
    BLOCK,
    Client,
    Reply,
    Request,
    after_handshake,
    answer_to,
    call,
    client,
    hello,
    on_loop,
    open_with,
    server,
    shake_hands,
)

LONG_S = 60.0


@on_loop
async def test_a_stream_that_falls_silent_times_out() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await hang()

    assert "nothing came from it for too long" in (await call(misbehave, idle_timeout_s=0.2))["message"]


@on_loop
async def test_a_server_that_comments_is_not_silent() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        for _ in range(8):
            await reply.raw(b": still here\r\n\r\n")
            await linger(0.1)
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "at last"}})
        reply.cut()

    assert (await call(misbehave, idle_timeout_s=0.4))["message"] == "at last"


@on_loop
async def test_an_answer_that_comes_twice_is_handed_on_once() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        for text in ("one", "two"):
            await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": text}})
        await reply.event({"jsonrpc": "2.0", "id": "nobody", "result": {}})
        reply.cut()

    assert (await call(misbehave))["message"] == "one"


@on_loop
async def test_garbage_between_events_is_passed_over() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b"WELCOME to our server!\r\n\r\ndata: no json\r\n\r\n")
        await reply.raw(b"event: odd\r\ndata: {}\r\n\r\n: comment\r\n\r\n")
        await reply.raw(b"\x00\xff\xfe\r\ndata: \xff\xfe\r\n\r\n")
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "found"}})
        reply.cut()

    assert (await call(misbehave))["message"] == "found"


@on_loop
async def test_half_an_event_is_no_answer() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b"data: " + json.dumps(answer_to(request)).encode())
        reply.cut()

    message = (await call(misbehave))["message"]
    assert "it closed the stream before the answer; it cannot be resumed" in message


@on_loop
async def test_an_event_of_100_mb_is_refused_in_bounded_memory() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b'data: {"jsonrpc":"2.0","id":%d,"result":{"x":"' % request.frame["id"])
        for _ in range(1600):
            await reply.raw(BLOCK)
        await reply.raw(b'"}}\r\n\r\n')
        reply.cut()

    tracemalloc.start()
    error = await call(misbehave, limit_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "a frame is larger than the limit of 1000000 bytes" in error["message"]
    assert peak < 20_000_000


@on_loop
async def test_a_stream_that_is_cut_is_resumed() -> None:
    asked_id = 0

    async def misbehave(request: Request, reply: Reply) -> None:
        nonlocal asked_id
        await reply.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        if request.method == "POST":
            asked_id = request.frame["id"]
            event = b'id: 5\r\nretry: 50\r\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\r\n\r\ndata: {"js'
            await reply.raw(b"%x\r\n%s" % (len(event) + 100, event))
        else:
            assert request.headers["last-event-id"] == "5"
            event = b'data: {"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"resumed"}}\r\n\r\n' % asked_id
            await reply.raw(b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event))
        reply.cut()

    assert (await call(misbehave))["message"] == "resumed"


@on_loop
async def test_a_stream_that_cannot_be_resumed_is_an_error() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        if request.method == "POST":
            await reply.stream()
            await reply.event(event_id="5", retry="10")
            reply.cut()
        else:
            await reply.status("405 Method Not Allowed")

    message = (await call(misbehave))["message"]
    assert "it cannot be resumed: it answered 405 Method Not Allowed" in message


@on_loop
async def test_resuming_is_tried_again_where_it_fails_for_now() -> None:
    tries = 0
    asked_id = 0

    async def misbehave(request: Request, reply: Reply) -> None:
        nonlocal tries, asked_id
        if request.method == "POST":
            asked_id = request.frame["id"]
            await reply.stream()
            await reply.event(event_id="5", retry="10")
            reply.cut()
        elif (tries := tries + 1) < 3:
            await reply.status("503 Service Unavailable")
        else:
            await reply.stream()
            error = {"code": 1, "message": "third time"}
            await reply.event({"jsonrpc": "2.0", "id": asked_id, "error": error})
            reply.cut()

    assert (await call(misbehave))["message"] == "third time"


@on_loop
async def test_a_server_that_closes_every_poll_at_once_is_given_up() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        if request.method == "POST":
            await reply.event(event_id="5", retry="0")
        reply.cut()

    assert "nothing came from it for too long" in (await call(misbehave, idle_timeout_s=0.5))["message"]


@on_loop
async def test_a_session_id_that_is_no_id_is_refused() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        await reply.result(request, hello(), "Mcp-Session-Id: two words")

    assert "Mcp-Session-Id is not made of visible ASCII" in (await open_with(serve))["message"]


@on_loop
async def test_a_get_stream_that_fails_is_tried_again_and_hurts_nobody() -> None:
    gets = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal gets
        if request.method == "GET":
            gets += 1
            await reply.status("500 Internal Server Error")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/list")
    assert gets == 1


@on_loop
async def test_a_notification_that_is_refused_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with server(after_handshake(lambda request, reply: reply.status("500 Oops"))) as url, client(url) as peer:
        peer.notify("notifications/roots/list_changed")
        assert "result" in await peer.ask("ping")
        await peer.until(lambda: True)
        await until(lambda: "not delivered" in caplog.text)
    assert "notifications/roots/list_changed of the client not delivered" in caplog.text


@pytest.mark.parametrize(
    ("retry_s", "failures", "idle", "waits"),
    [
        (None, 0, 0, 1.0),
        (None, 1, 1, 2.0),
        (None, 5000, 5000, 30.0),
        (0.0, 0, 0, 0.05),
        (0.0, 0, 1, 0.1),
        (0.0, 0, 5000, 1.0),
        (0.5, 0, 2, 0.5),
        (60.0, 3, 3, 60.0),
    ],
)
def test_a_server_that_fails_or_has_nothing_to_say_is_asked_less_often(
    retry_s: float | None, failures: int, idle: int, waits: float
) -> None:
    assert choose_wait(retry_s, failures, idle) == waits


@on_loop
async def test_a_server_that_asks_without_end_is_read_no_faster_than_its_answers_go() -> None:
    """Each answer takes a connection: a server could have as many as there are descriptors."""
    total, heard = 20_000, 0
    gate = asyncio.Event()
    under_way: set[str] = set()
    answered: set[str] = set()
    most = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal most
        if request.rpc == "tools/call":
            await reply.stream()
            for number in range(total):
                await reply.event({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
            await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "result": {}})
            reply.cut()
        elif request.method == "POST" and "result" in request.frame:
            key = request.frame["id"]
            under_way.add(key)
            most = max(most, len(under_way))
            await gate.wait()
            under_way.remove(key)
            answered.add(key)
            await reply.status("202 Accepted")
        else:
            await shake_hands(request, reply)

    async def answer_pings(peer: Client) -> None:
        nonlocal heard
        while True:
            await peer.until(lambda: bool(peer.others), patience_s=LONG_S)
            asked, peer.others[:] = list(peer.others), []
            heard += len(asked)
            for frame in asked:
                peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": {}})

    async with server(serve) as url, client(url) as peer:
        answering = asyncio.create_task(answer_pings(peer))
        peer.start("tools/call")
        await until(lambda: len(under_way) == 16)
        await linger(0.5)
        assert (most, len(answered)) == (16, 0)
        assert heard < total // 2
        before = heard
        gate.set()
        await until(lambda: len(answered) > before and heard > before, LONG_S)  # it goes on
        assert most == 16
        answering.cancel()
        await asyncio.wait({answering})


@pytest.mark.parametrize("said", [b"data: {}\n\n", b"data: x\n\n", b":\n", b"\n", b"id: 1\n\n", b"\r", b":\r"])
@on_loop
async def test_a_stream_of_tiny_events_leaves_turns_to_others(said: bytes) -> None:
    """The work between two turns is bounded by a number of events and of bytes, however many come in one piece."""
    flood = said * (256 * 1024 // len(said))
    turns, has_come = 0, asyncio.Event()

    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(flood)
        has_come.set()
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "at last"}})
        reply.cut()

    async def count() -> None:
        nonlocal turns
        await has_come.wait()
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert (await call(misbehave))["message"] == "at last"
    counting.cancel()
    await asyncio.wait({counting})
    assert turns > len(flood) // 4096
