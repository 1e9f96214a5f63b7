"""A stderr that never blocks any writer in this process.

Lives here: what takes the place of descriptor 2 while `dragoman proxy` runs, and the writer that Python code gets. Must
not: log (`cli.logs`). Called by `dragoman.cli`, before anything else is set up.

Theory of operation. A client may never read the stderr of the server that it started; a terminal may be stopped. Our
log is not alone there: traces of asyncio and uvloop, Python's warnings, its last words at a crash and C libraries
write to descriptor 2 themselves, and one blocking `write` stops the process for good. So the descriptor itself must
not block. The flag O_NONBLOCK belongs to what was opened, which we share with others: our children above all. Hence
two ways, the first that works:

1. A pipe or a terminal is opened once more, through /proc, without blocking. What we open is ours alone.
2. Anything else (a socket, as Node.js gives its children; a system without /proc) is replaced by a pipe that does not
   block, and a thread carries what comes out of it to the real stderr. That thread alone may wait.

A file and /dev/null do not block; they stay as they are.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import io
import os
import stat
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dragoman import system
from dragoman.cli.screen import shown

if TYPE_CHECKING:
    import threading

    from _typeshed import ReadableBuffer

_STDERR: Final = 2
_LAST_WORDS_S: Final = 0.5
"""How long a stderr that nobody reads may hold up the end of the process."""

_NO_ROOM: Final = (errno.EAGAIN, errno.ENOSPC)
"""The latter is what Windows says of a pipe."""

_NOTICED_S: Final = 0.05
"""How long a thread may take to notice what was written, where nobody else can look: on Windows."""

_LOOKS: Final = 50
"""How often it is looked in any case: on a busy machine the time may be over before anybody could write."""

_PIECE_BYTES: Final = 64 * 1024

_KEPT_BYTES: Final = 8192
_KEPT_LINES: Final = 20
"""How much of it is kept for somebody who wants to know why something failed."""

_SAID_MEANWHILE: Final = 10
_TRACEBACK: Final = b"Traceback (most recent call last)"
"""How many lines are shown while a server is waited for, and what they end at."""

_MOST_SAID: Final = 1000
"""How many lines of one process are remembered while the next one starts."""


class PatientWriter(io.RawIOBase):
    """Writes what a descriptor takes at once; the rest is dropped, and its lines are counted and told later.

    Args:
        fd: A descriptor that does not block.
    """

    def __init__(self, fd: int = _STDERR) -> None:
        super().__init__()
        self._fd = fd
        self._left_out = 0
        self._torn = False  # whether the last line went out without its end

    def writable(self) -> bool:
        """Whether it can be written to, which `TextIOWrapper` asks."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def isatty(self) -> bool:
        """Whether a person sits there."""
        return os.isatty(self._fd)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of it, or as much as there is room for. Never blocks, never fails."""
        text = bytes(data)
        notice = b"\n" * self._torn
        if self._left_out:
            notice += b"(%d lines left out) " % self._left_out
        try:
            written = os.write(self._fd, notice + text) - len(notice)
        except OSError as error:
            if error.errno in _NO_ROOM:
                self._left_out += max(1, text.count(b"\n"))  # else nobody is there: nobody minds
        else:
            self._left_out = text.count(b"\n", max(0, written))
            self._torn = written < len(text)
        return len(text)


def free_stderr() -> int:
    """See to it that nothing in this process ever waits for whoever reads its stderr, to the end of the process.

    Returns:
        The real stderr, for children: they may wait for it as they like.
    """
    real = os.dup(_STDERR)
    waits = _may_block(real)
    if waits:
        try:
            _open_again(real)
        except OSError:
            _carry_by_thread(real)
    if waits or sys.stderr is None:
        encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
        sys.stderr = io.TextIOWrapper(PatientWriter(), encoding, "backslashreplace", line_buffering=True)
    return real


def _may_block(fd: int) -> bool:
    status = os.fstat(fd)
    if sys.platform != "win32" and stat.S_ISCHR(status.st_mode):
        with contextlib.suppress(OSError):
            return status.st_rdev != os.stat(os.devnull).st_rdev
    return not stat.S_ISREG(status.st_mode)


def _open_again(real: int) -> None:
    """Put what does not block in the place of descriptor 2.

    Raises:
        OSError: It cannot be opened: it is a socket, another user's, or there is no /proc.
    """
    if sys.platform == "win32":
        raise FileNotFoundError  # where anybody could have put a file of that name
    again = os.open(f"/proc/self/fd/{real}", os.O_WRONLY | system.AT_ONCE)
    os.dup2(again, _STDERR)
    os.close(again)


class ServerWords:
    """What of a server's stderr a person gets: on a terminal, nothing that would steer it.

    Args:
        is_opening: Whether what one process has said is left out where the next one says it, as when a server ends
            because of the first request and is started again for the second.
        is_kept: Whether the last of it is kept until somebody wants to see it, rather than shown as it comes.

    Attributes:
        is_opening: The same; it is over when the session is open.
    """

    def __init__(self, is_opening: bool = True, is_kept: bool = False) -> None:
        self.is_opening = is_opening
        self._said: set[bytes] = set()
        self._kept = b"" if is_kept else None
        self._more = 0  # how many lines of what is kept are shown as they come
        self._settle: Callable[[], None] | None = None

    def filter(self, line: bytes) -> bytes:
        """Return what is shown of a line."""
        if self.is_opening and line in self._said:
            return b""
        if self.is_opening and len(self._said) < _MOST_SAID:
            self._said.add(line)
        text = shown(line.decode(errors="replace")).encode()
        if self._kept is None:
            return text
        self._more = 0 if _TRACEBACK in line else self._more
        if self._more:
            self._more -= 1
            return text
        self._kept = (self._kept + text)[-_KEPT_BYTES:]
        return b""

    def carry(self, real: int = _STDERR) -> int:
        """Return what to give a server as its stderr, so that its words come here on their way to ours.

        Args:
            real: Where they go.
        """
        read_fd, write_fd = os.pipe()
        self._settle = _start_carrying(read_fd, os.dup(real), self.filter)
        return write_fd

    def show_and_go_on(self, _: object) -> bool:
        """Show it, as a filter of the log does that is said that a server is waited for: it may say for what.

        So may a few lines more. But an old server says a page about our first question, which harms nobody.
        """
        is_kept = self._kept is not None
        self.show()
        if is_kept:
            self._kept, self._more = b"", _SAID_MEANWHILE
        return True

    def show(self) -> None:
        """Show what is kept, if anything is; from now on it is shown as it comes."""
        if self._kept is None or self._settle is None:
            return
        self._settle()
        kept, self._kept = self._kept, None
        lines = [*dict.fromkeys((kept or b"").decode(errors="replace").splitlines())][-_KEPT_LINES:]
        if lines and sys.stderr is not None:
            said = "The last that the server wrote on stderr:"
            print(said, *lines, sep="\n  ", file=sys.stderr, flush=True)


def _carry_by_thread(real: int) -> None:
    read_fd, write_fd = os.pipe()
    system.never_block(write_fd)
    os.dup2(write_fd, _STDERR)
    os.close(write_fd)
    _start_carrying(read_fd, real, bytes)


def _start_carrying(read_fd: int, real: int, change: Callable[[bytes], bytes]) -> Callable[[], None]:
    """Carry beside everything else; return what waits, not for long, until all that was written has been carried."""
    import threading

    busy = threading.Event()
    threading.Thread(target=_carry, args=(read_fd, real, busy, change), name="dragoman-stderr", daemon=True).start()
    settle = functools.partial(_await_last_words, read_fd, busy)
    atexit.register(settle)
    return settle


def _carry(read_fd: int, real: int, busy: threading.Event, change: Callable[[bytes], bytes]) -> None:
    """Carry what was written to the real stderr, line by line, for as long as the process lives."""
    while True:
        if system.wait_for(read_fd, reads=True):
            busy.set()  # before the pipe is empty: who finds it so must not believe that all is written
        data = os.read(read_fd, _PIECE_BYTES)
        busy.set()
        for line in data.splitlines(keepends=True):
            _write(real, change(line))
        busy.clear()


def _write(fd: int, data: bytes) -> None:
    """Write all of it, however long that takes."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # somebody with whom we share it has made it so
            system.wait_for(fd, reads=False)
        except OSError:  # nobody is there; but what is written must still be taken from the pipe
            return


def _await_last_words(read_fd: int, busy: threading.Event) -> None:
    """Wait until everything was carried, but not for long."""
    deadline = time.monotonic() + _LAST_WORDS_S
    looks = 0
    if sys.platform == "win32":
        time.sleep(_NOTICED_S)
    while (system.has_more(read_fd) or busy.is_set()) and (looks < _LOOKS or time.monotonic() < deadline):
        looks += 1
        time.sleep(0.001)
