"""A client on an SDK that speaks 2024-11-05: starts the server that its arguments name and calls a tool.

    python -m venv old && old/bin/pip install mcp==1.6.0 'pydantic<2.13'
    old/bin/python examples/old_client.py new/bin/python examples/new_server.py

It dies of content that its revision does not have. With the proxy in front of the server it does not:

    old/bin/python examples/old_client.py dragoman proxy -- new/bin/python examples/new_server.py
"""

import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: str, *arguments: str) -> None:
    """Print what the tool answers."""
    server = StdioServerParameters(command=command, args=list(arguments))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        opened = await session.initialize()
        print("revision", opened.protocolVersion)
        answer = await session.call_tool("record", {"seconds": 2})
        for block in answer.content:
            print(block.type, block.text)


anyio.run(main, *sys.argv[1:])
