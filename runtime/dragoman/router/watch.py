"""A configuration file that may change while its servers are in use.

Lives here: noticing that, and handing on what is in it. Must not: take a server in or out (`router`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from dragoman.config import ConfigError, Configuration, read_config

logger = logging.getLogger("dragoman.router")

_LOOK_S: Final = 1.0
"""How often the file is looked at."""


class ConfigWatch:
    """Reads a file again when it has changed, or when told to.

    Args:
        path: The file.
        apply: Gets what is in it; not called for a file that cannot be used.
    """

    def __init__(self, path: str, apply: Callable[[Configuration], None]) -> None:
        self._path = path
        self._apply = apply
        self._seen = self._look()

    async def run(self) -> None:
        """Look at it again and again, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._look() != self._seen:
                self.reload()

    def reload(self) -> None:
        """Read it now; if it cannot be used, nothing changes, and the log says why."""
        self._seen = self._look()
        try:
            configuration = read_config(self._path)
        except ConfigError as error:
            for problem in error.problems:
                logger.error("%s: %s", self._path, problem)
            logger.error("%s cannot be used as it is now: the servers stay as they were", self._path)
            return
        for warning in configuration.warnings:
            logger.warning("%s: %s", self._path, warning)
        self._apply(configuration)

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
