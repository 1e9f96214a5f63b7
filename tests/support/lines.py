"""Lines that a process says, each waited for no longer than it should take. Used by the tests that start processes."""

from __future__ import annotations

import os
import select
import subprocess
import time
from typing import IO, Any, Final

PATIENCE_S: Final = 60.0
"""How long to wait for what a process says at once, on a busy machine."""

_CHUNK_BYTES: Final = 65_536


def read_address(stream: IO[str] | None) -> str:
    """Give the URL at which a process says on its stderr that it listens, whatever else it says before; '' if never."""
    assert stream is not None
    return next((line.split()[-1] for line in stream if line.startswith("listening on ")), "")


class Lines:
    """Reads a pipe from a process, line by line; nothing else may read from it before `rest` does.

    Args:
        stream: The pipe, as `subprocess` gives it.
        patience_s: How long to wait for each line.
    """

    def __init__(self, stream: IO[Any] | None, patience_s: float = PATIENCE_S) -> None:
        assert stream is not None
        self._stream = stream
        self._descriptor = stream.fileno()
        self._patience_s = patience_s
        self._kept = b""

    def read(self) -> bytes:
        """Wait for the next line; what is left without an end of line if the pipe is closed, in the end nothing.

        Raises:
            TimeoutError: It has not come in time.
        """
        until = time.monotonic() + self._patience_s
        parts = [self._kept]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no line within {self._patience_s} s, only {b''.join(parts)[-200:]!r}")
            part = os.read(self._descriptor, _CHUNK_BYTES)
            if not part:
                break
            parts.append(part)
        line, ending, self._kept = b"".join(parts).partition(b"\n")
        return line + ending

    def rest(self, process: subprocess.Popen[bytes], patience_s: float = PATIENCE_S) -> tuple[bytes, bytes]:
        """Close a process's input and wait for its end, as `communicate` does.

        Returns:
            What it has said on stdout and on stderr, without the lines that were read.
        """
        out, err = process.communicate(timeout=patience_s)
        kept, self._kept = self._kept, b""
        if self._stream is process.stderr:
            return out or b"", kept + err
        return kept + out, err or b""
