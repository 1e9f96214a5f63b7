"""An authorization server of the official Python SDK or of FastMCP, with a server behind it that takes its tokens.

`python sdk_authorization.py KIND FOLDER` with `sdk-1`, `sdk-2` or `fastmcp`. Says and takes the same lines as
`npm/authorization.mjs`. Runs under the requirements that go with its kind; imports nothing of Dragoman.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import sys
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import uvicorn
from mcp.server.auth import provider as parts
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse

KIND = sys.argv[1]
LASTS_S = 3600


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


class Provider:
    """What the SDK asks of whoever uses it: everything in memory, and everybody says yes."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.access_tokens: dict[str, Any] = {}
        self.refresh_tokens: dict[str, Any] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        code = parts.AuthorizationCode(
            code=secrets.token_hex(),
            scopes=params.scopes or [],
            expires_at=time.time() + LASTS_S,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return parts.construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> Any:
        return self._find(self.codes, client, authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._give(client, authorization_code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> Any:
        return self._find(self.refresh_tokens, client, refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> OAuthToken:
        del self.refresh_tokens[refresh_token.token]
        return self._give(client, scopes)

    async def load_access_token(self, token: str) -> Any:
        return self.access_tokens.get(token)

    async def verify_token(self, token: str) -> Any:
        return await self.load_access_token(token)

    async def revoke_token(self, token: Any) -> None:
        self.access_tokens.pop(token.token, None)
        self.refresh_tokens.pop(token.token, None)

    def _find(self, among: dict[str, Any], client: Any, name: str) -> Any:
        found = among.get(name)
        return found if found is not None and found.client_id == client.client_id else None

    def _give(self, client: Any, scopes: list[str]) -> OAuthToken:
        access, refresh = secrets.token_hex(), secrets.token_hex()
        about = {"client_id": client.client_id, "scopes": scopes, "expires_at": int(time.time()) + LASTS_S}
        self.access_tokens[access] = parts.AccessToken(token=access, **about)
        self.refresh_tokens[refresh] = parts.RefreshToken(token=refresh, **about)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=LASTS_S, scope=" ".join(scopes) or None
        )


def telling(kind: type) -> type:
    """Return the same provider, which says what it does."""

    class Telling(kind):  # type: ignore[misc]
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            self.resources: dict[str, str | None] = {}

        async def register_client(self, client_info: Any) -> None:
            await super().register_client(client_info)
            say(did="register", client=client_info.client_id)

        async def authorize(self, client: Any, params: Any) -> Any:
            url = await super().authorize(client, params)
            self.resources[parse_qs(urlsplit(url).query)["code"][0]] = params.resource
            return url

        async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> Any:
            given = await super().exchange_authorization_code(client, authorization_code)
            self.resources[given.access_token] = self.resources.pop(authorization_code.code)
            say(did="authorization_code")
            return given

        async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> Any:
            given = await super().exchange_refresh_token(client, refresh_token, scopes)
            say(did="refresh_token")
            return given

        async def revoke_token(self, token: Any) -> None:
            await super().revoke_token(token)
            say(did="end refresh_token" if isinstance(token, parts.RefreshToken) else "end access_token")

    return Telling


def read() -> str:
    token = get_access_token()
    assert token is not None
    return f"read by {token.client_id}"


listening = socket.create_server(("127.0.0.1", 0))
origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
resource = f"{origin}/mcp"
scopes = ClientRegistrationOptions(enabled=True, valid_scopes=["tools"], default_scopes=["tools"])
revocation = RevocationOptions(enabled=True)

if KIND == "fastmcp":
    from fastmcp import FastMCP
    from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

    provider = telling(InMemoryOAuthProvider)(
        base_url=origin,
        client_registration_options=scopes,
        revocation_options=revocation,
        required_scopes=["tools"],
    )
    guarded = FastMCP("guarded", auth=provider)
    guarded.tool(read)
    app = guarded.http_app(path="/mcp", stateless_http=True)
else:
    provider = telling(Provider)()
    auth = AuthSettings(
        issuer_url=origin,  # type: ignore[arg-type]
        resource_server_url=resource,  # type: ignore[arg-type]
        required_scopes=["tools"],
        client_registration_options=scopes,
        revocation_options=revocation,
    )
    if KIND == "sdk-1":
        from mcp.server.fastmcp import FastMCP as Server

        guarded = Server("guarded", auth=auth, auth_server_provider=provider, stateless_http=True)
        guarded.add_tool(read)
        app = guarded.streamable_http_app()
    else:
        from mcp.server.mcpserver import MCPServer

        guarded = MCPServer("guarded", auth=auth, auth_server_provider=provider)
        guarded.add_tool(read)
        app = guarded.streamable_http_app(stateless_http=True)


async def introspect(request: Request) -> JSONResponse:
    """Say what a token is, as the SDK's example of an authorization server of its own does."""
    sent = parse_qs((await request.body()).decode())["token"][0]
    found = await provider.load_access_token(sent)
    if found is None:
        return JSONResponse({"active": False})
    about = {"client_id": found.client_id, "scope": " ".join(found.scopes), "exp": found.expires_at}
    return JSONResponse({"active": True, "aud": provider.resources.get(sent), "token_type": "Bearer", **about})


app.router.add_route("/introspect", introspect, methods=["POST"])


def obey(word: str) -> None:
    """End tokens, or forget who has registered."""
    ended = {"end": [provider.access_tokens], "expire": [provider.access_tokens, provider.refresh_tokens]}
    for tokens in ended.get(word, []):
        for token in tokens.values():
            token.expires_at = 1
    if KIND == "fastmcp" and word == "end":  # whoever shows FastMCP a token that has expired loses the other one, too
        provider.access_tokens.clear()
    if word == "forget":
        provider.clients.clear()
    say(did=word)


async def serve() -> None:
    loop = asyncio.get_running_loop()

    def listen() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(obey, line.strip())

    threading.Thread(target=listen, daemon=True).start()
    say(issuer=origin, url=resource)
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listening])


if __name__ == "__main__":
    logging.disable()
    asyncio.run(serve())
