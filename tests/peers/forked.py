"""Peers that are forked from an interpreter which has imported their SDK, in place of importing it for each.

To import a released SDK takes half a second of CPU or more, which is two thirds of a visit. So in the ordinary run a
peer of Python's is started by a small program that looks like its interpreter: it hands command line, environment and
standard streams to a process of that interpreter, which has imported what the peers take from elsewhere, and forks. The
small program lives as long as the peer, passes signals on, ends as it ends, and takes it along when it is killed.
`nox -s peers -- full` and systems other than Linux start an interpreter each time; so does the test of what is left
behind.

Lives here: both ends. As a program, `forked.py SOCKET`, it runs under every release, and imports nothing of Dragoman.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import marshal
import os
import re
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
QUIET: Final = ("-W", "ignore")
"""The options of an interpreter that its stand-in knows."""

POSSIBLE: Final = sys.platform == "linux" and len(sys.executable) < 120 and not re.search(r"\s", sys.executable)
"""Linux alone tells of the end of a process by a file; what stands in begins with a line that names a program."""

FORKED: Final = POSSIBLE and os.environ.get("DRAGOMAN_PEERS_PAIRS") != "full"
"""Whether peers of Python's SDK are forked from what has imported it."""

LOST: Final = 70
"""The exit code of a peer whose end nobody was there to tell."""

START_S: Final = 60

STAND_IN: Final = """\
#!{python} -IS
import marshal, os, signal, socket, sys

words = sys.argv[1:]
script = next(iter(words[2:] if words[:2] == {quiet} else words), "")
if not script.startswith({scripts}):
    os.execv({real}, [{real}, *words])
wire = socket.socket(socket.AF_UNIX)
wire.connect({place})
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, frame: wire.send(bytes([number])))
told = marshal.dumps((words, dict(os.environ), os.getcwd()), 2)
socket.send_fds(wire, [len(told).to_bytes(4, "big")], [0, 1, 2])
wire.sendall(told)
os.closerange(0, 3)
ended = int.from_bytes(wire.recv(4) or bytes([0, 0, 0, {lost}]), "big", signed=True)
if ended < 0:
    signal.signal(-ended, signal.SIG_DFL)
    os.kill(os.getpid(), -ended)
os._exit(ended)
"""

_starting: Final = threading.Lock()
_running: Final = contextlib.ExitStack()


def interpreter(real: Path, scripts: Path = HERE) -> str:
    """Return the program that stands in for an interpreter before scripts of a folder; before others it starts that."""
    with _starting:
        return _stand_in(real, scripts)


def end_all() -> None:
    """End what was started, and whatever it has forked."""
    _running.close()


@functools.cache
def _stand_in(real: Path, scripts: Path) -> str:
    folder = Path(_running.enter_context(tempfile.TemporaryDirectory()))
    place, program = str(folder / "socket"), folder / "python"
    words = {
        "python": sys.executable,
        "lost": LOST,
        "quiet": list(QUIET),
        "scripts": f"{scripts}/",
        "real": str(real),
        "place": place,
    }
    program.write_text(
        STAND_IN.format(**{name: word if name == "python" else repr(word) for name, word in words.items()})
    )
    program.chmod(0o700)
    _running.enter_context(_forking(real, place))
    return str(program)


@contextlib.contextmanager
def _forking(real: Path, place: str) -> Iterator[None]:
    command, pipe = [str(real), str(Path(__file__).resolve()), place], subprocess.PIPE
    with (
        Path(place).with_name("errors").open("w+") as errors,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.read(1), f"{real} cannot fork"
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()  # by which it sees that nobody needs it any more
            ended = process.wait(START_S)
            errors.seek(0)
            assert ended == 0, f"what forks peers of {real} ended with {ended}: {errors.read()[-2000:]}"


class Forking:
    """Forks a peer for whoever connects, until its input ends."""

    def __init__(self, place: str) -> None:
        self._files = selectors.DefaultSelector()
        self._children: dict[int, tuple[int, socket.socket]] = {}  # by a file that says when it has ended
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(place)
        self._listener.listen(64)
        self._files.register(self._listener, selectors.EVENT_READ, self._begin)
        self._files.register(0, selectors.EVENT_READ, lambda: sys.exit(self._end()))

    def serve(self) -> list[str]:
        """Return, in each child that is forked, the words that its interpreter was given."""
        words = None
        while words is None:
            (key, _), *_ = self._files.select()  # one alone: another one may be about what this one ends
            words = key.data()
        return words

    def _begin(self) -> list[str] | None:
        wire, _ = self._listener.accept()
        size, streams, _, _ = socket.recv_fds(wire, 4, 3)
        told, missing = b"", int.from_bytes(size, "big")
        while len(told) < missing:
            part = wire.recv(1 << 16)
            missing = missing if part else 0
            told += part
        if not missing:  # it was killed before it had said what it wants
            for file in (*streams, wire.detach()):
                os.close(file)
            return None
        words, environment, folder = marshal.loads(told)
        with contextlib.suppress(OSError, SyntaxError):  # which the peer will find, too
            import_what_is_needed(Path(words[2] if tuple(words[:2]) == QUIET else words[0]))
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            wire.close()
            self._forget()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            return list(words)
        for stream in streams:
            os.close(stream)
        file = os.pidfd_open(pid)
        self._children[file] = pid, wire
        self._files.register(file, selectors.EVENT_READ, lambda: self._ended(file))
        self._files.register(wire, selectors.EVENT_READ, lambda: self._pass_on(pid, wire))
        return None

    def _pass_on(self, pid: int, wire: socket.socket) -> None:
        numbers = b""
        with contextlib.suppress(OSError):
            numbers = wire.recv(16)
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)
        if not numbers:
            self._files.unregister(wire)

    def _ended(self, file: int) -> None:
        pid, wire = self._children.pop(file)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._files.unregister(file)
        os.close(file)
        if wire in self._files.get_map():
            self._files.unregister(wire)
        with contextlib.suppress(OSError):
            wire.send(code.to_bytes(4, "big", signed=True))
        wire.close()

    def _forget(self) -> None:
        """Close, in a child, what is not its own."""
        self._files.close()
        self._listener.close()
        for file, (_, wire) in self._children.items():
            os.close(file)
            wire.close()

    def _end(self) -> int:
        for pid, _ in self._children.values():
            os.kill(pid, signal.SIGKILL)
        return 0


@functools.cache
def import_what_is_needed(script: Path) -> None:
    """Import what a script and its neighbours import anywhere, but no neighbour: what one changes, all would have."""
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for name in names + [alias.name for alias in getattr(node, "names", ()) if isinstance(node, ast.Import)]:
            neighbour = script.with_name(f"{name}.py")
            if neighbour.exists():
                import_what_is_needed(neighbour)
            elif name != "__future__":
                with contextlib.suppress(Exception):  # not every release has it
                    import_module(name)


def be(words: list[str]) -> None:
    """Be the interpreter that was given these words, in a process that has its streams."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if number == 2 else None
        stream: Any = open(number, "w" if number else "r", errors=errors, closefd=False)  # noqa: SIM115
        if number:
            stream.reconfigure(line_buffering=number == 2 or stream.isatty())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if tuple(words[:2]) == QUIET:
        warnings.simplefilter("ignore")
        del words[:2]
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent)
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    forking = Forking(sys.argv[1])
    os.write(1, b"\n")
    be(forking.serve())
