"""The sessions on a shared server.

Lives here: what the switch remembers of each client. Must not: write frames. Used by the modules beside it.
"""

from __future__ import annotations

from typing import Final

from dragoman.core.edges.front import FrontEdge

_NOTHING: Final[frozenset[str]] = frozenset()
"""One for all: even an empty set takes 0.2 KB."""


class ClientSession:
    """One client at a shared server.

    Args:
        number: In the order of joining.
        front: Its edge.
        label: What the log calls it.
        sender: Whose share of the places at the server its requests take; empty where nobody has a share.
        principal: Who its client is; empty where nobody has a name.

    Attributes:
        declared: What its client can be asked; see the module of that name.
        ready: Whether it has sent `notifications/initialized`.
        present: Whether it is still there.
        called: Whether it ever made a request during which servers ask back.
        level: The index of the log level that it asked for.
    """

    __slots__ = (
        "called",
        "declared",
        "front",
        "label",
        "level",
        "number",
        "present",
        "principal",
        "ready",
        "sender",
    )

    def __init__(self, number: int, front: FrontEdge, label: str = "", sender: str = "", principal: str = "") -> None:
        self.number = number
        self.front = front
        self.label = label
        self.sender = sender
        self.principal = principal
        self.declared = _NOTHING
        self.ready = False
        self.present = True
        self.called = False
        self.level: int | None = None
