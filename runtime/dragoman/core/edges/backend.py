"""What a front edge knows about the other side: an object that serves its client.

Lives here: the protocol, no code. `core.switch` implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from dragoman.core.calls import Call
from dragoman.core.envelope import Frame, Refusal

Reads = Mapping[str, Callable[[Call, Frame], "Frame | Refusal | None"]]
"""By method, what gives a request as its server gets it: as `Adaptor.adapt` does."""

F_contra = TypeVar("F_contra", contravariant=True)
"""The edge towards a client; it stands above this module."""

NOTHING_READ: Final[Reads] = MappingProxyType({})


class Backend(Protocol[F_contra]):
    """Who serves the open session of a front edge's client. Frames are in the server's revision.

    Attributes:
        takes_arrays: Whether an array may pass whole.
        wants_lines: Whether what crossed is to be written; somebody who changes every frame writes it anyway.
        own: The methods of the client's requests and notifications that it takes as they came, in the client's
            revision: those that mean nothing to its server.
        reads: What has requests of these methods cross, in place of the steps alone.
    """

    takes_arrays: bool
    wants_lines: bool
    own: frozenset[str]
    reads: Reads

    def carry(self, call: Call, frame: Frame) -> None:
        """Take a request of the client to a server."""

    def notify(self, front: F_contra, frame: Frame) -> None:
        """Take a notification of the client to a server; or an array, where client and server both know arrays."""

    def reply(self, front: F_contra, frame: Frame) -> None:
        """Take an answer of the client, or one in its place, to the server that asked."""
