"""Starting a server as a child process.

Lives here: what can be done before there is an event loop, and before asyncio is imported, so that the server starts
while we still import. Must not: import anything heavy. Called by whoever starts a server; `transports.stdio` takes
over.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dragoman import system
from dragoman.errors import TransportClosed
from dragoman.transports.early import Child, without_ours

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from dragoman.transports.warden import Warden

Process: TypeAlias = "subprocess.Popen[bytes] | Child"
"""A server in a process of its own, however it was started."""


Stderr: TypeAlias = "int | Callable[[str], AbstractContextManager[int]] | None"
"""Where a child's stderr goes: to a descriptor, or to what gives one by the name of its server; None for ours."""


def taken(stderr: Stderr, server: str) -> AbstractContextManager[int | None]:
    """Return the descriptor for a child of this server, while it is started."""
    import contextlib

    return stderr(server) if callable(stderr) else contextlib.nullcontext(stderr)


def spawn(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    warden: Warden | None = None,
    stderr: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server.

    It leads a session of its own: Ctrl-C at a terminal then reaches only us, who end the child in order, and a signal
    for it reaches what it started too (`npx`, `uvx` and shells are wrappers).

    Args:
        command: The program, found by our own PATH unless the environment has one, and its arguments.
        environment: What it finds in its environment, from `transports.surroundings`; None is all of ours but what is
            meant for us (`DRAGOMAN_…`).
        directory: Where it runs; None is where we do.
        warden: Told of it, and ends it should we be killed.
        stderr: The descriptor that it writes to; None is ours.

    Raises:
        TransportClosed: There is no such command, or it may not be run. The cause is the `OSError`.
    """
    given = without_ours(os.environ) if environment is None else dict(environment)
    if warden is None:
        return _start(command, given, directory, stderr)
    warden.prepare()
    try:
        process = _start(command, given, directory, stderr)
        warden.watch(process.pid)
    finally:
        warden.settle()
    return process


def _start(
    command: Sequence[str], given: Mapping[str, str], directory: str | None, stderr: int | None
) -> subprocess.Popen[bytes]:
    try:
        return system.start(command, directory, given, stderr)
    except FileNotFoundError as error:
        if directory is not None and error.filename == directory:
            raise TransportClosed(f"{command[0]} in {directory}", "its directory does not exist") from error
        hint = ": write the command and its arguments as words of their own, without quotes around all of them"
        in_one_word = len(command) == 1 and len(command[0].split()) > 1
        raise TransportClosed(command[0], f"command not found{hint if in_one_word else ''}") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TransportClosed(command[0] or "''", f"cannot be run: {reason.lower()}") from error
