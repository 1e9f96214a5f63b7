"""Real peers with tasks of either form, across the eras."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.peers.router_visits import joined_by_router
from tests.peers.traces import invalid_frames, read_trace
from tests.peers.visits import HERE, LIMIT_S, joined_by_proxy, needs_peers, python_in, python_of

pytestmark = needs_peers

LINKS = ("stdio-stdio", "http-http")
RELATED = "io.modelcontextprotocol/related-task"


def older(*options: str) -> list[str]:
    """Give the command of the peer that has tasks of 2025-11-25."""
    return [python_of("D"), str(HERE / "tasks_older.py"), *options]


def newer(*options: str) -> list[str]:
    """Give the command of the peer that has the extension."""
    return [python_in("current"), str(HERE / "tasks_newer.py"), *options]


def visit(client: list[str], server: list[str], link: str, folder: Path, over: str) -> dict[str, Any]:
    """Send a client to a server, and give its report."""
    front, upstream = link.split("-")
    log = folder / "log"
    with contextlib.ExitStack() as stack:
        _, target = joined_by_proxy(stack, front, upstream, server, log, folder / "trace")
        return run([*client, *([over, target[0]] if front == "http" else ["--", *target])], log)


def run(command: list[str], log: Path) -> dict[str, Any]:
    """Let a client make its visit, and give its report."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:] + (log.read_text("utf-8")[-2000:] if log.exists() else "")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("link", LINKS)
def test_a_client_with_the_extension_at_a_server_with_tasks_of_its_own(link: str, tmp_path: Path) -> None:
    report = visit(newer(), older("--serve"), link, tmp_path, "--url")
    assert report["with"]["called"] == ["Hello Ada", "Hello Ada"]
    assert report["with"]["seen"] == ["task", "Who?", "task", "Who?"]
    assert report["without"]["called"] == ["Hello Eve", "Hello Eve"]
    assert report["asked"] == ["Who?", "Who?"]
    assert list(invalid_frames(read_trace(tmp_path / "trace"), "E", "D")) == []


@pytest.mark.parametrize("front", ["stdio", "http"])
def test_tasks_of_both_forms_behind_one_router(front: str, tmp_path: Path) -> None:
    """Both servers have a tool `report`; who asks for a task has its answers from the server that made it."""
    log = tmp_path / "log"
    with contextlib.ExitStack() as stack:
        target = joined_by_router(stack, front, {"older": older("--serve"), "newer": newer("--serve")}, log)
        where = [target[0]] if front == "http" else ["--", *target]
        at_older = run([*newer("--prefix", "older_"), *(["--url"] if front == "http" else []), *where], log)
        at_newer = run([*older("--prefix", "newer_", "--over", front), *where], log)
    assert at_older["with"] == {"called": ["Hello Ada", "Hello Ada"], "seen": ["task", "older: Who?"] * 2}
    assert at_older["without"]["called"] == ["Hello Eve", "Hello Eve"]
    assert [asked["message"] for asked in at_newer["asked"]] == ["newer: Who?"]
    assert (at_newer["created"], at_newer["ended"], at_newer["quick"]) == ("working", "completed", "completed")
    assert at_newer["result"]["content"][0]["text"] == "Hello Ada"


@pytest.mark.parametrize("link", LINKS)
def test_a_client_with_tasks_of_its_own_at_a_server_with_the_extension(link: str, tmp_path: Path) -> None:
    report = visit(older("--over", link.split("-")[0]), newer("--serve"), link, tmp_path, "--")
    assert report["tasks"] == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert report["support"] == {"report": {"taskSupport": "optional"}, "echo": {"taskSupport": "optional"}}
    assert report["created"] == "working"
    [asked] = report["asked"]
    assert asked["message"] == "Who?"
    assert RELATED in asked["_meta"]
    assert report["result"]["content"][0]["text"] == "Hello Ada"
    assert RELATED in report["result"]["_meta"]
    assert (report["ended"], report["quick"], report["at once"]) == ("completed", "completed", "at once")
    assert list(invalid_frames(read_trace(tmp_path / "trace"), "D", "E")) == []
