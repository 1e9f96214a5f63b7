"""The named repair rules: switches for defects of real peers, with what each does. Imports no pydantic.

Source: the `[[rule]]` tables of codegen/overlays. Most are functions of steps; what the others stand for is in
`_tables`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from dragoman_spec import _tables


class Rule(NamedTuple):
    """One repair rule.

    Args:
        name: As in `--no-rule NAME` and `rules=`.
        summary: What it does, for which peers.
        default: Whether it is on unless switched off.
    """

    name: str
    summary: str
    default: bool


RULES: Mapping[str, Rule] = MappingProxyType({name: Rule(name, *said) for name, said in _tables.RULES.items()})
"""Every rule, by name."""

DEFAULT_RULES: frozenset[str] = frozenset(rule.name for rule in RULES.values() if rule.default)
"""The rules that are on unless switched off."""


def check_rules(rules: Collection[str] | None) -> frozenset[str]:
    """The names of the rules that are on.

    Raises:
        ValueError: A name that is no rule's.
    """
    if rules is None:
        return DEFAULT_RULES
    unknown = sorted(set(rules) - RULES.keys())
    if unknown:
        raise ValueError(f"no repair rule {unknown[0]!r}; there are {', '.join(RULES)}")
    return frozenset(rules)
