"""Rules that say who may see and use what, as a configuration file has them.

Lives here: reading them. Must not: apply them (`dragoman.middlewares.access`). A key that nobody knows is an error:
what it was to say would not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman.config.document import Node
from dragoman.config.findings import Findings, named, near
from dragoman.config.model import AccessRule, Things

_FOR: Final = ("principals", "scopes", "claims")
_THINGS: Final = ("servers", "tools", "prompts", "resources")
_RULE: Final = ("for", "allow", "deny")


def read_rules(findings: Findings, node: Node, what: str) -> tuple[AccessRule, ...] | None:
    """Read an array of rules; None, with what is wrong noted, where one of them cannot be used."""
    if not isinstance(node.value, list):
        findings.add(node, f"expected {what} to be an array, found {named(node)}", 'write [{"allow": { … }}]')
        return None
    found = [_read_rule(findings, one, f"rule {number} of {what}") for number, one in enumerate(node.value, 1)]
    return None if None in found else tuple(one for one in found if one is not None)


def _read_rule(findings: Findings, node: Node, what: str) -> AccessRule | None:
    members = _read_members(findings, node, what, _RULE)
    if members is None:
        return None
    if "allow" not in members and "deny" not in members:
        findings.add(node, f"{what} neither allows nor denies anything", 'write "allow": { … }')
        return None
    before = len(findings.problems)
    whom = _read_members(findings, members["for"], f"for of {what}", _FOR) if "for" in members else {}
    whom = whom or {}
    principals = findings.texts(whom["principals"], f"principals of {what}") if "principals" in whom else None
    scopes = findings.texts(whom["scopes"], f"scopes of {what}") if "scopes" in whom else []
    claims = _read_claims(findings, whom["claims"], f"claims of {what}") if "claims" in whom else {}
    allow, deny = (
        _read_things(findings, members[name], f"{name} of {what}") if name in members else None
        for name in ("allow", "deny")
    )
    if len(findings.problems) > before:
        return None
    listed = tuple((name, tuple(values)) for name, values in (claims or {}).items())
    return AccessRule(None if principals is None else tuple(principals), tuple(scopes or ()), listed, allow, deny)


def _read_claims(findings: Findings, node: Node, what: str) -> dict[str, list[str]]:
    """Read what claims have to say: a text, or one of several."""
    found: dict[str, list[str]] = {}
    for name, value in (findings.members(node, what) or {}).items():
        several = isinstance(value.value, list)
        texts = findings.texts(value, f"{name} of {what}") if several else [findings.text(value, f"{name} of {what}")]
        found[name] = [text for text in texts or () if text is not None]
    return found


def _read_things(findings: Findings, node: Node, what: str) -> Things | None:
    members = _read_members(findings, node, what, _THINGS)
    if members is None:
        return None
    given = {name: findings.texts(value, f"{name} of {what}") for name, value in members.items()}
    return Things(**{name: tuple(texts) for name, texts in given.items() if texts is not None})


def _read_members(findings: Findings, node: Node, what: str, known: tuple[str, ...]) -> Mapping[str, Node] | None:
    members = findings.members(node, what)
    for name in members or ():
        if name not in known:
            meant = near(name, known)
            remedy = f"write {meant!r}" if meant else f"there are: {', '.join(known)}"
            findings.add(node.names[name], f"{what} has no key {name!r}", remedy)
            return None
    return members
