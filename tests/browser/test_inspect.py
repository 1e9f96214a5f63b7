"""The page of --inspect in a real browser: by keyboard, by mouse, at several widths, and with hostile frames."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_browser import HERE, REPORT_S
from tests.support.lines import Lines

CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM", "")
PACKAGES = os.environ.get("DRAGOMAN_BROWSER_NPM")
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and PACKAGES and NODE), reason="needs Chromium and packages of npm, as `nox -s browser` brings them"
)

HOSTILE = (
    "<img src=x onerror=globalThis.ran=1>",
    "</script><script>globalThis.ran=1</script>",
    "<!--<script>",
    "javascript:globalThis.ran=1",
    "\x1b[31mred\x07",
    "\u202eevil\u2066",
    "\ud800",
    "__proto__",
    "constructor",
    "${7*7}{{7*7}}",
)


class Writer:
    """Writes the trace of a session of which every part says what it should not."""

    def __init__(self, path: Path) -> None:
        self.path, self.millis = path, 0

    def write(self, **said: Any) -> None:
        self.millis += 7
        time = f"2026-01-31T09:15:{self.millis // 1000:02}.{self.millis % 1000:03}000Z"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time, "process": 1, "session": None, **said}) + "\n")

    def cross(self, sender: str, frame: Any, after: Any = None, losses: Any = ()) -> None:
        ends = {"client": 1, "server": 2}
        revisions = {"client": "2024-11-05", "server": "2025-11-25"}
        other = "server" if sender == "client" else "client"
        self.write(side=sender, connection=ends[sender], direction="received", revision=revisions[sender], frame=frame)
        if after is not None:
            crossing = {"revision": revisions[sender], "to": revisions[other], "before": frame, "after": after}
            self.write(side=sender, direction="translated", **crossing, method="tools/call", losses=losses)
        self.write(
            side=other, connection=ends[other], direction="sent", revision=revisions[other], frame=after or frame
        )


def write_hostile_session(trace: Writer, connection: int, text: str) -> None:
    """Write a session behind a router, of which labels, names of servers, headers and states say this text."""
    at: dict[str, Any] = {"session": text, "revision": text}
    info = {"name": text, "version": text, "title": text}
    opening = {"protocolVersion": text, "clientInfo": info}
    first = {"jsonrpc": "2.0", "id": text, "method": "initialize", "params": opening}
    trace.write(**at, side="client", connection=connection, direction="received", frame=first)
    trace.write(**at, side="server", connection=connection + 1, server=text, direction="sent", frame=first)
    answer = {"jsonrpc": "2.0", "id": text, "result": {"protocolVersion": text, "serverInfo": info}}
    trace.write(**at, side="server", connection=connection + 1, server=text, direction="received", frame=answer)
    for step, server in enumerate((text, "another"), 2):
        task = {"taskId": text, "status": text}
        said = {"jsonrpc": "2.0", "method": text, "params": {**task, "message": text, "uri": text}}
        trace.write(**at, side="server", connection=connection + step, server=server, direction="received", frame=said)
    headers = {text: text, "www-authenticate": text, "retry-after": text, "x": "y" * 5000}
    for status in (200, 401, text, None):
        both = {"request": headers, "response": headers, "ids": [text], "status": status, "method": text}
        trace.write(**at, side="client", connection=connection, direction="http", **both)
    trace.write(**at, side="server", connection=connection + 1, server=text, direction="given up", frame=first)
    trace.write(**at, side="server", connection=connection + 1, server=text, direction="broken", reason=text)


def write_trace(path: Path) -> None:
    trace = Writer(path)
    info = {"name": "a name nobody should see", "version": HOSTILE[0], "title": HOSTILE[1]}
    opening = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info}
    trace.cross("client", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
    answer = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "server", "version": "1"}}
    trace.cross("server", {"jsonrpc": "2.0", "id": 0, "result": answer})
    for key, text in enumerate(HOSTILE, 1):
        params = {"name": text, "arguments": {text: [text, {text: text}]}}
        trace.cross("client", {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params})
        given = {"content": [{"type": "text", "text": text, "title": text}], text: text}
        taken = {"content": [{"type": "text", "text": text}]}
        lost = {"pointer": "/result/content/0/title", "kind": "dropped", "bytes": 3, "cosmetic": False}
        odd = {"pointer": f"/{text}", "kind": text, "bytes": 3, "cosmetic": False}
        frame = {"jsonrpc": "2.0", "id": key, "result": given}
        trace.cross("server", frame, {"jsonrpc": "2.0", "id": key, "result": taken}, [lost, odd])
    asked = {"method": HOSTILE[0], "params": {"message": HOSTILE[1]}}
    result = {"resultType": "input_required", "inputRequests": {HOSTILE[7]: asked}, "requestState": "parked"}
    parked = {"jsonrpc": "2.0", "id": "parked", "method": "prompts/get", "params": {"name": HOSTILE[2]}}
    trace.write(side="client", connection=1, direction="received", frame=parked)
    frame = {"jsonrpc": "2.0", "id": "parked", "result": result}
    trace.write(side="client", connection=1, direction="sent", frame=frame)
    for key, text in enumerate(HOSTILE):
        write_hostile_session(trace, 10 * (key + 1), text)
    trace.write(side="client", connection=1, direction="received", malformed=HOSTILE[0], line=HOSTILE[1])
    trace.write(side="server", connection=2, direction=HOSTILE[0], frame=[HOSTILE[1]])
    for odd_frame in (None, 7, "text", [], {"method": 1}, {"params": None, "method": "x"}, {"error": None, "id": 1}):
        trace.write(side="client", connection=1, direction="received", frame=odd_frame)
    many = {"jsonrpc": "2.0", "id": 99, "method": "many", "params": {f"m{n}": n for n in range(10_000)}}
    trace.cross("client", many)
    trace.cross("client", {"jsonrpc": "2.0", "id": 100, "method": "long", "params": {"text": "x" * 10_000_000}})
    waiting = {"jsonrpc": "2.0", "id": 101, "method": "tools/call", "params": {"name": HOSTILE[0]}}
    trace.write(side="client", connection=1, direction="received", frame=waiting)
    trace.write(side="server", connection=2, direction="ended", reason=HOSTILE[0])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "downloads").mkdir()
    write_trace(folder / "trace")
    viewer = [sys.executable, "-m", "dragoman", "inspect", str(folder / "trace"), "--at", "http://127.0.0.1:0"]
    with subprocess.Popen(viewer, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            url = Lines(process.stderr).read().decode().split()[-1]
            person = [str(NODE), str(HERE / "inspect.mjs"), str(PACKAGES), CHROMIUM, url, str(folder / "downloads")]
            done = subprocess.run(person, capture_output=True, timeout=4 * REPORT_S, check=False)
        finally:
            process.terminate()
    assert done.returncode == 0, done.stderr.decode()
    return {**json.loads(done.stdout), "folder": folder / "downloads"}


def test_every_message_is_shown_as_text(seen: Any) -> None:
    assert len(seen["sequence"]) > 20
    assert any("<img src=x onerror=globalThis.ran=1>" in row for row in seen["sequence"])
    assert any("\\u202eevil" in row for row in seen["sequence"])


def test_nothing_runs_nothing_breaks_and_no_request_leaves(seen: Any) -> None:
    assert seen["problems"] == []
    assert seen["ran"] is False
    home = seen["address"].split("#")[0]
    assert [one for one in seen["requests"] if not one.startswith((home, "file:", "data:", "blob:"))] == []
    assert "key=" not in seen["address"]


def test_everything_is_done_by_keyboard(seen: Any) -> None:
    assert (seen["linked"], seen["left"], seen["help"]) == (True, True, True)
    assert seen["chosen"].startswith("initialize")
    assert "/result/content/0/title" in seen["lost"]
    assert (seen["sides"], seen["raw"]) == (2, 2)
    assert seen["gone"] >= 2
    assert "of" in seen["filtered"]
    assert "filter=method%3Atools%2Fcall" in seen["kept"]
    assert "asked for 2024-11-05" in seen["sessions"] or "speaks 2024-11-05" in seen["sessions"]
    assert "Parked until the client comes back with answers: 1" in seen["sessions"]
    assert f"asks {HOSTILE[0]}: {HOSTILE[1]}" in seen["sessions"]
    assert seen["charts"] >= 3
    assert (seen["held"], seen["follows"], seen["failed"]) == ("paused", ["false", "true"], 1)
    assert seen["copied"] == "copied"
    assert seen["form"] == [True, "ndjson"]


def test_everything_is_done_by_mouse(seen: Any) -> None:
    assert seen["lostOnly"] == len(HOSTILE)
    assert seen["pointed"] == 1
    assert seen["paused"] == "paused"


def test_axe_finds_nothing(seen: Any) -> None:
    assert {name: found for name, found in seen["axe"].items() if found} == {}


def test_headers_are_shown_with_the_messages_that_they_carried(seen: Any) -> None:
    assert "HTTP headers" in seen["headers"]
    assert "client → Dragoman" in seen["headers"]
    assert "<img src=x onerror=globalThis.ran=1>" in seen["headers"]


def test_the_servers_behind_a_router_are_shown_and_looked_for(seen: Any) -> None:
    assert seen["behind"] >= len(HOSTILE)
    assert seen["ofServer"].startswith('session:"')
    assert "server:" in seen["ofServer"]


def test_nothing_moves_for_as_long_as_a_call_is_under_way(seen: Any) -> None:
    """Each frame that is drawn takes from the processor that serves the call."""
    assert seen["waiting"] > 0
    assert seen["endless"] == 0


def test_an_address_may_say_anything(seen: Any) -> None:
    assert seen["linkedTo"] == len(HOSTILE)


@pytest.mark.parametrize("size", ["390 light", "390 dark", "1024 dark", "1920 light", "1024 forced"])
def test_the_page_is_never_wider_than_its_window(seen: Any, size: str) -> None:
    assert seen[f"wide {size}"] is False


def test_what_is_shared_is_without_what_was_taken_out_and_opens_from_disk(seen: Any) -> None:
    assert seen["files"] == ["dragoman.har", "dragoman.html", "dragoman.ndjson"]
    assert (seen["preview"], seen["secret"], seen["outside"]) == (False, False, [])
    assert seen["fromDisk"] == "recorded"
    assert len(seen["again"]) == len(seen["sequence"])
    for name in seen["files"]:
        assert "a name nobody should see" not in (seen["folder"] / name).read_text("utf-8")
    har = json.loads((seen["folder"] / "dragoman.har").read_text("utf-8"))
    assert har["log"]["version"] == "1.2"
    assert len(har["log"]["entries"]) >= len(HOSTILE)
    bodies = [one[way] for one in har["log"]["entries"] for way in ("request", "response")]
    texts = [(one.get("postData") or one["content"])["text"] for one in bodies]
    assert [max(0, one["bodySize"]) for one in bodies] == [len(text.encode()) for text in texts]
