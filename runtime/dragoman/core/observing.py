"""Who may be told of each call and each session, for metrics and for an access log.

Lives here: what such an observer is asked to do. Must not: count, write or read a clock (`dragoman.trace`). An observer
changes nothing, never fails and never waits. Called by `core.edges.exchange`, `core.edges` and `core.translate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dragoman_spec.losses import LossGroup

if TYPE_CHECKING:
    from dragoman.core.calls import Call
    from dragoman.core.commands import Side
    from dragoman.core.envelope import Frame


class SessionObserver(Protocol):
    """Told of what one client does."""

    def opened(self, info: object) -> None:
        """A session is open: the client's `clientInfo`, as it came."""

    def closed(self, outcome: str) -> None:
        """The client is gone: how that ended, by the name of its `Outcome`."""

    def began(self, side: Side, call: Call, frame: Frame) -> None:
        """A request of this peer came."""

    def handed(self, call: Call) -> None:
        """A request of the client goes to whoever serves it."""

    def answered(self, call: Call) -> None:
        """Its answer came from there; it may come again, from middleware."""

    def ended(self, call: Call, frame: Frame | None) -> None:
        """Its answer goes to the client, in the client's revision; None: it was cancelled."""

    def lost(self, source: str, target: str, losses: Sequence[LossGroup]) -> None:
        """A translation could not carry all."""


class Observer(Protocol):
    """Told of what happens in all sessions of a proxy."""

    def session(self, front: Any) -> SessionObserver:
        """Return who is told of a client, by its edge: `core.edges.front.FrontEdge`."""

    def server(self, edge: Any) -> None:
        """The state of a server has changed: `core.edges.upstream.UpstreamEdge`."""

    def restarted(self) -> None:
        """A server is started again."""
