"""A whole run with all that is written anywhere, in a store too, and a search for every secret that was in it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.guard.issuer import OURS, Issuer, issuer
from tests.inspect.test_page import Page
from tests.instances.test_no_secrets import overheard
from tests.instances.test_several import redis
from tests.signin.house import House, house
from tests.support.collector import collector
from tests.support.ports import free_port
from tests.support.waiting import wait_until
from tests.transports.http.stage import on_loop
from tests.transports.upstream.stage import Reply, Request, hello, server, shake_hands

LATEST = "2026-07-28"
META = "io.modelcontextprotocol/"
SENT = ("/v1/traces", "/v1/metrics")
COLLECTOR = "collector-secret-8Yb3Wn6Zq"
SIGNED_IN = {"access_token": "sign-in-token-5Wd2Kp8Rt", "refresh_token": "refresh-token-6Xv3Lq9Sj"}
OVER = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={COLLECTOR}"}
CHILD = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        told["serverInfo"] = {"name": "s", "version": "1"}
        if asked["method"] == "tools/list":
            told = {"tools": [{"name": "local", "inputSchema": {"type": "object"}}]}
        elif asked["method"] == "tools/call":
            sys.exit(1)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


async def opened(request: Request, reply: Reply) -> bool:
    """Open a session with a server that has tools; whether that was all there was to do."""
    if request.rpc != "initialize":
        return await shake_hands(request, reply)
    told = hello(request.frame["params"]["protocolVersion"])
    await reply.result(request, {**told, "capabilities": {"tools": {}}}, "Mcp-Session-Id: s1")
    return True


async def far(request: Request, reply: Reply) -> None:
    """A server at a URL that says things about what it was sent."""
    sent = request.headers.get("authorization", "")
    if request.rpc == "tools/call":
        await reply.status("401 Unauthorized", 'WWW-Authenticate: Bearer error="invalid_token"', body=sent.encode())
    elif not await opened(request, reply):
        await reply.result(request, {"tools": [{"name": "far", "inputSchema": {"type": "object"}}]})


async def signed(home: House, request: Request, reply: Reply) -> None:
    """A server that wants a sign-in, and repeats in an error what it was shown."""
    sent = request.headers.get("authorization", "")
    if sent.removeprefix("Bearer ") != SIGNED_IN["access_token"]:
        about = f'resource_metadata="{home.base}/.well-known/oauth-protected-resource/mcp"'
        await reply.status("401 Unauthorized", f"WWW-Authenticate: Bearer {about}")
    elif request.rpc == "tools/call":
        error = {"code": -32000, "message": f"nobody knows {sent}"}
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error})
    elif not await opened(request, reply):
        await reply.result(request, {"tools": [{"name": "signed", "inputSchema": {"type": "object"}}]})


def visit(proxy: Listening, heard: list[str], **headers: str) -> list[str]:
    """Open a session, list, and call what fails; give what nobody else may know: the ids of sessions."""
    given = {"accept": "application/json", **headers}

    def post(frame: Any, **more: str) -> dict[str, str]:
        _, answered, body = proxy.post(frame, **{**given, **more})
        heard.extend((json.dumps(body), json.dumps({k: v for k, v in answered.items() if k != "mcp-session-id"})))
        return answered

    session = post(INITIALIZE).get("mcp-session-id", "")
    post({"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
    post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, mcp_session_id=session)
    for number, name in enumerate(("far", "local", "signed", "unknown"), 3):
        post({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}, mcp_session_id=session)
    params = {"_meta": {f"{META}protocolVersion": LATEST, f"{META}clientCapabilities": {}}}
    modern = {"mcp_protocol_version": LATEST, "mcp_method": "tools/list"}
    post({"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": params}, **modern)
    return [session] if session else []


def run(one: Issuer, url: str, home: House, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Do everything, and return the secrets, and all that was written and answered."""
    secrets = {
        "a secret of a file": "secret-of-robot-9Qx7Lm2Zt",
        "a wrong secret": "guessed-secret-4Kd8Ws1Pv",
        "a header for a server": "header-secret-7Hn3Rb6Yc",
        "a variable of a server": "variable-secret-2Jf5Tg9Xu",
        "a key of states": "ab" * 32,
        "a header for the collector": COLLECTOR,
        "a secret to sign in with": "client-secret-3Mc6Bz1Hy",
        "a token of a sign-in": SIGNED_IN["access_token"],
        "what renews it": SIGNED_IN["refresh_token"],
        "a token": one.give(scope="use", email="ada@home.example"),
        "a token that has ended": one.give(exp=1),
        "a token for somebody else": one.give(aud="https://other.example"),
        "a token that is good for little": one.give(scope="less"),
    }
    (folder / "tokens").write_text(f"robot {secrets['a secret of a file']}\n")
    (folder / "state").write_text(f"{secrets['a key of states']}\n")
    (folder / "client").write_text(f"{secrets['a secret to sign in with']}\n")
    for name in ("tokens", "state", "client"):
        (folder / name).chmod(0o600)
    variables = {"SECRET": secrets["a variable of a server"]}
    servers = {
        "local": {"command": sys.executable, "args": ["-c", CHILD], "env": variables},
        "far": {"url": url, "headers": {"Authorization": f"Bearer {secrets['a header for a server']}"}},
        "signed": {"url": home.url},
    }
    sign_in = {"grant": "client_credentials", "clientId": "us", "clientSecretFile": str(folder / "client")}
    rules = [{"allow": {}}, {"for": {"principals": ["robot"]}, "deny": {"servers": ["far"]}}]
    (folder / "servers.json").write_text(
        json.dumps({"mcpServers": servers, "dragoman": {"rules": rules, "servers": {"signed": {"oauth": sign_in}}}})
    )
    port, files = free_port(), {name: folder / name for name in ("log", "access", "trace")}
    options = [
        *("--config", str(folder / "servers.json"), "--paths", "--status", str(folder / "socket")),
        *("--auth-issuer", one.url, "--auth-audience", OURS, "--auth-scope", "use"),
        *("--auth-token-file", str(folder / "tokens"), "--state-key-file", str(folder / "state")),
        *("--log-file", str(files["log"]), "--log-format", "json", "--log-level", "debug", "--restarts", "1"),
        *("--access-log", str(files["access"]), "--trace", str(files["trace"])),
        *("--metrics-listen", f"http://127.0.0.1:{port}", "--otel", "--inspect", "http://127.0.0.1:0"),
    ]
    heard: list[str] = []
    with contextlib.ExitStack() as stack:
        to, came = stack.enter_context(collector())
        kept = stack.enter_context(overheard(where := stack.enter_context(redis(folder))))
        options += ["--store", where, "--store-events", "--instance-listen", "http://127.0.0.1:0"]
        environment = {**OVER, "OTEL_EXPORTER_OTLP_ENDPOINT": to, "XDG_DATA_HOME": str(folder)}
        proxy = stack.enter_context(listening(*options, server=[], **environment))
        page = Page(proxy.first_line)
        secrets["the key of the page"] = page.key
        proxy.url = proxy.lines.read().decode().removeprefix("listening on ").strip()
        for number, name in enumerate(list(secrets)):
            if any(word in name for word in ("header", "variable", "key", "sign", "renews")):
                continue
            shown = {"authorization": f"Bearer {secrets[name]}"} if number % 2 else {"x_api_key": secrets[name]}
            if "token" in name:
                shown = {"authorization": f"Bearer {secrets[name]}"}
            for which, session in enumerate(visit(proxy, heard, **shown)):
                secrets[f"session {which} of {name}"] = session
        for path in ("/healthz", "/readyz", "/.well-known/oauth-protected-resource/mcp"):
            with urllib.request.urlopen(proxy.url.removesuffix("/mcp") + path, timeout=60) as answer:
                heard.append(answer.read().decode())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            metrics = answer.read().decode()
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as board:
            board.connect(str(folder / "socket"))
            heard.append(board.makefile("rb").read().decode())
        wait_until(lambda: b'"tools/call"' in page.get("/trace")[2])
        shown = "".join(page.get(path)[2].decode() for path in ("/trace", "/about"))
        with page.open("/events?from=1") as events:
            _, said = proxy.end()
            shown += events.read().decode()
    sent = {path: "".join(body.decode("utf-8", "replace") for one, body in came.queue if one == path) for path in SENT}
    written = {name: file.read_text() for name, file in files.items()}
    written |= {"the page": shown, **sent}
    written |= {"metrics": metrics, "answers": "\n".join(heard), "stderr": said}
    return secrets, {**written, "the store": b"".join(kept).decode("utf-8", "replace")}


@on_loop
async def test_a_whole_run_writes_down_no_secret(tmp_path: Path) -> None:
    async with issuer() as one, server(far) as url, house(tmp_path) as home:
        home.token, home.pages["/mcp"] = SIGNED_IN, functools.partial(signed, home)
        secrets, written = await asyncio.to_thread(run, one, url, home, tmp_path)
    assert len(secrets) == 16, "two visitors were let in"
    assert [form["grant_type"] for path, form in home.asked if path == "/token"] == ["client_credentials"]
    assert "nobody knows" in written["answers"], "the server that wants a sign-in was asked"
    assert '"httpStatus": 401' in written["answers"], "and the one that takes its token no more"
    assert "dragoman:session:" in written["the store"]
    assert [name for name, text in written.items() if not text and name != "stderr"] == []
    assert "mcp.client.operation.duration" in written["/v1/metrics"]
    assert "tools/call" in written["/v1/traces"]
    assert "tools/call" in written["the page"]
    assert "robot" in written["access"]
    assert "ada by editor of" in written["access"]
    assert "tools/call" in written["trace"]
    found = [
        (where, name)
        for where, text in written.items()
        for name, secret in secrets.items()
        for part in (secret, *secret.split(".")[1:])
        if len(part) > 15 and part in text
    ]
    assert found == []
    assert not re.search("ada@home", "".join(written.values())), "nor what else a token says"
