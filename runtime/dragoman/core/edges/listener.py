"""Who an upstream edge tells what its server does.

Lives here: the protocols, no code. `core.switch` implements them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from dragoman.core.commands import Outcome
from dragoman.core.edges.offer import Accepted, InitializeRefused
from dragoman.core.envelope import Frame, Malformed, Refusal

if TYPE_CHECKING:
    from dragoman.core.rules.verdict import Verdict


U_contra = TypeVar("U_contra", contravariant=True)
"""The edge towards a server; it stands above this module."""


class ServerListener(Protocol[U_contra]):
    """Who is told what a server says and that it is gone, whatever its era."""

    def take_server(self, upstream: U_contra, frame: Frame | Malformed) -> None:
        """It said something that is not part of the handshake."""

    def lost(self, upstream: U_contra, reason: str, outcome: Outcome) -> None:
        """It is gone."""


class OpeningListener(ServerListener[U_contra], Protocol[U_contra]):
    """Who is told what a server does: a switch."""

    def waits_for(self, upstream: U_contra) -> bool:
        """Whether anybody still wants a session with it: if not, it is not offered anything else."""

    def offered(self, upstream: U_contra) -> None:
        """It has been offered a revision, the first or another one."""

    def accepted(self, upstream: U_contra, accepted: Accepted) -> None:
        """It has agreed to a revision."""

    def refused(self, upstream: U_contra, refused: InitializeRefused) -> None:
        """It has refused for a reason of its own; it may be asked again."""

    def failed(self, upstream: U_contra, failure: Refusal) -> None:
        """No revision suits both, or its answer cannot be read; it may be asked again."""

    def interrupted(self, upstream: U_contra, failure: Refusal) -> None:
        """It is gone, and is started again: who has asked it something gets no answer, and it waits for none."""

    def discovered(self, upstream: U_contra, verdict: Verdict) -> None:
        """It has no handshake, and has said what it is: every frame from here on is a request's own."""
