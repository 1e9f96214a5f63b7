"""A helper process that ends our children when we cannot: after SIGKILL, or a crash of the interpreter.

Lives here: starting a small shell script (`transports.early` has it) that outlives this process, and telling it which
children there are. Must not: end children while we run; `transports.stdio` does. Made by `dragoman.cli`;
`transports.spawn` and `transports.stdio` tell it of children.

Theory of operation. The script reads the groups of our children from a pipe that only this process can write to. When
this process is gone, for whatever reason, the pipe ends. The input of the children ends at the same time, and most end
by themselves then. They get a moment for that; then their groups get SIGTERM, and SIGKILL. Linux has a way of its own
(`PR_SET_PDEATHSIG`), but not for what the children start themselves (`npx` starts `node`), and only by code that runs
between fork and exec, which makes each start slower (docs/decisions/0018).

What it cannot do: it misses a child that was just being started when we were killed, before we knew its number, and
children that left their group. It cannot help where there is no /bin/sh, or where it is killed along with us.
Windows needs none.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Final

from dragoman import system
from dragoman.transports import early
from dragoman.transports.early import GRACE_S, Child, shell_command, tell

logger = logging.getLogger("dragoman.stdio")

_START_S: Final = 5.0
"""How long the shell may take to begin; far more than it does on a machine with too much to do."""


class Warden:
    """Ends the children that are known to it once this process is gone.

    Args:
        grace_s: How long children get at each step, in seconds.
    """

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._fd = -1
        self._tried = False
        self._shell: subprocess.Popen[bytes] | Child | None = None

    def take_over(self, fd: int, shell: Child) -> None:
        """Go on with a script that was started before, and what it is told by."""
        self._tried, self._fd, self._shell = True, fd, shell

    def prepare(self) -> None:
        """Begin, if that was not done yet: before a child is there, which would stay if we were killed meanwhile."""
        if not self._tried:
            self._tried = True
            self._start()

    def watch(self, pid: int) -> None:
        """Take charge of a child that leads a process group.

        Args:
            pid: The child's, which is its group's as well.
        """
        self.prepare()
        self._tell(b"add %d\n" % pid)
        self.settle()

    def settle(self) -> None:
        """Wait for the shell, which ends once its script goes on by itself; what it is told meanwhile waits for it."""
        if self._shell is None:
            return
        shell, self._shell = self._shell, None
        try:
            if shell.wait(_START_S):
                self._give_up(f"{early.SHELL} exited with status {shell.returncode}")
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.wait()
            self._give_up(f"{early.SHELL} does not begin")

    def forget(self, pid: int) -> None:
        """Let go of a child that is gone, with its group."""
        self._tell(b"drop %d\n" % pid)

    def close(self) -> None:
        """Do now what is due when this process is gone."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _start(self) -> None:
        if sys.platform == "win32":  # where a job does it (`dragoman.windows`)
            return
        read_fd, self._fd = os.pipe()
        system.never_block(self._fd)
        command, surroundings = shell_command(self._grace_s), {"PATH": os.defpath}
        try:
            self._shell = subprocess.Popen(command, stdin=read_fd, start_new_session=True, env=surroundings)
        except OSError as error:
            self._give_up(f"no {early.SHELL}: {error}")
        finally:
            os.close(read_fd)

    def _give_up(self, reason: str) -> None:
        logger.info("servers are left behind if this process is killed by SIGKILL: %s", reason)
        self.close()

    def _tell(self, line: bytes) -> None:
        if self._fd >= 0:
            tell(self._fd, line)
