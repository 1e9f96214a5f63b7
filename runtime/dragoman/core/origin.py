"""What is known of a request beside what it says: whose token came with it, and what its HTTP headers say of a trace.

A front notes it with the frame (`envelope.Frame`), and middleware reads it; nothing of it goes to a server by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

INSUFFICIENT: Final = "insufficient_scope"
"""The error of a token that is good for too little (RFC 6750, 3.1); middleware names the scopes under this name."""

May = Callable[[str, str, str], bool]
"""Whether something may be used: what it is (`core.naming`), the server that has it, and what that calls it."""


class Origin(NamedTuple):
    """Where a request comes from.

    Attributes:
        scopes: What its token is good for; those included that these imply.
        claims: What the token says; nothing where it is a secret of a file.
        address: Host and port of the client; empty where that is not known.
        carrier: The headers that say of which trace it is.
        came: The arguments that it came with, where middleware has changed them.
        may: What it may use: whoever finds out which server it is for asks this, unless that was judged already.
        judged: The server that had what it names when it was let through, and what that calls it.
    """

    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = NOTHING
    address: tuple[Any, ...] = ()
    carrier: Mapping[str, str] = NOTHING
    may: May | None = None
    came: Mapping[str, Any] | None = None
    judged: tuple[str, str] | None = None


NOWHERE: Final = Origin()
"""Where nothing is known."""
