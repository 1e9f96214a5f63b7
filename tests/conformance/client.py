"""A client made with a released SDK that does what the conformance suite's client scenarios want to see.

`python client.py [COMMAND …] URL`: with a command, it is started with the URL as its last argument and spoken to over
stdio; that is how the proxy becomes the client under test. Runs in the environment of the newest peer.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

EXAMPLES: dict[str, Any] = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}}


async def fill_in(context: Any, params: Any) -> Any:
    """Accept a form with the default of every field."""
    fields = params.requestedSchema.get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    return types.ElicitResult(action="accept", content=content)


def arguments_for(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an argument for each property."""
    return {name: EXAMPLES[field.get("type", "string")] for name, field in schema.get("properties", {}).items()}


async def main(arguments: list[str]) -> None:
    """Open a session, and call every tool that is listed."""
    *command, url = arguments
    opening: Any = streamablehttp_client(url)
    if command:
        opening = stdio_client(StdioServerParameters(command=command[0], args=[*command[1:], url]))
    async with (
        opening as streams,
        ClientSession(streams[0], streams[1], elicitation_callback=fill_in) as session,
    ):
        await session.initialize()
        for tool in (await session.list_tools()).tools:
            await session.call_tool(tool.name, arguments_for(tool.inputSchema))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
