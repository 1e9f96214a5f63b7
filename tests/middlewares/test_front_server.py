"""The example of a front server: front, middleware and an external server, each in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman.errors import McpError
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SERVER = str(ROOT / "tests" / "client" / "echo_server.py")
EXAMPLE = str(ROOT / "examples" / "front_server.py")


@contextlib.contextmanager
def running(*command: str) -> Iterator[str]:
    """Run a program that says one line when it is ready."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def test_the_example_serves_what_is_behind_it() -> None:
    async def work(url: str) -> None:
        async with asyncio.timeout(PATIENCE_S), dragoman.connect(url, "2025-06-18", policy="translate") as client:
            assert "echo" in [tool.name async for tool in client.tools()]
            result = await client.call("echo", {"count": 1})
            assert result.meta is not None
            assert "example.com/seconds" in result.model_dump()["_meta"]
            with pytest.raises(McpError, match="unknown tool: remove_all"):
                await client.call("remove_all")
            many = [client.call("echo") for _ in range(60)]
            with pytest.raises(McpError, match="too many requests") as caught:
                await asyncio.gather(*many)
            assert caught.value.code == -32000

    with (
        running(SERVER, "--http") as port,
        running(EXAMPLE, str(free_port()), f"http://127.0.0.1:{port}/mcp") as url,
    ):
        asyncio.run(work(url))
