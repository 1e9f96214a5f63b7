"""A client made with a released SDK that does what the conformance suite's client scenarios want to see.

`python client.py [COMMAND …] URL`: with a command, it is started with the URL as its last argument and spoken to over
stdio; that is how the proxy becomes the client under test. Runs in the environment of the newest peer with a handshake.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from touring import calls_for, defaults_of


async def fill_in(context: Any, params: Any) -> Any:
    """Accept a form with the default of every field."""
    return types.ElicitResult(action="accept", content=defaults_of(params.requestedSchema))


async def main(arguments: list[str]) -> None:
    """Open a session, call every tool that is listed, and read and get what else there is."""
    *command, url = arguments
    opening: Any = streamablehttp_client(url)
    if command:
        opening = stdio_client(StdioServerParameters(command=command[0], args=[*command[1:], url]))
    async with (
        opening as streams,
        ClientSession(streams[0], streams[1], elicitation_callback=fill_in) as session,
    ):
        has = (await session.initialize()).capabilities
        tools = (await session.list_tools()).tools
        for name, values in calls_for([(tool.name, tool.inputSchema) for tool in tools]):
            await session.call_tool(name, values)
        for resource in (await session.list_resources()).resources if has.resources else ():
            await session.read_resource(resource.uri)
        for prompt in (await session.list_prompts()).prompts if has.prompts else ():
            await session.get_prompt(prompt.name)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
