"""MCP Apps with the official packages: hosts and servers of both lines of the SDK, also through the proxy and a router.

Behind the router two servers have a page of the same URI, and each tool's page is its own.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.ahead import ahead, visits
from tests.peers.modern_visits import NPM, needs_both, node
from tests.peers.visits import HERE, LIMIT_S, SELECTION, proxy_command

LINES: Final = ("1", "2") if SELECTION != "quick" else ()
NAMES: Final = {"one": "1", "two": "2"}
"""The servers behind the router, and the line of the SDK of each."""

DECLARED: Final = {"mimeTypes": ["text/html;profile=mcp-app"]}


def server_command(line: str, name: str) -> list[str]:
    """Return the command of a server."""
    return [node(), str(HERE / "npm" / "apps_server.mjs"), str(NPM), line, name]


@ahead
def apps_report(client: str, link: str, server: str) -> dict[str, Any]:
    """Let a host visit one server, or the router with both."""
    with tempfile.TemporaryDirectory() as folder:
        target = server_command(server, "one")
        if link == "router":
            commands = {name: server_command(line, name) for name, line in NAMES.items()}
            servers = {name: {"command": command[0], "args": command[1:]} for name, command in commands.items()}
            config = Path(folder) / "servers.json"
            config.write_text(json.dumps({"mcpServers": servers}), "utf-8")
            target = proxy_command("--config", str(config))
        elif link == "proxy":
            target = proxy_command("--", *target)
        command = [node(), str(HERE / "npm" / "apps_client.mjs"), str(NPM), client, *target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@needs_both
@visits(apps_report, link="proxy")
@visits(apps_report, link="direct")
@pytest.mark.parametrize("server", LINES)
@pytest.mark.parametrize("client", LINES)
def test_a_host_finds_what_it_finds_directly(client: str, server: str) -> None:
    direct = apps_report(client, "direct", server)
    assert direct["declared"] == json.loads(direct["tools"]["told"]["said"]) == DECLARED
    assert apps_report(client, "proxy", server) == direct


@needs_both
@visits(apps_report, link="router", server="both")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("client", LINES)
def test_each_tool_behind_a_router_has_its_own_page(client: str, name: str) -> None:
    page = apps_report(client, "router", "both")["tools"][f"{name}_dash"]["page"]
    assert page["text"] == f"<p>{name}</p>"
    assert page["_meta"]["ui"]["csp"] == {"connectDomains": [f"https://{name}.example.com"]}
    assert page["uri"] == page["asked"]
    assert page["asked"].startswith("ui://")


@needs_both
@visits(apps_report, link="router", server="both")
@pytest.mark.parametrize("client", LINES)
def test_pages_behind_a_router_are_listed_as_their_tools_name_them(client: str) -> None:
    report = apps_report(client, "router", "both")
    named = {report["tools"][f"{name}_dash"]["page"]["asked"] for name in NAMES}
    assert {entry["uri"] for entry in report["listed"]} == named
    assert len(named) == len(NAMES)


@needs_both
@visits(apps_report, link="router", server="both")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("client", LINES)
def test_each_server_behind_a_router_hears_of_the_extension(client: str, name: str) -> None:
    report = apps_report(client, "router", "both")
    assert json.loads(report["tools"][f"{name}_told"]["said"]) == report["declared"] == DECLARED
