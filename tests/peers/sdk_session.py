"""What clients of the official Python SDK that get tokens have in common; for scripts beside it, without Dragoman."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp import ClientSession


class Storage:
    """Keeps tokens as long as the process runs."""

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


@contextlib.asynccontextmanager
async def signed_in(url: str, auth: Any) -> AsyncIterator[ClientSession]:
    """Open a session over Streamable HTTP, by either generation of the SDK."""
    try:
        from mcp.client.streamable_http import streamablehttp_client

        opened: Any = streamablehttp_client(url, auth=auth)
    except ImportError:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        opened = streamable_http_client(url, http_client=httpx2.AsyncClient(auth=auth, follow_redirects=True))
    async with opened as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session
