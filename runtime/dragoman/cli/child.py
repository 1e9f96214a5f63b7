"""The options that say in which surroundings the server's command runs, and starting it there.

Lives here: flags, and the one who starts every child of a `dragoman proxy`. Must not: decide what is safe to hand on
(`transports.surroundings`), or import what is slow: a child is started before anything else. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from dragoman.cli.checks import directory
from dragoman.transports.spawn import spawn
from dragoman.transports.surroundings import MODES, OURS, make_environment, secretive_names
from dragoman.transports.warden import Warden

if TYPE_CHECKING:
    from dragoman.transports.stdio import ChildTransport


def add_child_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Describe the flags; give them: they mean nothing without COMMAND."""
    group = parser.add_argument_group("the environment of COMMAND")
    group.add_argument(
        "--env",
        dest="variables",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="give the server this variable; without VALUE, take it from the proxy's environment, where other users of "
        "the machine cannot see it; may be repeated",
    )
    group.add_argument(
        "--inherit-env",
        choices=MODES,
        metavar="all|safe|none",
        help="which other variables of the proxy's environment the server gets: all but DRAGOMAN_*, those that are not "
        "secret (HOME, PATH, LANG and the like), or none (default: all; with --listen safe)",
    )
    group.add_argument(
        "--cwd", type=directory, metavar="DIR", help="run the server in this directory (default: the current one)"
    )
    return group._group_actions


def check_child(args: argparse.Namespace) -> str | None:
    """Say which variable is to be handed on that there is not, if any."""
    for name, value in args.variables:
        if value is None and name not in os.environ:
            return f"--env {name}: there is no variable {name} in our environment"
    return None


class Launcher:
    """Starts the server's command, each time in the same surroundings.

    Args:
        args: With the flags above, COMMAND, `--listen`, and the stderr that children get.

    Attributes:
        warden: Ends the children should we be killed.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._command: list[str] = args.command
        self._directory: str | None = args.cwd
        self._stderr: int | None = args.stderr
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

    def start(self) -> subprocess.Popen[bytes]:
        """Start it.

        Raises:
            TransportClosed: There is no such command, or it may not be run.
        """
        return spawn(self._command, self._environment, self._directory, self.warden, self._stderr)

    def connect(self, limit_bytes: int, process: subprocess.Popen[bytes] | None = None) -> ChildTransport:
        """Give the transport to a server that runs already, or to a fresh one.

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

    def put_away(self, process: subprocess.Popen[bytes] | None) -> None:
        """Make sure that nothing stays behind of a server, whatever happened."""
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.warden.forget(process.pid)


def _variable(text: str) -> tuple[str, str | None]:
    name, has_value, value = text.partition("=")
    if not name or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected NAME or NAME=VALUE, found {text!r}")
    if name.startswith(OURS):
        raise argparse.ArgumentTypeError(f"{name} is meant for the proxy: no server is given what begins with {OURS}")
    return name, value if has_value else None
