"""Servers of a world that want tokens, and what the proxy needs to get them: `SignIn`, with its files and people."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dragoman.signin.authority import SignIn, sign_in_for
from dragoman.signin.invitations import Invitations
from dragoman.signin.settings import SignInSettings
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import Kind, UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.world.fronts import secret_of
from tests.world.http_bytes import Message, write_answer
from tests.world.http_server import Connection, HttpServer
from tests.world.network import Address, Network
from tests.world.peers.authority import HERE, Authority
from tests.world.people import AtHome, FarAway
from tests.world.plan import Act, Plan
from tests.world.record import Record

RETURN: Final = f"http://{HERE}:8080/oauth/back"
"""Where people far away come back to."""

_PUBLISHED: Final = "/.well-known/oauth-protected-resource/mcp"
_JSON: Final = {"content-type": "application/json"}


class TokenServer(HttpServer):
    """A server over HTTP that serves nobody without a token of its authorization server."""

    authority: Authority

    def serve(self, connection: Connection, message: Message) -> None:
        if message.path.startswith("/.well-known/"):
            connection.write(self._publish(message.path))
            return
        said = message.headers.get("authorization", "")
        has = self.authority.find_scopes(said)
        missing = "" if has is None else self.authority.wanted_scope(has)
        if has is None or (missing and b'"tools/call"' in message.body):
            self.record.add(self.plan.name, "wants a token", {"has": bool(said), "scope": missing})
            connection.write(self._refuse(said, missing))
        else:
            super().serve(connection, message)

    def _publish(self, path: str) -> bytes:
        if path != _PUBLISHED:
            return write_answer(404, {}, b"")
        resource = self.authority.resource
        if self.authority.hostile == "other-resource":
            resource = "https://somebody.example/mcp"
        said = f'{{"resource": "{resource}", "authorization_servers": ["{self.authority.url}"]}}'
        return write_answer(200, _JSON, said.encode())

    def _refuse(self, said: str, missing: str) -> bytes:
        where = f'resource_metadata="{self.authority.resource.removesuffix("/mcp")}{_PUBLISHED}"'
        scope = f', error="insufficient_scope", scope="{missing}"' if missing else ""
        body = f'{{"jsonrpc": "2.0", "id": null, "error": {{"code": -32001, "message": "no: {said}"}}}}'
        headers = {**_JSON, "www-authenticate": f"Bearer {where}{scope}"}
        return write_answer(403 if missing else 401, headers, body.encode())


class SigningIn:
    """Everything of a world that is about signing in at its servers.

    Args:
        plan: Of the world.
        network: Where everybody listens.
        record: Where it is noted what happens.

    Attributes:
        authorities: By the name of the server that each is for.
        people: Who is asked.
        invitations: Where people far away come to; None where nobody is.
    """

    def __init__(self, plan: Plan, network: Network, record: Record) -> None:
        self._plan = plan
        self._record = record
        self._network = network
        self._folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.authorities = {
            server.name: Authority(plan, number, network, record) for number, server in enumerate(plan.servers)
        }
        for one in self.authorities.values():
            one.others = [other for other in self.authorities.values() if other is not one]
        self.people = AtHome(plan, network, record)
        self.invitations = Invitations() if plan.signin.get("far") else None
        self.far: FarAway | None = None
        if self.invitations is not None:
            self.far = FarAway(self.people, plan, network, record, secret_of, self.invitations.pages)
        self._made: list[SignIn] = []

    def place(self, number: int) -> Address:
        """Say where a server listens."""
        return HERE, 7000 + number

    def serve(self, name: str, *args: Any) -> TokenServer:
        """Make a server, and what its tokens come from."""
        server = TokenServer(*args)
        server.authority = self.authorities[name]
        return server

    def opens(self, name: str) -> Callable[[], Transport]:
        """Give what opens a connection to a server."""

        def opens() -> Transport:
            url = self.authorities[name].resource
            kind = Kind.STREAMABLE_HTTP
            return open_upstream(
                UpstreamConfig(url, kind=kind, proxy="none", name=name, authority=self._authority_for(name))
            )

        return opens

    def _authority_for(self, name: str) -> SignIn:
        """Give what has the tokens for a server: the same for all connections, or, of several processes, another."""
        url = self.authorities[name].resource
        known = next((one for one in self._made if one.url == url), None)
        if known is not None and not self._plan.signin.get("apart"):
            return known
        settings = SignInSettings(redirect_url=RETURN) if self.invitations is not None else SignInSettings()
        with _at_home_in(self._folder):
            made = sign_in_for(url, (), settings, self.people, self.invitations)
        assert made is not None
        self._made.append(made)
        return made

    async def fail(self, fault: Act) -> None:
        """Let something go wrong with an authorization server."""
        authority = self.authorities[fault["whom"]]
        match fault["how"]:
            case "withdraw":
                authority.withdraw()
            case "forget":
                authority.forget()
            case "away" | "ill":
                authority.note("is away")
                authority.is_ill = True
                if fault["how"] == "away":
                    authority.stop()
                await asyncio.sleep(fault["for_s"])
                authority.is_ill = False
                authority.start()
                authority.note("is back")

    async def close(self) -> None:
        """End everything, and see that nothing secret was logged."""
        for made in self._made:
            if made._keeper is not None:
                await made.keeper.stop()
        self.people.stop()
        for authority in self.authorities.values():
            authority.stop()
            for text in [text for _, text in self._record.log if any(one in text for one in authority.given)]:
                self._record.note("no-token", f"something of a sign-in is in the log: {text}")
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def _at_home_in(folder: Path) -> Iterator[None]:
    """Let this be where a user's data are."""
    before = os.environ.get("XDG_DATA_HOME")
    os.environ["XDG_DATA_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_DATA_HOME"]
        else:
            os.environ["XDG_DATA_HOME"] = before
