"""What a check has found, and of which revision.

Lives here: findings, collected so that each place is told once. Must not: look at frames, or print.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from dragoman.check.rules import RULES, CheckRule, Level, Wires, page_of
from dragoman_spec import era, facts

MOST: Final = 1000
"""How many findings of one rule are kept in one revision."""

QUOTED_MOST: Final = 500
"""How many characters of anything a finding quotes."""

Outcome = Literal["spoken", "refused", "silent", "gone", "untried"]
"""What a server does with a revision: it speaks it, answers that it does not, does not answer, ends or cannot be
reached, or was not asked any more."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A place where a server breaks a rule.

    Attributes:
        rule: Its name.
        level: How strong the specification puts it.
        revision: In which the server was spoken to.
        about: What the message was, in words: `answer to tools/list`.
        pointer: JSON pointer into it; empty for all of it.
        expected: What should stand there, or happen.
        found: What does.
        page: The specification's page.
    """

    rule: str
    level: Level
    revision: str
    about: str
    pointer: str
    expected: str
    found: str
    page: str


@dataclass(slots=True)
class FindingLog:
    """What is found in one revision.

    Attributes:
        revision: It.
        over: The transport.
        all: The findings, in order.
    """

    revision: str
    over: Wires
    all: list[Finding] = field(default_factory=list)
    _seen: set[tuple[str, str, str]] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)

    def note(
        self, rule: str, about: str, expected: str, found: str, *, pointer: str = "", method: str | None = None
    ) -> None:
        """Write down that a rule is broken; of one place only once, and not where the rule does not hold.

        Args:
            rule: Its name.
            about: What the message was.
            expected: What should be so.
            found: What is.
            pointer: Into the message.
            method: Whose page says more about a model.
        """
        entry = RULES[rule]
        about, pointer, expected, found = (_quote(one) for one in (about, pointer, expected, found))
        place = rule, about, pointer
        if not holds(entry, self.revision, self.over) or place in self._seen or self.is_full(rule):
            return
        self._seen.add(place)
        self._counts[rule] = self._counts.get(rule, 0) + 1
        page = page_of(entry, self.revision, era(self.revision), method)
        self.all.append(Finding(rule, entry.level, self.revision, about, pointer, expected, found, page))

    def is_full(self, rule: str) -> bool:
        """Whether nothing more is kept of a rule."""
        return self._counts.get(rule, 0) >= MOST

    def withdraw(self, rule: str, about: str) -> None:
        """Take back that a rule was broken: it has turned out that it was not."""
        place = rule, _quote(about), ""
        if place in self._seen:
            self._seen.discard(place)
            self._counts[rule] -= 1
            self.all = [one for one in self.all if (one.rule, one.about, one.pointer) != place]

    def is_told(self, rule: str, about: str, pointer: str) -> bool:
        """Whether it is written down that a rule is broken at a place."""
        return (rule, _quote(about), _quote(pointer)) in self._seen


def _quote(text: str) -> str:
    return text if len(text) <= QUOTED_MOST else f"{text[: QUOTED_MOST - 1]}…"


def holds(rule: CheckRule, revision: str, over: Wires) -> bool:
    """Whether a rule holds in a revision, over a transport."""
    if rule.page(era(revision)) is None or not rule.when(revision):
        return False
    return rule.over in ("any", over) and (rule.over != "http" or bool(facts(revision).http_methods))


@dataclass(frozen=True, slots=True)
class LostFor:
    """What clients of an older revision lose of one kind of message.

    Attributes:
        target: Their revision.
        method: What they asked.
        pointer: Where it stood in the answer, with `*` for the place in a list.
        kind: What becomes of it.
        count: How often.
        cosmetic: Whether nothing acts on it.
    """

    target: str
    method: str
    pointer: str
    kind: str
    count: int
    cosmetic: bool


@dataclass(frozen=True, slots=True)
class RevisionReport:
    """What came of one revision.

    Attributes:
        revision: It.
        outcome: Whether the server speaks it, or what it did instead.
        why: The same in words, where it does not.
        server: How the server names itself there.
        asked: How many requests it was asked.
        findings: What it broke.
        rules: The names of the rules that it was held against.
    """

    revision: str
    outcome: Outcome
    why: str
    server: str = ""
    asked: int = 0
    findings: tuple[Finding, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def served(self) -> bool:
        """Whether the server speaks it."""
        return self.outcome == "spoken"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What came of a check.

    Attributes:
        target: What was checked, for a person.
        revisions: The report of each revision, oldest first.
        lost: What clients of older revisions, which the server does not speak, lose of what it says in the newest that
            it speaks.
    """

    target: str
    revisions: tuple[RevisionReport, ...]
    lost: tuple[LostFor, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all revisions."""
        return tuple(finding for one in self.revisions for finding in one.findings)

    @property
    def served(self) -> tuple[str, ...]:
        """The revisions that the server speaks."""
        return tuple(one.revision for one in self.revisions if one.served)

    @property
    def is_whole(self) -> bool:
        """Whether there was time for everything."""
        cut = any(finding.rule == "in-time" for finding in self.findings)
        return not cut and all(one.outcome != "untried" for one in self.revisions)

    @property
    def outcome(self) -> Outcome:
        """What the server does: `spoken` if it speaks a revision, or else the most that it did in any."""
        found = {one.outcome for one in self.revisions}
        order: tuple[Outcome, ...] = ("spoken", "refused", "silent", "gone")
        return next((one for one in order if one in found), "untried")
