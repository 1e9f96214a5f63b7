"""What a transport says of a refusal for want of a token; who gets one is `config.Authority`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

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
