"""A real client that speaks only 2026-07-28, with real servers of each revision that opens with `initialize`."""

from __future__ import annotations

import json

import pytest

from tests.peers.ahead import visits
from tests.peers.matching import REVISIONS
from tests.peers.modern_visits import PYTHONS, modern_report
from tests.peers.visits import needs_peers

WITH_HANDSHAKE = [(letter, link) for letter, link in PYTHONS if letter != "E"]
SAMPLED = {"text", "two_blocks"}
ASKED = {
    "A": {"ask_roots": {"all"}, "ask_sampling": SAMPLED, "ask_user": set()},
    "B": {"ask_roots": {"all"}, "ask_sampling": SAMPLED, "ask_user": set()},
    "C": {"ask_roots": {"all"}, "ask_sampling": SAMPLED, "ask_user": {"form", "titled", "three", "two"}},
    "D": {
        "ask_roots": {"all"},
        "ask_sampling": {*SAMPLED, "blocks", "tools"},
        "ask_user": {"form", "titled", "multi", "url", "three", "two"},
    },
}
"""What each server can ask. The client did not declare `sampling.tools`."""

SEVERAL = {"three": ["elicitation/create"] * 3, "two": ["elicitation/create", "roots/list"]}
METHODS = {"ask_roots": "roots/list", "ask_sampling": "sampling/createMessage", "ask_user": "elicitation/create"}


@needs_peers
@visits(modern_report, client="E")
@pytest.mark.parametrize(("letter", "link"), WITH_HANDSHAKE)
def test_a_client_of_today_works_with_servers_of_yesterday(letter: str, link: str) -> None:
    report = modern_report("E", letter, link)
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
    assert report["survey"]["asked"] == (["elicitation/create form"] if letter in "CD" else [])
    assert report["progress"] == [1, 2, 3]
    assert set(report["logged"]) == {"warning", "error", "critical", "alert", "emergency"}
    saw = json.loads(report["saw"]["content"][0]["text"])
    assert (saw["revision"], saw["subscribed"]) == (REVISIONS[letter], [])


@needs_peers
@visits(modern_report, client="E")
@pytest.mark.parametrize(("letter", "link"), WITH_HANDSHAKE)
def test_it_is_asked_what_the_server_wants_to_know(letter: str, link: str) -> None:
    asked = modern_report("E", letter, link)["asked"]
    assert {name: set(kinds) for name, kinds in asked.items()} == ASKED[letter]
    for name, kinds in asked.items():
        for kind, found in kinds.items():
            if kind == "tools":
                assert found["asked"] == []
                refused = json.loads(found["answer"]["content"][0]["text"])["refused"]  # its server tells, and goes on
                assert "capability sampling.tools" in refused["message"]
            else:
                expected = SEVERAL.get(kind, [METHODS[name]])
                assert sorted(question.split()[0] for question in found["asked"]) == expected
                assert not found["answer"].get("isError"), found


@needs_peers
@visits(modern_report, client="E", letter="E")
@pytest.mark.parametrize("link", [link for letter, link in PYTHONS if letter == "E"])
def test_two_of_today_lose_nothing(link: str) -> None:
    report = modern_report("E", "E", link)
    assert "tools" in report["introduced"]["capabilities"]
    assert report["calls"]["echo"]["content"][0]["text"] == "you said hello"
    assert report["at once"] == [f"you said call {place}" for place in range(5)]
    assert report["read"]["contents"][0]["text"]
    assert report["nowhere"]["error"]["code"] == -32602
    assert report["asked"]["ask_user"]["form"]["asked"] == ["elicitation/create form"]
    assert report["heard"] == ["ResourceUpdated", "ToolsListChanged"]
    assert report["progress"] == [1, 2, 3]
