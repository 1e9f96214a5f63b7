"""The newest official Python SDK's client and its own sign-in, in the suite's `auth/` scenarios: what to compare with.

`python sdk_sign_in.py URL`, with the suite's variables in the environment. Runs in the environment of release 2.x;
imports nothing of Dragoman.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
import warnings
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

REDIRECT = "http://localhost:3030/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Memory:
    """Keeps tokens as long as the process lives."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: Any = None
        self.client = client

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser(urllib.request.HTTPRedirectHandler):
    """Goes to the page, and notes where it leads."""

    def __init__(self) -> None:
        self.brought: dict[str, str] = {}

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        self.brought = {name: values[0] for name, values in parse_qs(urlsplit(newurl).query).items()}

    async def visit(self, url: str) -> None:
        try:
            urllib.request.build_opener(self).open(url, timeout=20)
        except urllib.error.HTTPError as answer:
            answer.close()

    async def answer(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{key: self.brought.get(key) for key in ("code", "state", "iss")})


def choose_provider(url: str, context: dict[str, str], scenario: str) -> Any:
    """Give the SDK's provider that fits a scenario."""
    if "private_key_pem" in context:
        signed = SignedJWTParameters(
            issuer=context["client_id"],
            subject=context["client_id"],
            signing_algorithm=context["signing_algorithm"],
            signing_key=context["private_key_pem"],
        )
        maker = signed.create_assertion_provider()
        return PrivateKeyJWTOAuthProvider(url, Memory(None), context["client_id"], maker)
    if scenario.startswith("auth/client-credentials"):
        return ClientCredentialsOAuthProvider(url, Memory(None), context["client_id"], context["client_secret"])
    about: dict[str, Any] = {"redirect_uris": [REDIRECT], "client_name": "sdk"}
    known = None
    if "client_id" in context:
        ours = {"client_id": context["client_id"], "client_secret": context["client_secret"]}
        known = OAuthClientInformationFull(**about, **ours)
    browser = Browser()
    return OAuthClientProvider(
        url,
        OAuthClientMetadata(**about),
        Memory(known),
        browser.visit,
        browser.answer,
        client_metadata_url=DOCUMENT,
    )


async def main(url: str) -> None:
    """List the tools, and call the first."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    provider = choose_provider(url, context, os.environ["MCP_CONFORMANCE_SCENARIO"])
    async with (
        httpx2.AsyncClient(auth=provider, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        await client.call_tool(tools[0].name, {})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    anyio.run(main, sys.argv[1])
