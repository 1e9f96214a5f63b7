"""Clients of the official Python SDK before a proxy that wants tokens: they find the issuer, and ask for more scopes.

Needs the environments of `requirements`; `nox -s peers` brings them.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from dragoman.pool import Scope
from tests.guard.test_rules import place
from tests.peers.visits import HERE, needs_peers, python_in
from tests.router.made import HANDSHAKE
from tests.support.waiting import PATIENCE_S

RULES = [{"allow": {"tools": ["read"]}}, {"for": {"scopes": ["files:write"]}, "allow": {"tools": ["write"]}}]


async def visit(python: str) -> None:
    async with place(HANDSHAKE, HANDSHAKE, Scope.CLIENT, RULES) as where:
        where.one.metadata = {
            "token_endpoint": f"{where.one.url}/token",
            "authorization_endpoint": f"{where.one.url}/authorize",
            "response_types_supported": ["code"],
            "grant_types_supported": ["client_credentials"],
        }
        url, pipe = f"http://127.0.0.1:{where.port}/mcp", asyncio.subprocess.PIPE
        client = await asyncio.create_subprocess_exec(
            python, str(HERE / "guarded_client.py"), url, stdout=pipe, stderr=pipe
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                out, errors = await client.communicate()
        finally:
            if client.returncode is None:
                client.kill()
        assert out, errors.decode()
        assert json.loads(out) == {"tools": ["read"], "said": ["read", "write"]}, errors.decode()
        asked = [(form["grant_type"], form["resource"], form.get("scope")) for _, form in where.one.forms]
        assert asked == [("client_credentials", url, None), ("client_credentials", url, "files:write")]


@needs_peers
@pytest.mark.parametrize("environment", ["2025-11-25", "current"])
def test_a_client_signs_in_and_asks_for_more(environment: str) -> None:
    asyncio.run(visit(python_in(environment)))
