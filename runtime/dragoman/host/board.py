"""Telling on a Unix socket how a proxy is, for one whose client has its stdin and stdout.

Lives here: the socket; on Windows, for whose Python there are none, a port of this machine alone, and a file that says
which and has the secret that it wants first. Must not: know what is told (`dragoman.status`). Opened by `cli.proxy`;
read by `dragoman status`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from dragoman import system
from dragoman.transports.small_files import read_small

if TYPE_CHECKING:
    from dragoman.status import StatusBoard


HERE: Final = "127.0.0.1"
_DOOR_BYTES: Final = 1024
_SECRET_S: Final = 5.0
"""How long who connects may take to say the secret."""

_Teller = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class SocketTaken(Exception):
    """The socket cannot be made: the path, and why."""


@contextlib.asynccontextmanager
async def told_at(path: str | None, board: StatusBoard | None) -> AsyncIterator[None]:
    """Tell everybody who connects to this socket how the proxy is, one JSON object each, as long as this is open.

    Args:
        path: Where the socket is made; only its owner may use it. None: nowhere. A socket that nobody listens to any
            more is replaced.
        board: What is told.

    Raises:
        SocketTaken: It cannot be made there; or something else is there, or a proxy that runs.
    """
    if path is None or board is None:
        yield
        return

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(json.dumps(board.read().to_json()).encode() + b"\n")
            await writer.drain()
        writer.close()

    before = os.umask(0o177)
    try:
        await _make_room(path)
        server = await _open(tell, path)
    except OSError as error:
        raise SocketTaken(f"cannot make the socket {path}: {error.strerror or error}") from None
    finally:
        os.umask(before)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):
            os.unlink(path)


def read_door(path: str | os.PathLike[str]) -> tuple[int, bytes] | None:
    """Return the port and the secret that a file says; None if it says none.

    Raises:
        OSError: It cannot be read.
    """
    try:
        said = json.loads(read_small(path, _DOOR_BYTES, of_others=True))
        return int(said["port"]), said["secret"].encode()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


async def _open(tell: _Teller, path: str) -> asyncio.Server:
    """Listen at the socket, or at a port and say in the file which it is."""
    if sys.platform != "win32" and hasattr(asyncio, "start_unix_server"):
        return await asyncio.start_unix_server(tell, path)
    import secrets

    secret = secrets.token_urlsafe()

    async def tell_those_who_know(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, ValueError):
            async with asyncio.timeout(_SECRET_S):
                said = await reader.readline()
            if secrets.compare_digest(said.strip(), secret.encode()):
                await tell(reader, writer)

    server = await asyncio.start_server(tell_those_who_know, HERE, 0)
    said = {"port": server.sockets[0].getsockname()[1], "secret": secret}
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.OURS, 0o600), "w") as file:
            json.dump(said, file)
    except OSError:
        server.close()
        raise
    return server


async def _make_room(path: str) -> None:
    """Remove a socket that a proxy left behind which was killed."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    try:
        if stat.S_ISREG(mode) and (door := read_door(path)) is not None:
            _, writer = await asyncio.open_connection(HERE, door[0])
        elif stat.S_ISSOCK(mode) and sys.platform != "win32":
            _, writer = await asyncio.open_unix_connection(path)
        else:
            raise SocketTaken(f"cannot make the socket {path}: something else is there")
    except ConnectionRefusedError:
        os.unlink(path)
        return
    writer.close()
    raise SocketTaken(f"cannot make the socket {path}: another proxy uses it")
