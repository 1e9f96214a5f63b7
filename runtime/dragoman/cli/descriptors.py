"""How many descriptors a process that serves many clients may have open.

Lives here: asking the system for as many as the limits of `--listen` need. Must not: count connections
(`transports.http.connection`). Called by `cli.listen`.

Theory of operation. Most systems let a process have 1024 unless it asks for more, and some 256. A connection that finds
none left is not refused but waits, and so do all others, while those who are there keep theirs. Our own limit of
connections answers whom it refuses, so it must be the lower one.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Final

OWN: Final = 256
"""For the listener, logs, modules that are read late, and connections to a server that is not our child."""

PER_SESSION: Final = 8
"""A child's pipes, and those that there are for a moment while it starts; or connections to a URL."""


def raise_limit(connections: int, sessions: int) -> str | None:
    """Let this process, and children that it starts, have as many descriptors open as it may come to need.

    Args:
        connections: How many connections of clients may be open at once, and to servers that wait for answers of them.
        sessions: How many sessions may be.

    Returns:
        What to mind, if the system does not let us have that many.
    """
    if sys.platform == "win32":  # which has no such limit
        return None
    import resource

    wanted = OWN + connections + PER_SESSION * sessions
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return None
    asked = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):  # some systems have a limit of their own besides
        resource.setrlimit(resource.RLIMIT_NOFILE, (asked, hard))
        soft = asked
    if soft >= wanted:
        return None
    return f"this process may have {soft} files and connections open, and may need {wanted}: raise it with ulimit -n"
