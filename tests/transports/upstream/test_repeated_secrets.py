"""What a server repeats in errors of what we sent to it reaches neither the client nor the log."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import pytest

from dragoman.transports.base import HttpHeads
from dragoman.transports.secrecy import CENSORED, Secrets, secrets_in_path, secrets_of
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from tests.support.effort import effort
from tests.transports.upstream.raw import Line
from tests.transports.upstream.raw_websocket import CLOSE, frame_of, frames_server
from tests.transports.upstream.stage import Reply, Request, after_handshake, answer_to, call, client, on_loop, server

TOKEN = "sk/live+Sup3rS3cretT0ken~1"
HEADERS = (("Authorization", f"Bearer {TOKEN}"),)
HIDES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "quoted": lambda token: quote(token, safe=""),
    "base64": lambda token: b64encode(f"x{token}".encode()).decode(),
    "beginning": lambda token: token[:12],
    "spread": "-".join,
}
Say = Callable[[Request, Reply, str], Awaitable[None]]


def error_of(request: Request, said: str) -> dict[str, Any]:
    error = {"code": -32000, "message": "it is of no use", "data": {"got": [said], said: 1}}
    return {"jsonrpc": "2.0", "id": request.frame["id"], "error": error}


async def say_as_event(request: Request, reply: Reply, said: str) -> None:
    await reply.stream()
    await reply.event(error_of(request, said))
    reply.cut()


SAYS: dict[str, Say] = {
    "401": lambda request, reply, said: reply.status("401 Unauthorized", body=said.encode()),
    "challenge": lambda request, reply, said: reply.status(
        "401 Unauthorized", f'WWW-Authenticate: Bearer error="invalid_token", error_description="{said}"'
    ),
    "403": lambda request, reply, said: reply.json({"error": f"{said} is bad"}, status="403 Forbidden"),
    "500": lambda request, reply, said: reply.json(error_of(request, said), status="500 Internal Server Error"),
    "kind": lambda request, reply, said: reply.status("200 OK", f"Content-Type: text/{said}", body=b"{}"),
    "location": lambda request, reply, said: reply.status("307 X", f"Location: http://x.example/{said}"),
    "error": lambda request, reply, said: reply.json(error_of(request, said)),
    "event": say_as_event,
    "no message": lambda request, reply, said: reply.status(
        "200 OK", "Content-Type: application/json", body=b"{" + said.encode()
    ),
    "no array": lambda request, reply, said: reply.status(
        "200 OK", "Content-Type: application/json", body=b"[" + said.encode()
    ),
}


@pytest.mark.parametrize("hide", HIDES.values(), ids=HIDES)
@pytest.mark.parametrize("say", SAYS.values(), ids=SAYS)
def test_a_token_that_a_server_repeats_in_an_error_is_told_nobody(
    say: Say, hide: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    @on_loop
    async def check() -> None:
        error = await call(lambda request, reply: say(request, reply, hide(TOKEN)), headers=HEADERS)
        shown = caplog.text + json.dumps(error, ensure_ascii=False)
        assert not any(said in shown or said.lower() in shown for said in (TOKEN, hide(TOKEN), TOKEN[:12]))

    check()


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({"headers": (("X-Api-Key", TOKEN),)}, TOKEN),
        ({"headers": (("Cookie", f"theme=dark; session={TOKEN}"),)}, TOKEN),
        ({"header_middleware": (lambda: {"X-Anything": TOKEN},)}, TOKEN),
        ({"headers": (("Authorization", f"Basic {b64encode(b'me:pass-of-mine').decode()}"),)}, "pass-of-mine"),
    ],
    ids=["key", "cookie", "middleware", "password"],
)
def test_every_secret_that_was_sent_is_taken_out(config: Mapping[str, Any], sent: str) -> None:
    @on_loop
    async def check() -> None:
        error = await call(lambda request, reply: reply.json(error_of(request, f"{sent}!")), **config)
        assert error["data"] == {"got": ["***!"], "***!": 1}

    check()


@on_loop
async def test_a_short_word_under_the_name_of_some_key_is_no_secret() -> None:
    headers = (("X-Project-Key", "payments"),)
    error = await call(
        lambda request, reply: reply.json(error_of(request, "no such project: payments")), headers=headers
    )
    assert error["data"]["got"] == ["no such project: payments"]


@on_loop
async def test_what_a_url_says_that_is_secret_is_taken_out() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        await reply.json(error_of(request, f"pass-of-mine {TOKEN}"))

    async with server(serve) as url:
        where = url.replace("//", "//me:pass-of-mine@") + f"?api_key={quote(TOKEN)}&page=two-of-many"
        async with client(where, opened=False) as peer:
            assert (await peer.initialize())["error"]["data"]["got"] == [f"{CENSORED} {CENSORED}"]


@pytest.mark.parametrize("say", [SAYS[name] for name in ("401", "challenge", "403", "500", "location", "error")])
def test_what_a_path_says_that_is_secret_is_taken_out_where_the_server_has_a_name(
    say: Say, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "q9Zt4LmX7cKp2RvB8wNd"

    @on_loop
    async def check(name: str | None, is_told: bool) -> None:
        async with (
            server(lambda request, reply: say(request, reply, f"Cannot POST {request.path}")) as url,
            client(url.replace("/mcp", f"/s/{secret}/mcp"), opened=False, name=name) as peer,
        ):
            answer = await peer.initialize()
        assert (secret in caplog.text + json.dumps(answer["error"])) == is_told

    check("the server", is_told=False)
    check(None, is_told=True)  # it is called by its URL


@pytest.mark.parametrize(
    ("part", "is_secret"),
    [
        ("q9Zt4LmX7cKp2RvB8wNd", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("q9Zt4LmX7cKp%2FRvB8wNd", True),
        ("PATHSECRET1234567890", True),
        ("1234567890123456", True),
        ("q9Zt4LmX7cKp", False),
        ("organizations-internal", False),
        ("myCompanyServer2-preview", False),
        ("model-context-protocol.2025-11-25", False),
        ("STREAMABLE_HTTP_SERVER", False),
    ],
)
def test_a_part_of_a_path_is_secret_if_it_is_long_and_made_of_no_words(part: str, is_secret: bool) -> None:
    assert secrets_in_path(f"https://host/v1/{part}/mcp") == [unquote(part)] * is_secret


@on_loop
async def test_other_errors_and_results_are_the_servers_own() -> None:
    seen: list[Any] = []
    result = {"content": [{"type": "text", "text": f"you are {TOKEN}"}]}

    async def misbehave(request: Request, reply: Reply) -> None:
        seen.append(request.rpc)
        if request.rpc == "tools/list":
            await reply.json(error_of(request, "live and  let\n live: Bearer tokens are no secret, \u2460"))
        else:
            await reply.json(answer_to(request, **result))

    async with server(after_handshake(misbehave)) as url, client(url, headers=HEADERS) as peer:
        told = await peer.ask("tools/list")
        assert told["error"]["data"]["got"] == ["live and  let\n live: Bearer tokens are no secret, \u2460"]
        assert (await peer.ask("tools/call", name="x"))["result"] == result


@on_loop
async def test_a_token_that_a_server_repeats_over_websocket_is_told_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    caplog.set_level(logging.WARNING, "websockets")

    async def misbehave(line: Line, frame: dict[str, Any]) -> None:
        error = {"code": -32000, "message": f"{TOKEN} is no good"}
        await line.say(frame_of(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "error": error}).encode()))
        await line.say(frame_of(b"[" + TOKEN.encode()))
        await line.say(frame_of((1008).to_bytes(2, "big") + TOKEN.encode(), CLOSE))

    async with frames_server(misbehave) as url, client(url, headers=HEADERS) as peer:
        assert (await peer.ask("tools/call"))["error"]["message"] == f"{CENSORED} is no good"
        await peer.until(lambda: peer.end is not None)
        assert TOKEN not in caplog.text + str(peer.end) + str(peer.others)
    assert "that is" in caplog.text


@pytest.mark.parametrize(
    "header",
    [
        f'WWW-Authenticate: Bearer error_description="{TOKEN}"',
        f"Retry-After: {TOKEN}",
        f"Content-Type: text/html; a={TOKEN}",
        f"Content-Encoding: {TOKEN}",
        f"X-{TOKEN[8:].replace('~', '')}: 1",
    ],
)
@on_loop
async def test_the_trace_gets_no_token_from_a_header(header: str) -> None:
    async def serve(request: Request, reply: Reply) -> None:
        await reply.status("401 Unauthorized", header)

    heads: list[HttpHeads] = []
    async with server(serve) as url:
        pool = ConnectionPool(UpstreamConfig(url, headers=HEADERS))
        pool.on_heads = heads.append
        answer = await pool.send("POST", url, {}, b"{}")
        answer.close()
        await pool.close()
    assert TOKEN[8:].replace("~", "").lower() not in str(heads[0].response).lower().replace("~", "")
    assert CENSORED in str(heads[0].response)


@pytest.mark.parametrize("beside", [{"x": TOKEN}, {"x": [{TOKEN: 1}]}, {"result": {"x": TOKEN}}])
@on_loop
async def test_what_stands_beside_an_error_repeats_no_token(beside: dict[str, Any]) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        said = {"jsonrpc": "2.0", "id": json.loads(request.body)["id"], "error": {"code": 1, "message": "m"}}
        await reply.json(said | beside)

    async with server(after_handshake(misbehave)) as url, client(url, headers=HEADERS) as peer:
        answer = await peer.ask("tools/call")
        assert answer["error"]["code"]
        assert TOKEN not in str(answer)


def test_a_very_long_error_is_cut_and_not_looked_through() -> None:
    secrets = Secrets(secrets_of("Authorization", f"Bearer {TOKEN}"))
    long = {"code": 1, "message": "m" * 5000, "data": ["d" * 100] * 200_000}
    assert secrets.take_out_of(long) == {"code": 1, "message": "m" * 1000}
    assert Secrets().take_out_of(long) is long
    said = {"code": 1, "message": "\u0301\u0327" * 120_000}
    assert effort(lambda: secrets.take_out_of(said)) < 60


@pytest.mark.parametrize("letter", ["\ufdfa", "\u00e9", "x"])
def test_a_text_that_becomes_very_long_is_cut_and_not_looked_through(letter: str) -> None:
    """Each of the first becomes 18 characters: 170,000 of them took 1.3 s."""
    secrets = Secrets(secrets_of("Authorization", f"Bearer {TOKEN}"))
    for size in (60_000, 170_000, 260_000):
        said = letter * size
        assert effort(lambda said=said: secrets.take_out(said)) < 10
        assert effort(lambda said=said: secrets.take_out_of({"code": 1, "message": said})) < 10
        assert secrets.take_out(said) in (said, said[:1000])
        assert TOKEN not in secrets.take_out(said + TOKEN)


@pytest.mark.parametrize("levels", [1, 400, 900])
def test_an_error_of_very_many_empty_texts_is_not_looked_through(levels: int) -> None:
    """Deep down each took as many steps as there were levels: 5 MB of them held all sessions up for 14 s."""
    secrets = Secrets(secrets_of("Authorization", f"Bearer {TOKEN}"))
    data: Any = [""] * 1_000_000
    for _ in range(levels):
        data = [data]
    said = {"code": 1, "message": "m", "data": data}
    assert effort(lambda: secrets.take_out_of(said)) < 1
    assert secrets.take_out_of(said) == {"code": 1, "message": "m"}


@pytest.mark.parametrize("levels", [100, 900])
def test_a_secret_deep_down_in_an_error_is_taken_out(levels: int) -> None:
    secrets = Secrets(secrets_of("Authorization", f"Bearer {TOKEN}"))
    data: Any = {"token": TOKEN}
    for _ in range(levels):
        data = [data]
    assert secrets.take_out_of({"code": 1, "message": "m", "data": data}) == {"code": 1, "message": "m"}
    data = ["other"]
    for _ in range(levels):
        data = [data]
    said = {"code": 1, "message": "m", "data": data}
    assert secrets.take_out_of(said) is said


def test_the_code_of_a_very_long_error_repeats_nothing() -> None:
    secrets = Secrets(secrets_of("Authorization", f"Bearer {TOKEN}"))
    said = {"code": TOKEN, "message": "m", "data": "d" * 300_000}
    assert secrets.take_out_of(said) == {"code": None, "message": "m"}
