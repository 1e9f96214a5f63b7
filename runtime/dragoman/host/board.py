"""Telling on a Unix socket how a proxy is, for one whose client has its stdin and stdout.

Lives here: the socket. Must not: know what is told (`dragoman.status`). Opened by `cli.proxy`; read by `dragoman
status`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.status import StatusBoard


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
        await _make_room(Path(path))
        server = await asyncio.start_unix_server(tell, path)
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


async def _make_room(path: Path) -> None:
    """Remove a socket that a proxy left behind which was killed."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketTaken(f"cannot make the socket {path}: something else is there")
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except ConnectionRefusedError:
        path.unlink()
        return
    writer.close()
    raise SocketTaken(f"cannot make the socket {path}: another proxy uses it")
