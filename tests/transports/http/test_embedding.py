"""The front as a part of other applications: the example, Starlette, FastAPI, other paths."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.transports.http.app import HttpFront
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, run, wait_until
from tests.transports.http.stage import call, initialize

pytest.importorskip("starlette")

ROOT = Path(__file__).resolve().parents[3]
SERVER = ROOT / "bench" / "server.py"
NOTED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@contextlib.contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def post(url: str, frame: Any, session: str = "") -> tuple[str, Any]:
    headers = {"content-type": "application/json", **({"mcp-session-id": session} if session else {})}
    request = urllib.request.Request(url, json.dumps(frame).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        body = reply.read()
        return reply.headers.get("mcp-session-id", ""), json.loads(body) if body else None


def wait_for(url: str) -> bytes:
    found: list[bytes] = []

    def answers() -> bool:
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
            found.append(reply.read())
        return bool(found)

    wait_until(answers)
    return found[0]


def use(base: str) -> None:
    session, opened = post(base, initialize("2025-06-18"))
    assert opened["result"]["protocolVersion"] == "2025-06-18"
    assert post(base, NOTED, session) == ("", None)
    assert post(base, call(2), session)[1]["id"] == 2


def test_the_example_serves_its_own_page_and_mcp() -> None:
    port = free_port()
    with running("examples/embedded.py", str(port), sys.executable, str(SERVER), "2025-06-18") as process:
        assert wait_for(f"http://127.0.0.1:{port}/") == b"MCP is at /tools/mcp\n"
        use(f"http://127.0.0.1:{port}/tools/mcp")
    assert process.returncode in (0, -15)


def test_the_endpoint_of_http_sse_is_where_the_application_is_mounted() -> None:
    port = free_port()
    with running("examples/embedded.py", str(port), sys.executable, str(SERVER), "2025-06-18"):
        wait_for(f"http://127.0.0.1:{port}/")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/tools/sse", timeout=PATIENCE_S) as stream:
            assert stream.readline() == b"event: endpoint\n"
            assert stream.readline().startswith(b"data: /tools/message?sessionId=")


def test_fastapi_mounts_it_too() -> None:
    pytest.importorskip("fastapi")
    port = free_port()
    program = f"""
import sys, uvicorn
from fastapi import FastAPI
sys.path.insert(0, "examples")
from embedded import make_app
app = FastAPI()
app.mount("/inner", make_app([sys.executable, {str(SERVER)!r}, "2025-06-18"]))
uvicorn.run(app, port={port}, log_level="error", timeout_graceful_shutdown=1)
"""
    with running("-c", program):
        wait_for(f"http://127.0.0.1:{port}/inner/")
        use(f"http://127.0.0.1:{port}/inner/tools/mcp")


@pytest.mark.parametrize("comes", [[], [{"type": "http.request", "body": b"{", "more_body": True}]])
def test_who_leaves_before_the_answer_is_answered_all_the_same(comes: list[dict[str, Any]]) -> None:
    """What a framework puts around an application, such as `BaseHTTPMiddleware` of Starlette, fails without one."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"*/*")],
    }
    coming = [*comes, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return coming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> None:
        await HttpFront(lambda transport, caller: Unused())(scope, receive, send)

    run(main())
    assert [message.get("status") for message in sent] == [499, None]


class Unused:
    async def run(self) -> None: ...

    def stop(self, reason: str) -> None: ...

    def drain(self, reason: str) -> None: ...
