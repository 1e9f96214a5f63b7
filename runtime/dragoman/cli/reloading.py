"""Files that are read again while a service runs: when they have changed, and all of them at SIGHUP.

Lives here: noticing a change, and saying what is wrong with a file. What is done with one is up to whoever adds it; if
that fails, what was read before stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from dragoman.errors import ConfigError

logger = logging.getLogger("dragoman.proxy")

_LOOK_S: Final = 1.0
"""How often the files are looked at. One that has changed is read at the next look, if it has stayed so: whoever writes
it may not be done."""

_MOST_LINES: Final = 20
"""How many of the things that are wrong with a file go into the log."""

Fingerprint = tuple[tuple[int, int, int, int] | None, ...]


class Reloading:
    """What is read again.

    Attributes:
        after_signal: Called when everything has been read at SIGHUP.
    """

    def __init__(self) -> None:
        self._files: list[_Files] = []
        self._at_signal: list[Callable[[], object]] = []
        self._asked = asyncio.Event()
        self.after_signal: Callable[[], object] = lambda: None
        self.watching: asyncio.Task[None] | None = None

    def add(self, read: Callable[[], str | Awaitable[str]], *paths: str | None) -> None:
        """Read these files, which belong together, when one of them has changed.

        Args:
            read: Reads them, and says what has changed by that, for the log. If it raises, nothing has.
            paths: The files.
        """
        self._files.append(_Files(read, tuple(path for path in paths if path is not None)))

    def add_at_signal(self, read: Callable[[], object]) -> None:
        """Call this at SIGHUP: it notices changes itself, or says itself what is wrong."""
        self._at_signal.append(read)

    def begin(self) -> None:
        """Look at the files from now on."""
        self.watching = asyncio.get_running_loop().create_task(self._watch())

    def read_all(self) -> None:
        """Read everything now."""
        logger.info("SIGHUP: files are read again")
        self._asked.set()
        for read in self._at_signal:
            read()

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._asked.wait()
            is_asked = self._asked.is_set()
            self._asked.clear()
            for files in self._files:
                if files.has_changed() or is_asked:
                    await files.read()
            if is_asked:
                self.after_signal()


class _Files:
    def __init__(self, read: Callable[[], str | Awaitable[str]], paths: tuple[str, ...]) -> None:
        self._read = read
        self._paths = paths
        self._seen = self._last = self._take_fingerprint()

    def has_changed(self) -> bool:
        """Whether they have changed, and not since the last look."""
        now = self._take_fingerprint()
        has_settled, self._last = now == self._last, now
        return has_settled and now != self._seen

    async def read(self) -> None:
        """Read them; whatever is wrong with them ends nothing."""
        path, self._seen = self._paths[0], self._take_fingerprint()
        try:
            if any(found is not None and not stat.S_ISREG(found[3]) for found in self._seen):
                raise ValueError("it is not a file that can be read twice")
            told = self._read()
            logger.info("%s: read again: %s", path, await told if inspect.isawaitable(told) else told)
        except Exception as error:
            logger.debug("reading %s failed", path, exc_info=True)
            first, *more = _explain(error, path)
            logger.error("%s cannot be used as it is now, and what was read before stays: %s", path, first)
            say(logging.ERROR, path, more)

    def _take_fingerprint(self) -> Fingerprint:
        return tuple(map(_look_at, self._paths))


def say(level: int, path: str, lines: Sequence[str]) -> None:
    """Log what there is to say of a file, if it is not too much."""
    for line in lines[:_MOST_LINES]:
        logger.log(level, "%s: %s", path, line)
    if len(lines) > _MOST_LINES:
        more = len(lines) - _MOST_LINES
        logger.log(level, "%s: and %d more; `dragoman config check` lists them", path, more)


def _explain(error: Exception, path: str) -> list[str]:
    if isinstance(error, ConfigError):
        return [str(problem) for problem in error.problems]
    if isinstance(error, OSError | ValueError):
        return [str(error).removeprefix(f"{path}: ")]
    return [f"internal error: {error!r}"]


def _look_at(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode
