"""Reading from and writing to descriptors with a thread each, where an event loop cannot wait for them.

Lives here: what `transports.pipes` does, for Windows, whose event loops wait for sockets alone (those that know pipes
too have reads that never return). `DRAGOMAN_STDIO=threads` chooses it elsewhere. Must not: look at the bytes.

Theory of operation. A thread that reads or writes cannot be told to stop, and a descriptor must not be closed under it.
So the thread closes the descriptor, when its last call returns: that of a child when the child is gone, our own stdin
at the latest when the process ends, for which threads of this kind do not count. A reader takes a few pieces ahead of
what is wanted, so that it sees an end that comes after them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from dragoman import system
from dragoman.transports import pipes

_PIECE_BYTES: Final = 64 * 1024
_AHEAD: Final = 4
"""How many pieces a reader takes that nobody has asked for yet."""


class ThreadReader:
    """As `pipes.PipeReader`."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._pieces: deque[bytes] = deque()  # an empty one is the end
        self._room = threading.Semaphore(_AHEAD)
        self._thread: threading.Thread | None = None
        self._reading = self._hung_up = self._closed = self._is_due = False
        self._look: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def is_paused(self) -> bool:
        """Whether something may wait that is not read for now."""
        return not self._closed and not self._reading

    def resume(self) -> None:
        """Begin, or go on."""
        if self._reading or self._closed:
            return
        self._reading = True
        self._stop_looking()
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, name="dragoman-reader", daemon=True)
            self._thread.start()
        self._loop.call_soon(self._deliver)

    def pause(self) -> None:
        """Hand on nothing more for now."""
        if self._reading and not self._hung_up:
            self._reading = False
            self._look = self._loop.call_later(pipes.LOOK_S, self._look_for_end)

    def close(self) -> None:
        """Stop for good; the descriptor is closed when the read that is under way returns."""
        self._stop_looking()
        self._reading = False
        if not self._closed:
            self._closed = True
            self._room.release()
            if self._thread is None:
                os.close(self._fd)

    def _look_for_end(self) -> None:
        # While the thread reads it is not asked: it would see the end itself, and Windows answers only after the read.
        is_full = len(self._pieces) == _AHEAD
        self._hung_up = b"" in self._pieces or (is_full and system.is_hung_up(self._fd))
        if self._hung_up:
            self.resume()
        else:
            self._look = self._loop.call_later(pipes.LOOK_S, self._look_for_end)

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _take(self, data: bytes) -> None:
        self._pieces.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._pieces and self._reading and not self._is_due:
            data, left = pipes.cut_short_lines(self._pieces.popleft())
            if left:
                self._is_due = True
                self._pieces.appendleft(left)
                self._loop.call_soon(self._go_on)
            else:
                self._room.release()
            if data:
                self._on_data(data)
            else:
                self.close()
                self._on_end()

    def _go_on(self) -> None:
        self._is_due = False
        self._deliver()

    def _read(self) -> None:
        data = b"begin"
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while data:
                self._room.acquire()
                if self._closed:
                    break
                try:
                    data = os.read(self._fd, _PIECE_BYTES)
                except BlockingIOError:  # somebody with whom we share it has made it so
                    system.wait_for(self._fd, reads=True)
                    self._room.release()
                    continue
                except OSError:
                    data = b""
                self._loop.call_soon_threadsafe(self._take, data)
        os.close(self._fd)


class ThreadWriter:
    """As `pipes.PipeWriter`; what is written while the thread is busy goes out together in any case."""

    def __init__(
        self, fd: int, on_broken: Callable[[str], None], on_full: Callable[[], None], on_room: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._on_full = on_full
        self._on_room = on_room
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0  # with what the thread has in hand
        self._full = self._closing = self._aborted = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()
        self._done = self._loop.create_future()
        self.joins = False

    def was_read(self) -> bool:
        """Whether nothing is left in the pipe; always False where the system does not tell this to who writes."""
        return not self._aborted and not self._kept_bytes and pipes.is_empty(self._fd)

    def write(self, data: bytes) -> None:
        """Let data be written."""
        if self._closing or self._aborted or not data:
            return
        self._kept_bytes += len(data)
        with self._changed:
            self._kept.append(data)
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="dragoman-writer", daemon=True)
            self._thread.start()
        if not self._full and self._kept_bytes > pipes.HIGH_WATER_BYTES:
            self._full = True
            self._on_full()

    async def close(self) -> None:
        """Write what is kept, then close; ends at once when nobody reads."""
        self._closing = True
        if not self._kept_bytes:
            self.abort()
        await self._done

    def abort(self) -> None:
        """Write no more; the descriptor is closed when the write that is under way returns."""
        if not self._aborted:
            with self._changed:
                self._aborted = True
                self._kept.clear()
                self._changed.notify()
            if self._thread is None:
                os.close(self._fd)
        if not self._done.done():
            self._done.set_result(None)

    def _note_written(self, count: int) -> None:
        self._kept_bytes -= count
        if self._closing and not self._kept_bytes:
            self.abort()
        if self._full and self._kept_bytes <= pipes.LOW_WATER_BYTES and not self._aborted:
            self._full = False
            self._on_room()

    def _note_broken(self, reason: str) -> None:
        if not self._aborted:
            self.abort()
            self._on_broken(reason)

    def _write(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            try:
                while (left := memoryview(self._next())) and not self._aborted:
                    while left and not self._aborted:
                        count = self._write_piece(left[:_PIECE_BYTES])
                        left = left[count:]
                        self._loop.call_soon_threadsafe(self._note_written, count)
            except OSError as error:
                is_gone = error.errno in (errno.EPIPE, errno.EINVAL)  # the latter is Windows'
                reason = "broken pipe" if is_gone else str(error.strerror)
                self._loop.call_soon_threadsafe(self._note_broken, reason)
                with self._changed:
                    self._changed.wait_for(lambda: self._aborted)
        os.close(self._fd)

    def _next(self) -> bytes:
        """Wait for something to write, and take it all; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._kept or self._aborted)
            data = b"".join(self._kept)
            self._kept.clear()
        return data

    def _write_piece(self, piece: memoryview) -> int:
        try:
            return os.write(self._fd, piece)
        except BlockingIOError:
            system.wait_for(self._fd, reads=False)
            return 0
