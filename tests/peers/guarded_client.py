"""A client of the official Python SDK that gets tokens by itself: `python guarded_client.py URL`.

Prints what it was told, as JSON. Runs in the environments of `requirements`; imports nothing of Dragoman.
"""

from __future__ import annotations

import asyncio
import json
import sys

from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from sdk_session import Storage, signed_in


async def main(url: str) -> None:
    auth = ClientCredentialsOAuthProvider(url, Storage(), "robot", "secret-of-robot")
    async with signed_in(url, auth) as session:
        tools = [tool.name for tool in (await session.list_tools()).tools]
        said = []
        for name in ("read", "write"):
            try:
                result = await session.call_tool(name, {})
                said.append(str(result.content[0].text))
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
        print(json.dumps({"tools": tools, "said": said}))


asyncio.run(main(*sys.argv[1:2]))
