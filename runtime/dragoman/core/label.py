"""Whose session something happens in, for the log.

Lives here: the context variables that say so. Set by a front when a session opens and when a request of it comes;
read by whatever writes the log (`cli.logs`). Must not: hold a secret: neither session ids nor tokens. Tasks, timers and
callbacks inherit it, so that a line about a session's server carries the session's label too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

LABEL: Final[ContextVar[str]] = ContextVar("dragoman.session", default="")
"""Such as `session 3` or `session 3 of ada`; empty where something concerns no session, or all."""

PRINCIPAL: Final[ContextVar[str]] = ContextVar("dragoman.principal", default="")
"""The name that goes with the secret of whoever opened the session; empty where everybody may come in."""

_FOR: Final = " for "

SHARED: Final = "shared server"
"""The label of what concerns a server that several sessions share."""


def speak_for(sender: str) -> None:
    """Say whose it is, where what several say is carried by one: a principal, or a session where nobody has a name."""
    PRINCIPAL.set(sender)
    if not f" {LABEL.get()}".endswith(f" {sender}"):
        LABEL.set(sender)


def name_told(teller: str, tag: str) -> str:
    """Name a principal of whom another proxy tells, which is a principal itself or has no name."""
    return f"{teller or 'a proxy'}{_FOR}{tag}"


def teller_of(principal: str) -> str:
    """Return who has told of a principal; the same where nobody has. No other name has such a part."""
    teller, is_told, _ = principal.rpartition(_FOR)
    return teller if is_told else principal


def log_as(label: str, step: Callable[..., Any], *args: Any) -> Any:
    """Take a step; what is logged meanwhile is about the session with this label. Give what the step gives."""
    token = LABEL.set(label)
    try:
        return step(*args)
    finally:
        LABEL.reset(token)


def write_label(number: int, principal: str) -> str:
    """Name a session for people.

    Args:
        number: Counted from 1 in each front; it tells nobody the session's id.
        principal: The name that goes with its secret; empty where everybody may come in.
    """
    return f"session {number} of {principal}" if principal else f"session {number}"
