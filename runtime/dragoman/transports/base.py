"""What every transport offers, and what it asks of whoever uses it.

Lives here: the protocols, no code. A transport moves bytes and says when a peer is gone; it knows nothing of frames
beyond that they are bytes, and nothing of revisions. `dragoman.proxy` is the receiver.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Receiver(Protocol):
    """Who is told what happens at the other end. All calls come from the event loop, never from within `write`."""

    def data_received(self, data: bytes) -> None:
        """Bytes came, in pieces of any size."""

    def ended(self, reason: str) -> None:
        """The peer says no more; called once, after the last bytes. `reason` names it for a person."""

    def broken(self, reason: str) -> None:
        """The peer does not read any more: what was written is lost."""

    def pause_writing(self) -> None:
        """More is waiting to be written than should be: hold back."""

    def resume_writing(self) -> None:
        """There is room again."""


@runtime_checkable
class StreamReceiver(Receiver, Protocol):
    """A receiver that also wants to know on whose stream something came, where a transport has one for each request."""

    def stream_received(self, data: bytes, key: bytes) -> None:
        """A line came on the stream of the request with this id, in canonical JSON; in place of `data_received`."""

    def request_failed(self, line: bytes, key: bytes) -> None:
        """The transport answers the request with this id itself, with an error; in place of `data_received`.

        The server has not answered it: it may be at work on it, and speak about it later.
        """


class Transport(Protocol):
    """A connection to one peer."""

    def start(self, receiver: Receiver) -> None:
        """Begin to read; called once, from within the event loop.

        Raises:
            TransportClosed: The peer cannot be reached.
        """

    def write(self, data: bytes) -> None:
        """Write bytes, now or as soon as the peer takes them. Never blocks, never fails."""

    def pause_reading(self) -> None:
        """Take nothing more from the peer until told to go on."""

    def resume_reading(self) -> None:
        """Go on reading."""

    def hurry(self) -> None:
        """Be quick about closing: somebody told us to stop."""

    async def close(self) -> None:
        """Write what is still to be written, tell the peer that nothing more comes, and wait until it is gone."""
