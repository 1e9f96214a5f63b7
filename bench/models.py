"""What reading a result into a model costs, beside plain pydantic models and those of the official SDKs.

Each has a process of its own; they take turns.

The SDK's models are measured where Python finds `mcp_types`, in this environment or in the one that the environment
variable DRAGOMAN_BENCH_SDKS names (several, with the separator of paths): the directory of an interpreter's packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from bench.messages import plain_tool, rich_tool

REVISION = "2025-11-25"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a call": ("CallToolRequestParams", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    "five blocks": ("CallToolResult", {"content": [{"type": "text", "text": f"line {n}"} for n in range(5)]}),
    "100 plain tools": ("ListToolsResult", {"tools": [plain_tool(number) for number in range(100)]}),
    "100 rich tools": ("ListToolsResult", {"tools": [rich_tool(number) for number in range(100)]}),
}
OURS = f"import dragoman_spec; models = dragoman_spec.load({REVISION!r})"
PLAIN = "import bench.plain as models"
THEIRS = {"mcp_types": "import mcp_types as models", "mcp.types": "import mcp.types as models"}
PROGRAM = """
import json, sys, time
{statement}
cases, rounds = json.loads(sys.stdin.readline())
print("ready", flush=True)
for line in sys.stdin:
    name, value = cases[json.loads(line)]
    validate = getattr(models, name).model_validate
    count = 2000 if len(str(value)) < 1000 else 20
    validate(value)
    started = time.process_time()
    for _ in range(count):
        validate(value)
    print((time.process_time() - started) / count * 1e6, flush=True)
"""


def measure_models(rounds: int) -> None:
    """Measure and print every case, ours and theirs taking turns."""
    print(f"\nmodel_validate, {REVISION} (best of {rounds}; ratio of ours to theirs)")
    ours = _start(OURS, None, rounds)
    assert ours is not None
    plain = _start(PLAIN, None, rounds)
    assert plain is not None
    sdks = {"plain pydantic": plain}
    for place in [None, *filter(None, os.environ.get("DRAGOMAN_BENCH_SDKS", "").split(os.pathsep))]:
        for name, statement in THEIRS.items():
            if sdk := _start(statement, place, rounds):
                sdks[name if place is None else f"{name} of {place}"] = sdk
    if len(sdks) == 1:
        print("  no SDK to compare with: name one in DRAGOMAN_BENCH_SDKS")
    for case in CASES:
        best = {name: float("inf") for name in ("ours", *sdks)}
        for _ in range(rounds):
            for name, process in (("ours", ours), *sdks.items()):
                best[name] = min(best[name], _ask(process, case))
        theirs = "".join(f"  {best[name]:>8.1f} µs {name} ({best['ours'] / best[name]:.2f})" for name in sdks)
        print(f"  {case:<16} {best['ours']:>8.1f} µs ours{theirs}")
    for process in (ours, *sdks.values()):
        process.communicate()


def _start(statement: str, packages: str | None, rounds: int) -> subprocess.Popen[str] | None:
    """Start a process that measures; none if it cannot import what it should."""
    environment = {**os.environ, **({"PYTHONPATH": packages} if packages else {})}
    command = [sys.executable, "-c", PROGRAM.format(statement=statement)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True
    )
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(json.dumps([CASES, rounds]) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass
    if process.stdout.readline() == "ready\n":
        return process
    process.wait()
    return None


def _ask(process: subprocess.Popen[str], case: str) -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(case) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())
