"""Servers that are child processes of the proxy, in a world: what starts them is the proxy's own, down to `Popen`."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.cli.child import Launcher
from dragoman.config import ServerConfig
from dragoman.config.opening import opener_of
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.transports.base import Transport
from dragoman.transports.child_words import log_words
from dragoman.transports.stdio import StandardStreams
from tests.world.kernel import Kernel, Opened, Process, ReadEnd, WriteEnd
from tests.world.peers.server import Server
from tests.world.peers.words import chance_of
from tests.world.plan import Plan
from tests.world.programs import ServerProgram, Shell, is_shell
from tests.world.record import Record
from tests.world.streams import End

if TYPE_CHECKING:
    from tests.world.network import Network

_GRACE_S = 60.0
"""How long everything may take to end whose parent was killed: far longer than it does."""


class Children:
    """The processes of a world, and who starts them.

    Args:
        plan: Of the world.
        network: Whose connections stdin and stdout are.
        record: Where it is noted what becomes of processes.
        loop: Of the world.
        runs: The runs of each server.
    """

    def __init__(self, plan: Plan, network: Network, record: Record, loop: Any, runs: dict[str, list[Server]]) -> None:
        self._plan = plan
        self._network = network
        self._record = record
        self._runs = runs
        self.missing: set[str] = set()
        self.kernel = network.kernel = Kernel(network, record, loop, self._begin)
        self.kernel.room = plan.children["room"]
        self._launchers = {server.name: self._make_launcher(server.name) for server in plan.servers}
        self._warden = self._launchers[plan.servers[0].name].warden

    def _make_launcher(self, name: str) -> Launcher:
        is_served = self._plan.front == "http"
        given: dict[str, Any] = {"command": [name], "cwd": None, "server": None, "early": None, "stderr": None}
        given |= {"listen": ("127.0.0.1", 8080, "http") if is_served else None, "variables": [], "inherit_env": "safe"}
        return Launcher(argparse.Namespace(**given, child_words=log_words))

    def opener(self, name: str) -> Callable[[], Transport]:
        """Give what starts a server that is alone."""
        launcher = self._launchers[name]
        return lambda: launcher.connect(DEFAULT_LIMIT_BYTES)

    def opener_behind_router(self, server: ServerConfig) -> Callable[[], Transport]:
        """Give what starts a server of a file."""
        return opener_of(server, inherit_env="safe", warden=self._warden, stderr=log_words)

    def standard_streams(self, end: End) -> StandardStreams:
        """Give our own stdin and stdout, for a client that has started us."""
        return StandardStreams(*self.kernel.open_end(end))

    def _begin(self, process: Process, command: Sequence[str], given: Opened | None, stderr: Opened | None) -> None:
        """Run the program of a command.

        Raises:
            FileNotFoundError: There is none.
        """
        if isinstance(given, ReadEnd) and is_shell(command):
            Shell(self.kernel, process, given, float(command[-1]))
            return
        name = command[0]
        if name in self.missing:
            if stderr is not None:
                self.kernel.release(stderr)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        plan = next(server for server in self._plan.servers if server.name == name)
        runs = self._runs[name]
        run = Server(plan, len(runs) + 1, self._plan.seed, self._record)
        runs.append(run)
        self._record.add(run.name, "opens")
        theirs, ours = self._network.pair(run.name, "proxy")
        words = stderr if isinstance(stderr, WriteEnd) else None
        chance = chance_of(self._plan.seed, run.name, "process")
        ServerProgram(self.kernel, process, run, theirs, words, self._record, chance)
        self.kernel.give_pipes(process, ours)

    def close(self) -> None:
        """Nobody needs the warden any more."""
        for launcher in self._launchers.values():
            launcher.warden.close()

    def note_left(self) -> None:
        """Note what is left when everything is over."""
        for text in self.kernel.left():
            self._record.note("nothing-left", text)
