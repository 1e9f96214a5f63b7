"""Reading from and writing to file descriptors without blocking the event loop.

Lives here: the parts of `transports.stdio`: no streams, no task for each frame, and a list of what has still to be
written. Works on pipes, sockets and terminals, and on what epoll refuses
(regular files, /dev/null), which never blocks for long. Must not: own the process at the other end, or look at the
bytes.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman import system

if sys.platform != "win32":
    import fcntl
    import termios

if TYPE_CHECKING:
    from dragoman.transports.threads import ThreadReader, ThreadWriter

READ_BYTES = 1024 * 1024
"""How much is read at once, at most: as much as the largest pipe holds."""

FEW_BYTES = 64 * 1024
"""How much is read at once where the last read brought less. Python makes room for all that may come: for a megabyte
the system is asked for it each time, and idle readers that share such a buffer hold it for good."""

LINES_AT_ONCE = 256
"""How many lines are handed on at once, about: each takes time, however short it is, and others wait. What is read at
once may hold half a million."""

PIPE_BYTES = 1024 * 1024
"""How large pipes are made, where the system lets us (PERFORMANCE: large messages three times as fast)."""

HIGH_WATER_BYTES = 1024 * 1024
LOW_WATER_BYTES = 256 * 1024

LOOK_S = 1.0
"""How often a reader that pauses looks whether there is anybody left at the other end."""

_WRITE_AT_ONCE = 64
"""How many pieces go into one writev."""


def enlarge_pipe(fd: int) -> None:
    """Make a pipe hold more, where the system lets us; anything else is left as it is."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def is_empty(fd: int) -> bool:
    """Whether nothing is left in a pipe; always False where the system does not tell this to who writes."""
    left = array.array("i", [-1])
    if sys.platform == "linux" and stat.S_ISFIFO(os.fstat(fd).st_mode):
        fcntl.ioctl(fd, termios.FIONREAD, left)
    return left[0] == 0


def is_pollable(fd: int) -> bool:
    """Whether an event loop can wait for this descriptor."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


def cut_short_lines(data: bytes) -> tuple[bytes, bytes]:
    """Return what is handed on now, and what others may have a turn before: nothing, unless there are many lines."""
    lines = data.count(b"\n")
    size = len(data) * LINES_AT_ONCE // lines if lines > LINES_AT_ONCE else len(data)
    return data[:size], data[size:]


class PipeReader:
    """Reads a descriptor until its end and hands on what comes; closes it at the end.

    A reader that pauses does not see the end, which comes after all that it leaves in the pipe. So now and then it
    looks whether the other end was closed, and then reads what is left in spite of the pause: what a pipe holds.

    Args:
        fd: The descriptor; it belongs to the reader from here on.
        on_data: Called with the bytes of each read.
        on_end: Called once, when there is no more to come.
    """

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._most = FEW_BYTES
        self._left = b""  # read, but not handed on yet
        self._is_due = False
        self._pollable = is_pollable(fd)
        self._reading = False
        self._hung_up = False
        self._look: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def is_paused(self) -> bool:
        """Whether something may wait that is not read for now."""
        return self._fd >= 0 and not self._reading

    def resume(self) -> None:
        """Begin, or go on."""
        if self._reading or self._fd < 0:
            return
        self._reading = True
        self._stop_looking()
        if self._left:
            self._go_on_soon()
        if self._pollable:
            self._loop.add_reader(self._fd, self._read)
        else:
            self._loop.call_soon(self._read_file)

    def pause(self) -> None:
        """Take nothing more for now."""
        if self._reading and not self._hung_up:
            self._stop_reading()
            if self._pollable:
                self._look = self._loop.call_later(LOOK_S, self._look_for_end)

    def close(self) -> None:
        """Stop for good."""
        self._stop_looking()
        self._left = b""
        if self._reading:
            self._stop_reading()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _stop_reading(self) -> None:
        self._reading = False
        if self._pollable:
            self._loop.remove_reader(self._fd)

    def _look_for_end(self) -> None:
        self._hung_up = system.is_hung_up(self._fd)
        if self._hung_up:
            self.resume()
        else:
            self._look = self._loop.call_later(LOOK_S, self._look_for_end)

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _read(self) -> None:
        if self._left:
            return
        try:
            data = os.read(self._fd, self._most)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal whose other end is gone says EIO
            data = b""
        self._most = READ_BYTES if len(data) >= FEW_BYTES else FEW_BYTES
        if data:
            if data.find(b"\n") + 1 in (0, len(data)):  # nearly always: to count line ends takes longer
                self._on_data(data)
            else:
                self._hand_on(data)
        else:
            self.close()
            self._on_end()

    def _hand_on(self, data: bytes) -> None:
        """Hand on what was read: not all at once where it has very many lines."""
        data, self._left = cut_short_lines(data)
        if self._left:
            self._go_on_soon()
        self._on_data(data)

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        if self._left and self._reading:
            data, self._left = self._left, b""
            self._hand_on(data)

    def _read_file(self) -> None:
        if self._reading:
            self._read()
        if self._reading:
            self._loop.call_soon(self._read_file)


class PipeWriter:
    """Writes to a descriptor as fast as it takes, and keeps the rest; closes it when told to.

    Where many calls are under way, each write of its own would wake the reader for one of them. So only the first write
    after the peer has said something goes out at once, which is all that a lone call needs. What follows goes out
    together, at the end of the turn of the event loop in which it came.

    Args:
        fd: The descriptor; it belongs to the writer from here on.
        on_broken: Called once with the reason, when nobody reads any more.
        on_full: Called when more is kept than should be.
        on_room: Called when there is room again.

    Attributes:
        joins: Whether writes are joined; whoever reads what the peer says takes it back.
    """

    def __init__(
        self, fd: int, on_broken: Callable[[str], None], on_full: Callable[[], None], on_room: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._on_full = on_full
        self._on_room = on_room
        self._kept: deque[bytes | memoryview] = deque()
        self._kept_bytes = 0
        self._full = False
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._done = self._loop.create_future()
        self.joins = False
        self._pollable = is_pollable(fd)
        if self._pollable and not os.isatty(fd):  # a terminal shares its flags with stdin and stderr
            system.never_block(fd)

    def was_read(self) -> bool:
        """Whether nothing is left in the pipe; always False where the system does not tell this to who writes."""
        return not self._kept and self._fd >= 0 and is_empty(self._fd)

    def write(self, data: bytes) -> None:
        """Write, or keep for later what does not go through now."""
        if self._fd < 0 or self._closing:
            return
        if self._kept or self.joins:
            if not self._kept:
                self._loop.call_soon(self._write_kept)
            self._keep(data)
            return
        self.joins = self._pollable
        try:
            count = os.write(self._fd, data)
        except OSError as error:
            count = self._note_failed(error)
        if 0 <= count < len(data):
            self._keep(memoryview(data)[count:])
            self._loop.add_writer(self._fd, self._write_kept)

    async def close(self) -> None:
        """Write what is kept, then close; ends at once when nobody reads."""
        self._closing = True
        if not self._kept:
            self.abort()
        await self._done

    def abort(self) -> None:
        """Close now, whatever is kept."""
        if self._fd >= 0:
            if self._kept:
                self._loop.remove_writer(self._fd)
            self._kept.clear()
            os.close(self._fd)
            self._fd = -1
        if not self._done.done():
            self._done.set_result(None)

    def _keep(self, data: bytes | memoryview) -> None:
        self._kept.append(data)
        self._kept_bytes += len(data)
        if not self._full and self._kept_bytes > HIGH_WATER_BYTES:
            self._full = True
            self._on_full()

    def _note_failed(self, error: OSError) -> int:
        """Return how many bytes were written: none where nobody has read for now, and -1 where nobody ever will."""
        if isinstance(error, BlockingIOError | InterruptedError):
            return 0
        reason = "broken pipe" if error.errno == errno.EPIPE else str(error.strerror)
        self.abort()
        self._loop.call_soon(self._on_broken, reason)
        return -1

    def _write_kept(self) -> None:
        if self._fd < 0 or sys.platform == "win32":
            return  # aborted in this turn of the loop; and on Windows threads write
        pieces = [self._kept[i] for i in range(min(len(self._kept), _WRITE_AT_ONCE))]
        try:
            count = os.writev(self._fd, pieces)
        except OSError as error:
            count = self._note_failed(error)
        if count < 0:
            return
        self._kept_bytes -= count
        while self._kept and len(self._kept[0]) <= count:
            count -= len(self._kept.popleft())
        if count:
            self._kept[0] = memoryview(self._kept[0])[count:]
        if not self._kept:
            self._loop.remove_writer(self._fd)
            if self._closing:
                self.abort()
        else:
            self._loop.add_writer(self._fd, self._write_kept)
        if self._full and self._kept_bytes <= LOW_WATER_BYTES:
            self._full = False
            self._on_room()


def open_reader(fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> PipeReader | ThreadReader:
    """Return what reads a descriptor: with the event loop, or with a thread where that is no way."""
    if system.needs_threads():
        from dragoman.transports.threads import ThreadReader

        return ThreadReader(fd, on_data, on_end)
    return PipeReader(fd, on_data, on_end)


def open_writer(
    fd: int, on_broken: Callable[[str], None], on_full: Callable[[], None], on_room: Callable[[], None]
) -> PipeWriter | ThreadWriter:
    """Return what writes to a descriptor, in the same way."""
    if system.needs_threads():
        from dragoman.transports.threads import ThreadWriter

        return ThreadWriter(fd, on_broken, on_full, on_room)
    return PipeWriter(fd, on_broken, on_full, on_room)
