"""What a client can be asked.

Lives here: reading it off the capabilities that a client declared, and comparing a request with it. Must not: choose
whom to ask. Used where a server does not see each client's own capabilities: at a shared server, and between the eras.

"Both parties MUST only use capabilities that were successfully negotiated" (lifecycle, Operation). A server that was
told that all of them are there is told here what a client lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, facts

_KNOWN: Final = facts(HANDSHAKE_REVISIONS[-1])
"""What clients are held against, whatever the server speaks: a newer part of a capability has to be respected there
too."""


def read_declared(capabilities: Any) -> frozenset[str]:
    """Return what a client can be asked: names of capabilities, and of parts such as `sampling.tools`.

    Args:
        capabilities: As they came in the params of `initialize`.
    """
    found: set[str] = set()
    for name in _KNOWN.shared_capabilities:
        declared = capabilities.get(name) if isinstance(capabilities, dict) else None
        if isinstance(declared, dict):
            found.add(name)
            parts = [part for part in _KNOWN.parts if part.capability.startswith(f"{name}.")]
            found.update(
                part.capability
                for part in parts
                if part.capability.removeprefix(f"{name}.") in declared or (part.is_default and not declared)
            )
    return frozenset(found)


def split_declared(capabilities: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a client can be asked, in one spelling of its own; and all that capabilities say beside that.

    Args:
        capabilities: Of a client, in the form of the newest revision with a handshake.

    Returns:
        Names and parts that the revision knows, which say no more than what was declared; and the members, parts and
        settings that are not among these, as they came: extensions, for instance.
    """
    asked: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in capabilities.items():
        parts = _KNOWN.shared_capabilities.get(name)
        if parts is None or not isinstance(value, dict):
            rest[name] = value
            continue
        known = {part: spelled for part, spelled in parts.items() if declares(value, part)}
        more = {part: each for part, each in value.items() if part not in known or each != known[part]}
        if read_declared({name: known}) <= read_declared({name: value}):
            asked[name] = known
        if more:
            rest[name] = more
    return asked, rest


def find_missing(method: str, params: dict[str, Any], declared: frozenset[str]) -> str | None:
    """Return what a client lacks to be asked this; None when it can be asked."""
    needed = _KNOWN.asked.get(method)
    if needed is None or needed not in declared:
        return needed
    parts = (part for part in _KNOWN.parts if part.method == method and part.is_needed(params))
    return next((part.capability for part in parts if part.capability not in declared), None)


def declares(capabilities: Mapping[str, Any], path: str) -> bool:
    """Whether capabilities hold this one, such as `sampling.tools`; null and false mean that they do not."""
    found: Any = capabilities
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return found is not None and found is not False
