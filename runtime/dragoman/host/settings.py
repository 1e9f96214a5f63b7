"""What can be decided about a host, what it needs of a switch, and which ends of sessions it says aloud.

Lives here: values and a protocol, no code. Used by `host`, `shared`, and by whoever makes a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.core.commands import Outbox, Outcome
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman_spec.record import record

if TYPE_CHECKING:
    from dragoman.core.envelope import Frame, Malformed
    from dragoman.middleware import Middleware, NoticeMiddleware
    from dragoman.status import StatusBoard

FAILURES: Final = frozenset(
    {
        Outcome.SERVER_CLOSED,
        Outcome.SERVER_NOT_STARTED,
        Outcome.INITIALIZATION_FAILED,
        Outcome.INITIALIZATION_TIMED_OUT,
    }
)
"""Ends that somebody has to look into; said once, with the reason. An internal error was said when it happened."""

WHAT_NEXT: Final = {Outcome.INITIALIZATION_TIMED_OUT: "; --init-timeout sets how long to wait"}
"""What is said besides."""


class NewsReader(Protocol):
    """Who has news of servers: a host."""

    server_name: str
    whose: str

    def hear(self, frame: Frame | None) -> None:
        """Take what a server has told elsewhere; None: nobody knows what it has told."""


class NewsDesk(Protocol):
    """Has news of servers for hosts at other instances of this proxy."""

    def join(self, host: NewsReader) -> None:
        """Let a host hear what is told to those of its principal and server."""

    def leave(self, host: NewsReader) -> None:
        """Let it hear nothing more."""

    def tell(self, host: NewsReader, frames: Sequence[Frame | Malformed]) -> None:
        """Take what a server of a host has said; what others may listen to goes to them."""


class Switch(Protocol):
    """What a host needs of a switch."""

    @property
    def outbox(self) -> Outbox:
        """Where its commands are."""

    @property
    def servers(self) -> Iterable[UpstreamEdge]:
        """Those that it has."""

    @property
    def shares_news(self) -> bool:
        """Whether what a server tells may concern somebody at another instance: one session of it serves several."""


@record
class HostSettings:
    """What can be decided about a host.

    Attributes:
        limit_bytes: How much a server that reads nothing may have us write in answer to what it asks.
        names_server: Whether a client is told which command it is, or which address, that cannot be used.
        board: Where it puts up what servers it has; None where nobody looks.
        server_name: What the user calls them.
        says_why: Whether the log says why a session has failed.
        middleware: Around requests.
        notice_middleware: Around notifications.
        middleware_timeout_s: How long it may take for each.
        news: Has what servers tell at other instances of this proxy; None where there are none.
    """

    limit_bytes: int = DEFAULT_LIMIT_BYTES
    names_server: bool = False
    board: StatusBoard | None = None
    server_name: str = ""
    says_why: bool = True
    middleware: Sequence[Middleware] = ()
    notice_middleware: Sequence[NoticeMiddleware] = ()
    middleware_timeout_s: float = 60.0
    news: NewsDesk | None = None
