"""The stdio transport, from both sides: our own stdin and stdout towards a client, a child process towards a server.

Lives here: descriptors, the child, and the order in which it is asked to go. Must not: look at the bytes. Called by
`dragoman.proxy` through the protocol of `transports.base`; the child comes from `transports.spawn`.

Source: 2025-11-25/basic/lifecycle, Shutdown, stdio: close the child's input, wait, SIGTERM, wait, SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.transports.base import Receiver
from dragoman.transports.pipes import PipeReader, PipeWriter, enlarge_pipe


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a child gets at each step of its going, in seconds.

    Attributes:
        after_eof_s: After its input was closed, before SIGTERM.
        after_term_s: After SIGTERM, before SIGKILL.
        after_exit_s: After it exited, for a grandchild that still holds its output open.
    """

    after_eof_s: float = 3.0
    after_term_s: float = 2.0
    after_exit_s: float = 1.0

    def hurried(self) -> Patience:
        """The same for somebody who was told to stop: our own parent may be counting to SIGKILL already."""
        return Patience(min(self.after_eof_s, 0.5), min(self.after_term_s, 1.0), min(self.after_exit_s, 0.5))


class ChildTransport:
    """A server in a child process.

    Args:
        process: From `spawn`.
        patience: How long it gets to go.
    """

    def __init__(self, process: subprocess.Popen[bytes], patience: Patience | None = None) -> None:
        self.process = process
        self.patience = patience or Patience()
        self._receiver: Receiver | None = None
        self._reader: PipeReader | None = None
        self._writer: PipeWriter | None = None
        self._exited = asyncio.Event()
        self._news = asyncio.Event()  # it exited, or our patience changed
        self._output_ended = asyncio.Event()
        self._told = False

    def start(self, receiver: Receiver) -> None:
        """Begin to read what the child writes, and to watch over it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._receiver = receiver
        read_fd, write_fd = os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno())
        self.process.stdout.close()
        self.process.stdin.close()
        enlarge_pipe(read_fd)
        enlarge_pipe(write_fd)
        self._reader = PipeReader(read_fd, receiver.data_received, self._end_output)
        self._writer = PipeWriter(write_fd, receiver.broken, receiver.pause_writing, receiver.resume_writing)
        self._reader.resume()
        loop = asyncio.get_running_loop()
        # In our context: what is logged about the exit concerns the same session.
        waiting = contextvars.copy_context().run
        threading.Thread(target=waiting, args=(self._wait, loop), name="dragoman-wait", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Write to the child's input."""
        if self._writer is not None:
            self._writer.write(data)

    def pause_reading(self) -> None:
        """Leave the child's output in its pipe."""
        if self._reader is not None:
            self._reader.pause()

    def resume_reading(self) -> None:
        """Go on reading the child's output."""
        if self._reader is not None:
            self._reader.resume()

    def hurry(self) -> None:
        """Give the child less time to go."""
        self.patience = self.patience.hurried()
        self._news.set()

    async def close(self) -> None:
        """Close the child's input, then ask it to go, then make it go; what it still writes is still delivered."""
        if self._writer is None or self._reader is None:
            return  # never started: whoever spawned the child still owns it
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._writer.close(), self.patience.after_eof_s)
        self._writer.abort()
        for sent, patience_s in (
            (None, lambda: self.patience.after_eof_s),
            (signal.SIGTERM, lambda: self.patience.after_term_s),
            (signal.SIGKILL, lambda: self.patience.after_term_s),
        ):
            if sent is not None:
                self._signal(sent)
            if await self._exits_within(patience_s):
                break
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output_ended.wait(), self.patience.after_exit_s)
        self._reader.close()

    async def _exits_within(self, patience_s: Callable[[], float]) -> bool:
        """Wait for the child to exit, no longer than our patience, which `hurry` may shorten meanwhile."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self._exited.is_set():
            left_s = began + patience_s() - loop.time()
            if left_s <= 0:
                return False
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left_s)
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self.process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is gone: so are we
            loop.call_soon_threadsafe(self._note_exit)

    def _note_exit(self) -> None:
        self._exited.set()
        self._news.set()
        if self._output_ended.is_set():
            self._tell()
        else:
            asyncio.get_running_loop().call_later(self.patience.after_exit_s, self._tell)

    def _end_output(self) -> None:
        self._output_ended.set()
        if self._exited.is_set():
            self._tell()
        else:
            asyncio.get_running_loop().call_later(self.patience.after_exit_s, self._tell)

    def _tell(self) -> None:
        if self._receiver is not None and not self._told:
            self._told = True
            self._receiver.ended(describe_exit(self.process))


def describe_exit(process: subprocess.Popen[bytes]) -> str:
    """Say how a child ended, for a person."""
    status = process.returncode
    if status is None:
        return "the server closed its output"
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
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._fds = read_fd, write_fd
        self._receiver: Receiver | None = None
        self._reader: PipeReader | None = None
        self._writer: PipeWriter | None = None

    def start(self, receiver: Receiver) -> None:
        """Begin to read what the client writes."""
        read_fd, write_fd = self._fds
        enlarge_pipe(read_fd)
        enlarge_pipe(write_fd)
        self._reader = PipeReader(read_fd, receiver.data_received, lambda: receiver.ended("end of input"))
        self._writer = PipeWriter(write_fd, receiver.broken, receiver.pause_writing, receiver.resume_writing)
        self._reader.resume()

    def write(self, data: bytes) -> None:
        """Write to the client."""
        if self._writer is not None:
            self._writer.write(data)

    def pause_reading(self) -> None:
        """Leave the client's bytes in their pipe."""
        if self._reader is not None:
            self._reader.pause()

    def resume_reading(self) -> None:
        """Go on reading from the client."""
        if self._reader is not None:
            self._reader.resume()

    def hurry(self) -> None:
        """Nothing to do: what the client is owed is written in any case, for as long as that may take."""

    async def close(self) -> None:
        """Stop reading, write out what the client is owed, and close."""
        if self._reader is not None:
            self._reader.close()
        if self._writer is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._writer.close(), _LAST_WORDS_S)
            self._writer.abort()


_LAST_WORDS_S = 2.0
"""How long a client that does not read may hold us up at the end."""


def take_standard_streams() -> StandardStreams:
    """Take stdin and stdout for the protocol alone.

    "The server MUST NOT write anything to its stdout that is not a valid MCP message" (basic/transports, stdio): what
    else prints to stdout from here on ends up on stderr.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    return StandardStreams(read_fd, write_fd)
