"""What is looked at in a body: that nothing in it makes everybody wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import RequestRefused
from dragoman.transports.http.reading import read_posted
from tests.support.effort import effort
from tests.transports.http.stage import call, on_loop, serving, text_of
from tests.transports.http.test_websocket import dial, hear, shake_hands

HEAD = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":'
MIB_16 = 16 * 1024 * 1024
MOST = 30
"""What is refused here is 1 to 4 of the units of `effort`, and was 65 to 460."""


def fill(unit: bytes) -> bytes:
    count = (MIB_16 - len(HEAD) - 5) // (len(unit) + 1)
    return HEAD + b"[" + b",".join([unit] * count) + b"]}}}"


def arrays_alone() -> bytes:
    return b"[" + b",".join([b"[]"] * (MIB_16 // 3 - 1)) + b"]"


def batch() -> bytes:
    return b"[" + b",".join([b'{"jsonrpc":"2.0","method":"n"}'] * 500_000) + b"]"


@pytest.mark.parametrize(
    "make",
    [
        arrays_alone,
        partial(fill, b"[]"),
        partial(fill, b"{}"),
        partial(fill, b'{"a":' * 180 + b"1" + b"}" * 180),
        partial(fill, b"[" * 180 + b"]" * 180),
        partial(fill, b"0"),
        partial(fill, b'{"a":1,"b":2}'),
        batch,
    ],
    ids=["arrays alone", "arrays", "objects", "deep objects", "deep arrays", "numbers", "rows", "batch"],
)
def test_a_body_that_unfolds_into_too_much_is_refused_at_once(make: Callable[[], bytes]) -> None:
    body = make()

    def read() -> None:
        with pytest.raises(RequestRefused) as caught:
            read_posted(body, 200)
        assert caught.value.status == 413

    assert effort(read) < MOST


@pytest.mark.parametrize(
    ("unit", "count"), [(b"QUJD", 15 * 256 * 1024), (b'a,[b],{c}\\n\\"', 1_000_000)], ids=["base64", "prose"]
)
def test_a_long_text_is_read(unit: bytes, count: int) -> None:
    assert read_posted(HEAD + b'"' + unit * count + b'"}}}', 200).keys == {b"1"}


def test_a_table_of_many_rows_is_read() -> None:
    assert read_posted(fill(b'{"a":1,"b":2,"c":"%s"}' % (b"x" * 150)), 200).keys == {b"1"}


@on_loop
async def test_it_is_told_to_the_client_over_every_transport() -> None:
    body = HEAD + b"[" + b"[]," * 100_001 + b"1]}}}"
    async with serving(FrontConfig()) as stage:
        await stage.open()
        reply = await stage.post(body)
        assert reply.status == 413
        assert "100000 of them arrays and objects" in (await reply.frame())["error"]["message"]
        assert stage.server.hears_nothing()
        assert text_of(await stage.call_and_answer()) == "hello"
        stage.servers.clear()
        async with dial(stage) as socket:
            await shake_hands(stage, socket)
            await socket.send(body.decode())
            assert "100000 of them arrays and objects" in (await hear(socket))["error"]["message"]
            assert stage.server.hears_nothing()
            assert call()["id"] == 2
