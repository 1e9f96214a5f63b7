"""`--auth-issuer` and what belongs to it, of a proxy that is a process."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.cli.test_listen import INITIALIZE, SERVER, Listening, listening
from tests.guard.issuer import OURS, guard_of, guarded, issuer
from tests.support.waiting import put_forward, until, wait_until
from tests.transports.http.stage import BOTH, on_loop, serving
from tests.transports.http.test_websocket import dial
from tests.transports.http.test_websocket import shake_hands as shake_hands_by_websocket
from tests.transports.http.wire import connect, read_reply
from tests.transports.upstream.stage import Reply, Request, server, shake_hands


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--auth-scope", "a"], "--auth-scope means nothing without --auth-issuer"),
        (["--auth-forward"], "--auth-forward means nothing without --auth-issuer"),
        (["--auth-issuer", "https://login.example"], "expected --auth-audience, or --resource-url"),
        (
            ["--auth-issuer", "http://login.example", "--auth-audience", "x"],
            "expected an https URL, or one of this machine",
        ),
        (["--auth-introspection", "https://login.example", "--auth-audience", "x"], "expected --auth-issuer with"),
        (
            ["--auth-issuer", "https://login.example", "--resource-url", "tools.example"],
            "expected an http or https URL",
        ),
        (["--auth-issuer", "https://login.example", "--auth-audience", "x", "--auth-jwks", "/no/file"], "or a file"),
        (
            ["--auth-issuer", "https://login.example", "--auth-audience", "x", "--auth-forward"],
            "--auth-forward needs --url",
        ),
        (
            ["--auth-issuer", "https://l.example", "--auth-audience", "x", "--auth-implies", "a"],
            "expected BROAD=NARROW",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], reason: str) -> None:
    with listening(*options) as proxy:
        _, said = proxy.lines.rest(proxy.process, 60)
        assert reason in proxy.first_line + said.decode()
        assert proxy.process.returncode == 2


@on_loop
async def test_a_process_takes_tokens_of_its_issuer() -> None:
    async with issuer("RSA") as one:
        options = ["--auth-issuer", one.url, "--resource-url", OURS, "--auth-scope", "a b", "--auth-implies", "all=a,b"]

        def talk() -> list[Any]:
            with listening(*options) as proxy:
                told = []
                for scope in (None, "a", "all", "b a"):
                    given = {} if scope is None else {"authorization": f"Bearer {one.give(scope=scope)}"}
                    status, headers, _ = proxy.post({"jsonrpc": "2.0", "method": "notifications/x"}, **given)
                    told.append((status, headers.get("www-authenticate", "")))
                _, said = proxy.end()
                assert "anybody who reaches" not in said
                return told

        refused, narrow, broad, both = await asyncio.to_thread(talk)
        assert refused[0] == 401
        assert 'scope="a b"' in refused[1]
        assert narrow[0] == 403
        assert broad[0] == both[0] == 400, "let in, without a session"


async def serve_echo(request: Request, reply: Reply) -> None:
    SEEN.append((request.rpc or request.method, request.headers.get("authorization", "")))
    if not await shake_hands(request, reply):
        await reply.result(request, {"content": [], "tools": []})


SEEN: list[tuple[str, str]] = []


@pytest.mark.parametrize("forwards", [True, False])
@on_loop
async def test_a_token_goes_to_the_server_only_where_that_is_chosen(forwards: bool) -> None:
    SEEN.clear()
    async with issuer() as one, server(serve_echo) as url:
        guard = guard_of(one, forwards=forwards)
        config = ProxyConfig(header_middleware=(guard.headers_to_server,) if forwards else ())
        async with serving(FrontConfig(admission=Admission(guard=guard))) as stage:
            stage.make = lambda transport: Proxy(config, transport, lambda: open_upstream(UpstreamConfig(url)))
            tokens = {name: one.give(sub=name) for name in ("ada", "bob")}
            for name in ("ada", "bob", "ada"):
                opening = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": name, "version": "1"},
                }
                opened = await stage.post(
                    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
                    authorization=f"Bearer {tokens[name]}",
                )
                assert opened.status == 200
                session = opened.headers["mcp-session-id"]
                for body in (
                    {"jsonrpc": "2.0", "method": "notifications/initialized"},
                    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": {}}},
                ):
                    said = await stage.post(body, mcp_session_id=session, authorization=f"Bearer {tokens[name]}")
                    assert said.status in (200, 202)
                    await said.body()
                tokens[name] = one.give(sub=name, jti="renewed")
                again = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": name, "arguments": {}}}
                said = await stage.post(again, mcp_session_id=session, authorization=f"Bearer {tokens[name]}")
                await said.body()
                last = [sent for method, sent in SEEN if method == "tools/call"][-1]
                assert last == (f"Bearer {tokens[name]}" if forwards else "")
    assert forwards or not any(sent for _, sent in SEEN)


@on_loop
async def test_a_token_does_not_go_with_the_requests_of_nobody_on_the_same_connection() -> None:
    """A balancer has one connection for many, and with `--auth-mode optional` some of them are nobody."""
    SEEN.clear()
    async with issuer() as one, server(serve_echo) as url:
        guard = guard_of(one, forwards=True, is_optional=True)
        config = ProxyConfig(header_middleware=(guard.headers_to_server,))
        async with serving(FrontConfig(admission=Admission(guard=guard))) as stage:
            stage.make = lambda transport: Proxy(config, transport, lambda: open_upstream(UpstreamConfig(url)))
            reader, writer = await connect(stage.port)

            async def post(frame: Any, **more: str) -> Any:
                body = json.dumps({"jsonrpc": "2.0", **frame}).encode()
                given = {"host": "localhost", "accept": BOTH, "content-type": "application/json", **more}
                head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
                writer.write(f"POST /mcp HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body)
                reply = await read_reply(reader, writer)
                async for _ in reply.parts():
                    pass
                return reply

            async def call(name: str, session: str, **more: str) -> str:
                params = {"name": name, "arguments": {}}
                await post({"id": 2, "method": "tools/call", "params": params}, **{"mcp-session-id": session, **more})
                return [sent for method, sent in SEEN if method == "tools/call"][-1]

            ada, sessions = {"authorization": f"Bearer {one.give(sub='ada')}"}, {}
            for name, shown in (("nobody", {}), ("ada", ada)):
                info = {"name": name, "version": "1"}
                opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
                opened = await post({"id": 1, "method": "initialize", "params": opening}, **shown)
                sessions[name] = opened.headers["mcp-session-id"]
                there = {"mcp-session-id": sessions[name], **shown}
                await post({"method": "notifications/initialized"}, **there)
            assert await call("hers", sessions["ada"], **ada) == ada["authorization"]
            assert await call("anybody's", sessions["nobody"]) == ""


@on_loop
async def test_a_websocket_ends_with_its_token() -> None:
    late = 0.0
    async with issuer() as one, guarded(one, now_s=lambda: time.time() + late) as stage:
        headers = {"Authorization": f"Bearer {one.give()}"}
        async with dial(stage, additional_headers=headers) as socket:
            await shake_hands_by_websocket(stage, socket)
            await put_forward(61)
            assert socket.close_code is None
            late = 1000.0
            await put_forward(61)
            await until(lambda: socket.close_code is not None)


SERVERS = {name: {"command": SERVER[0], "args": SERVER[1:]} for name in ("files", "tracker")}


def write_rules(path: Path, rules: Any) -> None:
    ours = {} if rules is None else {"rules": rules}
    path.write_text(json.dumps({"mcpServers": SERVERS, "dragoman": {"prefix": "always", **ours}}), "utf-8")


def tools_of(proxy: Listening, secret: str) -> list[str]:
    given = {"authorization": f"Bearer {secret}", "accept": "application/json"}
    _, headers, _ = proxy.post(INITIALIZE, **given)
    given["mcp_session_id"] = headers["mcp-session-id"]
    proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **given)
    _, _, answer = proxy.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **given)
    return sorted({tool["name"].partition("_")[0] for tool in answer["result"]["tools"]})


def test_rules_of_a_file_count_and_are_read_again(tmp_path: Path) -> None:
    file, secrets = tmp_path / "servers.json", tmp_path / "secrets"
    secrets.write_text("ada secret-of-ada-secret\nbob secret-of-bob-secret\n")
    secrets.chmod(0o600)
    for_ada = [{"allow": {"servers": ["files"]}}, {"for": {"principals": ["ada"]}, "allow": {"servers": ["tracker"]}}]
    write_rules(file, for_ada)
    options = ["--config", str(file), "--auth-token-file", str(secrets), "--log-level", "info"]
    with listening(*options, server=[]) as proxy:
        assert tools_of(proxy, "secret-of-ada-secret") == ["files", "tracker"]
        assert tools_of(proxy, "secret-of-bob-secret") == ["files"]
        write_rules(file, [{"for": {"principals": ["b?b"]}, "allow": {"servers": ["tracker"]}}])
        wait_until(lambda: tools_of(proxy, "secret-of-bob-secret") == ["tracker"])
        assert tools_of(proxy, "secret-of-ada-secret") == []
        write_rules(file, None)
        wait_until(lambda: b"cannot be used as it is now" in proxy.lines.read())
        assert tools_of(proxy, "secret-of-ada-secret") == [], "without rules they still count"
        proxy.end()


def test_rules_count_for_one_server_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    write_rules(file, [{"allow": {"servers": ["tracker"]}}])
    for name, may in (("files", False), ("tracker", True)):
        with listening("--config", str(file), "--server", name, server=[]) as proxy:
            assert bool(tools_of(proxy, "x")) is may
            proxy.end()
