"""What a visit is to do, and how long it may take.

Lives here: one table. Must not: do any of it (`visit`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.check.patience import CheckPatience
from dragoman.check.rules import Wires
from dragoman.transports.upstream.config import UpstreamConfig


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """What a visit is to do.

    Attributes:
        over: The transport.
        patience: How long the server is waited for.
        calls_tools: Whether tools are called that say that they only read.
        http: Where the server is, if it is spoken to over HTTP.
        on_step: Called before each request with the revision and the request, in words.
    """

    over: Wires
    patience: CheckPatience
    calls_tools: bool = False
    http: UpstreamConfig | None = None
    on_step: Callable[[str, str], None] = lambda revision, about: None
