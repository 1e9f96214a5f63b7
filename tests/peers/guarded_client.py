"""A client of the official Python SDK that gets tokens by itself: `python guarded_client.py URL`.

Prints what it was told, as JSON. Runs in the environments of `requirements`; imports nothing of Dragoman.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider


class Storage:
    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def main(url: str) -> None:
    auth = ClientCredentialsOAuthProvider(url, Storage(), "robot", "secret-of-robot")
    try:
        from mcp.client.streamable_http import streamablehttp_client

        opened: Any = streamablehttp_client(url, auth=auth)
    except ImportError:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        opened = streamable_http_client(url, http_client=httpx2.AsyncClient(auth=auth, follow_redirects=True))
    async with opened as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
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
