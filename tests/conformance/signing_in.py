"""A plain client that knows nothing of signing in, before the proxy, which does: for the suite's `auth/` scenarios.

`python signing_in.py [http] URL`, with the suite's variables in the environment. It speaks JSON-RPC on the proxy's
stdio, or posts it to a proxy that listens, lists the tools and calls the first one. What a scenario gives its client
(ids, secrets, keys, a token of an identity provider) becomes options of the proxy. Exits with 1 if anything is answered
with an error.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.peers.visits import listening_proxy, proxy_command

HERE = Path(__file__).parent
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""Where the suite expects the document of a client that has one."""

STATELESS = "2026-07-28"
LIMIT_S = 25
IDENTITY = {"name": "plain", "version": "1"}
PREFIX = "io.modelcontextprotocol/"


def options_for(scenario: str, context: dict[str, str], folder: Path) -> list[str]:
    """Give the options of the proxy for a scenario."""
    options = ["--oauth-client-metadata-url", DOCUMENT]
    files = {
        "client_secret": "client-secret-file",
        "private_key_pem": "private-key-file",
        "idp_id_token": "assertion-file",
        "valid_jwt": "assertion-file",
    }
    texts = {"client_id": "client-id", "idp_token_endpoint": "idp-token-endpoint", "idp_client_id": "idp-client-id"}
    for name, option in files.items():
        if name in context:
            (folder / option).write_text(context[name])
            options += [f"--oauth-{option}", str(folder / option)]
    for name, option in texts.items():
        if name in context:
            options += [f"--oauth-{option}", context[name]]
    grants = {
        "client-credentials": "client_credentials",
        "enterprise": "identity_assertion",
        "wif": "identity_assertion",
    }
    for word, grant in grants.items():
        if scenario.startswith(f"auth/{word}"):
            options += ["--oauth-grant", grant]
    return options


class Line(Protocol):
    """A way to the proxy."""

    def send(self, frame: dict[str, Any]) -> Any:
        """Send a frame; give its answer if it is a request."""


class Stdio:
    """The proxy as a child."""

    def __init__(self, command: list[str]) -> None:
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, frame: dict[str, Any]) -> Any:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(frame) + "\n")
        self.child.stdin.flush()
        while "id" in frame:
            found = json.loads(self.child.stdout.readline())
            if found.get("id") == frame["id"] and "method" not in found:
                return found
        return None


class Http:
    """The proxy behind a URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def send(self, frame: dict[str, Any]) -> Any:
        meta = frame.get("params", {}).get("_meta", {})
        named = (
            {"MCP-Protocol-Version": meta.get(f"{PREFIX}protocolVersion"), "Mcp-Method": frame["method"]}
            if meta
            else {}
        )
        if "name" in frame.get("params", {}):
            named["Mcp-Name"] = frame["params"]["name"]
        request = urllib.request.Request(self.url, json.dumps(frame).encode(), {**self.headers, **named})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            if session := answer.headers.get("Mcp-Session-Id"):
                self.headers["Mcp-Session-Id"] = session
            text = answer.read().decode()
        lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith(("{", "data:"))]
        return next((found for line in lines if line.strip() and "id" in (found := json.loads(line))), None)


@contextmanager
def opened(over: str, url: str, options: list[str], folder: Path) -> Iterator[Line]:
    """Start the proxy."""
    if over == "http":
        with listening_proxy("http", ["--url", url], folder / "log", *options) as front:
            yield Http(front)
        return
    line = Stdio(proxy_command(*options, "--url", url))
    try:
        yield line
    finally:
        line.child.communicate(timeout=LIMIT_S)


def visit(line: Line, revision: str) -> None:
    """List the tools, and call the first."""
    ids = itertools.count(1)
    meta = {
        f"{PREFIX}protocolVersion": revision,
        f"{PREFIX}clientInfo": IDENTITY,
        f"{PREFIX}clientCapabilities": {},
    }

    def ask(method: str, **params: Any) -> Any:
        about = {"_meta": meta, **params} if revision == STATELESS else params
        answer = line.send({"jsonrpc": "2.0", "id": next(ids), "method": method, "params": about})
        if "result" not in answer:
            raise SystemExit(f"{method}: {answer}")
        return answer["result"]

    if revision != STATELESS:
        ask("initialize", protocolVersion=revision, capabilities={}, clientInfo=IDENTITY)
        line.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    tools = ask("tools/list")["tools"]
    ask("tools/call", name=tools[0]["name"], arguments={})


def main(over: str, url: str) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_DATA_HOME"] = name
        os.environ["BROWSER"] = f"{sys.executable} {HERE / 'browser.py'}"
        with opened(over, url, options_for(scenario, context, folder), folder) as line:
            visit(line, os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
