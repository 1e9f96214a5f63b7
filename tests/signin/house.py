"""A server that wants tokens, the authorization server that gives them, and a person who says yes; over sockets.

async with house() as home, home.client() as peer:
    await peer.ask("tools/list")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from dragoman.signin.authority import SignIn
from dragoman.signin.settings import SignInSettings
from dragoman_spec import LATEST
from tests.transports.upstream.stage import Client, Reply, Request, client, server, shake_hands

Page = Callable[[Request, Reply], Any]


class Person:
    """Goes where they are sent, and says yes."""

    goes_on = False

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.codes: list[tuple[str, str]] = []
        self.read: list[str] = []
        self.is_there = True
        self.says_yes = asyncio.Event()
        self.says_yes.set()
        self.tasks: set[asyncio.Task[None]] = set()

    def reach(self) -> bool:
        return self.is_there

    def make_page(self, settings: SignInSettings) -> None:
        pass

    async def invite(self, peer: str) -> None:
        pass

    async def show(self, peer: str, url: str) -> None:
        self.pages.append(url)
        task = asyncio.ensure_future(self._go(url))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def show_code(self, peer: str, url: str, code: str) -> None:
        self.codes.append((url, code))

    async def paste(self, fault: str = "") -> str:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    async def _go(self, url: str) -> None:
        await self.says_yes.wait()
        status, headers, _ = await get(url)
        with contextlib.suppress(ConnectionError):  # nobody waits for them any more
            while status == 302:
                status, headers, body = await get(headers["location"])
                self.read.append(body)


async def get(url: str) -> tuple[int, dict[str, str], str]:
    """Do what a browser does with a URL."""
    parts = urlsplit(url)
    tls = ssl._create_unverified_context() if parts.scheme == "https" else None
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=tls)
    writer.write(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    writer.close()
    return int(first.split(" ")[1]), headers, body.decode()


@dataclass
class House:
    """Everything that there is; a test changes what it is about.

    Attributes:
        good: The tokens that the server takes, and their scopes.
        wants: Whether a request needs a token, and which scope; None for a request that needs none.
        token: What the token endpoint answers.
        asked: What has been asked of the authorization server: the path, and the form or query.
        seen: Each request for the server, with its `Authorization`.
    """

    url: str
    folder: Path
    good: dict[str, str] = field(default_factory=dict)
    wants: Callable[[Request], str | None] = lambda request: ""
    metadata: dict[str, Any] = field(default_factory=dict)
    token: dict[str, Any] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    seen: list[tuple[str | None, str]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    person: Person = field(default_factory=Person)

    @property
    def base(self) -> str:
        return self.url.removesuffix("/mcp")

    def count(self, path: str) -> int:
        """How often the authorization server was asked for something."""
        return [one for one, _ in self.asked].count(path)

    def sign_in(self, **settings: Any) -> SignIn:
        return SignIn(self.url, SignInSettings(**settings), self.person)

    @contextlib.asynccontextmanager
    async def client(self, **config: Any) -> AsyncIterator[Client]:
        config.setdefault("authority", self.sign_in())
        async with client(self.url, **config) as peer:
            yield peer

    async def serve(self, request: Request, reply: Reply) -> None:
        parts = urlsplit(request.path)
        self.reached.append(parts.path)
        if page := self.pages.get(parts.path):
            await page(request, reply)
        elif parts.path == "/mcp":
            await self._serve_mcp(request, reply)
        elif parts.path == "/.well-known/oauth-protected-resource/mcp":
            await reply.json({"resource": self.url, "authorization_servers": [self.base]})
        elif parts.path == "/.well-known/oauth-authorization-server":
            await reply.json(self._describe())
        else:
            text = request.body.decode() or parts.query
            said = json.loads(text) if text.startswith("{") else dict(parse_qsl(text))
            self.asked.append((parts.path, said))
            await self._authorize(parts.path, said, reply)

    async def serve_sessions(self, request: Request, reply: Reply) -> None:
        """Serve as a server that knows no client without a session."""
        if request.rpc == "server/discover":
            error = {"code": -32601, "message": "there is no such method"}
            await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error})
        else:
            await self._serve_mcp(request, reply)

    async def serve_rounds(self, request: Request, reply: Reply) -> None:
        """Serve as a server without sessions, whose tool asks a question of its own first."""
        params = request.frame.get("params", {}) if request.rpc else {}
        if request.rpc == "server/discover":
            found = {"supportedVersions": [LATEST], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
            info = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
            await reply.result(request, {"resultType": "complete", "_meta": info, **found})
            return
        if request.rpc == "initialize":
            error = {"code": -32601, "message": "there is no such method"}
            await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, status="404 Not Found")
            return
        if request.rpc == "tools/list" and self.wants(request) is None:
            tools = [{"name": "t", "inputSchema": {"type": "object"}}]
            await reply.result(request, {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
            return
        self.rounds.append(params)
        sent = request.headers.get("authorization", "")
        if self.good.get(sent.removeprefix("Bearer ")) is None and (wanted := self.wants(request)) is not None:
            said = f'resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp", scope="{wanted}"'
            await reply.status("401 Unauthorized", f"WWW-Authenticate: Bearer {said}")
        elif "inputResponses" not in params:
            form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            asked = {"mine": {"method": "elicitation/create", "params": form}}
            await reply.result(
                request, {"resultType": "input_required", "inputRequests": asked, "requestState": "kept"}
            )
        else:
            text = json.dumps([params["inputResponses"], params["requestState"], sent])
            content = [{"type": "text", "text": text}]
            await reply.result(request, {"resultType": "complete", "content": content})

    def _describe(self) -> dict[str, Any]:
        ends = {f"{name}_endpoint": f"{self.base}/{path}" for name, path in ENDS.items()}
        return {"issuer": self.base, **ends, "code_challenge_methods_supported": ["S256"], **self.metadata}

    async def _authorize(self, path: str, said: dict[str, str], reply: Reply) -> None:
        if path == "/register":
            await reply.json({"client_id": f"client-{self.count(path)}"}, status="201 Created")
        elif path == "/authorize":
            back = urlencode({"code": "code-secret", "state": said["state"], "iss": self.base})
            await reply.status("302 Found", f"Location: {said['redirect_uri']}?{back}")
        elif path == "/token":
            given = f"token-secret-{self.count(path)}"
            self.good[given] = self.asked[-2][1].get("scope", "") if len(self.asked) > 1 else ""
            refresh = {"refresh_token": f"refresh-secret-{self.count(path)}"}
            await reply.json({"access_token": given, "token_type": "Bearer", **refresh, **self.token})
        else:
            await reply.status("404 Not Found")

    async def _serve_mcp(self, request: Request, reply: Reply) -> None:
        sent = request.headers.get("authorization", "")
        self.seen.append((request.rpc or request.method, sent))
        wanted, scopes = self.wants(request), self.good.get(sent.removeprefix("Bearer "))
        said = f'resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp", scope="{wanted}"'
        if wanted is not None and scopes is None:
            await reply.status("401 Unauthorized", f"WWW-Authenticate: Bearer {said}")
        elif wanted and wanted not in (scopes or "").split():
            await reply.status("403 Forbidden", f'WWW-Authenticate: Bearer error="insufficient_scope", {said}')
        elif request.rpc == "notifications/cancelled":
            await reply.status("202 Accepted")
        elif not await shake_hands(request, reply):
            await reply.result(request, {"sent": sent})


ENDS = {"authorization": "authorize", "token": "token", "registration": "register"}


@contextlib.asynccontextmanager
async def house(folder: Path, tls: ssl.SSLContext | None = None) -> AsyncIterator[House]:
    """Serve everything from one origin; what is kept is kept in a folder, where `XDG_DATA_HOME` must lead."""
    home = House("", folder)
    async with server(home.serve, tls=tls) as url:
        home.url = url
        try:
            yield home
        finally:
            for task in list(home.person.tasks):
                task.cancel()
            await asyncio.gather(*home.person.tasks, return_exceptions=True)
