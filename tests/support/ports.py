"""Ports for what cannot tell which one it was given."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

_GIVEN_OUT: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Give a port that nobody uses, and that the system gives to nobody who asks for any.

    Whoever is given it by the system between our look and its use would make a test fail by chance.
    """
    first = int(_GIVEN_OUT.read_text().split()[0]) if _GIVEN_OUT.exists() else 32768
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(first // 2, first) if first > 4096 else 0
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
