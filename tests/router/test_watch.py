"""A configuration file that changes: whatever it says, it is read again the next time, and calls go on meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from dragoman.cli.reloading import Reloading
from dragoman.cli.routing import read_again
from dragoman.config import Configuration, read_config
from tests.support.waiting import pass_time, until

GOOD = '{"mcpServers": {"a": {"command": "a"}}}'

BAD = {
    "long-integer": '{"mcpServers": {"a": {"command": "a", "timeout": ' + "9" * 5000 + "}}}",
    "null-path": '{"mcpServers": {"a": {"command": {"path": null}}}}',
    "not-json": '{"mcpServers": {"a"',
    "empty": "",
    "nothing-usable": '{"mcpServers": {"a": {}}}',
    "deep-yaml": "mcpServers: " + "[" * 5000,
    "many-aliases": "a: &a [0,0,0,0,0,0,0,0,0]\n"
    + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "deep-toml": "a = " + "[" * 5000,
}


@asynccontextmanager
async def watching(path: Path, apply: Callable[[Configuration], None]) -> AsyncIterator[Reloading]:
    watch = Reloading()
    watch.add(partial(read_again, str(path), apply), str(path))
    watch.begin()
    assert watch.watching is not None
    try:
        yield watch
    finally:
        watch.watching.cancel()
        with suppress(asyncio.CancelledError):
            await watch.watching


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_good_file_is_taken_after_a_bad_one(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, applied = tmp_path / "mcp.json", list[Configuration]()
    path.write_text(GOOD)

    async def change() -> None:
        async with watching(path, applied.append) as watch:
            path.write_text(text)
            watch.read_all()
            await until(lambda: "what was read before stays" in caplog.text)
            assert applied == []
            path.write_text(GOOD)
            watch.read_all()
            await until(lambda: bool(applied))

    asyncio.run(change())
    assert "internal error" not in caplog.text


def test_a_defect_of_ours_does_not_end_the_watching(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, applied = tmp_path / "mcp.json", list[Configuration]()
    path.write_text(GOOD)

    def apply(configuration: Configuration) -> None:
        applied.append(configuration)
        if len(applied) == 1:
            raise KeyError("made for the test")

    async def change() -> None:
        async with watching(path, apply) as watch:
            watch.read_all()
            await until(lambda: "internal error: KeyError('made for the test')" in caplog.text)
            watch.read_all()
            await until(lambda: len(applied) == 2)

    asyncio.run(change())


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, applied = tmp_path / "mcp.json", list[Configuration]()
    path.write_text(GOOD)

    async def change() -> None:
        async with watching(path, applied.append) as watch:
            path.unlink()
            os.mkfifo(path)
            watch.read_all()
            await until(lambda: "it is not a file that can be read twice" in caplog.text)
            path.unlink()
            path.write_text(GOOD)
            watch.read_all()
            await until(lambda: bool(applied))

    asyncio.run(change())


def test_the_loop_goes_on_while_a_long_file_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, applied = tmp_path / "mcp.json", list[Configuration]()
    wrong = {f"server-{number}": {"comand": number, "args": 5} for number in range(20_000)}
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "a"}, **wrong}}, indent=1))
    turns = 0

    async def change() -> None:
        nonlocal turns
        async with watching(path, applied.append) as watch:
            watch.read_all()
            while not applied:
                await pass_time(0.001)
                turns += 1

    asyncio.run(change())
    assert turns > 50  # each of them would have been a call
    assert caplog.text.count("mcp.json") == 21, "a few of them, and how many more there are"
    assert "and 19980 more; `dragoman config check` lists them" in caplog.text


def test_what_is_wrong_with_many_entries_is_placed_exactly(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {\n "a": {"command": "a"},\n "b": {"command": 5},\n "c": {"command": 6}\n}}')
    found = read_config(path)
    assert [(one.line, one.column) for server in found.servers for one in server.problems] == [(3, 19), (4, 19)]
