"""A client of 2026-07-28 that does what the conformance suite's client scenarios want to see.

`python modern_client.py [COMMAND …] URL`, like `client.py`. It is as released, which means that it first asks what the
server speaks, and it insists on the revision without a handshake. Runs in the environment of release 2.x.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import anyio
from mcp import Client, StdioServerParameters, types
from touring import calls_for, defaults_of

REVISION = "2026-07-28"


async def fill_in(context: Any, params: Any) -> Any:
    """Accept a form with the default of every field."""
    return types.ElicitResult(action="accept", content=defaults_of(params.requested_schema))


async def main(arguments: list[str]) -> None:
    """Ask what the server is, call every tool that is listed, and read and get what else there is."""
    *command, url = arguments
    server = StdioServerParameters(command=command[0], args=[*command[1:], url]) if command else url
    async with Client(server, elicitation_callback=fill_in) as client:
        if client.protocol_version != REVISION:
            raise RuntimeError(f"the server has chosen {client.protocol_version}")
        has = client.server_capabilities
        tools = (await client.list_tools()).tools
        for name, values in calls_for([(tool.name, tool.input_schema) for tool in tools]):
            await client.call_tool(name, values)
        for resource in (await client.list_resources()).resources if has.resources else ():
            await client.read_resource(resource.uri)
        for prompt in (await client.list_prompts()).prompts if has.prompts else ():
            await client.get_prompt(prompt.name)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    anyio.run(main, sys.argv[1:])
