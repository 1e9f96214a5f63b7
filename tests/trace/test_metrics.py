"""What is counted of calls: under which names and labels, as Prometheus' own parser reads them."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman.core.commands import Outcome
from dragoman.trace import metrics
from dragoman.trace.calls import CallWatch, SeenCall
from dragoman.trace.metrics import Metrics
from tests.proxy import test_per_request, test_per_request_relay
from tests.proxy.conversation import (
    Step,
    client,
    client_closes,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    result,
    server,
)
from tests.proxy.test_per_request import asks
from tests.proxy.test_scopes import Client, Running
from tests.support import commands
from tests.support.ports import free_port

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
HERE = "mcp_server_operation_duration_seconds"
THERE = "mcp_client_operation_duration_seconds"


def read(text: bytes) -> Series:
    families = list(text_string_to_metric_families(text.decode()))
    assert families
    assert len({family.name for family in families}) == len(families)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def count(steps: Sequence[Step], **config: Any) -> Series:
    cells = Metrics(("pipe", "tcp"))
    hold(steps, calls=CallWatch((cells,), "shop"), **config)
    return read(cells.write())


def find(series: Series, name: str, **labels: str) -> float:
    """Give the value of the only series with these labels, and perhaps others."""
    found = [value for (one, has), value in series.items() if one == name and labels.items() <= dict(has).items()]
    assert len(found) == 1, (name, labels, sorted(str(key) for key in series))
    return found[0]


def absent(series: Series, name: str, label: str) -> bool:
    return all(label not in dict(has) for one, has in series if one == name)


def calls(*pairs: tuple[Any, Any]) -> list[Step]:
    return [
        step
        for asked, answer in pairs
        for step in (client(asked), expect_to_server(asked), server(answer), expect_to_client(answer))
    ]


LISTING = (request(1, "tools/list"), result(1, {"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]}))
BOUGHT = (request(2, "tools/call", name="buy"), result(2, {"content": []}))


def test_a_call_is_counted_at_both_ends_with_its_tool() -> None:
    series = count([*opening("2025-06-18", "2025-11-25"), *calls(LISTING, BOUGHT)])
    about = {"mcp_method_name": "tools/call", "gen_ai_tool_name": "buy", "gen_ai_operation_name": "execute_tool"}
    assert find(series, f"{HERE}_count", **about, mcp_protocol_version="2025-06-18", network_transport="pipe") == 1
    there = {**about, "mcp_protocol_version": "2025-11-25", "network_transport": "tcp", "server": "shop"}
    assert find(series, f"{THERE}_count", **there) == 1
    assert find(series, f"{THERE}_bucket", **there, le="300") == 1
    assert find(series, f"{THERE}_bucket", **there, le="+Inf") == 1
    assert 0 < find(series, f"{THERE}_sum", **there) <= find(series, f"{HERE}_sum", **about)


def test_the_buckets_are_those_of_the_convention() -> None:
    series = count([*opening("2025-06-18", "2025-06-18"), *calls(LISTING)])
    limits = {float(dict(has)["le"]) for name, has in series if name == f"{HERE}_bucket"}
    assert limits == {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, float("inf")}


def test_a_tool_that_the_server_has_not_listed_has_no_name() -> None:
    asked = request(2, "tools/call", name="of-a-client-that-invents-names")
    series = count([*opening("2025-06-18", "2025-06-18"), *calls(LISTING, (asked, BOUGHT[1]))])
    assert find(series, f"{HERE}_count", mcp_method_name="tools/call", gen_ai_tool_name="_OTHER") == 1


@pytest.mark.parametrize(
    ("answer", "here", "there", "code"),
    [
        (error(2, -32602), None, "-32602", "-32602"),
        (error(2, -32603), "-32603", "-32603", "-32603"),
        (error(2, -32050), "-32050", "-32050", "-32050"),
        (result(2, {"content": [], "isError": True}), "tool_error", "tool_error", None),
        (result(2, {"content": [{"type": "text", "text": '"isError": true'}], "isError": False}), None, None, None),
    ],
)
def test_a_client_blames_every_error_and_a_server_its_own(
    answer: Any, here: str | None, there: str | None, code: str | None
) -> None:
    series = count([*opening("2025-06-18", "2025-06-18"), *calls((BOUGHT[0], answer))])
    for name, kind in ((HERE, here), (THERE, there)):
        for label, value in (("error_type", kind), ("rpc_response_status_code", code)):
            if value is None:
                assert absent(series, f"{name}_count", label)
            else:
                assert find(series, f"{name}_count", **{label: value}) == 1


def test_a_tool_has_its_name_from_when_it_is_listed() -> None:
    series = count([*opening("2025-06-18", "2025-06-18"), *calls(BOUGHT, LISTING, BOUGHT)])
    assert find(series, f"{HERE}_count", gen_ai_tool_name="_OTHER") == 1
    assert find(series, f"{HERE}_count", gen_ai_tool_name="buy") == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"name":"no"},"name":"buy"}}\n',
        b'{"id":"{","method":"tools/call","params":{"name":"buy"},"jsonrpc":"2.0"}\n',
        b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "b\\u0075y", "arguments": {}}}\n',
        b'{"x":{"params":{"name":"no"}},"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"buy"}}\n',
        b'{"x\\"params":{"name":"no"},"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"buy"}}\n',
        b'{"params":{"name":"buy","arguments":{}},"jsonrpc":"2.0","id":2,"method":"tools/call"}\n',
    ],
)
def test_a_tool_is_found_wherever_a_client_writes_its_name(line: bytes) -> None:
    steps = [*opening("2025-06-18", "2025-06-18"), *calls(LISTING), client(line), expect_to_server(lambda _: True)]
    series = count([*steps, server(result(json.loads(line)["id"], {})), expect_to_client(lambda _: True)])
    assert find(series, f"{HERE}_count", gen_ai_tool_name="buy") == 1


def test_a_call_that_is_cancelled_says_so() -> None:
    gone = notification("notifications/cancelled", requestId=2)
    steps = [client(BOUGHT[0]), expect_to_server(BOUGHT[0]), client(gone), expect_to_server(gone)]
    series = count([*opening("2025-06-18", "2025-06-18"), *steps])
    assert find(series, f"{HERE}_count", error_type="cancelled") == 1


def test_an_answer_that_is_not_json_does_no_harm() -> None:
    broken = b'{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":}}\n'
    steps = [client(BOUGHT[0]), expect_to_server(BOUGHT[0]), server(broken), expect_to_client(lambda _: True)]
    series = count([*opening("2025-06-18", "2025-06-18"), *steps])
    assert find(series, f"{HERE}_count", mcp_method_name="tools/call") == 1


def test_losses_are_counted_by_kind_and_pair() -> None:
    audio = result(2, {"content": [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]})
    steps = [client(BOUGHT[0]), expect_to_server(BOUGHT[0]), server(audio), expect_to_client(lambda _: True)]
    series = count([*opening("2024-11-05", "2025-11-25"), *steps])
    assert find(series, "dragoman_losses_total", kind="replaced", source="2025-11-25", target="2024-11-05") == 1


def test_counting_losses_does_not_change_what_is_logged_of_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dragoman.translate")
    tool = {"name": "buy", "inputSchema": {"type": "object"}, "icons": [{"src": "x"}]}
    listed = result(1, {"tools": [tool, tool]})
    steps = [client(LISTING[0]), expect_to_server(LISTING[0]), server(listed), expect_to_client(lambda _: True)]
    series = count([*opening("2024-11-05", "2025-11-25"), *steps])
    assert find(series, "dragoman_losses_total", kind="dropped", source="2025-11-25", target="2024-11-05") == 2
    assert "/result/tools/*/icons x 2" in caplog.text


def test_questions_are_counted_by_their_method() -> None:
    asked = request(7, "roots/list")
    said = result(7, {"roots": []})
    steps = [server(asked), expect_to_client(asked), client(said), expect_to_server(said)]
    series = count([*opening("2025-06-18", "2025-06-18", ["roots"]), *steps])
    assert find(series, "dragoman_questions_total", mcp_method_name="roots/list") == 1


def test_sessions_are_counted_once_they_are_over() -> None:
    steps = [*opening("2025-06-18", "2025-11-25"), client_closes(), expect_end(Outcome.CLIENT_CLOSED)]
    series = count(steps)
    assert find(series, "mcp_server_session_duration_seconds_count", mcp_protocol_version="2025-06-18") == 1
    assert find(series, "mcp_client_session_duration_seconds_count", mcp_protocol_version="2025-11-25") == 1


def test_a_peer_without_a_handshake_has_no_sessions() -> None:
    asked, answer = asks(1, "tools/list"), {**LISTING[1]["result"], "resultType": "complete"}
    steps = [client(asked), *test_per_request_relay.opening(), expect_to_server(asked), server(result(1, answer))]
    steps += [expect_to_client(result(1, answer)), client_closes(), expect_end(Outcome.CLIENT_CLOSED)]
    series = count(steps)
    for name in (HERE, THERE):
        assert find(series, f"{name}_count", mcp_method_name="tools/list", mcp_protocol_version="2026-07-28") == 1
    assert not [name for name, _ in series if "session" in name]


def test_a_client_without_a_handshake_is_asked_in_the_result_of_its_call() -> None:
    has = {"elicitation": {"form": {}}}
    asked = request("q", "elicitation/create", message="?", requestedSchema={"type": "object", "properties": {}})
    steps = [client(asks(2, "tools/call", has=has, name="buy")), *test_per_request.opening(tools={})]
    steps += [expect_to_server(lambda frame: frame["method"] == "tools/call"), server(asked)]
    steps += [expect_to_client(lambda frame: frame["result"]["resultType"] == "input_required")]
    series = count(steps)
    assert find(series, "dragoman_questions_total", mcp_method_name="tools/call") == 1
    about = {"mcp_method_name": "tools/call", "mcp_protocol_version": "2026-07-28"}
    assert find(series, f"{HERE}_count", **about) == 1
    assert absent(series, f"{HERE}_count", "error_type")
    assert find(series, f"{THERE}_count", mcp_protocol_version=test_per_request.OLD) == 1


@pytest.mark.parametrize("name", ["\ud800", "x" * 10_000, "a\nb"])
def test_a_tool_whose_name_is_odd_is_not_told_apart(name: str) -> None:
    cells = Metrics()
    cells.take_tools("", [name])
    cells.take_call(SeenCall("", "", "", (None, None), "", "tools/call", name, "ok", 0.1, 0.1, 1, 1), True, False)
    assert find(read(cells.write()), f"{HERE}_count", gen_ai_tool_name=metrics.OTHER) == 1


def test_how_many_series_there_are_has_a_bound() -> None:
    cells = Metrics()
    cells.take_tools("", [f"tool-{number}" for number in range(3 * metrics.MOST_TOOLS)])
    for number in range(3 * metrics.MOST_TOOLS):
        revisions = ("2025-06-18", "2025-06-18")
        names = ("", "ann", "editor 7", revisions, "", "tools/call", f"tool-{number}", str(-40000 - number % 100))
        cells.take_call(SeenCall(*names, 0.1, 0.0, 1, 1), True, True)
        names = ("", "ann", "editor 7", revisions, "", f"made/up-{number}", "", "ok")
        cells.take_call(SeenCall(*names, 0.1, 0.0, 1, 1), True, True)
    series = read(cells.write())
    named = {dict(has).get("gen_ai_tool_name") for name, has in series}
    assert len(named - {None}) == metrics.MOST_TOOLS + 1
    assert len({dict(has).get("error_type") for _, has in series} - {None}) == metrics.MOST_CODES + 1
    assert {dict(has).get("mcp_method_name") for _, has in series} - {None} == {"tools/call", "_OTHER"}
    assert b"ann" not in cells.write()
    assert b"editor 7" not in cells.write()


def fetch(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def test_a_proxy_that_listens_gives_them_at_a_port_of_their_own(tmp_path: Path) -> None:
    port = free_port()
    run = Running(tmp_path, "--metrics-listen", f"http://127.0.0.1:{port}", "--max-sessions", "1")
    try:
        person = Client(run.port)
        person.open("2025-06-18")
        assert "result" in person.post(request(1, "tools/call", name="t"))
        assert "error" in Client(run.port).post(request(0, "initialize"))
        code, text = fetch(port)
        series = read(text)
        assert fetch(port, host="elsewhere.example")[0] == 421
        assert fetch(port, "/")[0] == 404
        assert fetch(port, method="POST")[0] == 405
        assert fetch(run.port)[0] == 404
    finally:
        run.stop()
    assert code == 200
    assert find(series, f"{HERE}_count", mcp_method_name="tools/call", network_transport="tcp") == 1
    assert find(series, f"{THERE}_count", mcp_method_name="tools/call", network_transport="pipe") == 1
    assert find(series, "dragoman_places", option="--max-sessions") == 1
    assert find(series, "dragoman_places_limit", option="--max-sessions") == 1
    assert find(series, "dragoman_refusals_total", option="--max-sessions") == 1
    assert find(series, "dragoman_servers", state="ready") == 1
    assert find(series, "dragoman_restarts_total") == 0
    assert find(series, "dragoman_parked_calls") == 0


def test_an_address_that_is_taken_is_said(tmp_path: Path) -> None:
    import socket
    import subprocess

    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"http://127.0.0.1:{taken.getsockname()[1]}"
        line = [sys.executable, "-m", "dragoman", "proxy", "--metrics-listen", where, "--", "true"]
        done = commands.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "--metrics-listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_of_it_is_loaded_without_being_asked_for() -> None:

    program = (
        "import sys, dragoman.cli.proxy, dragoman.proxy, dragoman.transports.http.app\n"
        "print([name for name in sys.modules if name.startswith('dragoman.trace')])"
    )
    done = commands.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
