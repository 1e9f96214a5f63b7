"""Middleware that comes with Dragoman: limits, lists of what is allowed, other names, and tokens.

Each class makes one middleware. docs/middleware.md shows them all:

    ProxyConfig(middleware=(RateLimit(per_minute=60), Deny(tools=["remove_*"])))
"""

from __future__ import annotations

from dragoman.middlewares.inject import Inject
from dragoman.middlewares.limit import RateLimit
from dragoman.middlewares.lists import Allow, Deny
from dragoman.middlewares.rename import Rename
from dragoman.transports.upstream.inject_headers import InjectHeaders

__all__ = ["Allow", "Deny", "Inject", "InjectHeaders", "RateLimit", "Rename"]
