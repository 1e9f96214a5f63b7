"""Requests over a connection that is open already, which take no task, and answers whose heads have come before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.waiting import hang, linger, until
from tests.transports.upstream.stage import Reply, Request, answer_to, client, on_loop, server, shake_hands

Piece = Callable[[Request, Reply], Awaitable[None]]


def whole(request: Request, *headers: str, **result: Any) -> bytes:
    """Write an answer as one packet."""
    body = json.dumps(answer_to(request, **result)).encode()
    lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Peer:
    """Answers calls in one packet each, but those for which a test has something else; counts connections."""

    def __init__(self, **others: Piece) -> None:
        self.others = others
        self.asked: list[str] = []
        self.writers: set[Any] = set()

    async def __call__(self, request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        self.writers.add(reply.writer)
        if request.rpc == "notifications/cancelled":
            await reply.status("202 Accepted")
            return
        name = request.frame["params"]["name"]
        self.asked.append(name)
        if name in self.others:
            await self.others[name](request, reply)
        else:
            await reply.raw(whole(request, name=name))


async def in_pieces(request: Request, reply: Reply) -> None:
    data = whole(request, name="pieces")
    for start in range(0, len(data), 7):
        await reply.raw(data[start : start + 7])
        await asyncio.sleep(0)


async def with_another_head(request: Request, reply: Reply) -> None:
    await reply.raw(whole(request, "X-More: 1", name="head"))


async def as_text(request: Request, reply: Reply) -> None:
    await reply.raw(whole(request, name="text").replace(b"application/json", b"text/plain"))


async def on_several_lines(request: Request, reply: Reply) -> None:
    body = json.dumps(answer_to(request, name="lines"), indent=2).encode()
    await reply.raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )


async def as_events(request: Request, reply: Reply) -> None:
    await reply.head("200 OK", "Content-Type: text/event-stream", "Connection: close")
    await reply.event(answer_to(request, name="events"))
    reply.cut()


async def as_one_event(request: Request, reply: Reply) -> None:
    event = b"event: message\r\ndata: %b\r\n\r\n" % json.dumps(answer_to(request, name="event")).encode()
    await reply.raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event)
    )


async def not_json(request: Request, reply: Reply) -> None:
    await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{nope")


async def another_id(request: Request, reply: Reply) -> None:
    frame = {"jsonrpc": "2.0", "id": "nobody's", "result": {}}
    body = json.dumps(frame).encode()
    await reply.raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )


async def nothing(request: Request, reply: Reply) -> None:
    reply.cut()


async def half(request: Request, reply: Reply) -> None:
    await reply.raw(whole(request, name="half")[:-5])
    reply.cut()


async def a_redirect(request: Request, reply: Reply) -> None:
    await reply.status("307 Temporary Redirect", "Location: /there")


async def refused(request: Request, reply: Reply) -> None:
    await reply.status("503 Service Unavailable")


@on_loop
async def test_calls_one_after_another_use_one_connection() -> None:
    peer = Peer()
    async with server(peer) as url, client(url) as one:
        for number in range(50):
            name = "x" * (number * 3)
            assert (await one.ask("tools/call", name=name))["result"] == {"name": name}
    assert len(peer.writers) == 1


@on_loop
async def test_an_answer_by_an_event_that_comes_whole_takes_no_more_tasks_than_one_by_json() -> None:
    made: list[object] = []

    def make(loop: asyncio.AbstractEventLoop, coro: Any, **about: Any) -> asyncio.Task[Any]:
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **about)

    async with server(Peer(event=as_one_event)) as url, client(url) as one:
        counts = []
        for name in ("json", "event") * 2:
            asyncio.get_running_loop().set_task_factory(make)
            for _ in range(10):
                assert (await one.ask("tools/call", name=name))["result"] == {"name": name}
            asyncio.get_running_loop().set_task_factory(None)
            counts.append(len(made))
            made.clear()
    assert counts[2] == counts[3]


@pytest.mark.parametrize(
    ("method", "times"), [("resources/read", 2), ("prompts/list", 2), ("tools/call", 1), ("tasks/update", 1)]
)
@on_loop
async def test_what_only_reads_is_sent_again_when_its_connection_is_closed_meanwhile(method: str, times: int) -> None:
    """A server closes an idle connection while a request is on its way to it."""

    async def closes(request: Request, reply: Reply) -> None:
        if peer.asked.count("late") == 1:
            reply.cut()
        else:
            await reply.raw(whole(request, name="late"))

    peer = Peer(late=closes)
    async with server(peer) as url, client(url) as one:
        await one.ask("tools/call", name="first")
        answer = await one.ask(method, name="late")
        if times == 1:
            assert "it closed the connection without an answer" in answer["error"]["message"]
        else:
            assert answer["result"] == {"name": "late"}
    assert peer.asked.count("late") == times


@on_loop
async def test_many_calls_at_once_get_their_own_answers() -> None:
    async with server(Peer()) as url, client(url) as one:
        await one.ask("tools/call", name="first")
        names = [str(number) * (number % 5 + 1) for number in range(200)]
        answers = await asyncio.gather(*(one.ask("tools/call", name=name) for name in names))
    assert [answer["result"]["name"] for answer in answers] == names


@pytest.mark.parametrize("other", [in_pieces, with_another_head, on_several_lines, as_events, as_one_event])
@on_loop
async def test_an_answer_in_another_shape_arrives_and_so_does_the_next(other: Piece) -> None:
    async with server(Peer(other=other)) as url, client(url) as one:
        for _ in range(3):
            assert (await one.ask("tools/call", name="plain"))["result"] == {"name": "plain"}
            assert "name" in (await one.ask("tools/call", name="other"))["result"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (as_text, "claims to be text/plain"),
        (not_json, "holds no response to the request"),
        (another_id, "holds no response to the request"),
        (nothing, "closed the connection without an answer"),
        (half, "in the middle of its answer"),
        (refused, "503"),
    ],
)
@on_loop
async def test_an_answer_that_is_none_is_an_error_and_the_next_arrives(other: Piece, words: str) -> None:
    peer = Peer(other=other)
    async with server(peer) as url, client(url) as one:
        for _ in range(3):
            assert (await one.ask("tools/call", name="plain"))["result"] == {"name": "plain"}
            message = (await one.ask("tools/call", name="other"))["error"]["message"]
            assert message.startswith(f"{url}: ")
            assert words in message
    assert peer.asked == ["plain", "other"] * 3  # nothing was sent twice


@on_loop
async def test_a_redirect_is_followed() -> None:
    async def moved(request: Request, reply: Reply) -> None:
        if request.path == "/there":
            await reply.raw(whole(request, name="moved"))
        else:
            await a_redirect(request, reply)

    async with server(Peer(other=moved)) as url, client(url) as one:
        assert (await one.ask("tools/call", name="plain"))["result"] == {"name": "plain"}
        for _ in range(2):
            assert (await one.ask("tools/call", name="other"))["result"] == {"name": "moved"}


@on_loop
async def test_calls_that_are_redirected_at_the_same_time_lead_to_the_same_place() -> None:
    waiting: list[str] = []
    paths: set[str] = set()

    async def moved(request: Request, reply: Reply) -> None:
        paths.add(request.path)
        if request.path == "/mcp":
            waiting.append("one more")
            await until(lambda: len(waiting) == 3)
            await reply.status("307 Temporary Redirect", "Location: mcp/")
        else:
            await reply.raw(whole(request, name="moved"))

    async def held(request: Request, reply: Reply) -> None:
        waiting.append("one more")
        await until(lambda: len(waiting) == 3)
        await reply.raw(whole(request, name="held"))

    async with server(Peer(held=held, moved=moved)) as url, client(url) as one:
        await asyncio.gather(*(one.ask("tools/call", name="held") for _ in range(3)))  # three connections, idle
        waiting.clear()
        for answer in await asyncio.gather(*(one.ask("tools/call", name="moved") for _ in range(3))):
            assert answer["result"] == {"name": "moved"}
        assert (await one.ask("tools/call", name="moved"))["result"] == {"name": "moved"}
    assert paths == {"/mcp", "/mcp/"}


@on_loop
async def test_a_cookie_is_taken_and_given_back() -> None:
    given: list[str] = []

    async def with_cookie(request: Request, reply: Reply) -> None:
        given.append(request.headers.get("cookie", ""))
        await reply.raw(whole(request, f"Set-Cookie: taste=sweet{len(given)}", name="cookie"))

    async with server(Peer(other=with_cookie)) as url, client(url) as one:
        for _ in range(4):
            await one.ask("tools/call", name="other")
    assert given == ["", "taste=sweet1", "taste=sweet2", "taste=sweet3"]


@on_loop
async def test_a_cancelled_call_keeps_nothing_from_the_next() -> None:
    asked = asyncio.Event()
    go_on = asyncio.Event()

    async def slow(request: Request, reply: Reply) -> None:
        asked.set()
        await go_on.wait()
        await reply.raw(whole(request, name="slow"))

    async with server(Peer(slow=slow)) as url, client(url) as one:
        await one.ask("tools/call", name="first")
        number = one.start("tools/call", name="slow")
        await asked.wait()
        one.notify("notifications/cancelled", requestId=number)
        assert (await one.ask("tools/call", name="next"))["result"] == {"name": "next"}
        go_on.set()
        assert (await one.ask("tools/call", name="last"))["result"] == {"name": "last"}


@on_loop
async def test_a_server_that_forgets_the_session_says_so() -> None:
    async def gone(request: Request, reply: Reply) -> None:
        await reply.status("404 Not Found")

    async with server(Peer(other=gone)) as url, client(url, opened=False) as one:
        await one.initialize()
        await one.ask("tools/call", name="first")
        assert "error" in await one.ask("tools/call", name="other")


@on_loop
async def test_closing_does_not_wait_for_a_call_that_is_not_answered() -> None:
    asked = asyncio.Event()

    async def silent(request: Request, reply: Reply) -> None:
        asked.set()
        await asyncio.get_running_loop().create_future()

    async with server(Peer(silent=silent)) as url, client(url) as one:
        await one.ask("tools/call", name="first")
        one.start("tools/call", name="silent")
        await asked.wait()


@on_loop
async def test_a_server_that_falls_silent_in_the_middle_is_given_up() -> None:
    async def begins(request: Request, reply: Reply) -> None:
        await reply.raw(whole(request, name="half")[:-5])
        await linger(5)

    async with server(Peer(begins=begins)) as url, client(url, idle_timeout_s=0.2) as one:
        await one.ask("tools/call", name="first")
        assert "for too long" in (await one.ask("tools/call", name="begins"))["error"]["message"]


@on_loop
async def test_what_waits_for_its_turn_when_the_client_leaves_is_not_sent_any_more() -> None:
    async def silent(request: Request, reply: Reply) -> None:
        await reply.stream()
        await hang()

    peer = Peer(silent=silent)
    async with server(peer) as url:
        async with client(url, open_requests=1) as one:
            await one.ask("tools/call", name="first")
            for name in ("silent", "waits", "waits too"):
                one.start("tools/call", name=name)
            await until(lambda: "silent" in peer.asked)
        await linger(0.05)
    assert peer.asked == ["first", "silent"]
