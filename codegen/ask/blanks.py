"""What nobody has said yet of a revision, as lines of its overlay: a blank for each sentence, and the order of fields.

Lines are put into the overlay's text, so that what a person wrote there, and how, stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from codegen.names import toml
from codegen.read.normalise import Normalised
from codegen.read.words import Words, missing_words

BARE = re.compile(r"[A-Za-z0-9_-]+")
HEADINGS = {
    "words": "# What methods, definitions and fields mean, in our own words, where no earlier overlay says so already.",
    "order": "# Where a reader meets new fields: each behind the one before it, as in the official `schema.ts`.",
}


@dataclass(frozen=True, slots=True)
class Blank:
    """One line: the keys of its table and its own, and the value that it has until somebody changes it."""

    place: tuple[str, ...]
    value: str | list[str]

    @property
    def table(self) -> str:
        """The heading of the table that the line stands in."""
        return f"[{'.'.join(map(_key, self.place[:-1]))}]"

    @property
    def line(self) -> str:
        """The line."""
        return f"{self.key} = {toml(self.value)}"

    @property
    def key(self) -> str:
        """The line up to the equals sign."""
        return _key(self.place[-1])


def blanks_of(schema: Normalised, words: Words, known: Collection[tuple[str, ...]] = ()) -> list[Blank]:
    """What a revision lacks, but for the places that are *known* to be lacking in an earlier one."""
    blanks = [Blank(("words", *place), "") for place in missing_words(words, schema)]
    for name, node in schema.definitions.items():
        fields = words.arrange(name, list(node.get("properties", {})), ())
        asked = [field for field in fields if field in words.order.get(name, ()) or field not in words.placed(name)]
        if len(asked) > 1 and not {*asked} <= {*words.placed(name)}:
            blanks.append(Blank(("order", name), asked))
    return [blank for blank in blanks if blank.place not in known]


def add_blanks(text: str, blanks: Sequence[Blank]) -> str:
    """Put blanks into the tables of an overlay's text; those that it has already are not put there again."""
    lines = text.rstrip().split("\n") if text.strip() else []
    for blank in blanks:
        if blank.table not in lines:
            heading = HEADINGS[blank.place[0]]
            lines += ([] if heading in lines else ["", heading]) + ["", blank.table]
        start = lines.index(blank.table) + 1
        end = next((at for at in range(start, len(lines)) if lines[at].startswith("[") or not lines[at]), len(lines))
        if not any(line.startswith(f"{blank.key} =") for line in lines[start:end]):
            lines.insert(end, blank.line)
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else toml(name)
