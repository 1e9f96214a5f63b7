"""Every command that reaches a server by its URL goes through the proxy that the environment, or a file, names."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dragoman
from tests.support.company_proxy import CompanyProxy, company_proxy
from tests.support.waiting import PATIENCE_S

SERVER = Path(__file__).parents[1] / "client" / "echo_server.py"
NAMES = {"mcp.example.com": "127.0.0.1"}
COMMANDS = {"list": (), "call": ("echo", "text=hello"), "check": ("--revision", "2025-06-18")}


@asynccontextmanager
async def behind() -> AsyncIterator[tuple[str, CompanyProxy]]:
    """Give the URL of a server that only the proxy can find, and the proxy."""
    started = asyncio.create_subprocess_exec(sys.executable, str(SERVER), "--http", stdout=asyncio.subprocess.PIPE)
    process = await started
    assert process.stdout is not None
    try:
        port = (await process.stdout.readline()).decode().strip()
        async with company_proxy(NAMES, user="ann:secret") as proxy:
            yield f"http://mcp.example.com:{port}/mcp", proxy
    finally:
        process.kill()
        await process.communicate()


async def run(command: str, *options: str, **environment: str) -> str:
    """Run a command; give what it says."""
    words = (sys.executable, "-m", "dragoman", command, *COMMANDS[command], *options)
    out, err = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    process = await asyncio.create_subprocess_exec(*words, env=environment, stdout=out, stderr=err)
    said, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    return said.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_goes_through_the_proxy_of_its_environment(command: str) -> None:
    async def work() -> tuple[str, list[str]]:
        async with behind() as (url, proxy):
            said = await run(command, "--url", url, HTTP_PROXY=f"http://ann:secret@{proxy.address}")
            return said, proxy.asked

    said, asked = asyncio.run(work())
    assert "echo" in said or "hello" in said or "2025-06-18" in said, said
    assert any(one.startswith("POST http://mcp.example.com:") for one in asked), said


def test_credentials_that_are_wrong_are_said_without_them() -> None:
    async def work() -> tuple[str, str]:
        async with behind() as (url, proxy):
            return await run("list", "--url", url, HTTP_PROXY=f"http://ann:wrong@{proxy.address}"), proxy.address

    said, _ = asyncio.run(work())
    assert "(HTTP_PROXY): it does not accept the user and password that its URL has" in said
    assert "wrong" not in said
    assert "ann" not in said


def test_a_configuration_file_names_the_proxy_of_one_server(tmp_path: Path) -> None:
    async def work() -> str:
        async with behind() as (url, proxy):
            own = {"servers": {"far": {"proxy": f"http://ann:secret@{proxy.address}"}}}
            file = tmp_path / "mcp.json"
            file.write_text(json.dumps({"mcpServers": {"far": {"url": url}}, "dragoman": own}))
            return await run("call", "--config", str(file))

    assert "hello" in asyncio.run(work())


def test_a_client_in_python_is_told_of_a_proxy() -> None:
    async def work() -> str:
        async with (
            behind() as (url, proxy),
            dragoman.connect(url, policy="translate", proxy=f"http://ann:secret@{proxy.address}") as client,
        ):
            return str((await client.call("echo", {"text": "hello"})).content[0].text)

    assert "hello" in asyncio.run(work())
