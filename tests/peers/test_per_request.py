"""A real client that speaks only 2026-07-28, with real servers of each revision that opens with `initialize`."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.peers.matching import REVISIONS
from tests.peers.visits import ENVIRONMENTS, HERE, LIMIT_S, joined_by_proxy, native, needs_peers, server_command

LINKS = ("stdio-stdio", "http-stdio", "stdio-http", "http-http")
SAMPLED = {"text", "two_blocks"}
ASKED = {
    "A": {"ask_roots": {"all"}, "ask_sampling": SAMPLED, "ask_user": set()},
    "B": {"ask_roots": {"all"}, "ask_sampling": SAMPLED, "ask_user": set()},
    "C": {"ask_roots": {"all"}, "ask_sampling": SAMPLED, "ask_user": {"form", "titled"}},
    "D": {
        "ask_roots": {"all"},
        "ask_sampling": {*SAMPLED, "blocks", "tools"},
        "ask_user": {"form", "titled", "multi", "url"},
    },
}
"""What each server can ask. The client did not declare `sampling.tools`."""

METHODS = {"ask_roots": "roots/list", "ask_sampling": "sampling/createMessage", "ask_user": "elicitation/create"}


def visit(letter: str, link: str, folder: Path) -> dict[str, Any]:
    """Send the client to a server, and give its report; "E" is one that speaks only 2026-07-28, too."""
    assert ENVIRONMENTS is not None
    python = Path(ENVIRONMENTS) / "current" / "bin" / "python"
    front, upstream = link.split("-")
    command = [str(python), str(HERE / "stateless.py")] if letter == "E" else server_command(letter)
    with contextlib.ExitStack() as stack:
        joined = joined_by_proxy(stack, front, native(upstream, letter), command, folder / "log")
        target = ["--", *joined[1]] if front == "stdio" else ["--url", *joined[1]]
        command = [str(python), "-W", "ignore", str(HERE / "modern.py"), *target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@needs_peers
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("letter", REVISIONS)
def test_a_client_of_today_works_with_servers_of_yesterday(letter: str, link: str, tmp_path: Path) -> None:
    report = visit(letter, link, tmp_path)
    introduced, calls = report["introduced"], report["calls"]
    assert report["revision"] in introduced["supportedVersions"]
    assert introduced["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "peer"
    assert "tools" in introduced["capabilities"]
    assert calls["echo"]["content"][0]["text"] == "hello"
    assert calls["failing"]["isError"]
    assert calls["ping_client"]["content"][0]["text"] == "pong"
    assert ("structuredContent" in calls["weather"]) is (letter in "CD")
    assert report["at once"] == [f"call {place}" for place in range(5)]
    pages = ["document.txt", "api"] * 5 if letter == "A" else ["document.txt", "api", "unique", "pixel.png"]
    assert report["resources"] == pages
    assert report["read"]["contents"][0]["text"] == "Once upon a time"
    assert report["nowhere"]["error"]["code"] == -32602
    assert report["prompt"]["messages"]
    assert report["heard"] == ["ResourceUpdated", "ToolsListChanged"]
    assert report["progress"] == [1, 2, 3]
    assert set(report["logged"]) == {"warning", "error", "critical", "alert", "emergency"}
    saw = json.loads(report["saw"]["content"][0]["text"])
    assert (saw["revision"], saw["subscribed"]) == (REVISIONS[letter], [])


@needs_peers
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("letter", REVISIONS)
def test_it_is_asked_what_the_server_wants_to_know(letter: str, link: str, tmp_path: Path) -> None:
    asked = visit(letter, link, tmp_path)["asked"]
    assert {name: set(kinds) for name, kinds in asked.items()} == ASKED[letter]
    for name, kinds in asked.items():
        for kind, found in kinds.items():
            if kind == "tools":
                assert found["answer"]["error"]["code"] == -32021
            else:
                assert [question.split()[0] for question in found["asked"]] == [METHODS[name]]
                assert not found["answer"].get("isError"), found


@needs_peers
@pytest.mark.parametrize("link", LINKS)
def test_two_of_today_lose_nothing(link: str, tmp_path: Path) -> None:
    report = visit("E", link, tmp_path)
    assert "tools" in report["introduced"]["capabilities"]
    assert report["calls"]["echo"]["content"][0]["text"] == "you said hello"
    assert report["at once"] == [f"you said call {place}" for place in range(5)]
    assert report["read"]["contents"][0]["text"]
    assert report["nowhere"]["error"]["code"] == -32602
    assert report["asked"]["ask_user"]["form"]["asked"] == ["elicitation/create form"]
    assert report["heard"] == ["ResourceUpdated", "ToolsListChanged"]
    assert report["progress"] == [1, 2, 3]
