"""`--paths`: each server of a file at a path of its own, beside all of them as one, on one port."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.support.waiting import wait_until

LATEST = "2026-07-28"
SCRIPT = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, name = asked["method"], sys.argv[1]
    if method == "initialize":
        told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}}}
        told["serverInfo"] = {"name": name, "version": "1"}
    elif method == "tools/list":
        told = {"tools": [{"name": one, "inputSchema": {"type": "object"}} for one in ("same", "hidden")]}
    elif method == "resources/list":
        told = {"resources": [{"uri": "memo:1", "name": name}]}
    else:
        told = {"content": [{"type": "text", "text": name}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


def write(path: Path, *names: str, **more: Any) -> None:
    servers: dict[str, Any] = {name: {"command": sys.executable, "args": ["-c", SCRIPT, name]} for name in names}
    for server in servers.values():
        server["excludeTools"] = ["hidden"]
    path.write_text(json.dumps({"mcpServers": servers, "dragoman": {"prefix": "always", **more}}), "utf-8")


class Visitor:
    """A client of either era at one path."""

    def __init__(self, proxy: Listening, path: str, is_latest: bool) -> None:
        self.url = proxy.url.removesuffix("/mcp") + path
        self.proxy, self.is_latest, self.last = proxy, is_latest, 0
        self.headers = {"accept": "application/json"}
        if not is_latest:
            status, headers, _ = proxy.post(INITIALIZE, self.url, **self.headers)
            assert status == 200
            self.headers["mcp_session_id"] = headers["mcp-session-id"]
            proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.url, **self.headers)

    def ask(self, method: str, **params: Any) -> Any:
        self.last += 1
        headers = self.headers
        if self.is_latest:
            meta = "io.modelcontextprotocol/"
            params["_meta"] = {f"{meta}protocolVersion": LATEST, f"{meta}clientCapabilities": {}}
            headers = {**headers, "mcp_protocol_version": LATEST, "mcp_method": method}
            headers |= {"mcp_name": params["name"]} if "name" in params else {}
        frame = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        status, _, answer = self.proxy.post(frame, self.url, **headers)
        return answer["result"] if status == 200 and "result" in answer else status

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def call(self, tool: str) -> str:
        text: str = self.ask("tools/call", name=tool, arguments={})["content"][0]["text"]
        return text


@pytest.mark.parametrize("scope", ["client", "shared"])
@pytest.mark.parametrize("is_latest", [False, True])
def test_each_server_is_at_its_path_and_all_at_one(is_latest: bool, scope: str, tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    write(file, "files", "tracker")
    with listening("--config", str(file), "--paths", "--scope", scope, server=[]) as proxy:
        together = Visitor(proxy, "/mcp", is_latest)
        assert together.tools() == ["files_same", "tracker_same"]
        for name in ("files", "tracker"):
            alone = Visitor(proxy, f"/{name}/mcp", is_latest)
            assert alone.tools() == ["same"], "neither with a prefix nor with what the file hides"
            assert alone.call("same") == name
            assert [one["uri"] for one in alone.ask("resources/list")["resources"]] == ["memo:1"]
        assert together.call("tracker_same") == "tracker"
        assert proxy.post(INITIALIZE, f"{proxy.url.removesuffix('/mcp')}/other/mcp")[0] == 404
        assert proxy.end()[0] == 128 + 15


def test_a_session_of_one_path_is_none_of_another(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    write(file, "files", "tracker")
    with listening("--config", str(file), "--paths", server=[]) as proxy:
        files, together = Visitor(proxy, "/files/mcp", False), Visitor(proxy, "/mcp", False)
        files.url, together.url = together.url, files.url
        assert files.ask("tools/list") == 404
        assert together.ask("tools/list") == 404
        proxy.end()


def test_paths_follow_the_file(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    write(file, "files", rules=[{"allow": {}}])
    with listening("--config", str(file), "--paths", server=[]) as proxy:
        files = Visitor(proxy, "/files/mcp", False)
        assert files.call("same") == "files"
        base = proxy.url.removesuffix("/mcp")
        assert proxy.post(INITIALIZE, f"{base}/tracker/mcp")[0] == 404
        write(file, "files", "tracker", rules=[{"allow": {"servers": ["tracker"]}}])
        wait_until(lambda: proxy.post(INITIALIZE, f"{base}/tracker/mcp")[0] == 200)
        assert Visitor(proxy, "/tracker/mcp", False).tools() == ["same"]
        assert files.tools() == [], "rules count at each path"
        write(file, "tracker", rules=[{"allow": {}}])
        wait_until(lambda: files.ask("tools/list") == 404)
        proxy.end()


def test_paths_need_a_file_with_several_servers() -> None:
    with listening("--paths") as proxy:
        _, said = proxy.lines.rest(proxy.process, 60)
        assert "--paths means nothing without --config" in proxy.first_line + said.decode()
