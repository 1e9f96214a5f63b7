"""Taking requests that another instance hands on.

Lives here: the application at the socket of this instance. Must not: let anybody in: the front does, as at its own
port. Opened by `cli.instances`.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import AsyncIterator
from typing import Final

from dragoman.instances.relay import HOP
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.door import Door
from dragoman.transports.http.exchange import RELAYED, Receive, Scope, Send
from dragoman.transports.http.site import Site

_FIELDS: Final = 5
_PORT: Final = re.compile(r"[0-9]{1,5}")


class RelayedFront:
    """Serves what was handed on, as if it had come to the front.

    Args:
        front: It.
    """

    def __init__(self, front: HttpFront) -> None:
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, as ASGI 3 has it."""
        if scope["type"] != "http":
            return
        kept, hop = [], b""
        for name, value in scope["headers"]:
            if name == HOP:
                hop = value
            else:
                kept.append((name, value))
        fields = hop.decode("latin-1").split(" ")
        if len(fields) == _FIELDS and _PORT.fullmatch(fields[1]) and _PORT.fullmatch(fields[3]):
            client, client_port, server, server_port, scheme = fields
            scope = {
                **scope,
                "client": (client, int(client_port)) if client else None,
                "server": (server, int(server_port)) if server else None,
                "scheme": "https" if scheme == "https" else "http",
            }
        scope = {**scope, "headers": kept, "extensions": {**scope.get("extensions", {}), RELAYED: {}}}
        await self._front(scope, receive, send)


@contextlib.asynccontextmanager
async def taken_at(listener: socket.socket, front: HttpFront) -> AsyncIterator[None]:
    """Take what others hand on, at this socket, as long as this is open."""
    site = Site(RelayedFront(front), front.config, front.budget, front.refusals)
    door = Door(listener, None, site)
    door.open()
    try:
        yield
    finally:
        door.close()
        await site.close(front.config.patience.closing_s)
