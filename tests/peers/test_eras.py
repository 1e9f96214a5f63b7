"""Real clients of every revision with a handshake visit a real server that has none, through the proxy."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.ahead import ahead, visits
from tests.peers.matching import REVISIONS
from tests.peers.traces import invalid_frames, read_trace
from tests.peers.validity import complaints
from tests.peers.visits import (
    HERE,
    SELECTION,
    SETTLE_S,
    client_command,
    frames_in,
    joined_by_proxy,
    native,
    needs_peers,
    python_in,
    visit,
)

NEWER: Final = "2026-07-28"
TEXT_URI: Final = "file:///home/user/document.txt"
LINKS: Final = ("stdio-stdio", "stdio-http", "http-stdio", "http-http", "sse-http", "ws-stdio", "ws-http")
PAIRS: Final = [
    (client, link)
    for link in LINKS
    for client in REVISIONS
    if SELECTION == "full" or (link in LINKS[:2] and SELECTION != "quick") or client == "D"
]
"""All clients over stdio to both upstream transports, and the newest of them over every other link."""


@ahead
def era_report_of(client: str, link: str) -> dict[str, Any]:
    """Visit the server once, and keep the report with the frames that each side got and sent."""
    front, upstream = link.split("-")
    with tempfile.TemporaryDirectory() as folder:
        client_log, server_log, log, trace = (Path(folder) / name for name in ("client", "server", "log", "trace"))
        with contextlib.ExitStack() as stack:
            command = [python_in("current"), str(HERE / "stateless.py"), "--record", str(server_log)]
            over, target = joined_by_proxy(stack, native(front, client), upstream, command, log, trace)
            options = ("--record", str(client_log), "--over", over, "--settle", SETTLE_S)
            report = visit(client_command(client), target, *options)
        report["frames"] = {"client": frames_in(client_log), "server": frames_in(server_log)}
        report["trace"] = read_trace(trace)
    return report


pytestmark = [needs_peers, visits(era_report_of), pytest.mark.parametrize(("client", "link"), PAIRS)]


@pytest.fixture
def report(client: str, link: str) -> dict[str, Any]:
    return era_report_of(client, link)


def can_elicit(client: str) -> bool:
    return client >= "C"


def test_the_visit_comes_to_its_end(report: dict[str, Any]) -> None:
    assert "crashed" not in report
    assert report["stray"] == []


def test_the_server_introduces_itself(report: dict[str, Any], client: str) -> None:
    introduced = report["initialize"]["result"]
    assert introduced["protocolVersion"] == REVISIONS[client]
    assert introduced["serverInfo"] == {"name": "stateless", "version": "1.2.3"}
    assert introduced["instructions"] == "Be kind"
    assert introduced["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert report["ping"] == {"result": {}}


def test_the_server_knows_its_client(report: dict[str, Any], client: str) -> None:
    saw = report["server_saw"]
    assert saw["revision"] == NEWER
    assert {"roots", "sampling"} <= saw["capabilities"].keys()
    assert ("elicitation" in saw["capabilities"]) is can_elicit(client)


def test_tools_answer(report: dict[str, Any]) -> None:
    calls = report["calls"]
    assert calls["echo"]["result"]["content"] == [{"type": "text", "text": "you said hello"}]
    assert calls["failing"]["result"]["isError"] is True
    assert calls["nonexistent"]["error"] == {"code": -32602, "message": "Unknown tool: nonexistent"}
    assert report["at_once"] == [f"you said call {place}" for place in range(5)]


def test_structured_content_reaches_clients_that_know_it(report: dict[str, Any], client: str) -> None:
    found = report["calls"]["weather"]["result"]
    assert found["content"] == [{"type": "text", "text": '{"degrees": 21}'}]
    assert found.get("structuredContent") == ({"degrees": 21} if client >= "C" else None)


def test_roots_and_completions_are_asked_for(report: dict[str, Any]) -> None:
    roots, sampling = report["asks"]["ask_roots"]["once"], report["asks"]["ask_sampling"]["text"]
    assert roots["asked"] == ["roots"]
    assert roots["answer"] == {"roots": {"roots": [{"uri": "file:///home/user", "name": "home"}]}}
    assert sampling["asked"][0]["systemPrompt"] == "Be kind"
    assert sampling["answer"]["model"]["content"] == {"type": "text", "text": "I say hello"}


@pytest.mark.parametrize(("kind", "asked"), [("form", 1), ("three", 3), ("two", 1), ("wait", 1)])
def test_a_person_is_asked_where_the_client_can(report: dict[str, Any], client: str, kind: str, asked: int) -> None:
    found = report["asks"]["ask_user"][kind]
    if not can_elicit(client):
        assert found["result"]["isError"] is True
        assert "Which color" in found["result"]["content"][0]["text"]
        return
    assert len(found["asked"]) == asked
    accepted = [answer for answer in found["answer"].values() if answer.get("action") == "accept"]
    assert all(answer["content"] == {"color": "r"} for answer in accepted)
    assert len(accepted) == asked
    if kind == "two":  # the other one is about roots, which were told before: nobody is asked again
        assert found["answer"]["roots"]["roots"][0]["name"] == "home"


def test_a_question_inside_of_a_prompt(report: dict[str, Any], client: str) -> None:
    found = report["prompts"]["gallery"]
    if can_elicit(client):
        told = json.loads(found["result"]["messages"][0]["content"]["text"])
        assert told == {"color": {"action": "accept", "content": {"color": "r"}}}
    else:
        assert found["error"]["code"] == -32603
        assert "Which color" in found["error"]["message"]


def test_resources_are_listed_and_read(report: dict[str, Any], client: str) -> None:
    names = [resource["name"] for page in report["pages"] for resource in page["result"]["resources"]]
    # Release 1.6.0 loses the cursor only as a server; as a client it is made to send it right.
    assert names == ["document.txt", "unique"]
    assert [template["name"] for template in report["templates"]["result"]["resourceTemplates"]] == ["by-city"]
    assert report["reads"]["document"]["result"]["contents"][0]["text"] == "Once upon a time"
    assert report["reads"]["nowhere"]["error"]["code"] == -32002


def test_a_subscription_lasts_as_long_as_it_is_wanted(report: dict[str, Any]) -> None:
    watch = report["watch"]
    assert [note["params"]["uri"] for note in watch["during"]] == [TEXT_URI]
    assert (watch["before"], watch["after"]) == ([], [])
    assert (watch["subscribe"], watch["unsubscribe"]) == ({"result": {}}, {"result": {}})


def test_changed_lists_are_told(report: dict[str, Any]) -> None:
    assert sorted(report["lists"]) == [
        f"notifications/{name}/list_changed" for name in ("prompts", "resources", "tools")
    ]


def test_prompts_and_completions(report: dict[str, Any]) -> None:
    assert report["prompts"]["greet"]["result"]["messages"][0]["content"]["text"] == "Hello Ada"
    assert report["complete"]["prompt"]["result"]["completion"]["values"] == ["A-one"]


def test_logs_come_from_the_level_on_that_was_set(report: dict[str, Any]) -> None:
    levels = report["levels"]
    assert [note["level"] for note in levels["warning"]] == ["warning", "error", "emergency"]
    assert [note["level"] for note in levels["debug"]] == ["debug", "warning", "error", "emergency"]


def test_progress_has_the_clients_token(report: dict[str, Any]) -> None:
    told = [(note["progressToken"], note["progress"]) for note in report["progress"]["progress"]]
    assert told == [("token-1", 1), ("token-1", 2), ("token-1", 3)]


def test_a_cancelled_call_ends_at_the_server(report: dict[str, Any]) -> None:
    assert report["cancel"]["afterwards"]["cancelled"] == 1


def test_what_the_client_gets_is_valid(report: dict[str, Any], client: str) -> None:
    assert list(complaints(report["frames"]["client"], "client", REVISIONS[client])) == []


def test_what_leaves_the_proxy_is_valid(report: dict[str, Any], client: str) -> None:
    assert list(invalid_frames(report["trace"], client, "E")) == []


def test_the_server_is_asked_what_it_is_once(report: dict[str, Any]) -> None:
    """After it has refused to open a session, which its client would have had from a server of both eras."""
    asked = [entry.get("got", {}).get("method") for entry in report["frames"]["server"]]
    assert (asked.count("initialize"), asked.count("server/discover")) == (1, 1)


def test_headers_repeat_what_the_body_says(report: dict[str, Any], link: str) -> None:
    if not link.endswith("-http"):
        pytest.skip("only HTTP has headers")
    calls = [entry for entry in report["frames"]["server"] if entry.get("got", {}).get("method") == "tools/call"]
    echoes = [entry for entry in calls if entry["got"]["params"]["name"] == "echo"]
    assert echoes
    for entry in echoes:
        headers = entry["headers"]
        assert headers["mcp-name"] == "echo"
        assert headers["mcp-param-say"] == entry["got"]["params"]["arguments"]["say"]
        assert headers["mcp-protocol-version"] == NEWER
