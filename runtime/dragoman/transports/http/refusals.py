"""What the log says about refused clients: enough to correct the cause, however many there are.

Lives here: one line for each reason and period, the number of those left out, and what a parser means. Must not: decide
who is refused. Called by `app`, `door`, `connection` and `websocket_asgi`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import httptools

from dragoman.transports.defects import describe

logger = logging.getLogger("dragoman.http")

QUIET_S: Final = 60.0
"""For how long a reason is not repeated."""

_SHOWN: Final = 100
"""How much of what a client said a line may have: it can say very much."""


class Refusals:
    """The log of one front's refusals.

    Args:
        quiet_s: For how long a reason is not repeated.
        names_options: Whether the limits are set by options, so that a line says which one.

    Attributes:
        by_option: How often each limit has turned somebody away, by the option that sets it.
    """

    def __init__(self, quiet_s: float = QUIET_S, names_options: bool = True) -> None:
        self.by_option: dict[str, int] = {}
        self._quiet_s = quiet_s
        self._names_options = names_options
        self._left_out: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def note(self, reason: str, line: str, option: str = "") -> None:
        """Write a line, unless there was one for the same reason just now.

        Args:
            reason: One of few; shown with the count.
            line: What happened, and what would help.
            option: The one that sets the limit, if that is the reason; the line ends with it.
        """
        if option:
            self.by_option[option] = self.by_option.get(option, 0) + 1
            reason = f"turned away by {option}"
            line = f"{line} ({option} allows for more)" if self._names_options else line
        if reason in self._left_out:
            self._left_out[reason] += 1
            return
        logger.warning("%s", line)
        self._left_out[reason] = 0
        self._timers[reason] = asyncio.get_running_loop().call_later(self._quiet_s, self._tell, reason)

    def close(self) -> None:
        """Say now what was left out: the front ends, and nobody would."""
        for reason in list(self._timers):
            self._timers[reason].cancel()
            self._tell(reason)

    def _tell(self, reason: str) -> None:
        """Say how many were left out; speak again after that."""
        count = self._left_out.pop(reason)
        del self._timers[reason]
        if count:
            logger.warning("%s: %d more within %g s", reason, count, self._quiet_s)


def shorten(text: str) -> str:
    """Return what a client said, in quotes and not too long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def explain_parser(error: httptools.HttpParserError) -> str:
    """Say why a request cannot be read."""
    if not isinstance(error, httptools.HttpParserCallbackError):
        return str(error) or "it is no HTTP"
    cause = error.__context__
    if isinstance(
        cause, UnicodeError | AttributeError | httptools.HttpParserError
    ):  # what becomes of no path, or half a URL
        return "its URL cannot be read"
    return str(cause) if isinstance(cause, ValueError) else f"internal error: {describe(cause)}"
