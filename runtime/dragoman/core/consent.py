"""What a server may ask of a client: no more than the client said that it can serve.

Lives here: the client's capabilities and the methods of its revision, held against a request of the server. Must not:
answer or log. Called by `core.edges.exchange` where the two peers speak different revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.declared import declares
from dragoman.core.envelope import Refusal

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Method(Protocol):
    """What is needed of `dragoman_spec`'s methods."""

    @property
    def kind(self) -> str:
        """`request` or `notification`."""

    @property
    def sender(self) -> frozenset[str]:
        """Who may send it: `client`, `server` or both."""

    @property
    def capability(self) -> str | None:
        """What the receiver must have declared."""


class Consent:
    """What one client can serve; before anything is known of it, whatever it may be asked.

    Args:
        revision: That it speaks.
        capabilities: As it declared them, in its revision.
        methods: Those of its revision, by name.
    """

    __slots__ = ("_capabilities", "_methods", "_revision")

    def __init__(
        self,
        revision: str | None = None,
        capabilities: Mapping[str, Any] = _NONE,
        methods: Mapping[str, Method] = _NONE,
    ) -> None:
        self._revision = revision
        self._capabilities = capabilities
        self._methods = methods

    def refuse(self, method: str) -> Refusal | None:
        """Refuse a server's request that the client never said it can serve; None if it may be asked.

        "Both parties MUST only use capabilities that were successfully negotiated" (lifecycle, Operation). Clients
        on mcp 1.6.0 die of a request that they cannot parse, so what the client's revision does not have is kept
        from it too, unless it declared experimental capabilities, which is where private methods come from.
        """
        known = self._methods.get(method)
        if known is None or "server" not in known.sender:
            if not self._methods or self._capabilities.get("experimental"):
                return None
            reason = f"revision {self._revision} has no {method} request to a client"
        elif known.capability is None or declares(self._capabilities, known.capability):
            return None
        else:
            reason = f"the client did not declare the capability {known.capability}"
        return Refusal(METHOD_NOT_FOUND, reason, {"method": method})
