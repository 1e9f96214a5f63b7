"""A client of the official Python SDK whose person signs in: `python signing_client.py URL`.

`BROWSER` names who goes to the pages. Prints what it was told by each tool, as JSON. Runs in the environments of
`requirements`; imports nothing of Dragoman.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata
from sdk_session import Storage, signed_in

came: dict[str, str] = {}


class Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        came.update((name, values[0]) for name, values in parse_qs(urlsplit(self.path).query).items())
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"You are signed in")

    def log_message(self, *_: Any) -> None: ...


async def go(url: str) -> None:
    await asyncio.to_thread(subprocess.run, [*shlex.split(os.environ["BROWSER"]), url], check=True)


async def take() -> Any:
    try:
        from mcp.client.auth import AuthorizationCodeResult
    except ImportError:
        return came["code"], came.get("state")
    return AuthorizationCodeResult(code=came["code"], state=came.get("state"), iss=came.get("iss"))


async def main(url: str) -> None:
    listening = HTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    about: dict[str, Any] = {
        "client_name": "signing client",
        "redirect_uris": [f"http://127.0.0.1:{listening.server_port}/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }
    about = {name: value for name, value in about.items() if name in OAuthClientMetadata.model_fields}
    auth = OAuthClientProvider(url, OAuthClientMetadata(**about), Storage(), go, take)
    async with signed_in(url, auth) as session:
        tools = (await session.list_tools()).tools
        result = await session.call_tool(tools[0].name, {})
        print(json.dumps({"tool": tools[0].name, "said": str(result.content[0].text)}))


asyncio.run(main(*sys.argv[1:2]))
