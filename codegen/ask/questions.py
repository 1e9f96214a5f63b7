"""Undecided changes as questions: changes that are alike are one, since a person decides them by one entry.

The schema files write inherited members out, so one new field of `Result` is a change of every result. Alike is what
has the same kind in the same direction and is about the same: a field of one name, one definition as an arm, one type
that becomes another, one new name. Who wants to decide them apart splits the entry. Called by `skeleton`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from codegen.read.overlay import Change


@dataclass(frozen=True, slots=True)
class Question:
    """Changes that are alike, the first of them in front."""

    changes: tuple[Change, ...]

    @property
    def first(self) -> Change:
        """The change that stands for all."""
        return self.changes[0]

    @property
    def places(self) -> tuple[str, ...]:
        """The paths of all of them."""
        return tuple(change.at for change in self.changes)

    def __str__(self) -> str:
        more = self.places[1:]
        return f"{self.first}{f'; and so in {len(more)} more: ' if more else ''}{', '.join(more)}"


def ask_once(changes: Iterable[Change]) -> list[Question]:
    """The questions that changes come to, in the order of the first change of each."""
    found: dict[Hashable, list[Change]] = {}
    for change in changes:
        found.setdefault(_subject(change), []).append(change)
    return [Question(tuple(alike)) for alike in found.values()]


def _subject(change: Change) -> Hashable:
    """What a change is about, wherever it is."""
    table, entry = change.instead
    if table:
        return change.direction, table, json.dumps({key: value for key, value in entry.items() if key != "at"})
    return change.direction, change.kind, change.arm, _matter(change)


def _matter(change: Change) -> str:
    """What has to be the same, beside the arm, for two changes of a kind to be alike."""
    match change.kind:
        case "required":
            return change.target_way.rpartition("/properties/")[2]
        case "narrowed":
            return change.detail
        case "field-removed":
            # Fields that leave the same object: the question is whether its other keys are for them.
            return re.split(r"/properties/|/", change.target_way.rpartition("/properties/")[0])[-1]
        case "arm-removed":
            return "" if change.arm[:1].isupper() else change.detail
    return change.at
