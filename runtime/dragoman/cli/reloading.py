"""Files that are read again while a service runs: when they have changed, and all of them at SIGHUP.

Lives here: noticing a change. What is done with a file is up to whoever adds it; if that fails, what was read before
stays, and the log says why.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import stat
from collections.abc import Callable
from typing import Final

logger = logging.getLogger("dragoman.proxy")

_LOOK_S: Final = 1.0
"""How often the files are looked at. One that has changed is read at the next look, if it has stayed so: whoever writes
it may not be done."""

Fingerprint = tuple[tuple[int, int, int] | None, ...]


class Reloading:
    """What is read again."""

    def __init__(self) -> None:
        self._files: list[_Files] = []
        self._at_signal: list[Callable[[], object]] = []
        self._watching: asyncio.Task[None] | None = None

    def add(self, read: Callable[[], str], *paths: str | None) -> None:
        """Read these files, which belong together, when one of them has changed.

        Args:
            read: Reads them, and says what has changed by that, for the log. If it raises an `OSError`, a `ValueError`
                or an `ArgumentTypeError`, nothing has.
            paths: The files.
        """
        self._files.append(_Files(read, tuple(path for path in paths if path is not None)))

    def add_at_signal(self, read: Callable[[], object]) -> None:
        """Call this at SIGHUP: it notices changes itself, or says itself what is wrong."""
        self._at_signal.append(read)

    def begin(self) -> None:
        """Look at the files from now on."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    def read_all(self) -> None:
        """Read everything now."""
        logger.info("SIGHUP: files are read again")
        for files in self._files:
            files.read()
        for read in self._at_signal:
            read()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            for files in self._files:
                files.look()


class _Files:
    def __init__(self, read: Callable[[], str], paths: tuple[str, ...]) -> None:
        self._read = read
        self._paths = paths
        self._seen = self._last = self._take_fingerprint()

    def look(self) -> None:
        """Read them if they have changed, and not since the last look."""
        now = self._take_fingerprint()
        has_settled, self._last = now == self._last, now
        if has_settled and now != self._seen:
            self.read()

    def read(self) -> None:
        """Read them; whatever is wrong with them ends nothing."""
        self._seen = self._take_fingerprint()
        try:
            logger.info("%s: read again: %s", self._paths[0], self._read())
        except (OSError, ValueError, argparse.ArgumentTypeError) as error:
            reason = str(error).removeprefix(f"{self._paths[0]}: ")
            logger.error("%s cannot be used as it is now, and what was read before stays: %s", self._paths[0], reason)

    def _take_fingerprint(self) -> Fingerprint:
        return tuple(map(_look_at, self._paths))


def _look_at(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None
