"""What a service manager gives to a service, and is told by it, as systemd has it: the socket, readiness, the watchdog.

Lives here: the environment's variables of sd_listen_fds(3), sd_notify(3) and sd_watchdog_enabled(3). Must not: listen,
or end anything. Called by `cli.listen`. Where nobody gave such a variable, nothing is said and nothing costs.

Specification: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html, and `sd_listen_fds.html` there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, MutableMapping
from typing import Final

from dragoman.errors import TransportClosed

logger = logging.getLogger("dragoman.http")

_FIRST_DESCRIPTOR: Final = 3
_SOCKETS: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
_NOTICES: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = ("WATCHDOG_USEC", "WATCHDOG_PID")
_SIGNS_OF_LIFE: Final = 2
"""How often we are heard of in the time after which we would be taken for dead."""

_A_SECOND: Final = 1_000_000


class Supervisor:
    """Whoever started this process as a service.

    Args:
        environment: Its variables are taken out of it: a server that we start must not speak in our name.

    Attributes:
        is_told: Whether anything is said: of several processes, one speaks.
    """

    is_told = True

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        taken = {name: environment.pop(name, "") for name in (*_SOCKETS, _NOTICES, *_WATCHDOG)}
        self._given = _count(taken["LISTEN_FDS"]) if _is_ours(taken["LISTEN_PID"]) else 0
        for descriptor in range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + self._given):
            with contextlib.suppress(OSError):  # `take_listener` says what is wrong with it
                os.set_inheritable(descriptor, False)
        self._where = _read_address(taken[_NOTICES])
        self._watched_us = _count(taken["WATCHDOG_USEC"]) if _is_ours(taken["WATCHDOG_PID"] or str(os.getpid())) else 0

    @property
    def has_listener(self) -> bool:
        """Whether there is a socket that listens for us already."""
        return self._given > 0

    def take_listener(self, port: int) -> socket.socket | None:
        """Return the socket that listens for us already; None where we open our own.

        Args:
            port: The one of `--listen`; 0 for any.

        Raises:
            TransportClosed: It is of no use, or not alone.
        """
        if not self._given:
            return None
        if self._given > 1:
            raise TransportClosed("LISTEN_FDS", f"expected one socket, got {self._given}; keep one ListenStream=")
        try:
            listener = socket.socket(fileno=_FIRST_DESCRIPTOR)
        except OSError as error:
            raise TransportClosed("LISTEN_FDS", f"descriptor 3 is no socket: {error.strerror}") from None
        is_internet = listener.family in (socket.AF_INET, socket.AF_INET6) and listener.type == socket.SOCK_STREAM
        if not is_internet or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listener.detach()
            wanted = "expected a TCP socket that listens: ListenStream= with an address and a port, and Accept=no"
            raise TransportClosed("LISTEN_FDS", wanted)
        found = listener.getsockname()[1]
        if port not in (0, found):
            listener.detach()
            raise TransportClosed("LISTEN_FDS", f"its port is {found}, and --listen says {port}; use the same in both")
        return listener

    def say_ready(self, status: str) -> None:
        """Tell that clients are served, and where."""
        self._tell("READY=1", f"STATUS={status}")

    def say_reloading(self) -> None:
        """Tell that files are being read again; `say_ready` follows."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={int(time.monotonic() * _A_SECOND)}")

    def say_stopping(self, reason: str, patience_s: float) -> None:
        """Tell that we end, and ask for the time that it may take."""
        self._tell("STOPPING=1", f"STATUS={reason}", f"EXTEND_TIMEOUT_USEC={round(patience_s * _A_SECOND)}")

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Give signs of life from the event loop, if they are wanted, as long as this is open."""
        task = asyncio.create_task(self._live()) if self._watched_us and self._where else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def _live(self) -> None:
        while True:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._watched_us / _A_SECOND / _SIGNS_OF_LIFE)

    def _tell(self, *lines: str) -> None:
        if sys.platform == "win32" or not (self._where and self.is_told):
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as channel:
                channel.sendto("\n".join(line.replace("\n", " ") for line in lines).encode(), self._where)
        except OSError as error:
            logger.debug("the service manager does not hear us: %s", error)


def _read_address(name: str) -> str:
    """Read where a service manager hears: a path, or a name of Linux, which begins with a zero byte."""
    return f"\0{name[1:]}" if name.startswith("@") else name if name.startswith("/") else ""


def _is_ours(pid: str) -> bool:
    return pid == str(os.getpid())


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
