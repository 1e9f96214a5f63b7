"""What needs a server that outlives a request: in scope `request` it is neither offered nor served.

Lives here: its names, and taking it off what a server offers. Used by `per_call` and `apart`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, facts

LASTING: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).standing)
"""Methods."""

_FLAGS: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).server_flags)
"""Capabilities."""


def explain_lasting(method: str) -> str:
    """Say why a method is not served."""
    return f"{method} needs a server that lasts; here each request has its own (scope request)"


def drop_lasting(capabilities: Any) -> None:
    """Take off what a server declares what nobody can use."""
    for path in _FLAGS:
        name, _, flag = path.partition(".")
        found = capabilities.get(name) if isinstance(capabilities, dict) else None
        if isinstance(found, dict):
            found.pop(flag, None)
