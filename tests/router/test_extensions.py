"""Extensions, and a tool without the type of its arguments, through a router with servers of the oldest revision."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import commands
from tests.support.lines import Lines

PATIENCE_S = 60
UI = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
INFO = {"name": "c", "version": "1"}
META = "io.modelcontextprotocol/"

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    answer = {"error": {"code": -32601, "message": "no"}}
    if asked["method"] == "initialize":
        told = asked["params"]["capabilities"]
        answer = {"result": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}, "extensions": {"x/y": {}}},
                             "serverInfo": {"name": "s", "version": "1"}}}
    elif asked["method"] == "tools/list":
        page = {"resourceUri": "ui://page"}
        answer = {"result": {"tools": [{"name": "t", "inputSchema": {}, "_meta": {"ui": page, "told": told}}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def asks(revision: str) -> list[dict[str, Any]]:
    """What a client of a revision says first, and then to list tools."""
    if revision < "2026":
        params = {"protocolVersion": revision, "capabilities": {"extensions": UI}, "clientInfo": INFO}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        return [request(1, "initialize", params), ready, request(2, "tools/list", {})]
    meta = {META + "protocolVersion": revision, META + "clientCapabilities": {"extensions": UI}}
    return [request(1, "server/discover", {"_meta": meta}), request(2, "tools/list", {"_meta": meta})]


def request(key: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_extensions_reach_both_sides_and_schemas_get_their_type(revision: str, tmp_path: Path) -> None:
    servers = {name: {"command": sys.executable, "args": ["-c", SERVER]} for name in ("one", "two")}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    command = [sys.executable, "-m", "dragoman", "proxy", "--config", str(tmp_path / "servers.json")]
    with commands.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdin is not None
        lines, answers = Lines(proxy.stdout, PATIENCE_S), dict[int, Any]()
        for frame in asks(revision):
            proxy.stdin.write(json.dumps(frame).encode() + b"\n")
            proxy.stdin.flush()
            while frame.get("id", 0) not in {0, *answers}:
                heard = json.loads(lines.read())
                if "method" not in heard:
                    answers[heard["id"]] = heard["result"]
        proxy.stdin.close()
    assert "x/y" in answers[1]["capabilities"]["extensions"]
    tools = answers[2]["tools"]
    assert [tool["inputSchema"] for tool in tools] == [{"type": "object"}] * 2
    assert [tool["_meta"]["told"] for tool in tools] == [{"extensions": UI}] * 2
    assert all(tool["_meta"]["ui"]["resourceUri"].startswith("ui://") for tool in tools)
