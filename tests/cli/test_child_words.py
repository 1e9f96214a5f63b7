"""What servers of many sessions write on stderr: lines of the log, with server and session."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.support.waiting import wait_until

SCRIPT = """
import json, sys
name = sys.argv[1]
sys.stderr.write(f"{name} starts\\n")
sys.stderr.flush()
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        told["serverInfo"] = {"name": name, "version": "1"}
    elif asked["method"] == "tools/list":
        told = {"tools": []}
        sys.stderr.write("forged\\x1b[2J\\r\\n2026-01-01 ERROR dragoman: not ours\\nlong " + "x" * 3000 + "\\nno end")
        sys.stderr.flush()
    elif asked["method"] == "tools/call":
        told = {"content": []}
        sys.stderr.write("flood\\n" * 100_000)
        sys.stderr.flush()
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


def command(name: str) -> list[str]:
    return [sys.executable, "-c", SCRIPT, name]


def open_session(proxy: Listening, secret: str) -> dict[str, str]:
    given = {"authorization": f"Bearer {secret}", "accept": "application/json"}
    _, headers, _ = proxy.post(INITIALIZE, **given)
    given["mcp_session_id"] = headers["mcp-session-id"]
    proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **given)
    return given


def test_each_line_says_which_server_wrote_it_in_which_session(tmp_path: Path) -> None:
    file, secrets, log = tmp_path / "servers.json", tmp_path / "secrets", tmp_path / "log"
    servers = {name: {"command": command(name)[0], "args": command(name)[1:]} for name in ("files", "tracker")}
    file.write_text(json.dumps({"mcpServers": servers}))
    secrets.write_text("ada secret-of-ada-secret\nbob secret-of-bob-secret\n")
    secrets.chmod(0o600)
    options = ["--config", str(file), "--auth-token-file", str(secrets), "--log-file", str(log), "--log-format", "json"]
    with listening(*options, server=[]) as proxy:
        for name in ("ada", "bob"):
            open_session(proxy, f"secret-of-{name}-secret")
        wait_until(lambda: log.read_text().count("starts") == 4)
        lines = [json.loads(line) for line in log.read_text().splitlines() if "starts" in line]
        proxy.end()
    assert {line["logger"] for line in lines} == {"dragoman.child"}
    assert sorted((line["session"].partition(" of ")[2], line["message"]) for line in lines) == [
        ("ada, files", "files starts"),
        ("ada, tracker", "tracker starts"),
        ("bob, files", "files starts"),
        ("bob, tracker", "tracker starts"),
    ]


def test_no_server_can_forge_a_line_or_flood_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with listening("--log-file", str(log), server=command("files")) as proxy:
        given = open_session(proxy, "")
        proxy.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **given)
        wait_until(lambda: "long" in log.read_text())
        found = [line for line in log.read_text().splitlines() if "dragoman.child" in line]
        assert not [line for line in log.read_text().splitlines() if line.startswith("2026-01-01")]
        assert any(line.endswith("[session 1]: forged\\x1b[2J") for line in found)
        assert any(line.endswith("[session 1]: 2026-01-01 ERROR dragoman: not ours") for line in found)
        assert sum(line.count("x" * 100) for line in found) > 20, "a long line is written in several"
        proxy.post({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "t"}}, **given)
        proxy.post({"jsonrpc": "2.0", "id": 4, "method": "tools/list"}, **given)
        proxy.end()
    assert 0 < log.read_text().count("flood") < 5000
    assert "no end" in log.read_text(), "the last words of a server, too"


def test_nothing_of_it_stays_open(tmp_path: Path) -> None:
    with listening(server=command("files")) as proxy:
        folder = f"/proc/{proxy.process.pid}/fd"

        def visit() -> None:
            given = open_session(proxy, "")
            status = proxy.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **given)[0]
            assert status == 200
            import urllib.request

            request = urllib.request.Request(
                proxy.url, headers={"mcp-session-id": given["mcp_session_id"]}, method="DELETE"
            )
            urllib.request.urlopen(request, timeout=60).close()

        visit()
        wait_until(lambda: len(os.listdir(folder)) < 40)
        before = len(os.listdir(folder))
        for _ in range(5):
            visit()
        wait_until(lambda: len(os.listdir(folder)) <= before + 2)
        proxy.end()
