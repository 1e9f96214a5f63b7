"""What every transport offers, and what it asks of whoever uses it.

Lives here: the protocols, and what they speak of; no code. A transport reads and writes frames, and says when a peer is
gone. It finds out once what kind of frame it has read; nothing behind it has to look again. It knows nothing of
revisions.
`dragoman.host.port` is the proxy's receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # who only names a transport need not load what frames need
    from dragoman.core.envelope import Frame, Malformed


Headers = tuple[tuple[bytes, bytes], ...]
"""Names in small letters and values, as ASGI has them."""


class HttpHeads(NamedTuple):
    """The headers of a request over HTTP, and of the answer to it.

    Attributes:
        method: Of HTTP.
        request: Its headers by their names in small letters, or its head as it was written.
        status: Of the answer; 0 if none came.
        response: The headers of that, in either form.
        keys: The ids of the requests that it carried, as JSON.
    """

    method: str
    request: Mapping[bytes, bytes] | bytes
    status: int
    response: Mapping[bytes, bytes] | Headers
    keys: Collection[bytes] = ()


class HasHeads(Protocol):
    """A transport over HTTP.

    Attributes:
        on_heads: Told the headers of each exchange; None where nobody wants to know.
    """

    on_heads: Callable[[HttpHeads], None] | None


class Receiver(Protocol):
    """Who is told what happens at the other end. All calls come from the event loop, never from within `send`."""

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Frames came.

        Args:
            frames: All that one read brought, in order, and at least one. What is not a frame is among them: whoever
                sent it may have to be answered.
        """

    def failed(self, frame: Frame) -> None:
        """The transport gives up a request.

        The server has not answered it: it may be at work on it, and speak about it later.

        Args:
            frame: The error that answers it, with its id.
        """

    def session_lost(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """The peer is there, and has forgotten the session; who wants another one sends `initialize` again.

        Told by transports whose sessions do not end with a connection, for each frame that finds out.

        Args:
            frame: What the peer was sent in that session and has not looked at; None: it says so on its own.
            error: What answers that frame, if it is a request and nobody sends it again.
            renewed: Whether the peer has been sent another `initialize` since, and has accepted: this is late news.
        """

    def unsent(self, frames: Sequence[Frame]) -> None:
        """Another `initialize` is sent.

        Args:
            frames: What waited for its turn in the session before it, in order.
        """

    def ended(self, reason: str) -> None:
        """The peer says no more; called once, after the last frame.

        A last line without a line feed is a frame if it is whole.

        Args:
            reason: Why, for a person.
        """

    def broken(self, reason: str) -> None:
        """The peer does not read any more: what was sent is lost.

        Args:
            reason: Why, for a person.
        """

    def pause_writing(self) -> None:
        """More is waiting to be written than should be: hold back."""

    def resume_writing(self) -> None:
        """There is room again."""


class Transport(Protocol):
    """A connection to one peer."""

    def start(self, receiver: Receiver) -> None:
        """Begin to read; called once, from within the event loop.

        Args:
            receiver: Who is told what comes.

        Raises:
            TransportClosed: The peer cannot be reached.
        """

    def send(self, frames: Sequence[Frame]) -> None:
        """Send frames, now or as soon as the peer takes them. Never blocks, never fails.

        Args:
            frames: In their order.
        """

    def pause_reading(self) -> None:
        """Take nothing more from the peer until told to go on."""

    def resume_reading(self) -> None:
        """Go on reading."""

    def hurry(self) -> None:
        """Be quick about closing: somebody told us to stop."""

    async def close(self) -> None:
        """Write what is still to be written, tell the peer that nothing more comes, and wait until it is gone."""
