"""What a client says in answer to a question and is no answer: the server that waits hears of it, on each way in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from dragoman.transports.http.config import FrontConfig, Limits, Patience
from dragoman.transports.http.exchange import RequestRefused
from dragoman.transports.http.marking import Marking
from dragoman.transports.http.reading import read_posted
from tests.support.waiting import linger
from tests.transports.http.stage import Stage, call, content, on_loop, serving, text_of, within
from tests.transports.http.test_legacy import open_stream
from tests.transports.http.test_legacy import shake_hands as open_legacy
from tests.transports.http.test_websocket import dial, say
from tests.transports.http.test_websocket import shake_hands as open_websocket
from tests.transports.http.wire import connect

Post = Callable[[bytes], Awaitable[int]]
"""Sends a message; gives the status, 0 where there is none."""

QUESTION = {"jsonrpc": "2.0", "id": "q", "method": "ping"}


@asynccontextmanager
async def by_posts(stage: Stage, revision: str) -> AsyncIterator[Post]:
    await stage.open(revision)

    async def post(message: bytes) -> int:
        return (await stage.post(message)).status

    yield post


@asynccontextmanager
async def by_two_endpoints(stage: Stage, revision: str) -> AsyncIterator[Post]:
    stream, endpoint = await open_stream(stage)
    await open_legacy(stage, stream, endpoint)

    async def post(message: bytes) -> int:
        return (await stage.post(message, endpoint)).status

    yield post


@asynccontextmanager
async def by_websocket(stage: Stage, revision: str) -> AsyncIterator[Post]:
    async with dial(stage) as socket:
        await open_websocket(stage, socket, revision)

        async def post(message: bytes) -> int:
            await say(socket, message.decode())
            return 0

        yield post


WAYS = [by_posts, by_two_endpoints, by_websocket]


def said(*members: str) -> bytes:
    return ('{"jsonrpc":"2.0","id":"q"' + "".join(f",{member}" for member in members) + "}").encode()


GARBLED = {
    "found both": said('"result":{}', '"error":{"code":1,"message":"x"}'),
    "found none": said('"x":1'),
    "expected error to be an object": said('"error":"no"'),
    "expected result to be an object": said('"result":[]'),
    "expected result to be an object ": said('"result":null'),
    "expected result to be an object  ": said('"error":null'),
    "expected method to be a string": said('"method":null', '"result":{}'),
    "one kind of frame": said('"method":"ping"', '"result":{}'),
    "not JSON": said('"result":{'),
    "levels": said('"result":' + '{"a":' * 300 + "1" + "}" * 300),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reason", GARBLED)
@on_loop
async def test_who_waits_hears_why_there_is_no_answer(way: Any, reason: str) -> None:
    async with serving() as stage, way(stage, "2025-06-18") as post:
        stage.server.say(QUESTION)
        assert await post(GARBLED[reason]) in (0, 400)
        heard = await stage.server.hear()
        assert (heard["id"], heard["error"]["code"]) == ("q", -32603)
        assert reason.strip() in heard["error"]["message"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ['{"message":"x"}', '{"code":"1","message":"x"}', '{"code":1.5,"message":"x"}'])
@on_loop
async def test_an_error_has_a_code(way: Any, error: str) -> None:
    async with serving() as stage, way(stage, "2025-06-18") as post:
        stage.server.say(QUESTION)
        assert await post(said(f'"error":{error}')) in (0, 202)
        assert (await stage.server.hear())["error"] == {"code": -32603, "message": "x"}


@pytest.mark.parametrize("way", WAYS)
@on_loop
async def test_an_error_is_mended_beside_an_integer_that_is_long(way: Any) -> None:
    number = 12345678901234567890123
    async with serving() as stage, way(stage, "2025-06-18") as post:
        stage.server.say(QUESTION)
        await post(said('"result":null', f'"error":{{"message":"x","data":{number}}}'))
        heard = await stage.server.hear()
        assert heard == {"jsonrpc": "2.0", "id": "q", "error": {"code": -32603, "message": "x", "data": number}}


@pytest.mark.parametrize("way", [by_posts, by_websocket])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
@on_loop
async def test_of_an_array_everybody_who_waits_hears(way: Any, revision: str) -> None:
    """Where one answer of it is none the array is refused, with all that is in it; or it is one where none may be."""
    answers = [{"jsonrpc": "2.0", "id": 1, "result": []}, {"jsonrpc": "2.0", "id": 2, "result": {}}]
    async with serving() as stage, way(stage, revision) as post:
        stage.server.say({**QUESTION, "id": 1}, {**QUESTION, "id": 2})
        assert await post(json.dumps(answers).encode()) in (0, 400)
        heard = [await stage.server.hear() for _ in answers]
        assert [(one["id"], one["error"]["code"]) for one in heard] == [(1, -32603), (2, -32603)]


@on_loop
async def test_of_an_array_with_an_id_that_is_taken_everybody_who_waits_hears() -> None:
    async with serving() as stage, by_posts(stage, "2025-03-26") as post:
        stage.server.say({**QUESTION, "id": 1})
        calling = stage.call(2)
        await stage.server.hear()
        array = [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]
        assert await post(json.dumps(array).encode()) == 400
        assert (await stage.server.hear())["error"]["code"] == -32603
        stage.server.answer(2)
        await calling


LARGE = said('"result":{"text":"' + "x" * 20_000 + '"}')
SMALL_BODIES = FrontConfig(limits=Limits(body_bytes=10_000))


@pytest.mark.parametrize("way", [by_posts, by_two_endpoints])
@on_loop
async def test_of_an_answer_that_is_too_large_the_server_hears(way: Any) -> None:
    async with serving(SMALL_BODIES) as stage, way(stage, "2025-06-18") as post:
        stage.server.say(QUESTION)
        assert await post(LARGE) == 413
        heard = await stage.server.hear()
        assert (heard["id"], heard["error"]["code"]) == ("q", -32603)
        assert "larger than the limit" in heard["error"]["message"]


@on_loop
async def test_of_an_answer_in_chunks_that_grows_too_large_the_server_hears() -> None:
    async with serving(SMALL_BODIES) as stage, by_posts(stage, "2025-06-18"):
        stage.server.say(QUESTION)
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE)
        assert (await stage.post(chunks, content_length="", transfer_encoding="chunked")).status == 413
        assert (await stage.server.hear())["error"]["code"] == -32603


@on_loop
async def test_what_answers_nothing_is_answered_over_websocket_under_its_id() -> None:
    async with serving() as stage, dial(stage) as socket:
        await open_websocket(stage, socket)
        await say(socket, '{"jsonrpc":"2.0","id":5}')
        told = json.loads(await socket.recv())
        assert (told["id"], told["error"]["code"]) == (5, -32600)
        assert stage.server.hears_nothing()


HURRIED = FrontConfig(patience=Patience(body_s=0.2))


@pytest.mark.parametrize("parts", [[said('"result":{}')[:-1]], [b'{"jsonrpc":"2.0"', b',"id":"q","result":{'], [b"{"]])
@on_loop
async def test_of_an_answer_that_takes_too_long_the_server_hears(parts: list[bytes]) -> None:
    """Its client may say it again after 408; most do not, and the call that waits for it would wait for ever."""
    async with serving(HURRIED) as stage, by_posts(stage, "2025-06-18") as post:
        stream = await stage.get()
        stage.server.say(QUESTION)
        await stream.event()
        assert await slowly(stage, *parts) == 408
        if len(parts[0]) > 1:
            heard = await stage.server.hear()
            assert (heard["id"], heard["error"]["code"]) == ("q", -32603)
            assert "did not come within 0.2 s" in heard["error"]["message"]
            assert await post(said('"result":{}')) == 202
            assert stage.server.hears_nothing()
        else:  # of what nobody could read the id, the client may say it again
            await post(said('"result":{}'))
            assert (await stage.server.hear())["result"] == {}


@on_loop
async def test_a_request_that_takes_too_long_is_no_answer_to_a_question_of_that_id() -> None:
    async with serving(HURRIED) as stage, by_posts(stage, "2025-06-18") as post:
        stream = await stage.get()
        stage.server.say(QUESTION)
        await stream.event()
        assert await slowly(stage, said('"method":"ping"')[:-1]) == 408
        await post(said('"result":{}'))
        assert (await stage.server.hear())["result"] == {}


async def slowly(stage: Stage, *parts: bytes) -> int:
    """Post the beginning of a body, and nothing more; give the status."""
    reader, writer = await connect(stage.port)
    named = stage.headers({"host": "localhost", "content-type": "application/json", "content-length": "100"})
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode())
    for part in parts:
        writer.write(part)
        await linger(0.02)
    status = int((await within(reader.readline())).split()[1])
    writer.close()
    return status


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","id":5,"method":7}',
        '{"jsonrpc":"2.0","id":5,"method":"x","params":7}',
        '{"jsonrpc":"2.0","id":5,"method":"x","params":{}',
        '{"jsonrpc":"2.0","id":5}',
    ],
)
@pytest.mark.parametrize("way", ["posts", "websocket"])
@on_loop
async def test_what_is_refused_has_not_the_id_of_a_request_that_waits(way: str, message: str) -> None:
    async with serving() as stage, AsyncExitStack() as stack:
        if way == "posts":
            await stage.open()
            calling = stage.call(5)
            told = None
        else:
            socket = await stack.enter_async_context(dial(stage))
            await open_websocket(stage, socket)
            await say(socket, call(5))
        await stage.server.hear()
        if way == "posts":
            told = await (await stage.post(message.encode())).frame()
        else:
            await say(socket, message)
            told = json.loads(await socket.recv())
        assert (told["id"], told["error"]["code"] in (-32600, -32700)) == (None, True)
        stage.server.answer(5, **content("hello"))
        answer = await (await calling).frame() if way == "posts" else json.loads(await socket.recv())
        assert (answer["id"], text_of(answer)) == (5, "hello")


@pytest.mark.parametrize(("key", "found"), [('"dragoman-a1:7"', b"7"), ("7", None), ('"dragoman-b2:7"', None)])
def test_an_answer_to_another_instance_is_for_nobody(key: str, found: bytes | None) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_posted(f'{{"jsonrpc":"2.0","id":{key},"error":"no"}}'.encode(), 100)
    assert [Marking("a1").unmark_garbled(one).key for one in refused.value.garbled] == [found]
