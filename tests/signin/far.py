"""People far away: clients over HTTP before a proxy that listens, browsers elsewhere, and a server that wants a token.

async with far(folder, {"ann": "secret-of-ann"}) as place:
    ann = await place.enter("secret-of-ann")
    link = await ann.call_and_get_link()
    assert "signed in" in (await Browser().sign_in(link, "secret-of-ann")).text
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from dragoman.config import parse_config
from dragoman.host.shared import PoolConfig
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.router import Router
from dragoman.router.router import before_router
from dragoman.signin.authority import SignIn, sign_in_for
from dragoman.signin.invitations import Invitations
from dragoman.signin.settings import SignInSettings
from dragoman.transports.base import Transport
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.http.serve import Address, HttpServer, bind
from dragoman.transports.http.sessions import Caller
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from dragoman_spec import LATEST
from tests.signin.house import House, house
from tests.transports.http.wire import Reply, hang_up, request

ABLE = {"elicitation": {"form": {}, "url": {}}}
PATH = "/oauth/back"


@dataclass
class Seen:
    """What a browser was shown last."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Browser:
    """Somebody's browser, with the cookies of this machine."""

    cookies: dict[str, str] = field(default_factory=dict)
    unreachable: int = 0
    """A port where nothing is shown but the address."""

    async def go(self, url: str, form: dict[str, str] | None = None, **headers: str) -> Seen:
        """Get a page, or send a form as a page of the same origin does, and follow redirects."""
        parts = urlsplit(url)
        assert parts.port is not None
        if parts.port == self.unreachable:
            return Seen(0, {}, url)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"cookie": cookie, "sec-fetch-site": "cross-site"}
        if form is not None:
            kind = "application/x-www-form-urlencoded"
            sent |= {"origin": f"http://{parts.netloc}", "content-type": kind}
        method = "GET" if form is None else "POST"
        body = None if form is None else urlencode(form).encode()
        reply = await request(parts.port, method, f"{parts.path}?{parts.query}", sent | headers, body)
        if "set-cookie" in reply.headers:
            name, value = reply.headers["set-cookie"].split(";")[0].split("=")
            self.cookies[name] = value
        if reply.status in (302, 303):
            reply.leave()
            return await self.go(reply.headers["location"])
        return Seen(reply.status, reply.headers, (await reply.body()).decode())

    async def sign_in(self, link: str, secret: str = "", **more: str) -> Seen:
        """Open a link, and go on."""
        page = await self.go(link)
        assert page.status == 200, page.text
        return await self.go(link.partition("?")[0], form_of(link, secret=secret, **more))


def form_of(link: str, **fields: str) -> dict[str, str]:
    """What the page behind a link sends."""
    return {"token": urlsplit(link).query.partition("=")[2], **fields}


@dataclass
class Client:
    """A client over HTTP, in a session."""

    port: int
    secret: str = ""
    session: str = ""
    asked: int = 1
    reply: Reply | None = None
    questions: int = 0
    calling: asyncio.Future[None] | None = None

    async def post(self, frame: Any, **headers: str) -> Reply:
        known = {"mcp-session-id": self.session, "x-api-key": self.secret}
        given = {"accept": "application/json, text/event-stream", **known, **headers}
        return await request(self.port, "POST", "/mcp", given, {"jsonrpc": "2.0", **frame})

    async def ask_alone(self, **params: Any) -> Any:
        """Call a tool without a session."""
        about = {"protocolVersion": LATEST, "clientInfo": {"name": "c", "version": "0"}, "clientCapabilities": ABLE}
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
        call = {"id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}, "_meta": meta, **params}}
        headers = {"MCP-Protocol-Version": LATEST, "Mcp-Method": "tools/call", "Mcp-Name": "t"}
        return (await self.frames(await self.post(call, **headers)))[-1]

    async def open(self, capabilities: Any, revision: str = "2025-11-25") -> Any:
        about = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "0"}}
        reply = await self.post({"id": 1, "method": "initialize", "params": about})
        self.session = reply.headers.get("mcp-session-id", "")
        answer = (await self.frames(reply))[-1]
        if "result" in answer:
            (await self.post({"method": "notifications/initialized"})).leave()
        return answer

    async def call(self) -> None:
        """Call a tool; what comes is read by `hear`."""
        self.asked += 1
        call = {"id": self.asked, "method": "tools/call", "params": {"name": "t"}}
        self.reply = await self.post(call)

    async def hear(self) -> Any:
        """Read the next frame of the call."""
        assert self.reply is not None
        if "json" in self.reply.headers["content-type"]:
            return await self.reply.frame()
        while (event := await self.reply.event()) is not None and not event.data:
            pass
        assert event is not None
        self.questions += event.frame.get("method") == "elicitation/create"
        return event.frame

    async def hear_link(self, action: str = "accept") -> str:
        """Read the question for a visit, and answer it."""
        question = await self.hear()
        assert question["method"] == "elicitation/create", question
        (await self.post({"id": question["id"], "result": {"action": action}})).leave()
        link: str = question["params"]["url"]
        return link

    async def call_and_get_link(self) -> str:
        await self.call()
        return await self.hear_link()

    async def answer(self) -> Any:
        """Read on to the answer of the call."""
        while "method" in (frame := await self.hear()):
            pass
        return frame

    @staticmethod
    async def frames(reply: Reply) -> list[Any]:
        if "json" in reply.headers["content-type"]:
            return [await reply.frame()]
        return await reply.frames()


@dataclass
class Far:
    """A proxy that listens."""

    home: House
    port: int
    sign_in: SignIn
    invitations: Invitations
    front: HttpFront

    async def enter(self, secret: str = "", capabilities: Any = ABLE) -> Client:
        """Let a client in."""
        client = Client(self.port, secret)
        assert "result" in await client.open(capabilities)
        return client


@contextlib.asynccontextmanager
async def far(
    folder: Path,
    tokens: dict[str, str] | None = None,
    scope: Scope = Scope.CLIENT,
    in_file: str = "",
    others: Callable[[House], AbstractAsyncContextManager[str]] | None = None,
    **settings: Any,
) -> AsyncIterator[Far]:
    """A proxy whose server wants a token for calls, and nothing before.

    Args:
        folder: Where tokens are kept.
        tokens: The secrets of clients.
        scope: Who shares the server.
        in_file: What the server is called in a configuration file; empty where there is none.
        others: Opens a server that takes the same tokens, and gives its URL: it is reached instead.
        settings: How to sign in.
    """
    async with contextlib.AsyncExitStack() as stack:
        home = await stack.enter_async_context(house(folder))
        url = home.url if others is None else await stack.enter_async_context(others(home))
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        address, invitations = Address(), Invitations()
        listener = bind(address)
        port = listener.getsockname()[1]
        decided = SignInSettings(redirect_url=f"http://127.0.0.1:{port}{PATH}", **settings)
        sign_in = sign_in_for(url, (), decided, invitations=invitations)
        assert sign_in is not None
        config = UpstreamConfig(url, name="the server", close_timeout_s=0.5, authority=sign_in)
        router = _route(in_file, lambda: open_upstream(config)) if in_file else None
        pool = UpstreamPool(scope, router.connect if router else lambda: open_upstream(config), PoolConfig())
        before = before_router(ProxyConfig()) if router else ProxyConfig()

        def serve(transport: Transport, caller: Caller) -> Any:
            principal = caller.principal or None
            return pool.proxy(before, transport, principal, is_per_request=caller.is_per_request)

        decision = FrontConfig(admission=Admission(tokens=tokens or {}), shares_requests=scope is Scope.SHARED)
        front = HttpFront(serve, decision, pages=invitations)
        server = HttpServer(front, listener, address)
        ready = asyncio.Event()
        task = asyncio.create_task(server.run(ready.set, pool.close))
        await ready.wait()
        try:
            yield Far(home, port, sign_in, invitations, front)
        finally:
            await hang_up()
            server.stop("the test is over")
            await task
            await sign_in.keeper.stop()


def _route(name: str, connect: Callable[[], Transport]) -> Router:
    configuration = parse_config(json.dumps({"mcpServers": {name: {"url": "http://127.0.0.1:9/mcp"}}}))
    return Router(configuration, open_server=lambda _: connect)


def find_link(text: str) -> str:
    """Find the link in an error."""
    found = re.search(r"http\S*token=\S*", text)
    assert found is not None, text
    return found[0]
