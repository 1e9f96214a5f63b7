"""What a server for every request cannot do: outlive it, or be one of any number. Scope `request`.

Lives here: what is neither offered nor served there, and how many servers there may be. Used by `per_call` and `apart`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, facts

LASTING: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).standing)
"""Methods."""

_FLAGS: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).server_flags)
"""Capabilities."""

_ENDING: Final = 4
"""How many times as many servers as may run may be on their way out."""


def explain_crowd(running: int, ending: int, limit: int) -> str:
    """Say why there may not be another server; nothing where there may."""
    if running >= limit:
        return f"more than {limit} requests at once"
    if ending >= limit * _ENDING:
        return f"{limit * _ENDING} servers of earlier requests are not gone yet"
    return ""


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
