"""A configuration file that may change while its servers are in use.

Lives here: noticing that, and handing on what is in it. Must not: take a server in or out (`router`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.config import ConfigError, Configuration, read_config

logger = logging.getLogger("dragoman.router")

_LOOK_S: Final = 1.0
"""How often the file is looked at."""

_MOST_LINES: Final = 20
"""How many of the things that are wrong with a file go into the log."""


class ConfigWatch:
    """Reads a file again when it has changed, or when told to. Nothing that is in the file ends the watching.

    Args:
        path: The file.
        apply: Gets what is in it; not called for a file that cannot be used.
    """

    def __init__(self, path: str, apply: Callable[[Configuration], None]) -> None:
        self._path = path
        self._apply = apply
        self._asked = asyncio.Event()
        self._seen = self._look()

    async def run(self) -> None:
        """Look at it again and again, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._asked.wait()
            if self._asked.is_set() or self._look() != self._seen:
                self._asked.clear()
                await self._read()

    def reload(self) -> None:
        """Have it read at once, whether it has changed or not."""
        self._asked.set()

    async def _read(self) -> None:
        """Take in the file; if it cannot be used, nothing changes, and the log says why."""
        self._seen = self._look()
        if self._seen is not None and not stat.S_ISREG(self._seen[3]):
            self._keep(["it is not a file that can be read twice"])
            return
        try:
            configuration = await asyncio.to_thread(read_config, self._path)  # calls go on meanwhile
            self._apply(configuration)
        except ConfigError as error:
            self._keep([str(problem) for problem in error.problems])
        except Exception as error:
            logger.debug("reading %s failed", self._path, exc_info=True)
            self._keep([f"internal error: {error!r}"])
        else:
            self._say(logging.WARNING, configuration.remarks)

    def _keep(self, problems: Sequence[str]) -> None:
        self._say(logging.ERROR, problems)
        logger.error("%s cannot be used as it is now: the servers stay as they were", self._path)

    def _say(self, level: int, lines: Sequence[str]) -> None:
        for line in lines[:_MOST_LINES]:
            logger.log(level, "%s: %s", self._path, line)
        if len(lines) > _MOST_LINES:
            more = len(lines) - _MOST_LINES
            logger.log(level, "%s: and %d more; `dragoman config check` lists them", self._path, more)

    def _look(self) -> tuple[int, int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode
