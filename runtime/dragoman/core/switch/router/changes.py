"""Notices of changed lists for a client with a handshake: one for many that come at once.

Lives here: when it is told. Must not: know why a list has changed. A client without one has streams (`subscriptions`).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dragoman.core.envelope import notification_frame
from dragoman.core.switch.router.common import Common

_PAUSE_S: Final = 0.5
"""How long the client is not told again that the same has changed: a server may say it without end."""


class Changes:
    """What the client was told a moment ago, and is to be told again.

    Args:
        common: What all parts know.
    """

    def __init__(self, common: Common) -> None:
        self._common = common
        self._quiet: set[str] = set()
        self._missed: set[str] = set()

    def tell(self, method: str) -> None:
        """Tell the client with this notification that a list has changed."""
        if method in self._quiet:
            self._missed.add(method)
            return
        self._quiet.add(method)
        self._common.outside.remind(_PAUSE_S, partial(self._expire, method))
        if self._common.initialized is not None:
            self._common.outside.tell_client(notification_frame(method, None))

    def _expire(self, method: str) -> None:
        self._quiet.discard(method)
        if method in self._missed:
            self._missed.discard(method)
            self.tell(method)
