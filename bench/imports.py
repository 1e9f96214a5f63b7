"""What importing costs, each in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

STATEMENTS = {
    "json (the interpreter's own)": "import json",
    "orjson": "import orjson",
    "dragoman_spec": "import dragoman_spec",
    "a translator of 3 steps": "import dragoman_spec; dragoman_spec.translator('2025-11-25', '2024-11-05')",
    "pydantic, BaseModel": "from pydantic import BaseModel",
    "one revision's models": "from dragoman_spec.v2025_11_25 import Tool",
    "dragoman.cli": "import dragoman.cli",
}
PROGRAM = """
import sys, time
started = time.perf_counter()
{statement}
print((time.perf_counter() - started) * 1000, "pydantic" in sys.modules)
"""


def measure_imports(rounds: int) -> None:
    """Measure and print every statement, in interleaved rounds, from compiled files as installed packages have them."""
    samples: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    with_pydantic: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        for statement in STATEMENTS.values():
            _run(statement, environment)
        for _ in range(rounds):
            for name, statement in STATEMENTS.items():
                time_ms, loaded = _run(statement, environment)
                samples[name].append(time_ms)
                with_pydantic[name] = loaded
    print("\nImports in a fresh interpreter (median)")
    width = max(len(name) for name in STATEMENTS)
    for name, times in samples.items():
        print(f"  {name:<{width}}  {median(times):>7.1f} ms  {'with' if with_pydantic[name] else 'without'} pydantic")


def _run(statement: str, environment: dict[str, str]) -> tuple[float, bool]:
    command = [sys.executable, "-c", PROGRAM.format(statement=statement)]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    return float(output[0]), output[1] == "True"
