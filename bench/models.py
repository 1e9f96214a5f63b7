"""What reading a result into a model and writing it costs, beside plain pydantic models, those that
datamodel-code-generator makes of the same schema by default, and those of the official SDKs.

Each has a process of its own; they take turns.

The SDK's models are measured where Python finds `mcp_types`, in this environment or in the one that the environment
variable DRAGOMAN_BENCH_SDKS names (several, with the separator of paths): the directory of an interpreter's packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.messages import plain_tool, rich_tool

REVISION = "2025-11-25"
BLOCK = {"type": "text"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a call": ("CallToolRequestParams", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    "newest: a call": (
        "CallToolRequestParams",
        {
            "name": "add",
            "arguments": {"a": 1, "b": 2},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            },
        },
    ),
    "newest: a result": ("CallToolResult", {"content": [{"type": "text", "text": "3"}], "resultType": "complete"}),
    "newest: five": (
        "CallToolResult",
        {"content": [BLOCK | {"text": f"line {n}"} for n in range(5)], "resultType": "complete"},
    ),
    "five blocks": ("CallToolResult", {"content": [{"type": "text", "text": f"line {n}"} for n in range(5)]}),
    "100 plain tools": ("ListToolsResult", {"tools": [plain_tool(number) for number in range(100)]}),
    "100 rich tools": ("ListToolsResult", {"tools": [rich_tool(number) for number in range(100)]}),
}
OURS = f"import dragoman_spec as s; models = s.load({REVISION!r}); newest = s.load(s.LATEST)"
"""Models of the newest revision have members that may be absent and `null`; the others have all as they come."""
PLAIN = "import bench.plain as models"
DEFAULT = "import sys; sys.path.insert(0, {folder!r}); import default_models as models"
THEIRS = {"mcp_types": "import mcp_types as models", "mcp.types": "import mcp.types as models"}
WAYS = {"model_validate": {}, "model_dump_json": {"by_alias": True, "exclude_none": True}}
"""What is measured, and what others are told so that they leave out what is absent, as ours do by themselves."""
PROGRAM = """
import json, sys, time
{statement}
cases, rounds = json.loads(sys.stdin.readline())
print("ready", flush=True)
for line in sys.stdin:
    way, case, options = json.loads(line)
    name, value = cases[case]
    kind = getattr(globals().get("newest", models) if case.startswith("newest") else models, name)
    call, options = kind.model_validate, {{}} if way == "model_validate" else options
    if way != "model_validate":
        call, value = getattr(call(value), way), None
    given = () if value is None else (value,)
    count = 2000 if len(str(cases[case])) < 1000 else 20
    call(*given, **options)
    started = time.process_time()
    for _ in range(count):
        call(*given, **options)
    print((time.process_time() - started) / count * 1e6, flush=True)
"""


def measure_models(rounds: int) -> None:
    """Measure and print every case, ours and theirs taking turns."""
    print(f"\nmodels, {REVISION} (best of {rounds}; ratio of ours to theirs)")
    ours = _start(OURS, None, rounds)
    assert ours is not None
    plain = _start(PLAIN, None, rounds)
    assert plain is not None
    sdks = {"plain pydantic": plain}
    folder = tempfile.TemporaryDirectory()
    if _write_defaults(Path(folder.name)) and (made := _start(DEFAULT.format(folder=folder.name), None, rounds)):
        sdks["datamodel-code-generator"] = made
    for place in [None, *filter(None, os.environ.get("DRAGOMAN_BENCH_SDKS", "").split(os.pathsep))]:
        for name, statement in THEIRS.items():
            if sdk := _start(statement, place, rounds):
                sdks[name if place is None else f"{name} of {place}"] = sdk
    if not any(name.startswith("mcp") for name in sdks):
        print("  no SDK to compare with: name one in DRAGOMAN_BENCH_SDKS")
    for way, case in ((way, case) for way in WAYS for case in CASES):
        best = {name: float("inf") for name in ("ours", *sdks)}
        for _ in range(rounds):
            for name, process in (("ours", ours), *sdks.items()):
                best[name] = min(best[name], _ask(process, way, case, {} if name == "ours" else WAYS[way]))
        theirs = "".join(f"  {best[name]:>8.1f} µs {name} ({best['ours'] / best[name]:.2f})" for name in sdks)
        print(f"  {way:<15} {case:<16} {best['ours']:>8.1f} µs ours{theirs}")
    for process in (ours, *sdks.values()):
        process.communicate()
    folder.cleanup()


def _write_defaults(folder: Path) -> bool:
    """Write what datamodel-code-generator makes of the schema with no option but the kind of its input."""
    if find_spec("datamodel_code_generator") is None:
        return False
    schema = Path(__file__).resolve().parents[1] / "schema" / REVISION / "schema.json"
    command = ["-m", "datamodel_code_generator", "--input", str(schema), "--input-file-type", "jsonschema"]
    command += ["--output", str(folder / "default_models.py"), "--output-model-type", "pydantic_v2.BaseModel"]
    return subprocess.run([sys.executable, *command], check=False, capture_output=True).returncode == 0


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


def _ask(process: subprocess.Popen[str], way: str, case: str, options: dict[str, Any]) -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps([way, case, options]) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())
