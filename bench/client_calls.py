"""One client that calls a tool as often as it is told: `client_calls.py ours|sdk SERVER ARG…`.

It says `ready` once its session is open. For each number that it reads on stdin it makes so many calls, one after
another, and says how many seconds they took. Runs under the SDK's own Python too, where nothing of ours is installed.
Called by `client`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

TOOL = "tool_1"
ARGUMENTS = {"text": "x" * 200}


async def time_calls(call: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
    """Make calls as often as stdin says."""
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        began = time.perf_counter()
        for _ in range(int(line)):
            result = await call(TOOL, ARGUMENTS)
            assert result.content[0].text
        print(time.perf_counter() - began, flush=True)


async def ours(command: list[str]) -> None:
    """Call with the typed client."""
    import dragoman

    async with dragoman.connect(command, "2025-11-25") as client:
        await time_calls(client.call)


async def sdk(command: list[str]) -> None:
    """Call with the client of the official SDK."""
    from mcp import Client, StdioServerParameters  # type: ignore[import-not-found,unused-ignore]
    from mcp.client.stdio import stdio_client  # type: ignore[import-not-found,unused-ignore]

    async with Client(stdio_client(StdioServerParameters(command=command[0], args=command[1:]))) as client:
        await client.list_tools()  # it asks for the output schemas with the first call
        await time_calls(client.call_tool)


if __name__ == "__main__":
    asyncio.run({"ours": ours, "sdk": sdk}[sys.argv[1]](sys.argv[2:]))
