"""Who an upstream edge tells what its server does.

Lives here: the protocols, no code. `core.switch` implements them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dragoman.core.commands import Outcome
from dragoman.core.edges.offer import Accepted, InitializeRefused
from dragoman.core.envelope import Frame, Malformed, Refusal

if TYPE_CHECKING:
    from dragoman.core.bridge.verdict import Verdict
    from dragoman.core.edges.upstream import UpstreamEdge


class Follower(Protocol):
    """Who is told what a server says and that it is gone, whatever its era."""

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """It said something that is not part of the handshake."""

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """It is gone."""


class Owner(Follower, Protocol):
    """Who is told what a server does: a switch."""

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        """Whether anybody still wants a session with it: if not, it is not offered anything else."""

    def offered(self, upstream: UpstreamEdge) -> None:
        """It has been offered a revision, the first or another one."""

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """It has agreed to a revision."""

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """It has refused for a reason of its own; it may be asked again."""

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """No revision suits both, or its answer cannot be read; it may be asked again."""

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """It is gone, and is started again: who has asked it something gets no answer, and it waits for none."""

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """It has no handshake, and has said what it is: every frame from here on is a request's own."""
