"""What the event loop logs about exceptions that nobody caught: one line each.

Lives here: the handler of the loop. Must not: end anything; the
process lives on. Called by `transports.http.serve` and `cli.proxy`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

logger = logging.getLogger("dragoman")


def log_defects(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop write one line for an exception in a callback, unless somebody has chosen what it does already.

    Its own handler writes a trace of many lines, past our log, straight to stderr.
    """
    if loop.get_exception_handler() is None:
        loop.set_exception_handler(_log_one_line)


def _log_one_line(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error: BaseException | None = context.get("exception")
    where = str(context.get("message", "an exception in the event loop")).partition("\n")[0]
    logger.error("internal error: %s: %s", where, describe(error))
    if error is not None:
        logger.debug("where it happened", exc_info=error)


def describe(error: BaseException | None) -> str:
    """Return an exception on one line."""
    return "no exception" if error is None else f"{type(error).__name__}: {error}"
