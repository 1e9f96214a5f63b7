"""Peers from npm: clients of the TypeScript SDK before our servers, and the official server before our clients.

Needs the packages of `npm/package.json` beside the Python environments; `nox -s peers` brings both where npm is, and
names their folder in DRAGOMAN_PEERS_NPM. A TypeScript client reports as `client.py` does, and is held to
the same table.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.ahead import ahead, visits
from tests.peers.expectations_back import EXPECTATIONS
from tests.peers.expectations_links import on_link, until_death
from tests.peers.matching import ABSENT, REVISIONS, Has, Row, Says
from tests.peers.traces import invalid_frames, read_trace
from tests.peers.validity import Side, complaints
from tests.peers.visits import (
    ENVIRONMENTS,
    HERE,
    SELECTION,
    check,
    environment,
    frames_in,
    joined_by_proxy,
    listening_proxy,
    listening_server,
    native,
    proxy_command,
    python_of,
    server_command,
    settle_s,
    visit,
)
from tests.support.ports import free_port
from tests.support.waiting import wait_until

FOLDER: Final = os.environ.get("DRAGOMAN_PEERS_NPM")
RELEASES: Final = {"C": "sdk-1.18", "D": "sdk-1.32"}
"""The package whose native revision this is."""

NETWORK_LINKS: Final = ("direct-http", "http-stdio", "http-http", "stdio-http", "sse-stdio")
WEBSOCKET_LINKS: Final = ("direct-ws", "ws-stdio")
"""The client needs a WebSocket of the platform: node has one from release 22 on. The SDK has no server
for it; Python's has."""

SDK_DIFFERS: Final = {
    "answer to the cancelled": "the SDK answers a cancelled request itself",
    "several blocks sampled": "the SDK lets a client answer in several blocks only when tools were offered",
}
SDK_DROPS: Final = {"D": ("name of a file", "name of a URL with a path", "name of another URI", "name of a blob")}
"""1.32 drops every field of resource contents that its revision does not name, and so what the rule adds."""

START_S: Final = 60
needs_npm = pytest.mark.skipif(
    not (ENVIRONMENTS and FOLDER), reason="no peers from npm: run `nox -s peers` where npm is installed"
)


@functools.cache
def node() -> str:
    """Return the node that came with the packages, or else the one on the path."""
    found = sorted(Path(FOLDER).glob("node_modules/node-*/bin/node")) if FOLDER else []
    return str(found[0]) if found else "node"


@functools.cache
def has_websocket() -> bool:
    """Say whether node has what the SDK's WebSocket client needs."""
    command = [node(), "-p", "typeof WebSocket"]
    return FOLDER is not None and subprocess.check_output(command, text=True, timeout=START_S).strip() == "function"


def typescript_visits() -> list[tuple[str, str, str]]:
    """Return (client, server, link): every pair over stdio, two pairs over each network link unless all are wanted."""
    found = [(client, server, "stdio-stdio") for client in RELEASES for server in REVISIONS]
    found += [(letter, letter, "direct-stdio") for letter in RELEASES]
    for place, link in enumerate((*NETWORK_LINKS, *(WEBSOCKET_LINKS if has_websocket() else ()))):
        for client in RELEASES:
            other = "ABCD"[(place + "CD".index(client)) % 4]
            servers = client if link.startswith("direct") else "ABCD" if SELECTION == "full" else other
            found += [(client, server, link) for server in servers]
    return [] if SELECTION == "quick" else found


def rows_about(client: str, server: str, link: str) -> list[Row]:
    """Return what the table says of a visit and the SDK lets us see."""
    unseen = (*SDK_DIFFERS, *(SDK_DROPS.get(client, ()) if server in "AB" else ()))
    return [row for row in on_link(EXPECTATIONS, link, client, server) if row.topic not in unseen]


@ahead
def typescript_report(client: str, server: str, link: str) -> dict[str, Any]:
    """Visit once, and keep the report and the frames of both sides."""
    front, upstream = link.split("-")
    command = [node(), str(HERE / "npm" / "client.mjs"), str(FOLDER), RELEASES[client]]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        client_log, server_log, log = (Path(folder) / name for name in ("client", "server", "log"))
        behind = server_command(server, "--record", str(server_log))
        if front != "direct":
            front, target = joined_by_proxy(stack, front, native(upstream, server), behind, log)
        elif upstream == "stdio":
            front, target = upstream, behind
        else:
            front, target = upstream, [stack.enter_context(listening_server(behind, upstream, log))]
        options = ("--record", str(client_log), "--over", front, "--settle", settle_s(link))
        report = visit(command, target, *options)
        report["frames"] = {"client": frames_in(client_log), "server": frames_in(server_log)}
        report["log"] = log.read_text("utf-8", "replace")[-3000:] if log.exists() else ""
    return report


@needs_npm
@visits(typescript_report)
@pytest.mark.parametrize(("client", "server", "link"), typescript_visits())
def test_a_typescript_client_agrees_with_the_table(client: str, server: str, link: str) -> None:
    check(typescript_report(client, server, link), rows_about(client, server, link))


@needs_npm
@visits(typescript_report)
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("client", "server", "link"), typescript_visits())
def test_frames_of_typescript_clients_are_valid(client: str, server: str, link: str, side: Side) -> None:
    record = until_death(typescript_report(client, server, link)["frames"][side], link, server)
    assert record, f"the {side} has recorded no frames"
    assert list(complaints(record, side, REVISIONS[client if side == "client" else server])) == []


EVERYTHING: Final = "@modelcontextprotocol/server-everything"
SAID: Final = '{"temperature":33,"conditions":"Cloudy","humidity":82}'
LINK: Final = {"type": "resource_link", "uri": "demo://resource/dynamic/blob/1", "name": "Blob Resource 1"}
LINK_AS_TEXT: Final = "[Blob Resource 1](demo://resource/dynamic/blob/1)"
STRUCTURED: Final = "calls/get-structured-content/result"
TOUR: Final = (
    *(
        Row("revision", letter, "D", "initialize/result/protocolVersion", revision, "answered as asked")
        for letter, revision in REVISIONS.items()
    ),
    Row("name", "ABCD", "D", "initialize/result/serverInfo/name", "mcp-servers/everything", "passed on"),
    Row("ping", "ABCD", "D", "ping", {"result": {}}, "answered"),
    Row("text", "ABCD", "D", "calls/echo/result/content/0/text", "Echo: hello", "the same in all"),
    Row("arguments", "ABCD", "D", "calls/get-sum/result/content/0/text", Says("5"), "numbers stay numbers"),
    Row("image", "ABCD", "D", "calls/get-tiny-image/result/content/1/type", "image", "the same in all"),
    Row("structure", "CD", "D", f"{STRUCTURED}/structuredContent/humidity", 82, "both have it"),
    Row("structure", "AB", "D", f"{STRUCTURED}/structuredContent", ABSENT, "older clients do not"),
    Row("structure as text", "ABCD", "D", f"{STRUCTURED}/content/0/text", SAID, "as the server said"),
    Row("link", "CD", "D", "calls/get-resource-links/result/content/1", Has(LINK), "both have it"),
    Row("link", "AB", "D", "calls/get-resource-links/result/content/1/text", Says(LINK_AS_TEXT), "becomes text"),
    Row("tool title", "CD", "D", "tools/echo/title", "Echo Tool", "both have it"),
    Row("tool title", "AB", "D", "tools/echo/title", ABSENT, "older clients do not"),
    Row("sampling", "ABCD", "D", "calls/trigger-sampling-request/result/content/0/text", Says("I say hello"), "asked"),
    Row("resource", "ABCD", "D", "read/result/contents/0/mimeType", "text/markdown", "the same in all"),
    Row("prompt", "ABCD", "D", "prompt/result/messages/0/content/type", "text", "the same in all"),
    Row("nothing stray", "ABCD", "D", "stray", [], "every answer has the id of a question"),
)
TOURS: Final = (
    *((letter, "stdio-stdio") for letter in REVISIONS),
    *(("A", "stdio-http"), ("B", "http-http"), ("C", "http-stdio"), ("C", "stdio-sse"), ("D", "ws-stdio")),
    ("D", "http-http"),
)


@contextlib.contextmanager
def everything_listening(over: str, log: Path) -> Iterator[str]:
    """Start the official server with one of its network transports; give the URL."""
    port = free_port()
    mode = {"http": "streamableHttp", "sse": "sse"}[over]
    with log.open("ab") as sink:
        command = [node(), f"{FOLDER}/node_modules/{EVERYTHING}/dist/index.js", mode]
        process = subprocess.Popen(command, env=environment(PORT=str(port)), stdout=sink, stderr=sink)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/{'mcp' if over == 'http' else 'sse'}"
    finally:
        process.kill()
        process.wait(START_S)


def wait_for(port: int) -> None:
    """Wait until somebody listens."""

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    wait_until(listens, START_S)


@ahead
def tour_report(client: str, link: str) -> dict[str, Any]:
    """Let a Python client visit the official server through the proxy."""
    front, upstream = link.split("-")
    front = native(front, client)
    with tempfile.TemporaryDirectory() as folder:
        record, trace, log = (Path(folder) / name for name in ("client", "trace", "log"))
        with contextlib.ExitStack() as stack:
            behind = ["--trace", str(trace), "--", node(), f"{FOLDER}/node_modules/{EVERYTHING}/dist/index.js"]
            if upstream != "stdio":
                behind[2:] = ["--url", stack.enter_context(everything_listening(upstream, log))]
            target = proxy_command(*behind)
            if front != "stdio":
                target = [stack.enter_context(listening_proxy(front, behind, log))]
            command = [python_of(client), str(HERE / "tour.py")]
            report = visit(command, target, "--record", str(record), "--over", front)
        report["frames"], report["trace"] = frames_in(record), read_trace(trace)
        report["log"] = log.read_text("utf-8", "replace")[-3000:] if log.exists() else ""
    return report


@needs_npm
@visits(tour_report)
@pytest.mark.parametrize(("client", "link"), TOURS)
def test_the_official_server_serves_clients_of_every_revision(client: str, link: str) -> None:
    check(tour_report(client, link), [row for row in TOUR if client in row.clients])


@needs_npm
@visits(tour_report)
@pytest.mark.parametrize(("client", "link"), TOURS)
def test_frames_of_the_official_server_are_valid(client: str, link: str) -> None:
    report = tour_report(client, link)
    assert list(complaints(report["frames"], "client", REVISIONS[client])) == []
    assert list(invalid_frames(report["trace"], client, "D")) == []
