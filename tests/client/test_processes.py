"""The client with real servers: children over stdio, and one over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import errors
from dragoman.config import parse_config
from dragoman_spec import v2024_11_05, v2025_06_18

SERVER = str(Path(__file__).parent / "echo_server.py")
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "typed_client.py")
LONGEST_S = 60


def run(work: Any) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(LONGEST_S):
            return await work

    return asyncio.run(limited())


@pytest.mark.parametrize("revision", ["any", "2025-06-18"])
def test_the_servers_of_a_configuration_are_one(revision: Any) -> None:
    command = {"command": sys.executable, "args": [SERVER, "--revision", "2024-11-05"]}
    servers = {"one": command, "other": {"command": sys.executable, "args": [SERVER, "--few"]}}
    configuration = parse_config(json.dumps({"mcpServers": servers}))

    async def work() -> None:
        async with dragoman.connect(configuration, revision) as client:
            assert {"one_echo", "other_echo", "ask"} <= {tool.name async for tool in client.tools()}
            results = [await client.call(f"{name}_echo", {"count": 3}) for name in servers]
            assert [result.content[0].text for result in results] == ['{"count": 3}'] * 2

    run(work())


def test_a_configuration_none_of_whose_servers_can_be_used_is_an_error() -> None:
    configuration = parse_config(json.dumps({"mcpServers": {name: {"command": f"no-{name}"} for name in ("a", "b")}}))

    async def work() -> None:
        async with dragoman.connect(configuration):
            pass

    with pytest.raises(errors.ConnectionClosed, match=r"none of the servers can be used \(a: .*no-a.*; b: .*no-b"):
        run(work())


def test_a_child_is_asked_and_answers() -> None:
    async def work() -> None:
        async with dragoman.connect([sys.executable, SERVER], revision="2025-06-18") as client:
            names = [tool.name async for tool in client.tools()]
            result = await client.call("echo", {"count": 3})
            block = result.content[0]
            assert isinstance(block, v2025_06_18.TextContent)
            assert (names[0], block.text) == ("echo", '{"count": 3}')

    run(work())


def test_a_child_asks_the_program() -> None:
    async def fill_in(params: v2025_06_18.ElicitRequestParams) -> v2025_06_18.ElicitResult:
        return v2025_06_18.ElicitResult(action="accept", content={"name": params.message})

    async def work() -> None:
        async with dragoman.connect([sys.executable, SERVER], revision="2025-06-18", elicitation=fill_in) as client:
            block = (await client.call("ask")).content[0]
            assert isinstance(block, v2025_06_18.TextContent)
            assert block.text == '{"action": "accept", "content": {"name": "Who is there?"}}'

    run(work())


def test_a_child_that_exits_fails_what_waits() -> None:
    async def work() -> None:
        async with dragoman.connect([sys.executable, SERVER]) as client:
            with pytest.raises(errors.ConnectionClosed, match="exited with status 0"):
                await client.call("exit")

    run(work())


def test_a_session_that_is_cancelled_leaves_no_child(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    begin = f"import os, runpy; open({str(note)!r}, 'w').write(str(os.getpid()))"
    program = f"{begin}; runpy.run_path({SERVER!r}, run_name='__main__')"

    async def session(opened: asyncio.Event) -> None:
        async with dragoman.connect([sys.executable, "-c", program]) as client:
            opened.set()
            await client.call("hang")

    async def work() -> None:
        opened = asyncio.Event()
        task = asyncio.create_task(session(opened))
        await opened.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_server_over_http_is_translated_to_an_older_revision() -> None:
    async def work(url: str) -> None:
        async with dragoman.connect(url, revision="2024-11-05", policy="translate") as client:
            assert client.server_revision == "2025-06-18"
            result = await client.call("echo", {"count": 3})
            assert isinstance(result, v2024_11_05.CallToolResult)
            contents = (await client.read("x:text")).contents[0]
            assert isinstance(contents, v2024_11_05.TextResourceContents)
            assert contents.text == "hello\n"

    command = [sys.executable, SERVER, "--http", "--revision", "2025-06-18"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            run(work(f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"))
        finally:
            process.kill()


def test_the_example_runs() -> None:
    command = [sys.executable, EXAMPLE, sys.executable, SERVER, "--few", "--revision", "2025-03-26"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.stdout.splitlines() == [
        "echo 1 speaks 2025-03-26",
        "echo: Gives its arguments back",
        "    null",
        "fail: no description",
        '    "it failed"',
    ]


def test_which_of_several_servers_is_silent_is_said() -> None:
    """Also where a program waits for a list less long than the router does."""
    silent = ["-c", "import sys; [None for _ in sys.stdin]"]
    entries = {name: {"command": sys.executable, "args": args} for name, args in (("a", [SERVER]), ("b", silent))}
    said = {"mcpServers": entries, "dragoman": {"openTimeout": 0.1, "listTimeout": LONGEST_S}}

    async def work() -> None:
        async with dragoman.connect(parse_config(json.dumps(said)), timeout_s=0.2) as client:
            with pytest.raises(
                errors.RequestTimeout, match=r"not answered within 0.2 s, because nothing came from .*b"
            ):
                _ = [tool async for tool in client.tools()]

    run(work())
