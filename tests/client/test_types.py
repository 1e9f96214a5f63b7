"""The literal revision decides about the models, for type checkers: what fits passes, what does not is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman_spec import LATEST
from tests.docs.test_typing import LONGEST_S, SOURCES

PROGRAM = """
from typing import Any
import dragoman
from dragoman_spec import v2024_11_05 as old, v2025_06_18 as v, {newest} as newest

async def fill_in(params: v.ElicitRequestParams) -> v.ElicitResult:
    return v.ElicitResult(action="decline")

async def work() -> None:
{lines}
"""
NEWEST = f"v{LATEST.replace('-', '_')}"
PINNED = 'async with dragoman.connect("http://x/mcp", revision="2025-06-18", elicitation=fill_in) as client:'
ANY = 'async with dragoman.connect(["server"]) as client:'


def complaints(folder: Path, *lines: str) -> str:
    program = PROGRAM.format(lines="\n".join(f"    {line}" for line in lines), newest=NEWEST)
    (folder / "program.py").write_text(program, "utf-8")
    paths = "\n  ".join(map(str, SOURCES))
    configuration = f"[mypy]\nstrict = true\nexplicit_package_bases = true\nmypy_path =\n  {paths}\n"
    (folder / "mypy.ini").write_text(configuration, "utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--follow-imports=silent", "--no-error-summary"]
    done = subprocess.run(
        [*command, "program.py"], cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    return done.stdout


def test_each_revision_gives_its_models(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    lines = (
        PINNED,
        '    a: v.CallToolResult = await client.call("add")',
        "    b: list[v.Tool] = [t async for t in client.tools()]",
    )
    newest = (
        ANY,
        '    c: newest.CallToolResult = await client.call("add")',
        '    async with client.listen("x:y", tools=True) as changes:',
        "        d: newest.ServerNotification = await anext(changes)",
        '    e: newest.CallToolResult = await (await client.start("add")).result()',
        "    print(client.discovered.capabilities, client.server_info)",
    )
    assert complaints(tmp_path, *lines, *newest) == ""


def test_what_does_not_fit_the_revision_is_named(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    found = complaints(
        tmp_path,
        PINNED,
        '    a: old.CallToolResult = await client.call("add")',
        '    await client.set_log_level("loud")',
        'dragoman.connect("http://x/mcp", revision="2024-11-05", elicitation=fill_in)',
        'dragoman.connect("http://x/mcp", revision="2026-01-01")',
        "dragoman.connect(5)",
    )
    wrong = [line.partition(":")[2].partition(":")[0] for line in found.splitlines() if ": error:" in line]
    assert wrong == ["11", "12", "13", "14", "15"], found
