"""The stdio transport, from both sides: our own stdin and stdout towards a client, a child process towards a server.

Lives here: descriptors, the child, and the steps in which it is asked to end. Must not: know what frames say. Called
by `dragoman.proxy` through the protocol of `transports.base`; the child comes from `transports.spawn`, frames from
`transports.lines`.

Source: 2025-11-25/basic/lifecycle, Shutdown, stdio: close the child's input, wait, SIGTERM, wait, SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dragoman import system
from dragoman.core.envelope import Frame
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.transports.base import Receiver
from dragoman.transports.lines import FramedReceiver, join_lines
from dragoman.transports.pipes import PipeReader, PipeWriter, enlarge_pipe, open_reader, open_writer
from dragoman.transports.spawn import Process
from dragoman.transports.warden import Warden
from dragoman_spec.record import record

if TYPE_CHECKING:
    from dragoman.transports.threads import ThreadReader, ThreadWriter

_LOOK_S = 0.02
"""How often it is looked whether what a child left behind is gone."""

_LOOK_OFTEN_ENOUGH_S = 0.1
"""How often it is looked whether a child has ended, where the system cannot tell us."""


@record
class ChildPatience:
    """How long a child gets at each step of its going, in seconds.

    Attributes:
        after_eof_s: After its input was closed, before SIGTERM.
        after_term_s: After SIGTERM, before SIGKILL.
        after_exit_s: After it exited, for what it started and left behind: to go, and to let go of its output.
    """

    after_eof_s: float = 3.0
    after_term_s: float = 2.0
    after_exit_s: float = 1.0

    def hurried(self) -> ChildPatience:
        """The same for somebody who was told to stop: our own parent may be counting to SIGKILL already."""
        return ChildPatience(min(self.after_eof_s, 0.4), min(self.after_term_s, 0.8), min(self.after_exit_s, 0.2))


class _Pipes:
    """The two descriptors of a transport; until they are open, nothing comes of what is asked for."""

    def __init__(self) -> None:
        self.reader: PipeReader | ThreadReader | None = None
        self.writer: PipeWriter | ThreadWriter | None = None

    def open(self, read_fd: int, write_fd: int, framed: FramedReceiver, on_end: Callable[[], None]) -> None:
        """Begin to read and write."""
        enlarge_pipe(read_fd)
        enlarge_pipe(write_fd)
        writer = self.writer = open_writer(write_fd, framed.broken, framed.pause_writing, framed.resume_writing)

        def take(data: bytes) -> None:
            writer.joins = False
            framed.data_received(data)

        self.reader = open_reader(read_fd, take, on_end)
        self.reader.resume()

    def send(self, frames: Sequence[Frame]) -> None:
        """Write frames."""
        if self.writer is not None:
            self.writer.write(frames[0].raw if len(frames) == 1 else join_lines(frames))

    def pause_reading(self) -> None:
        """Leave what comes in its pipe."""
        if self.reader is not None:
            self.reader.pause()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self.reader is not None:
            self.reader.resume()


class ChildTransport:
    """A server in a child process.

    Args:
        process: From `spawn`.
        patience: How long it gets to go.
        warden: Who was told of the process, if anybody was, and is told that it is gone.
        limit_bytes: The longest line accepted.
        checks_texts: As for `LineFramer`: where what it says leaves over HTTP, or out of a router.
    """

    def __init__(
        self,
        process: Process,
        patience: ChildPatience | None = None,
        warden: Warden | None = None,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        checks_texts: bool = False,
    ) -> None:
        self.process = process
        self.patience = patience or ChildPatience()
        self._warden = warden
        self._limit_bytes, self._checks_texts = limit_bytes, checks_texts
        self._framed: FramedReceiver | None = None
        self._pipes = pipes = _Pipes()
        self.send, self.pause_reading, self.resume_reading = pipes.send, pipes.pause_reading, pipes.resume_reading
        self._exited = asyncio.Event()
        self._news = asyncio.Event()  # it exited, or our patience changed
        self._output_ended = asyncio.Event()
        self._pid_fd = -1

    def start(self, receiver: Receiver) -> None:
        """Begin to read what the child writes, and to watch over it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._framed = FramedReceiver(receiver, self._limit_bytes, self._checks_texts)
        read_fd, write_fd = os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno())
        self.process.stdout.close()
        self.process.stdin.close()
        self._pipes.open(read_fd, write_fd, self._framed, self._end_output)
        self._watch()

    def was_read(self) -> bool:
        """Whether the child has read all that it was sent; where the system cannot tell, it is said to have not."""
        return self._pipes.writer is not None and self._pipes.writer.was_read()

    def hurry(self) -> None:
        """Give the child less time to go."""
        self.patience = self.patience.hurried()
        self._news.set()

    async def close(self) -> None:
        """Close the child's input, then ask it to go, then make it go, and with it what it started.

        What it still writes is still delivered.
        """
        reader, writer = self._pipes.reader, self._pipes.writer
        if writer is None or reader is None:
            return  # never started: whoever spawned the child still owns it
        self._pipes.writer = None
        flushed = asyncio.ensure_future(writer.close())
        flushed.add_done_callback(lambda _: self._news.set())
        await self._within(flushed.done, lambda: self.patience.after_eof_s)
        writer.abort()
        await self._end_child()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output_ended.wait(), self.patience.after_exit_s)
        reader.close()
        self._pipes.reader = None
        self._unwatch()
        if self._warden is not None:
            self._warden.forget(self.process.pid)
        self._tell()

    async def _end_child(self) -> None:
        steps: tuple[tuple[bool | None, Callable[[], float]], ...] = (
            (None, lambda: self.patience.after_eof_s),
            (False, lambda: self.patience.after_term_s),
            (True, lambda: self.patience.after_term_s),
        )
        left = [False, True]  # whether it is SIGKILL
        for sent, patience_s in steps:
            if sent is not None:
                system.tell_family(self.process, sent)
                left.remove(sent)
            if await self._within(self._exited.is_set, patience_s):
                break
        # Wrappers (`npx`, `uvx`, shells) may be gone before what they started; all of it has heard what they have.
        while not await self._within(self._is_alone, lambda: self.patience.after_exit_s) and left:
            system.tell_family(self.process, left.pop(0))

    async def _within(self, is_done: Callable[[], bool], patience_s: Callable[[], float]) -> bool:
        """Wait until something is so, no longer than our patience, which `hurry` may shorten meanwhile."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not is_done():
            left_s = began + patience_s() - loop.time()
            if left_s <= 0:
                return False
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                # Nobody tells us when a process that is not our child has gone.
                await asyncio.wait_for(self._news.wait(), min(left_s, _LOOK_S) if self._exited.is_set() else left_s)
        return True

    def _is_alone(self) -> bool:
        """Whether nothing is left of what the child started."""
        return not system.has_family(self.process)

    def _watch(self) -> None:
        """Have the loop wait for the child's end: no thread, and no handler of SIGCHLD, which would be everybody's."""
        if sys.platform == "linux" and not system.needs_threads():
            with contextlib.suppress(AttributeError, OSError):  # an old kernel, or no descriptor is left
                self._pid_fd = os.pidfd_open(self.process.pid)
                asyncio.get_running_loop().add_reader(self._pid_fd, self._note_exit)
                return
        self._look()

    def _look(self) -> None:
        if self.process.poll() is None:
            asyncio.get_running_loop().call_later(_LOOK_OFTEN_ENOUGH_S, self._look)
        else:
            self._note_exit()

    def _unwatch(self) -> None:
        if self._pid_fd >= 0:
            asyncio.get_running_loop().remove_reader(self._pid_fd)
            os.close(self._pid_fd)
            self._pid_fd = -1

    def _note_exit(self) -> None:
        self._unwatch()
        self.process.poll()
        self._exited.set()
        self._news.set()
        if self._output_ended.is_set():
            self._tell()
        else:
            asyncio.get_running_loop().call_later(self.patience.after_exit_s, self._tell_unless_held_back)

    def _end_output(self) -> None:
        self._output_ended.set()
        if self._exited.is_set():
            self._tell()
        else:
            asyncio.get_running_loop().call_later(self.patience.after_exit_s, self._tell_unless_held_back)

    def _tell_unless_held_back(self) -> None:
        """Tell of the end, though something may hold the output open; not before last words that we leave in it."""
        if self._pipes.reader is not None and self._pipes.reader.is_paused:
            asyncio.get_running_loop().call_later(self.patience.after_exit_s, self._tell_unless_held_back)
        else:
            self._tell()

    def _tell(self) -> None:
        if self._framed is not None:
            self._framed.ended(describe_exit(self.process))


def describe_exit(process: Process) -> str:
    """Say how a child ended, for a person."""
    status = process.returncode
    if status is None:
        return "the server closed its output"
    if sys.platform == "win32" and status > 0xFFFF:  # of Windows, which writes them so
        return f"the server exited with status {status:#x}"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"the server was killed by {signal.Signals(-status).name}"
        return f"the server was killed by signal {-status}"
    return f"the server exited with status {status}"


class StandardStreams:
    """Our own stdin and stdout, towards a client.

    Args:
        read_fd: Where the client writes.
        write_fd: Where the client reads.
        limit_bytes: The longest line accepted.
    """

    def __init__(self, read_fd: int, write_fd: int, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._fds = read_fd, write_fd
        self._limit_bytes = limit_bytes
        self._pipes = pipes = _Pipes()
        self.send, self.pause_reading, self.resume_reading = pipes.send, pipes.pause_reading, pipes.resume_reading

    def start(self, receiver: Receiver) -> None:
        """Begin to read what the client writes."""
        framed = FramedReceiver(receiver, self._limit_bytes)
        self._pipes.open(*self._fds, framed, lambda: framed.ended("end of input"))

    def hurry(self) -> None:
        """Nothing to do: what the client is owed is written in any case, for as long as that may take."""

    async def close(self) -> None:
        """Stop reading, write out what the client is owed, and close."""
        if self._pipes.reader is not None:
            self._pipes.reader.close()
        if self._pipes.writer is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._pipes.writer.close(), _LAST_WORDS_S)
            self._pipes.writer.abort()


_LAST_WORDS_S = 2.0
"""How long a client that does not read may hold us up at the end."""


def take_standard_streams(limit_bytes: int = DEFAULT_LIMIT_BYTES) -> StandardStreams:
    """Take stdin and stdout for the protocol alone.

    "The server MUST NOT write anything to its stdout that is not a valid MCP message" (basic/transports, stdio): what
    else prints to stdout from here on ends up on stderr.

    Args:
        limit_bytes: The longest line accepted.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    if sys.platform == "win32":
        from dragoman import windows

        windows.leave_standard(read_fd, write_fd)
    return StandardStreams(read_fd, write_fd, limit_bytes)
