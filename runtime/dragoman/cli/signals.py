"""The signals that ask us to end, from our first line to our last.

Lives here: who hears of them when. Must not: end anything itself, but for a process that has nothing to put in order
yet. Called by `dragoman.cli` and by the commands that run for long.

Theory of operation. Python's own way, a `KeyboardInterrupt` between any two instructions, is not for us: in the midst
of an import it is lost in some callback, or crashes an extension module that is half set up. So SIGINT ends the process
at once while there is nothing but imports; is kept while a server is being started; and goes to the event loop then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

EXIT_SIGNAL: Final = 128
"""What a shell adds to the number of the signal that ended a program."""

_ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""SIGHUP is not on Windows, and SIGBREAK only there: for Ctrl-Break, and for a console that is closed."""

_RELOADING: Final[int | None] = getattr(signal, "SIGHUP", None)
_POLITE: Final = (signal.SIGTERM, getattr(signal, "SIGBREAK", None))


def leave_on_interrupt() -> None:
    """Let SIGINT end this process at once; unless it is ignored, as in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Let SIGINT raise KeyboardInterrupt, for a command that then has something to put in order."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def held_signals() -> Iterator[list[int]]:
    """Keep the signals that ask for an end, in a list, for `watch_signals`. Children do not inherit this."""
    caught: list[int] = []
    before = {number: signal.signal(number, lambda number, _: caught.append(number)) for number in _wanted()}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch_signals(
    caught: list[int],
    stop: Callable[[str], None],
    drain: Callable[[str], None] | None = None,
    reload: Callable[[], None] | None = None,
) -> None:
    """Pass the signals that ask for an end to the event loop that runs.

    Args:
        caught: Those that were held; the first one there decides the exit code.
        stop: Told the reason, once the loop goes on.
        drain: Told in its place, if the first signal is SIGTERM, or Ctrl-Break: what is under way may come to its end.
        reload: Called for SIGHUP, which asks for no end then.
    """
    import asyncio

    def end(number: int) -> None:
        may_drain = number in _POLITE and len(caught) == 1
        (drain if drain is not None and may_drain else stop)(_describe(number))

    def take(number: int) -> None:
        caught.append(number)
        end(number)

    loop = asyncio.get_running_loop()
    for number in _wanted():
        if number == _RELOADING and reload is not None:
            loop.add_signal_handler(number, reload)
            caught[:] = [one for one in caught if one != number]  # everything has just been read
        elif sys.platform == "win32":
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(take, number))
        else:
            loop.add_signal_handler(number, take, number)
    if caught:
        loop.call_soon(end, caught[0])


def _describe(number: int) -> str:
    """Say what ended us, for a person."""
    return f"the proxy was stopped by {signal.Signals(number).name}"


def _wanted() -> list[signal.Signals]:
    """Return the signals that ask for an end; under nohup SIGHUP asks for none."""
    return [one for one in _ENDING if one != _RELOADING or signal.getsignal(one) is not signal.SIG_IGN]


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(EXIT_SIGNAL + number)
