"""Signals as a terminal would leave them, wherever the tests run. Called by `tests/conftest.py` and the soak."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final

ASKED_TO_END: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


def heed_signals() -> None:
    """Let what we start be stopped by signals, though we may have been started to ignore them.

    Under `nohup` SIGHUP is ignored, in the background of a script SIGINT and SIGQUIT are, and whatever we start would
    inherit that. A signal that is caught is no longer inherited as ignored; to us, catching it in order to do nothing
    is the same, so `nohup` keeps its word. The mask of blocked signals is inherited too.
    """
    for number in ASKED_TO_END:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKED_TO_END)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Ignore a signal, without what we start ignoring it too."""
