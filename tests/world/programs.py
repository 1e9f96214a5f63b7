"""What children of a world do: servers, which go in different ways when they are told to, and the warden's shell.

| `going` of a server | when its input has ended |
|---|---|
| `at once`, `slow` | it ends, or does so after a moment |
| `deaf` | it goes on until SIGTERM; `stubborn`: until SIGKILL |
| `wrapped` | what has started it is gone at once, and it goes on until SIGTERM; `wrapped stubborn`: until SIGKILL |
| `leaves` | it ends, and something that it has started keeps its output open until SIGTERM; `leaves stubborn`: until SIGKILL |
"""  # noqa: E501

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Sequence
from typing import Final

from dragoman.transports import early
from tests.world.kernel import Kernel, Member, Process, ReadEnd, WriteEnd
from tests.world.peers.server import Server
from tests.world.record import Record
from tests.world.streams import End
from tests.world.wires import LineWire

GOINGS: Final = (
    *("at once", "slow", "deaf", "stubborn"),
    *("wrapped", "wrapped stubborn", "leaves", "leaves stubborn"),
)
_TAKES_S: Final = (0.1, 1.0, 2.5)


class ChildWire(LineWire):
    """The way of a server that is a process."""

    def __init__(self, end: End, peer: Server, record: Record, program: ServerProgram) -> None:
        self._program = program
        super().__init__(end, peer, record, peer.plan.arrays)

    def cut(self) -> None:
        self._record.add(self._peer.name, "is cut")
        self._program.crash()

    def stall(self, stalled: bool) -> None:
        super().stall(stalled)
        self._record.add(self._peer.name, "is cut")  # it is there, and hears nothing

    def ended(self, reason: str) -> None:
        self._record.add(self._peer.name, "ends", reason)
        self._program.hear_end()

    def broken(self, reason: str) -> None:
        self._program.lose_output()

    def write_stderr(self, text: str, lines: int = 1) -> None:
        """Say something that is no frame."""
        self._program.write_stderr([f"{text} line {n}" for n in range(lines)])

    def close_output(self) -> None:
        """Say nothing more, and live on."""
        self._program.close_output()


class ServerProgram:
    """A server in a process of its own.

    Args:
        kernel: Of the world.
        process: Which it is, or which has started it.
        run: The server.
        end: Its stdin and stdout.
        stderr: Where it writes what is no frame.
        record: Where it is noted what becomes of it.
        chance: What that is drawn from.
    """

    def __init__(
        self,
        kernel: Kernel,
        process: Process,
        run: Server,
        end: End,
        stderr: WriteEnd | None,
        record: Record,
        chance: random.Random,
    ) -> None:
        self._kernel = kernel
        self._process = process
        self._run = run
        self._end = end
        self._stderr = stderr
        self._record = record
        self._chance = chance
        self._has_heard_end = False
        kind, _, how = run.plan.going.partition(" ")
        self._kind = run.plan.going if kind == "at" else kind
        is_stubborn = "stubborn" in (kind, how)
        self._server = Member(is_stubborn and kind != "leaves", self._exit)
        self._wrapper = Member(False, process.exit) if kind == "wrapped" else None
        self._helper = Member(is_stubborn, lambda _: self._close_all()) if kind == "leaves" else None
        process.name = run.name
        process.members = [one for one in (self._wrapper, self._server, self._helper) if one is not None]
        run.wire = ChildWire(end, run, record, self)

    def hear_end(self) -> None:
        """Its input has ended."""
        self._has_heard_end = True
        if self._wrapper is not None:
            self._wrapper.end(0)
        elif self._kind in ("at once", "leaves"):
            self._server.end(0)
        elif self._kind == "slow":
            asyncio.get_running_loop().call_later(self._chance.choice(_TAKES_S), self._server.end, 0)

    def lose_output(self) -> None:
        """Nobody reads what it says."""
        if self._kind in ("at once", "slow"):
            self._server.end(1)

    def crash(self) -> None:
        """End in the middle of whatever it says."""
        self._end.says.cut_short(self._chance)
        self.write_stderr([f"{self._run.name} has crashed"])
        self._server.end(-signal.SIGSEGV)

    def close_output(self) -> None:
        """Say nothing more."""
        if self._server.is_alive:
            self._record.add(self._run.name, "closes its output")
            self._record.add(self._run.name, "is cut")
            self._end.says.end()

    def write_stderr(self, lines: list[str]) -> None:
        """Write lines, if anybody reads them."""
        if self._stderr is not None and self._server.is_alive:
            for line in lines:
                self._record.add(self._run.name, "writes on stderr", line)
            self._stderr.add("".join(f"{line}\n" for line in lines).encode())

    def _exit(self, status: int) -> None:
        self._record.add(self._run.name, "exits", str(status))
        if not self._has_heard_end:
            self._record.add(self._run.name, "ends", "it has exited")
        self._run.stop()
        self._end.is_closed = True
        self._end.hears.drop()
        self._kernel.wake_all()
        if self._helper is None or not self._helper.is_alive:
            self._close_all()
        if self._wrapper is None:
            self._process.exit(status)
        else:
            self._wrapper.end(status)

    def _close_all(self) -> None:
        """Nobody has its output open any more."""
        if self._server.is_alive:
            return
        self._end.says.end()
        stderr, self._stderr = self._stderr, None
        if stderr is not None:
            self._kernel.release(stderr)


class Shell:
    """What `/bin/sh` makes of the warden's script: it ends the groups that it knows when its input has ended."""

    def __init__(self, kernel: Kernel, process: Process, given: ReadEnd, grace_s: float) -> None:
        self._kernel = kernel
        self._given = given
        self._grace_s = grace_s
        self._rest = b""
        self.groups: list[int] = []
        process.exit(0)  # the script goes on as nobody's child
        given.hand_over(self._read, self._end)

    def _read(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            change, group = line.split()
            if change == b"add":
                self.groups.append(int(group))
            else:
                self.groups.remove(int(group))

    def _end(self) -> None:
        self._kernel.release(self._given)
        self._signal([signal.SIGTERM, signal.SIGKILL])

    def _signal(self, numbers: list[int]) -> None:
        if numbers and self.groups:
            asyncio.get_running_loop().call_later(self._grace_s, self._kill, numbers)

    def _kill(self, numbers: list[int]) -> None:
        left = []
        for group in self.groups:
            try:
                self._kernel.killpg(group, numbers[0], by="the warden")
                left.append(group)
            except ProcessLookupError:
                pass
        self.groups = left
        self._signal(numbers[1:])


def is_shell(command: Sequence[str]) -> bool:
    """Whether a command is the warden's."""
    return command[0] == early.SHELL
