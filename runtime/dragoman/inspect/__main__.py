"""The process of a viewer, as `dragoman.cli.inspecting` starts it: `python -m dragoman.inspect FEED LISTENER`.

Both are descriptors; on Windows stdin has what makes sockets of them. The first line of the feed says how to serve, as
JSON; what follows are records.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys

from dragoman.inspect.viewer import Viewing, view_feed
from dragoman.transports.http.serve import Address

_AFTER_CALLS = 5
"""How much nicer we are than the proxy, so that a call does not wait for us where processors are few."""


def main(numbers: list[str]) -> None:
    """Serve until the proxy ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the proxy's to end us, after what it still has to tell
    if sys.platform == "win32":
        feed, listener = (socket.fromshare(bytes.fromhex(one)) for one in sys.stdin.readline().split())
    else:
        os.nice(_AFTER_CALLS)
        feed, listener = (socket.socket(fileno=int(one)) for one in numbers)
    line = bytearray()
    while not line.endswith(b"\n"):
        part = feed.recv(1)  # what follows are records
        if not part:
            return
        line += part
    told = json.loads(line)
    viewing = Viewing(
        listener,
        Address("", 0, *told["certificate"]),
        told["key"],
        tuple(told["hosts"]),
        told["bytes"],
        told["about"],
    )
    asyncio.run(view_feed(viewing, feed, told["process"]))


main(sys.argv[1:])
