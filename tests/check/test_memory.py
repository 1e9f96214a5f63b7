"""How much memory a check takes for a large answer: a small multiple of its size, whatever is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SIZE = 4_000_000
MANY = 20
"""How many times its size an answer may take: 7 to 15 times in fact, most of it what is decoded."""

LONGEST_S = 120

# Prints how much memory it has taken at most, in bytes, with a small answer and then with a large one.
MEASURE = """
import asyncio, sys
from dragoman.check.check import check_server
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport
def check(*arguments):
    command = [sys.executable, sys.argv[1], *arguments]
    work = check_server(lambda: ChildTransport(spawn(command)), revisions=["2025-06-18"], timeout_s=60)
    report = asyncio.run(work)
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
    found = len([one for one in report.findings if one.rule == "result-model"])
    print(int(peak) * 1024, found)
check()
check(sys.argv[2])
"""
SERVER = """
import json, sys
tools = open(sys.argv[1]).read() if len(sys.argv) > 1 else "[]"
info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
for line in sys.stdin:
    frame = json.loads(line)
    answer = '"error":{"code":-32601,"message":"no"}'
    match frame["method"]:
        case "initialize":
            answer = f'"result":{json.dumps(info)}'
        case "tools/list" if "cursor" not in frame.get("params", {}):
            answer = f'"result":{{"tools":{tools}}}'
        case "ping":
            answer = '"result":{}'
    if "id" in frame:
        print(f'{{"jsonrpc":"2.0","id":{json.dumps(frame["id"])},{answer}}}', flush=True)
"""
TOOL: dict[str, Any] = {"name": "tool", "description": "does something " * 5, "inputSchema": {"type": "object"}}


def many(item: Any) -> list[Any]:
    return [item] * (SIZE // (len(json.dumps(item)) + 2))


SHAPES: dict[str, tuple[Any, int]] = {
    "valid": (many(TOOL), 0),
    "all wrong": (many(None), 1000),
    "wrong inside": (
        [{**TOOL, "inputSchema": {"type": "object", "properties": dict.fromkeys(map(str, range(300_000)))}}],
        1000,
    ),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much was taken")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_answer_takes_a_small_multiple_of_its_size(shape: str, tmp_path: Path) -> None:
    tools, wrong = SHAPES[shape]
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    (tmp_path / "tools.json").write_text(json.dumps(tools), "utf-8")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "server.py"), str(tmp_path / "tools.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.returncode == 0, done.stderr
    small, large = (line.split() for line in done.stdout.splitlines())
    assert int(large[1]) == wrong
    assert int(large[0]) - int(small[0]) < MANY * SIZE
