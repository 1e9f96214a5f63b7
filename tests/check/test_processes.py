"""What only a process can do wrong: not to end when its input is closed, or to end too early."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from dragoman.check.check import check_server
from dragoman.check.findings import CheckReport
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildPatience, ChildTransport

SERVER = """
import json, sys, time
for line in sys.stdin:
    frame = json.loads(line)
    result = None
    if frame.get("method") == "initialize":
        info = {"name": "a", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
    elif frame.get("method") == "ping":
        result = {}
    answer = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    if "id" in frame:
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **answer}), flush=True)
"""
PATIENCE = ChildPatience(after_eof_s=0.3)


def check(code: str) -> CheckReport:
    command = [sys.executable, "-c", code]
    work = check_server(lambda: ChildTransport(spawn(command), PATIENCE), revisions=["2025-06-18"], timeout_s=10)
    return asyncio.run(work)


def test_a_process_that_stays_is_seen() -> None:
    assert [one.rule for one in check(SERVER + "time.sleep(60)").findings] == ["ends-with-input"]


def test_a_process_that_ends_at_an_unknown_method_is_seen() -> None:
    code = SERVER.replace("result = None\n", "result = None\n    assert 'no-such' not in frame['method']\n", 1)
    (found,) = check(code).findings
    assert (found.rule, found.about) == ("alive", "the request a method that does not exist")
    assert found.found == "the server exited with status 1"


def test_whatever_stands_in_a_message_is_found_fault_with(tmp_path: Path) -> None:
    odd = [None, 0, 1.5, True, "x", [], [[]], {"a": []}]
    members = [{"id": 1, "method": value} for value in odd] + [{"method": value} for value in odd]
    members += [{"id": value, "method": "ping"} for value in odd] + [{"id": value, "result": {}} for value in odd]
    members += [{"id": "x", name: value} for value in odd for name in ("result", "error")]
    members += [{"id": 1, "method": "sampling/createMessage", "params": value} for value in odd]
    for method in ("progress", "message", "cancelled", "resources/updated"):
        names = ("progressToken", "progress", "level", "uri", "requestId", "_meta")
        members += [{"method": f"notifications/{method}", "params": {name: value}} for name in names for value in odd]
    said = [json.dumps({"jsonrpc": "2.0", **one}) for one in members]
    (tmp_path / "said").write_text("".join(f"{one}\n" for one in said), "utf-8")
    speaks = f"result = {{}}\n        print(open({str(tmp_path / 'said')!r}).read(), end='', flush=True)\n"
    report = check(SERVER.replace("result = {}\n", speaks))
    assert report.served == ("2025-06-18",)
    assert {"frame-shape", "answer-id", "request-model", "notification-model"} <= {one.rule for one in report.findings}
