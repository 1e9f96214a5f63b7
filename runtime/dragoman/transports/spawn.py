"""Starting a server as a child process.

Lives here: the one thing that can be done before an event loop, or even asyncio, is there; so that a server starts
while we still import. Must not: import anything heavy. Called by `dragoman.cli.proxy`; `transports.stdio` takes over.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from dragoman.errors import TransportClosed


def spawn(command: Sequence[str], stderr: int | None = None) -> subprocess.Popen[bytes]:
    """Start a server; its stderr is ours, or the descriptor given.

    It leads a session of its own: Ctrl-C at a terminal then reaches only us, who end the child in order, and a signal
    for it reaches what it started too (`npx`, `uvx` and shells are wrappers).

    Raises:
        TransportClosed: There is no such command, or it may not be run. The cause is the `OSError`.
    """
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        hint = ": write the command and its arguments as words of their own, without quotes around all of them"
        in_one_word = len(command) == 1 and len(command[0].split()) > 1
        raise TransportClosed(command[0], f"command not found{hint if in_one_word else ''}") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TransportClosed(command[0] or "''", f"cannot be run: {reason.lower()}") from error
