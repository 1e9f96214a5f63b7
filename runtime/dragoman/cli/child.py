"""The options that say in which surroundings the server's command runs, and starting it there.

Lives here: flags, and the one who starts every child of a `dragoman proxy`. Must not: decide what is safe to hand on
(`transports.surroundings`), or import what is slow: a child is started before anything else. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from dragoman import system
from dragoman.cli.options import add_group
from dragoman.options import CHILD
from dragoman.transports.spawn import Process, Stderr, spawn, taken
from dragoman.transports.surroundings import make_environment, secretive_names
from dragoman.transports.warden import Warden

if TYPE_CHECKING:
    from dragoman.transports.early import Early
    from dragoman.transports.stdio import ChildTransport


def add_child_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Describe the flags; give them: they mean nothing without COMMAND."""
    parser.set_defaults(child_words=None)
    return add_group(parser, "the environment of COMMAND", CHILD)


class Launcher:
    """Starts the server's command, each time in the same surroundings.

    Args:
        args: With the flags above, COMMAND, `--listen`, the stderr that children get, and what was started before.

    Attributes:
        warden: Ends the children should we be killed.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._command: list[str] = args.command
        self._directory: str | None = args.cwd
        self._stderr: Stderr = args.child_words or args.stderr
        self._name: str = args.server or ""
        self._early: Early | None = args.early
        self.warden = Warden()
        serves_others = self._serves_others = args.listen is not None
        given = {name: os.environ[name] if value is None else value for name, value in args.variables}
        self._environment = make_environment(
            args.inherit_env or ("safe" if serves_others else "all"), os.environ, given
        )
        by_default = bool(args.command) and args.inherit_env is None
        left_out = secretive_names(os.environ.keys() - self._environment.keys()) if by_default else []
        self.caution = (
            f"the server is not given {', '.join(left_out)}: name with --env what it needs, or say which of our "
            "environment it gets with --inherit-env"
            if left_out
            else None
        )

    def start(self) -> Process:
        """Start it, unless it was started before, just as it would be now.

        Raises:
            TransportClosed: There is no such command, or it may not be run.
        """
        early, self._early = self._early, None
        if early is not None and (process := early.take(self._command, self._environment, self._directory)):
            self.warden.take_over(early.warden_fd, early.shell)
            return process
        with taken(self._stderr, self._name) as stderr:
            return spawn(self._command, self._environment, self._directory, self.warden, stderr)

    def connect(self, limit_bytes: int, process: Process | None = None) -> ChildTransport:
        """Return the transport to a server that runs already, or to a fresh one.

        Args:
            limit_bytes: The longest line accepted from it.
            process: The one that runs.

        Raises:
            TransportClosed: There is no such command, or it may not be run.
        """
        from dragoman.transports.stdio import ChildTransport

        return ChildTransport(
            process or self.start(),
            warden=self.warden,
            limit_bytes=limit_bytes,
            checks_texts=self._serves_others,
        )

    def put_away(self, process: Process | None) -> None:
        """Make sure that nothing stays behind of a server, whatever happened."""
        if process is not None and process.poll() is None:
            system.tell_family(process, is_last_word=True)
            process.wait()
            self.warden.forget(process.pid)
