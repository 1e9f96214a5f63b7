"""The judge of recorded frames must be able to find fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.peers.traces import invalid_frames, read_trace
from tests.peers.validity import NEWER, Side, complaints

OWN = "io.modelcontextprotocol/"
META = {f"{OWN}protocolVersion": NEWER, f"{OWN}clientCapabilities": {}}
HELLO = {"type": "text", "text": "hello"}
FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
ASKED = {"color": {"method": "elicitation/create", "params": FORM}}
WHEN = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": None}
TASK = {"taskId": "t", **WHEN}
Record = list[dict[str, Any]]


def sent(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    """Return the record of a request that the peer made."""
    return {"sent": {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}}


def asked(method: str, **params: Any) -> dict[str, Any]:
    """Return the record of a request that the peer got."""
    return {"got": {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}


def told(method: str, **params: Any) -> dict[str, Any]:
    """Return the record of a notification that the peer got."""
    return {"got": {"jsonrpc": "2.0", "method": method, "params": params}}


def answer(request_id: Any = 1, **result: Any) -> dict[str, Any]:
    """Return the record of a result that the peer got."""
    return {"got": {"jsonrpc": "2.0", "id": request_id, "result": result}}


def error(code: int, **data: Any) -> dict[str, Any]:
    """Return the record of an error that the peer got."""
    return {"got": {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": data}}}


def under(subscription: Any) -> dict[str, Any]:
    """Return the `_meta` of what comes under a subscription."""
    return {f"{OWN}subscriptionId": subscription}


CALL = sent("tools/call", name="t")
LISTEN = sent("subscriptions/listen", notifications={"toolsListChanged": True})
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
AGREED = told(ACKNOWLEDGED, _meta=under(1), notifications={"toolsListChanged": True})
TOOLS_CHANGED = "notifications/tools/list_changed"
INPUT_REQUIRED = {"sent": {"id": 7, "result": {"resultType": "input_required", "inputRequests": ASKED}}}

VALID: list[tuple[Record, Side, str]] = [
    ([CALL, answer(content=[HELLO])], "client", "2024-11-05"),
    ([CALL, answer(content=[HELLO], resultType="complete")], "client", NEWER),
    ([CALL, answer(resultType="input_required", inputRequests=ASKED, requestState="s")], "client", NEWER),
    ([CALL, error(-32021, requiredCapabilities={"sampling": {}})], "client", NEWER),
    ([CALL, error(-32042, elicitations=[])], "client", "2024-11-05"),  # any error of a server: its code is kept
    ([LISTEN, AGREED, told(TOOLS_CHANGED, _meta=under(1))], "client", NEWER),
    ([LISTEN, AGREED, answer(resultType="complete", _meta=under(1))], "client", NEWER),
    ([asked("tools/list", _meta=META)], "server", NEWER),
    ([asked("server/discover", _meta=META)], "server", "2024-11-05"),
    (
        [INPUT_REQUIRED, asked("tools/call", name="t", _meta=META, inputResponses={"color": {"action": "decline"}})],
        "server",
        NEWER,
    ),
    ([CALL, answer(resultType="task", status="working", **TASK)], "client", NEWER),
    (
        [
            sent("tasks/get", taskId="t"),
            answer(resultType="complete", status="input_required", inputRequests=ASKED, **TASK),
        ],
        "client",
        NEWER,
    ),
    ([sent("tasks/update", taskId="t"), answer(resultType="complete")], "client", NEWER),
    ([asked("tasks/get", taskId="t", _meta=META)], "server", NEWER),
    (
        [
            sent("tools/call", name="t", task={}),
            answer(task={"taskId": "t", "status": "working", **WHEN, "ttl": None}),
        ],
        "client",
        "2025-11-25",
    ),
    (
        [sent("tasks/result", taskId="t"), answer(content=[], _meta={f"{OWN}related-task": {"taskId": "t"}})],
        "client",
        "2025-11-25",
    ),
]

INVALID: list[tuple[Record, Side, str, str]] = [
    (
        [CALL, answer(content=[{"type": "audio", "data": "", "mimeType": "audio/wav"}])],
        "client",
        "2024-11-05",
        "result of tools/call at /content/0",
    ),
    ([CALL, answer("1", content=[])], "client", "2024-11-05", "answer to nothing asked"),
    ([asked("elicitation/create")], "client", "2025-03-26", "elicitation/create: 2025-03-26 has no such method"),
    ([told("notifications/progress")], "client", "2025-11-25", "notifications/progress at /"),
    ([CALL, {"got": {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}}], "client", "2025-11-25", "error of tools/call"),
    ([{"got": {"unreadable": "not JSON"}}], "client", "2025-11-25", "not a frame"),
    # Who says what
    ([asked("tools/list")], "client", "2025-11-25", "has no such method"),
    ([asked("roots/list", _meta=META)], "client", NEWER, "has no such method"),
    ([asked("ping")], "server", NEWER, "has no such method"),
    ([told("notifications/initialized")], "server", NEWER, "has no such method"),
    # What only one era has
    ([asked("tools/list")], "server", NEWER, "tools/list at /params: '_meta' is a required property"),
    ([asked("tools/list", _meta=META)], "server", "2025-11-25", f"has no {OWN}protocolVersion"),
    ([asked("tools/list", _meta={**META, f"{OWN}protocolVersion": "2025-11-25"})], "server", NEWER, "is of 2025-11-25"),
    ([CALL, answer(content=[])], "client", NEWER, "'resultType' is a required property"),
    ([CALL, answer(content=[], resultType="complete")], "client", "2025-11-25", "has no resultType"),
    ([sent("tools/list"), answer(tools=[], resultType="complete")], "client", NEWER, "is a required property"),
    # Questions
    ([sent("tools/list"), answer(resultType="input_required")], "client", NEWER, "cannot be 'input_required'"),
    ([CALL, answer(resultType="soon", content=[])], "client", NEWER, "cannot be 'soon'"),
    ([sent("prompts/get"), answer(resultType="task", messages=[])], "client", NEWER, "cannot be 'task'"),
    ([CALL, answer(resultType="input_required", inputRequests={"a": {}})], "client", NEWER, "/inputRequests/a"),
    (
        [INPUT_REQUIRED, asked("tools/call", name="t", _meta=META, inputResponses={"color": {"roots": []}})],
        "server",
        NEWER,
        "answer to elicitation/create in tools/call at /: 'action' is a required property",
    ),
    (
        [INPUT_REQUIRED, asked("tools/call", name="t", _meta=META, inputResponses={"size": {"action": "cancel"}})],
        "server",
        NEWER,
        "size answers no question",
    ),
    # Errors
    ([CALL, error(-32021)], "client", NEWER, "error of tools/call at /error/data"),
    ([CALL, error(-32021, requiredCapabilities={})], "client", "2025-11-25", "2025-11-25 has no error -32021"),
    ([CALL, error(-32042, elicitations=[])], "client", NEWER, f"{NEWER} has no error -32042"),
    # Subscriptions
    ([LISTEN, told(TOOLS_CHANGED)], "client", NEWER, "there is no subscription None"),
    ([LISTEN, told(TOOLS_CHANGED, _meta=under("1"))], "client", NEWER, "there is no subscription '1'"),
    ([LISTEN, told(TOOLS_CHANGED, _meta=under(1))], "client", NEWER, "1 is not acknowledged"),
    ([LISTEN, AGREED, AGREED], "client", NEWER, "a second time"),
    (
        [LISTEN, told(ACKNOWLEDGED, _meta=under(1), notifications={"promptsListChanged": True})],
        "client",
        NEWER,
        "nobody has asked for ['promptsListChanged']",
    ),
    (
        [LISTEN, AGREED, told("notifications/prompts/list_changed", _meta=under(1))],
        "client",
        NEWER,
        "prompts/list_changed: was not acknowledged",
    ),
    (
        [LISTEN, AGREED, told("notifications/message", level="info", data="", _meta=under(1))],
        "client",
        NEWER,
        "belongs to no subscription",
    ),
    (
        [LISTEN, AGREED, answer(resultType="complete", _meta=under(1)), told(TOOLS_CHANGED, _meta=under(1))],
        "client",
        NEWER,
        "there is no subscription 1",
    ),
    ([LISTEN, answer(resultType="complete", _meta=under(2))], "client", NEWER, "names another subscription"),
    # Tasks
    ([CALL, answer(resultType="task", status="completed", result={}, **TASK)], "client", NEWER, "False schema"),
    ([sent("tasks/get"), answer(resultType="complete", status="failed", **TASK)], "client", NEWER, "tasks/get at /"),
    ([sent("tasks/cancel"), answer(resultType="complete", status="cancelled")], "client", NEWER, "tasks/cancel at /"),
    ([asked("tasks/update", taskId="t", _meta=META)], "server", NEWER, "'inputResponses' is a required property"),
    ([asked("tasks/result", taskId="t", _meta=META)], "server", NEWER, "has no such method"),
    ([told("notifications/tasks", status="working", **TASK)], "client", NEWER, "there is no subscription None"),
    ([sent("tools/call", task={}), answer(content=[])], "client", "2025-11-25", "'task' is a required property"),
    ([sent("tasks/result", taskId="t"), answer(content=[])], "client", "2025-11-25", "names no task"),
    ([sent("tasks/update", taskId="t"), answer(tools=[])], "client", NEWER, "tasks/update at /"),
]


@pytest.mark.parametrize(("record", "side", "revision"), VALID)
def test_valid_frames_have_no_complaints(record: Record, side: Side, revision: str) -> None:
    assert list(complaints(record, side, revision)) == []


@pytest.mark.parametrize(("record", "side", "revision", "complaint"), INVALID)
def test_invalid_frames_have(record: Record, side: Side, revision: str, complaint: str) -> None:
    found = list(complaints(record, side, revision))
    assert any(complaint in one for one in found), found


def write_trace(path: Path, *entries: tuple[str, int, str, dict[str, Any]], process: int = 1) -> Path:
    """Write a trace: of each frame the side, the connection and the direction."""
    names = ("side", "connection", "direction", "frame")
    with path.open("a", encoding="utf-8") as file:
        for entry in entries:
            told = {"process": process, "revision": None, **dict(zip(names, entry, strict=True))}
            file.write(json.dumps(told) + "\n")
    return path


def test_a_trace_is_read_by_connections_and_from_the_view_of_the_peers(tmp_path: Path) -> None:
    ping, pong = {"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 1, "result": {}}
    entries = [("client", 1, "received", ping), ("server", 2, "sent", ping), ("server", 2, "received", pong)]
    path = write_trace(tmp_path / "trace", *entries, ("client", 1, "sent", pong), ("server", 3, "sent", pong))
    trace = read_trace(path)
    assert [traced.record for traced in trace["client"]] == [[{"sent": ping}, {"got": pong}]]
    assert [traced.record for traced in trace["server"]] == [[{"got": ping}, {"sent": pong}], [{"got": pong}]]
    (found,) = invalid_frames(trace, "A", "D")
    assert found.startswith("answer to nothing asked")


def test_processes_that_write_to_one_trace_are_told_apart(tmp_path: Path) -> None:
    for process in (1, 2):
        path = write_trace(tmp_path / "trace", ("client", 1, "sent", {"id": process}), process=process)
    assert [traced.record for traced in read_trace(path)["client"]] == [[{"got": {"id": 1}}], [{"got": {"id": 2}}]]


def test_the_revision_of_a_connection_is_the_one_agreed_on(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    entry = {"process": 1, "side": "client", "connection": 1, "direction": "sent", "frame": {}}
    path.write_text("".join(json.dumps({**entry, "revision": agreed}) + "\n" for agreed in (None, "2025-11-25")))
    assert [traced.revision for traced in read_trace(path)["client"]] == ["2025-11-25"]


def test_an_incomplete_trace_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(json.dumps({"direction": "dropped", "lines": 2}) + "\n", "utf-8")
    with pytest.raises(AssertionError):
        read_trace(path)


def test_a_trace_in_which_a_side_got_nothing_is_not_judged(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "trace", ("client", 1, "sent", {"jsonrpc": "2.0", "method": "notifications/x"}))
    with pytest.raises(AssertionError, match="server"):
        list(invalid_frames(read_trace(path), "A", "D"))
