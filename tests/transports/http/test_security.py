"""Who is let in: Host, Origin, CORS, secrets, and whose session is whose."""

from __future__ import annotations

import logging

import pytest

from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.http.exchange import RequestRefused
from dragoman.transports.http.security import Doorkeeper, read_tokens
from tests.transports.http.stage import call, initialize, on_loop, serving
from tests.transports.http.wire import request, send_raw

SECRETS = FrontConfig(admission=Admission(tokens={"ada": "secret-of-ada", "bob": "secret-of-bob"}))


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ((), "127.0.0.1:{port}", 400),
        ((), "localhost:{port}", 400),
        ((), "LOCALHOST.", 400),
        ((), "[::1]:{port}", 400),
        ((), "evil.example", 421),
        ((), "evil.example:{port}", 421),
        ((), "localhost.evil.example", 421),
        ((), "127.0.0.1.evil.example:{port}", 421),
        ((), "localhost:evil.example", 421),
        ((), "localhost:", 400),
        (("mcp.example",), "mcp.example:8443", 400),
        (("mcp.example:8443",), "mcp.example:8443", 400),
        (("mcp.example:8443",), "mcp.example:80", 421),
        (("*",), "anything.example", 400),
    ],
)
@on_loop
async def test_the_host_must_be_ours(allowed: tuple[str, ...], host: str, status: int) -> None:
    async with serving(FrontConfig(admission=Admission(hosts=allowed))) as stage:
        # 400 is what a POST without session gets once it is let in.
        reply = await request(stage.port, "POST", "/mcp", {"host": host.format(port=stage.port)}, call(1))
        assert reply.status == status


@pytest.mark.parametrize(
    ("host", "own", "admitted"),
    [
        ("192.0.2.7:8080", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.8", "192.0.2.7", False),
        ("192.0.2.7", None, False),
        ("192.0.2.7.evil.example", "192.0.2.7", False),
        ("192.0.2.7", "::ffff:192.0.2.7", True),
        ("[2001:db8::7]:80", "2001:db8::7", True),
        ("[2001:db8:0::7]", "2001:db8::7", True),
        ("[fe80::1]", "fe80::1%eth0", True),
        ("[2001:db8::8]", "2001:db8::7", False),
        ("evil.example", "evil.example", False),
        ("testserver", "testserver", False),
        ("3221225991", "192.0.2.7", False),
        ("192.0.2.7%evil.example", "192.0.2.7", False),
        ("[fe80::1%evil.example]", "fe80::1%eth0", False),
        ("", "192.0.2.7", False),
    ],
)
def test_the_address_that_a_connection_came_to_is_ours(host: str, own: str | None, admitted: bool) -> None:
    headers = {b"host": host.encode()}
    if admitted:
        assert Doorkeeper(Admission()).check_host(headers, own) == host
    else:
        with pytest.raises(RequestRefused):
            Doorkeeper(Admission()).check_host(headers, own)


@pytest.mark.parametrize(
    ("headers", "line"),
    [
        ({"host": "Tools.example:80"}, "421: if 'tools.example:80' is this server, add --allow-host tools.example"),
        ({"host": "a b" * 100}, "is this server, add --allow-host NAME"),
        ({"origin": "https://app.example:444"}, "add --allow-origin https://app.example:444"),
        ({"origin": "x y"}, "may call this server, add --allow-origin SCHEME://HOST"),
        ({"sec-fetch-site": "cross-site"}, "403: an image, a link or a form cannot be let in"),
        ({}, "401: clients show a secret of --auth-token-file or $DRAGOMAN_AUTH_TOKEN, as Authorization: Bearer"),
        ({"authorization": "Bearer wrong-secret"}, "or X-API-Key: SECRET"),
    ],
)
@on_loop
async def test_a_refusal_is_a_warning_that_says_what_would_help(
    headers: dict[str, str], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(SECRETS) as stage:
        for _ in range(3):
            await request(stage.port, "POST", "/mcp?secret-in-the-query", headers, initialize())
    said, more = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert ": 2 more within " in more
    assert line in said
    assert said.startswith("POST '/mcp' from 127.0.0.1 is refused with 4")
    assert len(said) < 400
    assert "secret-in" not in said
    assert "wrong-secret" not in said


@on_loop
async def test_a_request_without_host_is_refused() -> None:
    async with serving() as stage:
        assert (await send_raw(stage.port, b"GET /mcp HTTP/1.1\r\n\r\n")).status == 400


@pytest.mark.parametrize(
    ("origin", "admitted"),
    [
        ("http://127.0.0.1:{port}", True),
        ("http://127.0.0.1:1", False),
        ("https://127.0.0.1:{port}", False),
        ("http://evil.example", False),
        ("null", False),
        ("https://app.example", True),
        ("https://app.example:444", False),
        ("http://app.example", False),
        ("http://localhost:5173", True),
        ("http://localhost", True),
        ("http://localhost.evil.example:5173", False),
    ],
)
@on_loop
async def test_the_origin_must_be_known(origin: str, admitted: bool) -> None:
    admission = Admission(origins=("https://app.example", "http://localhost:*"))
    async with serving(FrontConfig(admission=admission)) as stage:
        given = origin.format(port=stage.port)
        for path in ("/mcp", "/message?sessionId=x"):
            reply = await request(stage.port, "POST", path, {"origin": given}, call(1))
            assert (reply.status != 403) == admitted
            assert reply.headers.get("access-control-allow-origin") == (given if admitted else None)


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 405), ("none", 405), (None, 405)]
)
@on_loop
async def test_another_site_is_refused_where_its_browser_sends_no_origin(site: str | None, status: int) -> None:
    async with serving() as stage:
        headers = {} if site is None else {"sec-fetch-site": site}
        assert (await request(stage.port, "GET", "/message", headers)).status == status


@on_loop
async def test_a_browser_may_ask_first_and_is_told_what_it_may_send_and_read() -> None:
    admission = Admission(origins=("https://app.example",), tokens={"me": "right"})
    async with serving(FrontConfig(admission=admission)) as stage:
        asks = {"origin": "https://app.example", "access-control-request-method": "POST"}
        reply = await request(stage.port, "OPTIONS", "/mcp", asks)
        assert reply.status == 204
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        assert reply.headers["vary"] == "origin"
        for name in ("mcp-session-id", "mcp-protocol-version", "last-event-id", "authorization", "content-type"):
            assert name in reply.headers["access-control-allow-headers"]
        assert "DELETE" in reply.headers["access-control-allow-methods"]
        asks["access-control-request-headers"] = "content-type,mcp-param-region, Mcp-Param-Size,x-other,mcp-param-a b"
        sends = (await request(stage.port, "OPTIONS", "/mcp", asks)).headers["access-control-allow-headers"]
        assert sends.split(", ")[-2:] == ["mcp-param-region", "mcp-param-size"]
        assert "x-other" not in sends
        asks["origin"] = "https://evil.example"
        assert (await request(stage.port, "OPTIONS", "/mcp", asks)).status == 403


@on_loop
async def test_a_page_may_read_the_session_id() -> None:
    async with serving(FrontConfig(admission=Admission(origins=("*",)))) as stage:
        reply = await stage.open(origin="https://app.example")
        assert "mcp-session-id" in reply.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("headers", "status", "challenge"),
    [
        ({}, 401, 'Bearer realm="mcp"'),
        ({"authorization": "Bearer wrong"}, 401, 'Bearer realm="mcp", error="invalid_token"'),
        ({"authorization": "Basic c2VjcmV0"}, 401, 'Bearer realm="mcp"'),
        ({"x-api-key": "secret-of-ad"}, 401, 'Bearer realm="mcp", error="invalid_token"'),
        ({"authorization": "Bearer secret-of-ada"}, 400, None),
        ({"authorization": "bearer  secret-of-bob"}, 400, None),
        ({"x-api-key": "secret-of-bob"}, 400, None),
    ],
)
@on_loop
async def test_a_secret_is_asked_for(headers: dict[str, str], status: int, challenge: str | None) -> None:
    async with serving(SECRETS) as stage:
        for path in ("/mcp", "/message"):
            reply = await request(stage.port, "POST", path, headers, call(1))
            assert (reply.status, reply.headers.get("www-authenticate")) == (status, challenge)


@on_loop
async def test_a_session_exists_only_for_who_opened_it() -> None:
    async with serving(SECRETS) as stage:
        await stage.open(authorization="Bearer secret-of-ada")
        for method in ("POST", "GET", "DELETE"):
            body = call(2) if method == "POST" else None
            given = stage.headers({"authorization": "Bearer secret-of-bob", "accept": "*/*"})
            assert (await request(stage.port, method, "/mcp", given, body)).status == 404
        reply = await stage.delete(authorization="Bearer secret-of-ada")
        assert reply.status == 204


@on_loop
async def test_the_id_of_one_transport_is_no_good_for_another() -> None:
    async with serving() as stage:
        await stage.open()
        assert (await stage.post(call(2), f"/message?sessionId={stage.session}")).status == 404


@on_loop
async def test_no_secret_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(SECRETS) as stage:
        await stage.open(authorization="Bearer secret-of-ada")
        await request(stage.port, "POST", "/mcp", {"authorization": "Bearer wrong-secret"}, initialize())
        await stage.delete(authorization="Bearer secret-of-ada")
        session = stage.session
    assert "dragoman" in caplog.text
    for secret in ("secret-of-ada", "wrong-secret", session):
        assert secret not in caplog.text
    assert "secret" not in repr(SECRETS)


@pytest.mark.parametrize("name", ["authorization", "host", "origin", "mcp-session-id", "content-type"])
@on_loop
async def test_two_headers_where_one_decides_are_refused(name: str) -> None:
    async with serving() as stage:
        head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{name}: localhost\r\n{name}: localhost\r\n"
        assert (await send_raw(stage.port, f"{head}content-length: 0\r\n\r\n".encode())).status == 400


def test_every_known_secret_is_compared() -> None:
    gate = Doorkeeper(Admission(tokens={"ada": "a", "bob": "b"}))
    assert gate.authenticate({b"authorization": b"Bearer a"}) == "ada"
    assert gate.authenticate({b"x-api-key": b"b"}) == "bob"
    with pytest.raises(RequestRefused) as caught:
        gate.authenticate({b"x-api-key": "b\u00e4".encode()})
    assert caught.value.status == 401


def test_secrets_are_read_one_a_line() -> None:
    text = "# who may come in\n\nada  first\nsecond\nada next\n"
    assert read_tokens(text) == {"ada": ("first", "next"), "line-4": ("second",)}


@pytest.mark.parametrize("text", ["", "# nobody\n", "a b c\n", "ada x\nada x\n", "ada x\nbob x\n", "ada s\u00e9same\n"])
def test_a_file_of_secrets_that_says_two_things_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_tokens(text)
