"""A server of the official SDK and a client of another revision in one process: no port, no child, no pipe.

    pip install dragoman mcp==2.3.0 && python examples/mounted_server.py

An app of FastMCP or of any other framework is mounted in the same way.
"""

from __future__ import annotations

import asyncio
import logging

from mcp.server.mcpserver import MCPServer

import dragoman
from dragoman.transports.upstream.mounted import mount
from dragoman_spec import v2024_11_05 as v

server = MCPServer("adder")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main() -> None:
    """Call it in a revision that knows no structured output."""
    logging.disable(logging.WARNING)
    async with (
        mount(server.streamable_http_app(), "/mcp") as connect,
        dragoman.connect(connect, revision="2024-11-05", policy="translate") as client,
    ):
        result = await client.call("add", {"a": 1, "b": 2})
        texts = [block.text for block in result.content if isinstance(block, v.TextContent)]
        print(f"the server speaks {client.server_revision}, the client 2024-11-05: {', '.join(texts)}")


if __name__ == "__main__":
    asyncio.run(main())
