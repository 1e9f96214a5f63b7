"""What a transport asks when a server wants a token, and of whom: `dragoman.signin` answers."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from dragoman.transports.upstream.config import UpstreamConfig

CHALLENGES: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class Challenge(NamedTuple):
    """A server's refusal of a request.

    Attributes:
        attempt: How often the same request has been refused before.
        status: Of HTTP.
        header: What `WWW-Authenticate` says.
        sent: What the request said in `Authorization`; empty if nothing.
        headers: What else went with the request.
        asks: Whether a person may be asked because of it.
        waits: Whether it waits, if not, until somebody has signed in; else it has failed.
    """

    attempt: int
    status: int
    header: str
    sent: str
    headers: tuple[tuple[str, str], ...]
    asks: bool
    waits: bool


class Authority(Protocol):
    """Has tokens for one server, and gets others."""

    async def load(self) -> None:
        """Read what is kept, where that may take long; before the first request, and at once afterwards."""

    def authorization(self) -> str:
        """Give what requests are to say in `Authorization`; empty where there is no token."""

    def takes(self, challenge: Challenge) -> bool:
        """Whether a token may help against this."""

    async def renew(self, challenge: Challenge, config: UpstreamConfig) -> None:
        """Get another token, for as long as that takes.

        Raises:
            TransportError: There is none.
        """

    def join(self) -> None:
        """Take note of a connection that may need tokens."""

    async def leave(self) -> None:
        """Take note that one does not any more: with the last one, nobody is asked for tokens."""
