"""Noticing that the machine at the other end is gone although it did not close the connection.

Lives here: TCP's own keepalive, for connections on which nothing may be said for hours. Must not: send
anything of MCP. Called by whoever opens connections or listens for them.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final, Protocol

IDLE_S: Final = 60
INTERVAL_S: Final = 15
PROBES: Final = 4
"""A connection is given up when nothing came for a minute, and no answer to four probes in the next."""

_OPTIONS: Final = (
    ("TCP_KEEPIDLE", IDLE_S),
    ("TCP_KEEPALIVE", IDLE_S),  # what macOS calls it
    ("TCP_KEEPINTVL", INTERVAL_S),
    ("TCP_KEEPCNT", PROBES),
)


class Socket(Protocol):
    """What `keep_alive` needs of a socket: also those that event loops give out can do it."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option."""


def keep_alive(connection: Socket) -> None:
    """Let the system find out whether the peer of a TCP connection is still there.

    On a listening socket it holds for the connections that are accepted, where the system lets them inherit it, as
    Linux does. A socket that is not TCP, and what the platform does not have, are left as they are.
    """
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _OPTIONS:
            option = getattr(socket, name, None)
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
