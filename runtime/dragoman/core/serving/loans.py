"""A request that is with the shared server, or waits for its turn there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dragoman.core.calls import Call
from dragoman.core.envelope import Frame
from dragoman.core.serving.sessions import ClientSession
from dragoman_spec import HANDSHAKE_REVISIONS, facts

QUIET: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).quiet)
"""Requests during which no server asks back: they list, look up or set something. Any other request might, those that
the proxy does not know above all. Quiet ones are held responsible only when none of the others is under way."""

Hook = Callable[["Loan", Frame], Frame | None]
"""Called with the answer to a request before it is passed on; gives what is; None where it is asked again."""


@dataclass(slots=True, eq=False)
class Loan:
    """A request that is with the server, or waits for its turn.

    Attributes:
        method: What it asks.
        session: Whose it is; None for one of our own.
        call: The client's request; None for one of our own.
        hook: What to do with its answer first.
        key: Our id for it, as JSON; a progress token of it is the same number.
        token: The client's progress token, in a tuple; None without one.
        frame: What is to be sent when its turn comes; None once it is with the server.
        since_s: Since when it has waited.
        cancelled_at: When it was cancelled.
    """

    method: str
    session: ClientSession | None = None
    call: Call | None = None
    hook: Hook | None = None
    key: bytes = b""
    token: tuple[Any] | None = None
    frame: Frame | None = None
    since_s: float = 0.0
    cancelled_at: float | None = None

    @property
    def asks(self) -> bool:
        """Whether servers ask back during such a request."""
        return self.method not in QUIET

    @property
    def owner(self) -> ClientSession | None:
        """Whose it is; None for a session that has ended, and for requests of our own."""
        return self.session if self.session is not None and self.session.present else None
