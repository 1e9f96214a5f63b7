"""The literal revision decides about the models, for type checkers: what fits passes, what does not is named."""

from __future__ import annotations

import pytest

from dragoman_spec import LATEST
from tests.docs.test_typing import type_errors

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


FITS = (
    PINNED,
    '    a: v.CallToolResult = await client.call("add")',
    "    b: list[v.Tool] = [t async for t in client.tools()]",
    ANY,
    '    c: newest.CallToolResult = await client.call("add")',
    '    async with client.listen("x:y", tools=True) as changes:',
    "        d: newest.ServerNotification = await anext(changes)",
    '    e: newest.CallToolResult = await (await client.start("add")).result()',
    "    print(client.discovered.capabilities, client.server_info)",
)
DOES_NOT_FIT = (
    PINNED,
    '    a: old.CallToolResult = await client.call("add")',
    '    await client.set_log_level("loud")',
    'dragoman.connect("http://x/mcp", revision="2024-11-05", elicitation=fill_in)',
    'dragoman.connect("http://x/mcp", revision="2026-01-01")',
    "dragoman.connect(5)",
)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of both programs; it reads the models once."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typed")
    for name, lines in (("fits.py", FITS), ("does_not_fit.py", DOES_NOT_FIT)):
        program = PROGRAM.format(lines="\n".join(f"    {line}" for line in lines), newest=NEWEST)
        (folder / name).write_text(program, "utf-8")
    return type_errors(folder)


def test_each_revision_gives_its_models(complaints: list[str]) -> None:
    assert [line for line in complaints if not line.startswith("does_not_fit.py:")] == []


def test_what_does_not_fit_the_revision_is_named(complaints: list[str]) -> None:
    wrong = [line.split(":")[1] for line in complaints if ": error:" in line]
    assert wrong == ["11", "12", "13", "14", "15"], complaints
