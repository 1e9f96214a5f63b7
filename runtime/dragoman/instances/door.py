"""Taking requests that another instance hands on.

Lives here: what they say of where they came from. Must not: let anybody in: the front does, as at its own port. Opened
by `cli.instances`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator
from typing import Final

from dragoman.instances.directory import Directory
from dragoman.instances.relay import HOP
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.door import Door
from dragoman.transports.http.exchange import RELAYED, Scope
from dragoman.transports.http.site import Site

_FIELDS: Final = 5
_ON_ITS_WAY_S: Final = 0.2
"""How long a request may take from one instance to another."""

_PORT: Final = re.compile(r"[0-9]{1,5}")


def read_hop(scope: Scope) -> Scope:
    """Return what a request that was handed on says, as if it had come to the front; and that it was handed on."""
    kept, hop = [], b""
    for name, value in scope["headers"]:
        if name == HOP:
            hop = value
        else:
            kept.append((name, value))
    scope = {**scope, "headers": kept, "extensions": {RELAYED: {}}}
    fields = hop.decode("latin-1").split(" ")
    if len(fields) == _FIELDS and _PORT.fullmatch(fields[1]) and _PORT.fullmatch(fields[3]):
        client, client_port, server, server_port, scheme = fields
        scope["client"] = (client, int(client_port)) if client else None
        scope["server"] = (server, int(server_port)) if server else None
        scope["scheme"] = "https" if scheme == "https" else "http"
    return scope


@contextlib.asynccontextmanager
async def taken_at(listener: socket.socket, front: HttpFront, directory: Directory) -> AsyncIterator[None]:
    """Take what others hand on, at this socket, as long as this is open.

    By the end, this instance has withdrawn from the directory. Others may believe for a while yet that it is there:
    what they hand on until then is handed back. Were a connection closed just then, they could not tell whether their
    request was served.
    """
    site = Site(front, front.config, front.budget, front.refusals, read_scope=read_hop)
    door = Door(listener, None, site)
    door.open()
    try:
        yield
        if site.connections:
            await asyncio.sleep(directory.fresh_s + _ON_ITS_WAY_S)
    finally:
        door.close()
        await site.close(front.config.patience.closing_s)
