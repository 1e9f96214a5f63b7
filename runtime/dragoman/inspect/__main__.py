"""The process of a viewer, as `dragoman.cli.inspecting` starts it: `python -m dragoman.inspect FEED LISTENER`.

Both are descriptors. The first line of the feed says how to serve, as JSON; what follows are records.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys

from dragoman.inspect.viewer import Viewing, view_feed
from dragoman.transports.http.serve import Address


def main(feed_fd: int, listener_fd: int) -> None:
    """Serve until the proxy ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the proxy's to end us, after what it still has to tell
    feed, listener = socket.socket(fileno=feed_fd), socket.socket(fileno=listener_fd)
    line = bytearray()
    while not line.endswith(b"\n"):
        part = feed.recv(1)  # what follows are records
        if not part:
            return
        line += part
    told = json.loads(line)
    viewing = Viewing(
        listener,
        Address(certificate=told["certificate"], key=told["private"]),
        told["key"],
        tuple(told["hosts"]),
        told["bytes"],
        told["about"],
    )
    asyncio.run(view_feed(viewing, feed, told["process"]))


main(int(sys.argv[1]), int(sys.argv[2]))
