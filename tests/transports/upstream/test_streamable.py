"""Streamable HTTP as its pages describe it, against servers that do what they should."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from tests.support.waiting import hang, linger, until
from tests.transports.upstream.stage import PATIENCE_S, REVISION, Reply, Request, client, on_loop, server, shake_hands


class Log:
    """Every request in the order in which it came; answers like a server without surprises."""

    def __init__(self, session: str = "s1", revision: str | None = None) -> None:
        self.seen: list[Request] = []
        self.session = session
        self.revision = revision

    async def __call__(self, request: Request, reply: Reply) -> None:
        self.seen.append(request)
        if await shake_hands(request, reply, self.session, self.revision):
            return
        if request.rpc is None or "id" not in request.frame or "method" not in request.frame:
            await reply.status("202 Accepted")
        else:
            await reply.result(request, {"echo": request.rpc})

    @property
    def names(self) -> list[str]:
        return [request.rpc or request.method for request in self.seen]


@on_loop
async def test_a_request_is_answered_with_json() -> None:
    async with server(Log()) as url, client(url) as peer:
        assert (await peer.ask("ping"))["result"] == {"echo": "ping"}


@on_loop
async def test_the_handshake_comes_first_and_in_order() -> None:
    log = Log()
    async with server(log) as url, client(url) as peer:
        await asyncio.gather(*(peer.ask("tools/list") for _ in range(5)))
    posts = [request.rpc for request in log.seen if request.method == "POST"]
    assert posts == ["initialize", "notifications/initialized", *["tools/list"] * 5]


@on_loop
async def test_every_post_accepts_json_and_events() -> None:
    log = Log()
    async with server(log) as url, client(url) as peer:
        await peer.ask("ping")
    accepted = {request.headers["accept"] for request in log.seen if request.method == "POST"}
    assert accepted == {"application/json, text/event-stream"}


@on_loop
async def test_the_session_id_is_sent_after_initialize_and_not_before() -> None:
    log = Log("the-session")
    async with server(log) as url, client(url) as peer:
        await peer.ask("ping")
    first, *others = [request.headers.get("mcp-session-id") for request in log.seen]
    assert first is None
    assert set(others) == {"the-session"}


@on_loop
async def test_a_server_without_session_is_sent_none() -> None:
    log = Log("")
    async with server(log) as url, client(url) as peer:
        await peer.ask("ping")
    assert not any("mcp-session-id" in request.headers for request in log.seen)
    assert "DELETE" not in log.names


@pytest.mark.parametrize(
    ("revision", "sent"),
    [("2024-11-05", None), ("2025-03-26", None), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25")],
)
@on_loop
async def test_the_revision_header_is_sent_since_there_is_one(revision: str, sent: str | None) -> None:
    log = Log(revision=revision)
    async with server(log) as url, client(url) as peer:
        await peer.ask("ping")
    first, *others = [request.headers.get("mcp-protocol-version") for request in log.seen]
    assert first is None
    assert set(others) == {sent}


@on_loop
async def test_closing_deletes_the_session() -> None:
    log = Log()
    async with server(log) as url, client(url) as peer:
        await peer.ask("ping")
    assert log.names[-1] == "DELETE"


@on_loop
async def test_closing_deletes_nothing_if_told_so() -> None:
    log = Log()
    async with server(log) as url, client(url, end_session=False) as peer:
        await peer.ask("ping")
    assert "DELETE" not in log.names


@on_loop
async def test_notifications_keep_their_order() -> None:
    log = Log()
    async with server(log) as url, client(url) as peer:
        for number in range(20):
            peer.notify("notifications/progress", progressToken="t", progress=number)
        await peer.ask("ping")
        await until(lambda: log.names.count("notifications/progress") == 20)
    sent = [r.frame["params"]["progress"] for r in log.seen if r.rpc == "notifications/progress"]
    assert sent == list(range(20))


@on_loop
async def test_requests_go_side_by_side() -> None:
    arrived = asyncio.Barrier(3)

    async def serve(request: Request, reply: Reply) -> None:
        if not await shake_hands(request, reply):
            await arrived.wait()
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        answers = await asyncio.gather(*(peer.ask("tools/list") for _ in range(3)))
    assert all("result" in answer for answer in answers)


@on_loop
async def test_no_more_requests_go_at_once_than_allowed() -> None:
    running = most = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal running, most
        if await shake_hands(request, reply):
            return
        running += 1
        most = max(most, running)
        await linger(0.02)
        running -= 1
        await reply.result(request, {})

    async with server(serve) as url, client(url, open_requests=3) as peer:
        await asyncio.gather(*(peer.ask("tools/list") for _ in range(10)))
    assert most == 3


@on_loop
async def test_an_event_stream_brings_notifications_then_the_answer() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": 1}}, name="message")
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "result": {"done": True}}, event_id="e1")
        reply.cut()

    async with server(serve) as url, client(url) as peer:
        assert (await peer.ask("tools/call"))["result"] == {"done": True}
        assert [frame["params"] for frame in peer.others] == [{"n": 1}]


@on_loop
async def test_a_request_of_the_server_is_answered_by_a_post() -> None:
    asked = asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        if request.rpc == "tools/call":
            await reply.stream()
            await reply.event({"jsonrpc": "2.0", "id": "s-1", "method": "ping"})
            await asked.wait()
            await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "result": {}})
            reply.cut()
        else:
            assert request.frame == {"jsonrpc": "2.0", "id": "s-1", "result": {}}
            asked.set()
            await reply.status("202 Accepted")

    async with server(serve) as url, client(url) as peer:
        asked_id = peer.start("tools/call")
        await peer.until(lambda: bool(peer.others))
        peer.send({"jsonrpc": "2.0", "id": peer.others[0]["id"], "result": {}})
        assert "result" in await peer.answer(asked_id)


@on_loop
async def test_the_get_stream_brings_what_the_server_says_unasked() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if request.method == "GET":
            assert request.headers["accept"] == "text/event-stream"
            await reply.stream()
            await reply.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await hang()
        await shake_hands(request, reply)

    async with server(serve) as url, client(url) as peer:
        await peer.until(lambda: bool(peer.others))
        assert peer.others[0]["method"] == "notifications/tools/list_changed"


@on_loop
async def test_a_get_stream_that_ends_is_opened_again_where_it_ended() -> None:
    resumed = asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        if request.method == "GET" and "last-event-id" not in request.headers:
            await reply.stream()
            await reply.event(event_id="g-7", retry="10")
            reply.cut()
        elif request.method == "GET":
            assert request.headers["last-event-id"] == "g-7"
            resumed.set()
            await reply.stream()
            await hang()
        else:
            await shake_hands(request, reply)

    async with server(serve) as url, client(url):
        async with asyncio.timeout(5):
            await resumed.wait()


@on_loop
async def test_a_stream_that_the_server_closes_is_polled_as_it_asks() -> None:
    gets: list[tuple[str, float]] = []
    loop = asyncio.get_running_loop()
    asked_id = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal asked_id
        if await shake_hands(request, reply):
            return
        await reply.stream()
        if request.method == "POST":
            asked_id = request.frame["id"]
            await reply.event(event_id="p-0", retry="200")
        else:
            gets.append((request.headers["last-event-id"], loop.time()))
            if len(gets) == 3:
                await reply.event({"jsonrpc": "2.0", "id": asked_id, "result": {"polls": 3}})
            else:
                await reply.event(event_id=f"p-{len(gets)}")
        reply.cut()

    async with server(serve) as url, client(url) as peer:
        assert (await peer.ask("tools/call"))["result"] == {"polls": 3}
    assert [name for name, _ in gets] == ["p-0", "p-1", "p-2"]
    assert all(later - earlier >= 0.2 for (_, earlier), (_, later) in itertools.pairwise(gets))


@on_loop
async def test_event_ids_belong_to_their_own_stream() -> None:
    resumed: dict[str, int] = {}
    ids: dict[str, int] = {}

    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        await reply.stream()
        if request.method == "POST":
            stream = f"stream-{request.frame['id']}"
            ids[stream] = request.frame["id"]
            await reply.event(event_id=stream, retry="50")
        else:
            stream = request.headers["last-event-id"]
            resumed[stream] = resumed.get(stream, 0) + 1
            await reply.event({"jsonrpc": "2.0", "id": ids[stream], "result": {"stream": stream}})
        reply.cut()

    async with server(serve) as url, client(url) as peer:
        answers = await asyncio.gather(*(peer.ask("tools/call") for _ in range(4)))
    assert all(answer["result"] == {"stream": f"stream-{answer['id']}"} for answer in answers)
    assert set(resumed.values()) == {1}


@on_loop
async def test_an_array_is_sent_as_single_frames_and_answered_as_an_array() -> None:
    log = Log()
    async with server(log) as url, client(url, revision="2025-03-26") as peer:
        peer.send([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in ("a", "b")])
        await peer.until(lambda: bool(peer.others))
    assert sorted(member["id"] for member in peer.others[0]) == ["a", "b"]
    assert not any(isinstance(request.frame, list) for request in log.seen if request.body)


@on_loop
async def test_an_array_from_the_server_is_taken_apart() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        answer = {"jsonrpc": "2.0", "id": request.frame["id"], "result": {}}
        await reply.json([{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, answer])

    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/call")
        assert [frame["method"] for frame in peer.others] == ["notifications/message"]


@on_loop
async def test_a_pretty_printed_answer_becomes_one_line() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        answer = {"jsonrpc": "2.0", "id": request.frame["id"], "result": {"text": "a\nb"}}
        await reply.status(
            "200 OK",
            "Content-Type: application/json; charset=utf-8",
            body=json.dumps(answer, indent=2).replace("\n", "\r\n").encode(),
        )

    async with server(serve) as url, client(url) as peer:
        assert (await peer.ask("tools/call"))["result"] == {"text": "a\nb"}


@on_loop
async def test_headers_of_the_user_go_with_every_request() -> None:
    log = Log()
    async with server(log) as url, client(url, headers=(("Authorization", "Bearer x"), ("X-Two", "2"))) as peer:
        await peer.ask("ping")
    assert {(r.headers.get("authorization"), r.headers.get("x-two")) for r in log.seen} == {("Bearer x", "2")}


@on_loop
async def test_a_redirect_on_the_same_origin_is_followed_and_remembered() -> None:
    paths: list[str] = []

    async def serve(request: Request, reply: Reply) -> None:
        paths.append(request.path)
        if request.path == "/mcp":
            await reply.status("307 Temporary Redirect", "Location: /mcp/")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/list")
    assert paths.count("/mcp") == 1


@on_loop
async def test_a_cancelled_request_that_waits_is_never_sent() -> None:
    log = Log()
    let_go = asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        if request.rpc == "tools/call":
            log.seen.append(request)
            await let_go.wait()
            await reply.result(request, {})
        else:
            await log(request, reply)

    async with server(serve) as url, client(url, open_requests=1) as peer:
        running, waiting = peer.start("tools/call"), peer.start("tools/list")
        peer.notify("notifications/cancelled", requestId=waiting)
        peer.notify("notifications/roots/list_changed")
        await until(lambda: {"tools/call", "notifications/roots/list_changed"} <= set(log.names))
        let_go.set()
        await peer.answer(running)
        await peer.ask("ping")
    assert "tools/list" not in log.names
    assert "notifications/cancelled" not in log.names


@on_loop
async def test_a_cancelled_request_is_not_answered_with_an_error() -> None:
    called, cancelled = asyncio.Event(), asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        if request.rpc == "tools/call":
            await reply.stream()
            called.set()
            await cancelled.wait()
            reply.cut()
        elif request.rpc == "notifications/cancelled":
            cancelled.set()
            await reply.status("202 Accepted")
        else:
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        asked_id = peer.start("tools/call")
        await asyncio.wait_for(called.wait(), PATIENCE_S)
        peer.notify("notifications/cancelled", requestId=asked_id)
        await asyncio.wait_for(cancelled.wait(), PATIENCE_S)
        await peer.ask("ping")
        assert asked_id not in peer.answers


@on_loop
async def test_a_server_that_speaks_an_older_revision_is_translated() -> None:
    log = Log(revision="2024-11-05")
    async with server(log) as url, client(url, opened=False) as peer:
        answer = await peer.initialize(REVISION)
        assert answer["result"]["protocolVersion"] == REVISION
