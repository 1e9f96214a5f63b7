"""A client on a current SDK, as one writes them: starts the server that its arguments name and calls a tool.

    python -m venv current && current/bin/pip install mcp==2.3.0
    current/bin/python examples/current_client.py old/bin/python examples/old_server.py

It first asks `server/discover`, which came with 2026-07-28, and falls back to `initialize` after an error or ten silent
seconds. Servers on SDK 1.6.0 do not answer it, and end at the request that follows. The proxy starts such a server once
more, without that question, and does not ask it again for a day:

    current/bin/python examples/current_client.py dragoman proxy -- old/bin/python examples/old_server.py
"""

import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: str, *arguments: str) -> None:
    """Print what the tool answers."""
    server = StdioServerParameters(command=command, args=list(arguments))
    async with Client(stdio_client(server)) as client:
        print("revision", client.protocol_version)
        answer = await client.call_tool("record", {"seconds": 2})
        for block in answer.content:
            print(block.type, block.text)


anyio.run(main, *sys.argv[1:])
