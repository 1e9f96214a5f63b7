"""One transport as a host sees it: reports its events to the host.

Lives here: the receiver of one transport. Must not: decide (`core`), or carry anything out (`host`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.label import LABEL, PRINCIPAL
from dragoman.transports.base import Transport

if TYPE_CHECKING:
    from dragoman.host.host import Host

logger = logging.getLogger("dragoman.proxy")

waiting = logging.getLogger("dragoman.waiting")

PATIENCE_S: Final = 5.0
"""After how many seconds the log says that a server is waited for."""

BROKEN_GRACE_S: Final = 1.0
"""How long a server that closed its input may still answer before it counts as gone."""


class Port:
    """The receiver of one transport; dead once the host has another one for this edge, or none.

    Args:
        host: Whom to tell.
        edge: Whose transport it is.
        transport: To the peer.
        label: What the log calls the session.
        principal: Who the client is, as far as that is known.

    Attributes:
        is_server: Whether the peer is a server.
        full: Whether the peer does not keep up with what we write.
        unread_bytes: What was written since then.
        backlog: What waits for a client that shares its server with others, and does not keep up.
        backlog_bytes: How much that is.
        stalled_at: Since when the client has taken nothing of it.
        closing: Closes the transport, if that has begun.
    """

    __slots__ = (
        "_silence",
        "alive",
        "backlog",
        "backlog_bytes",
        "closing",
        "edge",
        "full",
        "host",
        "is_server",
        "label",
        "principal",
        "stalled_at",
        "transport",
        "unread_bytes",
    )

    def __init__(
        self,
        host: Host,
        edge: FrontEdge | UpstreamEdge,
        transport: Transport,
        label: str = "",
        principal: str = "",
    ) -> None:
        self.host = host
        self.edge = edge
        self.transport = transport
        self.label = label
        self.principal = principal
        self.alive = True
        self.is_server = isinstance(edge, UpstreamEdge)
        self.full = False
        self.unread_bytes = 0
        self.backlog: list[Frame] | None = None
        self.backlog_bytes = 0
        self.stalled_at: float | None = None
        self.closing: asyncio.Task[None] | None = None
        self._silence: asyncio.TimerHandle | None = None
        if isinstance(edge, UpstreamEdge):
            edge.takes_headers = getattr(transport, "takes_headers", False)
            edge.was_read = getattr(transport, "was_read", None)
            edge.is_recalled = getattr(transport, "is_recalled", None)
            self._silence = asyncio.get_running_loop().call_later(PATIENCE_S, self._mention_silence)

    @property
    def name(self) -> str:
        """`client` or `server`, for the log."""
        return "server" if self.is_server else "client"

    def cut(self) -> None:
        """Report nothing more, and drop the host: a reference cycle would stay until the collector finds it."""
        if self.alive:
            self.alive = False
            del self.host, self.edge, self.transport

    def _mention_silence(self) -> None:
        if self._is_heard() and self._is_awaited() and not getattr(self.transport, "is_signing_in", False):
            waiting.warning(
                "%s has not answered for %g s; still waiting, because it may be starting",
                self.host.server_name or "the server",
                PATIENCE_S,
            )

    def _is_awaited(self) -> bool:
        """Whether the server has not answered what it was asked first, though somebody may have answered for it."""
        return isinstance(self.edge, UpstreamEdge) and (
            self.edge.state is UpstreamState.OPENING or (self.edge.is_recalled is not None and self.edge.is_recalled())
        )

    def _is_heard(self) -> bool:
        """Whether somebody is told; a server may have been opened for another session than it is for now."""
        if self.alive and self.label and self.is_server:
            LABEL.set(self.label)
        return self.alive

    # What the transport tells

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Frames came."""
        if self.principal:
            PRINCIPAL.set(self.principal)
        if self._is_heard() if self.label and self.is_server else self.alive:
            self.host.receive(self, frames)
            if self._silence is not None and self.alive and not self._is_awaited():
                self._silence.cancel()  # while a timer runs, each turn of the event loop costs more
                self._silence = None

    def failed(self, frame: Frame) -> None:
        """The transport gives up a request."""
        if self._is_heard():
            self.host.doubt()
            self.host.take_failed(self, frame)

    def session_lost(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """The server has forgotten the session."""
        if self._is_heard():
            self.host.take_lost_session(self, frame, error, renewed)

    def unsent(self, frames: Sequence[Frame]) -> None:
        """The server has another session, and these frames were still to be sent in the old one."""
        if self._is_heard():
            self.host.take_unsent(self, frames)

    def ended(self, reason: str) -> None:
        """The peer says no more."""
        if self._is_heard():
            logger.info("%s: %s", self.name, reason)
            self.host.take_end(self, reason)

    def broken(self, reason: str) -> None:
        """The peer does not read any more."""
        if not self._is_heard():
            return
        logger.info("%s: %s", self.name, reason)
        if isinstance(self.edge, FrontEdge):
            self.host.take_deaf_client(self, self.edge, reason)
        else:
            self.host.take_deaf_server(self)
            # It may be on its way to answer, or to say why it ended.
            asyncio.get_running_loop().call_later(BROKEN_GRACE_S, self.ended, "the server closed its input")

    def pause_writing(self) -> None:
        """More is waiting to be written than should be."""
        if self.alive and not self.full:
            self.full = True
            self.host.hold_back(self)

    def resume_writing(self) -> None:
        """There is room again."""
        if self.alive and self.full:
            self.full, self.unread_bytes = False, 0
            self.host.let_go(self)
