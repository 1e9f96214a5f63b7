"""Who knows whose a bearer token is, as a front sees it: `dragoman.guard` has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Bearer(NamedTuple):
    """Who has a token, and what it is good for.

    Attributes:
        principal: The name of its client, issuer and subject together.
        scopes: What it is good for; those included that these imply.
        claims: What it says.
        until_s: When it has to be looked at again, by the clock on the wall.
    """

    principal: str
    scopes: frozenset[str]
    claims: Mapping[str, Any]
    until_s: float


class TokenRefused(Exception):
    """A token is not taken.

    Args:
        reason: Why, for whoever sent it; no part of it is theirs.
        is_away: Whether that may pass: who could tell is away.
    """

    def __init__(self, reason: str, *, is_away: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_away = is_away


class Guard(Protocol):
    """Knows whose a token is.

    Attributes:
        issuer: Whose tokens count.
        scopes: What each token has to be good for.
        url: Of this resource, as its clients know it; empty: as they call it in `Host`.
        is_optional: Whether whoever has no token is let in as nobody.
    """

    issuer: str
    scopes: tuple[str, ...]
    url: str
    is_optional: bool

    def recall(self, token: str) -> Bearer | None:
        """Return what was found out of a token before; None where it has to be examined."""

    async def examine(self, token: str) -> Bearer:
        """Find out whose a token is.

        Raises:
            TokenRefused: It is nobody's.
        """
