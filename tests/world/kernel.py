"""The descriptors and processes of a world: pipes with so much room, children, their groups, and signals.

What the runtime asks the system about those, by `os`, `fcntl`, `select` and `subprocess`, it asks here (`system`), and
so does the loop, whose readers and writers are called for as long as there is something to read, or room. The bytes
go through the connections of `streams`. What children do is up to `programs`.
"""

from __future__ import annotations

import contextvars
import errno
import itertools
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.world.network import Network
from tests.world.record import Record
from tests.world.streams import End, Manner, Pipe

_FIRST_PID: Final = 1 << 23
"""Processes of a world begin here: no real one has so high a number."""

_AT_ONCE_BYTES: Final = 4096
"""What is shorter goes into a pipe as a whole, or not at all."""

_READ, _WRITE = "read", "write"


def _fail(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class ReadEnd:
    """The end of a pipe that is read from; what nobody watches stays with who wrote it."""

    def __init__(self, kernel: Kernel, pipe: Pipe, close: Callable[[], None]) -> None:
        self.users = 1
        self._kernel = kernel
        self._pipe = pipe
        self._close = close
        self._data = bytearray()
        self._is_ended = False
        self._take: Callable[[bytes], None] | None = None
        self._end: Callable[[], None] = lambda: None
        pipe.pause(True)
        pipe.start(self)

    @property
    def is_ready(self) -> bool:
        return bool(self._data) or self._is_ended

    @property
    def is_hung_up(self) -> bool:
        """Whether nobody writes any more."""
        return self._pipe.is_ended or self._pipe.is_dropped

    def watch(self, watched: bool) -> None:
        """Let bytes come, or not."""
        self._pipe.pause(not watched or bool(self._data))

    def read(self, count: int) -> bytes:
        if self._data:
            taken = bytes(self._data[:count])
            del self._data[:count]
            self.watch(self._kernel.is_watched(self))
            return taken
        if self._is_ended:
            return b""
        raise _fail(errno.EAGAIN)

    def close(self) -> None:
        self._close()

    def hand_over(self, take: Callable[[bytes], None], end: Callable[[], None]) -> None:
        """Give everything to a program that reads it as it comes."""
        self._take, self._end = take, end
        self._pipe.pause(False)

    # What the connection tells

    def data_received(self, data: bytes) -> None:
        if self._take is not None:
            self._take(data)
            return
        self._data += data
        self._pipe.pause(True)
        self._kernel.wake(self)

    def ended(self, reason: str) -> None:
        if self._take is not None:
            self._end()
            return
        self._is_ended = True
        self._kernel.wake(self)

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class WriteEnd:
    """The end of a pipe that is written to.

    Args:
        kernel: Whose it is.
        pipe: What it goes through.
        room: How many bytes it holds.
        is_read: Says whether there is anybody who could read.
        close: Called when nobody has it open any more.
    """

    is_hung_up = False

    def __init__(
        self, kernel: Kernel, pipe: Pipe, room: int, is_read: Callable[[], bool], close: Callable[[], None]
    ) -> None:
        self.users = 1
        self._kernel = kernel
        self._pipe = pipe
        self._room = room
        self._is_read = is_read
        self._close = close
        pipe.on_taken = lambda _: kernel.wake(self)

    @property
    def is_ready(self) -> bool:
        waiting = self._pipe.waiting
        return not self._is_read() or not waiting or self._room - waiting >= _AT_ONCE_BYTES

    @property
    def unread(self) -> int:
        """How many bytes nobody has taken yet."""
        return self._pipe.waiting

    def watch(self, watched: bool) -> None: ...

    def add(self, data: bytes) -> None:
        """Write all of it, as a program does that waits for room."""
        if self._is_read():
            self._pipe.write(data)

    def write(self, data: bytes) -> int:
        if not self._is_read():
            raise _fail(errno.EPIPE)
        left = self._room - self._pipe.waiting
        if left <= 0 or left < len(data) <= _AT_ONCE_BYTES:
            raise _fail(errno.EAGAIN)
        self._pipe.write(data[:left])
        return min(left, len(data))

    def close(self) -> None:
        self._close()


class _OfProcess:
    """What tells of the end of a process."""

    users = 1
    is_hung_up = False

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def is_ready(self) -> bool:
        return self._process.status is not None

    def watch(self, watched: bool) -> None: ...

    def close(self) -> None: ...


Opened = ReadEnd | WriteEnd | _OfProcess


class File:
    """What Python makes of a descriptor."""

    def __init__(self, kernel: Kernel, fd: int) -> None:
        self._kernel = kernel
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            self._kernel.close(self._fd)
            self._fd = -1


class Member:
    """A process of a group.

    Args:
        is_stubborn: Whether it does not heed SIGTERM.
        end: Called with its status when it ends.
    """

    def __init__(self, is_stubborn: bool, end: Callable[[int], None]) -> None:
        self.is_alive = True
        self._is_stubborn = is_stubborn
        self._end = end

    def end(self, status: int) -> None:
        if self.is_alive:
            self.is_alive = False
            self._end(status)

    def signal(self, number: int) -> None:
        if number == signal.SIGKILL or not self._is_stubborn:
            self.end(-number)


class Process:
    """A child, as `subprocess.Popen` has it: the first of a group.

    Attributes:
        name: For the record.
        members: Of its group, itself among them, as programs make them.
        status: How it ended; its parent learns of it by `poll`.
    """

    def __init__(self, kernel: Kernel, pid: int) -> None:
        self.pid = pid
        self.name = ""
        self.members: list[Member] = []
        self.returncode: int | None = None
        self.status: int | None = None
        self.stdin: File | None = None
        self.stdout: File | None = None
        self._kernel = kernel

    @property
    def is_there(self) -> bool:
        """Whether anything is left of its group: itself, too, until its parent has asked."""
        known = self.status if self._kernel.is_lost else self.returncode
        return known is None or any(member.is_alive for member in self.members)

    def exit(self, status: int) -> None:
        """End."""
        self.status = status
        self._kernel.wake_all()

    def poll(self) -> int | None:
        self.returncode = self.status
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Give its status, if it has ended: a world cannot wait within a turn of its loop."""
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self.name, timeout or 0.0)
        return status

    def kill(self) -> None:
        self._kernel.killpg(self.pid, signal.SIGKILL)


@dataclass
class _Watch:
    callback: Callable[..., object]
    args: Sequence[Any]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    pending: Any = None


class Kernel:
    """The descriptors and processes of a world.

    Args:
        network: Where descriptors get their numbers.
        record: Where it is noted what becomes of children.
        loop: Who calls readers and writers.
        start: Begins the program of a child, by its command; told its stdin, stdout and stderr.

    Attributes:
        room: How many bytes a pipe holds.
        processes: Those that there were, by number.
        is_lost: Whether the process whose descriptors these are was killed: nothing that it does is heard of any more.
    """

    def __init__(self, network: Network, record: Record, loop: Any, start: Callable[..., None]) -> None:
        self.room = 64 * 1024
        self.processes: dict[int, Process] = {}
        self.is_lost = False
        self._network = network
        self._record = record
        self._loop = loop
        self._start = start
        self._files: dict[int, Opened] = {}
        self._watches: dict[tuple[int, str], _Watch] = {}
        self._pids = itertools.count(_FIRST_PID)

    # Descriptors

    def _add(self, opened: Opened) -> int:
        fd = self._network.next_number()
        self._files[fd] = opened
        return fd

    def opened(self, fd: int) -> Opened:
        """Give what a descriptor stands for."""
        if fd not in self._files:
            raise _fail(errno.EBADF)
        return self._files[fd]

    def _is_lost(self, fd: int) -> bool:
        """Whether this was open when the process was killed."""
        return self.is_lost and fd not in self._files

    def share(self, fd: int) -> Opened:
        """Give the same to somebody else, who closes it by `release`."""
        opened = self.opened(fd)
        opened.users += 1
        return opened

    def release(self, opened: Opened) -> None:
        """Have it open no more."""
        opened.users -= 1
        if not opened.users:
            opened.close()

    def open_end(self, end: End, close: Callable[[], None] = lambda: None) -> tuple[int, int]:
        """Open both directions of a connection: give what is read from, and what is written to.

        Args:
            end: Our end; the other one is a child, or a client that has started us.
            close: Called when what is written to is closed.
        """

        def read_no_more() -> None:
            end.is_closed = True
            end.hears.drop()

        def write_no_more() -> None:
            end.says.end()
            close()

        def is_read() -> bool:
            return not (end.says.is_dropped or (end.other is not None and end.other.is_closed))

        read = ReadEnd(self, end.hears, read_no_more)
        return self._add(read), self._add(WriteEnd(self, end.says, self.room, is_read, write_no_more))

    def pipe(self) -> tuple[int, int]:
        pipe = Pipe(Manner(), self._network.chance, self._record.turns)
        read = ReadEnd(self, pipe, pipe.drop)
        return self._add(read), self._add(WriteEnd(self, pipe, self.room, lambda: read.users > 0, pipe.end))

    def dup(self, fd: int) -> int:
        return self._add(self.share(fd))

    def close(self, fd: int) -> None:
        if self._is_lost(fd):
            return
        opened = self.opened(fd)
        for kind in (_READ, _WRITE):
            if (fd, kind) in self._watches:
                self._record.note("nothing-left", f"a descriptor is closed that is still waited for, to {kind}")
        del self._files[fd]
        self.release(opened)

    def read(self, fd: int, count: int) -> bytes:
        if self._is_lost(fd):
            raise _fail(errno.EAGAIN)
        opened = self.opened(fd)
        assert isinstance(opened, ReadEnd)
        return opened.read(count)

    def write(self, fd: int, data: Any) -> int:
        if self._is_lost(fd):
            return len(data)
        opened = self.opened(fd)
        assert isinstance(opened, WriteEnd)
        return opened.write(bytes(data))

    def writev(self, fd: int, pieces: Iterable[Any]) -> int:
        return self.write(fd, b"".join(bytes(piece) for piece in pieces))

    def fstat(self, fd: int) -> os.stat_result:
        self.opened(fd)
        return os.stat_result((stat.S_IFIFO | 0o600, *(0,) * 9))

    def isatty(self, fd: int) -> bool:
        return False

    def set_blocking(self, fd: int, blocking: bool) -> None:
        """Nobody waits in a world."""
        self.opened(fd)

    def fcntl(self, fd: int, command: int, size: int) -> int:
        """Leave a pipe as large as it is."""
        return size

    def ioctl(self, fd: int, request: int, found: Any) -> int:
        """Say how many bytes are in a pipe, which is all that is asked."""
        opened = self.opened(fd)
        assert isinstance(opened, WriteEnd)
        found[0] = opened.unread
        return 0

    # What the loop waits for

    def add_watch(self, fd: int, kind: str, callback: Callable[..., object], args: Sequence[Any]) -> None:
        opened = self.opened(fd)
        self.remove_watch(fd, kind)
        self._watches[fd, kind] = _Watch(callback, args)
        opened.watch(True)
        self._schedule(fd, kind)

    def remove_watch(self, fd: int, kind: str) -> bool:
        watch = self._watches.pop((fd, kind), None)
        if watch is None:
            return False
        if watch.pending is not None:
            watch.pending.cancel()
        opened = self._files.get(fd)
        if opened is not None:
            opened.watch(self.is_watched(opened))
        return True

    def is_watched(self, opened: Opened) -> bool:
        return any(self._files.get(fd) is opened for fd, _ in self._watches)

    def wake(self, opened: Opened) -> None:
        """Look whether those who wait for this can go on."""
        for fd, kind in list(self._watches):
            if self._files.get(fd) is opened:
                self._schedule(fd, kind)

    def wake_all(self) -> None:
        """The same for everything: a process has ended."""
        for fd, kind in list(self._watches):
            self._schedule(fd, kind)

    def _schedule(self, fd: int, kind: str) -> None:
        watch = self._watches[fd, kind]
        if watch.pending is None and self._files[fd].is_ready:
            watch.pending = self._loop.call_soon(self._fire, fd, kind, watch, context=watch.context)

    def _fire(self, fd: int, kind: str, watch: _Watch) -> None:
        watch.pending = None
        if self._files[fd].is_ready:
            watch.callback(*watch.args)
        if self._watches.get((fd, kind)) is watch:
            self._schedule(fd, kind)

    # Processes

    def popen(self, command: Sequence[str], *, stdin: int, stderr: int | None = None, **more: Any) -> Process:
        """Start a child; who was killed starts none."""
        if self.is_lost:
            raise _fail(errno.EAGAIN)
        process = Process(self, next(self._pids))
        given = None if stdin == subprocess.PIPE else self.share(stdin)
        self._start(process, command, given, None if stderr is None else self.share(stderr))
        self.processes[process.pid] = process
        return process

    def give_pipes(self, process: Process, end: End) -> None:
        """Give the parent of a process its ends of stdin and stdout."""
        read, write = self.open_end(end, lambda: self.note(process, "input ends"))
        process.stdin, process.stdout = File(self, write), File(self, read)

    def note(self, process: Process, what: str, by: str = "") -> None:
        """Note what becomes of a process."""
        self._record.add(process.name, what, by or None)

    def pidfd_open(self, pid: int) -> int:
        process = self.processes.get(pid)
        if process is None or process.returncode is not None:
            raise _fail(errno.ESRCH)
        return self._add(_OfProcess(process))

    def killpg(self, pid: int, number: int, by: str = "") -> None:
        process = self.processes.get(pid)
        if process is None or not process.is_there or (self.is_lost and not by):
            raise _fail(errno.ESRCH)
        if number:
            self.note(process, f"gets {signal.Signals(number).name}", by)
            for member in list(process.members):
                if member.is_alive:
                    member.signal(number)

    def waitpid(self, pid: int, options: int) -> tuple[int, int]:
        """Nobody who has lost its parent is ours."""
        raise _fail(errno.ECHILD)

    # The end

    def lose(self) -> None:
        """The process whose descriptors these are is killed: all of them are closed."""
        for fd, kind in list(self._watches):
            self.remove_watch(fd, kind)
        files, self._files = list(self._files.values()), {}
        self.is_lost = True
        for process in self.processes.values():
            process.returncode = process.status  # whoever takes over asks
        for opened in files:
            self.release(opened)

    def left(self) -> list[str]:
        """Name what is left: descriptors, processes, and those of which nobody knows that they have ended."""
        files = [f"a descriptor of {type(one).__name__}" for one in self._files.values()]
        return files + [f"a process: {one.name}" for one in self.processes.values() if one.is_there and one.name]
