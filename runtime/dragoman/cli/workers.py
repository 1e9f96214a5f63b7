"""`--workers N`: one proxy in several processes, which share a port, and hand on to each other what is theirs.

Lives here: the parent, which serves nobody: it starts the others, passes signals on, and starts one again that died.
Must not: be imported where there is one process. Called by `cli.proxy` before anything is opened.

Theory of operation. The parent forks before there are threads, sockets or an event loop. Each worker then goes on as a
proxy alone would, with the same port (`SO_REUSEPORT`: the system chooses a worker for each connection) and a common
`--store`. Two pipes tie them: by one a worker says that it serves, and at the end of the other it sees that the parent
is gone, however that came about.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import secrets
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from dragoman.cli.ink import complain
from dragoman.cli.signals import EXIT_SIGNAL

assert sys.platform != "win32", "--workers is refused where no process can fork"

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PAUSE_S: Final = 1.0
"""How long after a worker has died another one is started."""

_LOOK_S: Final = 0.05
"""How often it is looked whether a worker has died before it served."""

_READY: Final = b"."


class Worker:
    """One of several processes: what it is to do otherwise than one that is alone.

    Args:
        number: From 0 on.
        ready: Where it says that it serves.
        life: What ends with the parent.
    """

    def __init__(self, number: int, ready: int, life: int) -> None:
        self.number = number
        self.life = life
        self._ready = ready

    def say_ready(self) -> None:
        """Tell the parent that clients are served."""
        with contextlib.suppress(OSError):
            os.write(self._ready, _READY)

    def watch_parent(self, end: Callable[[str], None]) -> None:
        """Call this once the parent is gone."""
        loop = asyncio.get_running_loop()

        def leave() -> None:
            loop.remove_reader(self.life)
            end("the process that started this one is gone")

        loop.add_reader(self.life, leave)


def work_together(args: argparse.Namespace) -> int | None:
    """Run the workers that the options want, and give the exit code; None in each of them, which then goes on.

    Raises:
        OSError: The port cannot be had.
    """
    with _common(args) as held:
        return _Parent(args, held).run()


@contextlib.contextmanager
def _common(args: argparse.Namespace) -> Iterator[socket.socket | None]:
    """Give the workers what they have in common: a port, a place to find each other, and a key."""
    name, port, scheme = args.listen
    held = None
    if not args.supervisor.has_listener:
        family, kind, protocol, _, where = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        held = socket.socket(family, kind, protocol)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(where)  # it does not listen: no connection comes to it
        args.listen = name, held.getsockname()[1], scheme
    folder, parent = tempfile.mkdtemp(prefix="dragoman-"), os.getpid()
    if args.store is None:
        args.store = folder
    if args.state_key_file is None:
        from dragoman.values import state_key_file

        key = Path(folder) / "state-key"
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        args.state_key_file = state_key_file(str(key))
    try:
        yield held
    finally:
        if os.getpid() == parent:
            shutil.rmtree(folder, ignore_errors=True)


class _Parent:
    def __init__(self, args: argparse.Namespace, held: socket.socket | None) -> None:
        self._args = args
        self._held = held
        self._workers: dict[int, int] = {}  # process and number
        self._caught: list[int] = []
        self._is_failing = False
        self._ready, self._says_ready = os.pipe()
        self._life, self._lives = os.pipe()

    def run(self) -> int | None:
        before = {number: signal.signal(number, self._pass_on) for number in _PASSED_ON}
        for number in range(self._args.workers):
            if self._start(number, before):
                return None
        code = 0
        if self._wait_until_ready():
            where = f"listening on {_describe(self._args)}"
            print(where, file=sys.stderr, flush=True)
            self._args.supervisor.say_ready(where)
        while self._workers:
            pid, status = os.waitpid(-1, 0)
            number = self._workers.pop(pid)
            ended = os.waitstatus_to_exitcode(status)
            if self._caught or self._is_failing:
                code = code or (ended if ended > 0 else 0)
                continue
            complain(f"dragoman proxy: worker {number} ended with {ended}, and is started again")
            time.sleep(_PAUSE_S)
            if not self._caught and self._start(number, before):
                return None
        return EXIT_SIGNAL + self._caught[0] if self._caught else code or 1

    def _start(self, number: int, before: Mapping[signal.Signals, object]) -> bool:
        """Start a worker; true in that."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        pid = os.fork()
        if pid:
            self._workers[pid] = number
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            if self._caught:
                os.kill(pid, self._caught[0])
            return False
        for which, handler in before.items():
            signal.signal(which, handler)  # type: ignore[arg-type]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        os.close(self._ready)
        os.close(self._lives)
        if self._held is not None:
            self._held.close()
        self._set_apart(number)
        return True

    def _set_apart(self, number: int) -> None:
        """Let a worker have what two cannot have at once."""
        args = self._args
        args.worker = Worker(number, self._says_ready, self._life)
        args.supervisor.is_told = False
        for option in ("status", "trace"):
            if number and (path := getattr(args, option)) is not None:
                setattr(args, option, f"{path}.{number}")
        for option in ("metrics_listen", "instance_listen"):
            if (where := getattr(args, option)) is not None and where[1]:
                setattr(args, option, (where[0], where[1] + number, where[2]))

    def _wait_until_ready(self) -> bool:
        """Wait until each worker serves; false, and all end, if one cannot."""
        told = 0
        while told < self._args.workers and not self._caught:
            if select.select([self._ready], [], [], _LOOK_S)[0]:
                told += len(os.read(self._ready, self._args.workers))
            if any(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for pid in self._workers):
                self._is_failing = True
                self._pass(signal.SIGTERM)
                return False
        return not self._caught

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGHUP:
            self._caught.append(number)
            self._args.supervisor.say_stopping("the proxy is stopping", self._args.drain_timeout)
        self._pass(number)

    def _pass(self, number: int) -> None:
        for pid in list(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _describe(args: argparse.Namespace) -> str:
    name, port, scheme = args.listen
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}{args.mcp_path}"
