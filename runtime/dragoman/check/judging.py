"""Holding one message against its models, and seeing what no model sees: members that stand there twice.

Lives here: which models count for a message, and each place told once. Must not: know who asked (`listening`).
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import dragoman_spec
from dragoman.check.findings import FindingLog
from dragoman.check.patience import CheckPatience
from dragoman.check.slicing import FrameSlicer, Misfit
from dragoman.core.exact_json import count_members


class FrameJudge:
    """Holds the messages of one session against the models of its revision.

    Args:
        findings: Where what is wrong is written down.
        patience: When no time is left for more.
    """

    def __init__(self, findings: FindingLog, patience: CheckPatience) -> None:
        self._findings = findings
        self._patience = patience
        self._methods: Mapping[str, Any] = dragoman_spec.load(findings.revision).METHODS
        self._slicer = FrameSlicer(partial(member_names, findings.revision))
        self._told: set[tuple[str, ...]] = set()

    def judge(self, body: dict[str, Any], rule: str, about: str, method: str, repeats: bool = False) -> None:
        """Write down every place where a message is not valid.

        Args:
            body: The message.
            rule: Which it breaks then.
            about: What it is, in words.
            method: Its method, or that of the request that it answers.
            repeats: Whether the same was answered before: what was wrong with that is not told again.
        """
        result = body.get("result")
        as_usual = isinstance(result, dict) and result.get("resultType", "complete") == "complete"
        as_usual = as_usual and "task" not in result  # type: ignore[operator]  # it is a dict
        known = method if method in self._methods else None
        if rule == "result-model" and known is None:
            return

        def find(frame: Any) -> list[Misfit]:
            found = dragoman_spec.violations(frame, self._findings.revision, known, as_usual=as_usual)
            return [Misfit(one.pointer, one.expected, one.found) for one in found]

        def goes_on() -> bool:
            return not self._patience.is_over and not self._findings.is_full(rule)

        for one in self._slicer.find(body, find, goes_on):
            if one.pointer == "/jsonrpc" or (one.pointer == "/id" and "method" not in body):
                continue  # told already
            what = method, *one
            if repeats and what in self._told:
                continue
            if not self._findings.is_full(rule):
                self._told.add(what)
            self._findings.note(rule, about, one.expected, one.found, pointer=one.pointer, method=method)


@cache
def member_names(revision: str) -> frozenset[str]:
    """Return the names of all members of all models of a revision, as they stand in JSON."""
    package = dragoman_spec.load(revision)
    found = [getattr(package, name) for name in dir(package)]
    models = [one for one in found if isinstance(one, type) and hasattr(one, "model_fields")]
    return frozenset(field.alias or name for model in models for name, field in model.model_fields.items())


def find_repeated(line: bytes, body: Any) -> str | None:
    """Return the name of a member that an object in a message has twice: what counts, each reader decides for itself.

    Args:
        line: The message.
        body: The same, decoded: it has each member once.
    """
    if count_members(line) == _count_decoded(body):
        return None
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs) and not found:
            ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
            found.append(name)

    with contextlib.suppress(ValueError, RecursionError):
        json.loads(line, object_pairs_hook=look)
    return found[0] if found else None


def _count_decoded(body: Any) -> int:
    count, left = 0, [body]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            count += len(value)
            left += [one for one in value.values() if isinstance(one, dict | list)]
        elif isinstance(value, list):
            left += [one for one in value if isinstance(one, dict | list)]
    return count
