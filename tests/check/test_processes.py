"""What only a process can do wrong: not to end when its input is closed, or to end too early."""

from __future__ import annotations

import asyncio
import sys

from dragoman.check.check import check_server
from dragoman.check.findings import CheckReport
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildPatience, ChildTransport

SERVER = """
import json, sys, time
for line in sys.stdin:
    frame = json.loads(line)
    result = None
    if frame["method"] == "initialize":
        info = {"name": "a", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
    elif frame["method"] == "ping":
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
