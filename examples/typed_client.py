"""A client whose results are models of one revision: an editor and a type checker know what each call gives.

    python examples/typed_client.py COMMAND ARG …

The server is asked in revision 2025-06-18; one that speaks another is translated.
"""

from __future__ import annotations

import asyncio
import sys

import dragoman
from dragoman_spec import v2025_06_18 as v


async def ask(params: v.ElicitRequestParams) -> v.ElicitResult:
    """Decline what the server asks: nobody is here."""
    print(f"the server asks: {params.message}")
    return v.ElicitResult(action="decline")


async def main(command: list[str]) -> None:
    """List the tools, and call those that need no arguments."""
    async with dragoman.connect(
        command, revision="2025-06-18", policy="translate", elicitation=ask, timeout_s=30
    ) as client:
        server = client.initialized.server_info
        print(f"{server.name} {server.version} speaks {client.server_revision}")
        async for tool in client.tools():
            print(f"{tool.name}: {tool.description or 'no description'}")
            if not tool.input_schema.get("required"):
                result = await client.call(tool.name)
                for block in result.content:
                    if isinstance(block, v.TextContent):
                        print(f"    {block.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
