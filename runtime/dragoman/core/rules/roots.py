"""The roots that callers have told, for as long as the user lets them be used again.

Lives here: keeping them by principal. Must not: ask for them (`inputs`, `core.switch`). A server with a handshake that
asks for roots while their owner is known is answered from here, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.places import keep_latest


@dataclass(slots=True)
class RootsCache:
    """Roots by principal.

    Attributes:
        ttl_s: For how many seconds they may be used again; 0 is not at all.
        most: How many principals are kept; the one that told them first is forgotten first.
    """

    ttl_s: float = 0.0
    most: int = 1024
    _kept: dict[str, tuple[float, list[Any]]] = field(default_factory=dict)

    def put(self, principal: str, result: object, now_s: float) -> None:
        """Keep the roots in an answer to `roots/list`, whatever else is in it."""
        roots = result.get("roots") if isinstance(result, dict) else None
        if isinstance(roots, list) and self.ttl_s > 0:
            keep_latest(self._kept, principal, (now_s + self.ttl_s, roots), self.most)
        else:
            self._kept.pop(principal, None)

    def get(self, principal: str, now_s: float) -> Sequence[Any] | None:
        """Return the roots of a principal; None if they are not known, or not any more."""
        until_s, roots = self._kept.get(principal, (now_s, []))
        return roots if now_s < until_s else None
