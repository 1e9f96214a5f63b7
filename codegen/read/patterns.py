"""The keyword `pattern`: a regular expression of ECMA-262 as one of Python, if it says the same and ends in good time.

Python tries one way after the other. Where a text can be taken apart in many ways, as by `(a+)+` or `a*a*`, one short
name of a peer would hold everybody up. So every way in which a repetition goes on is looked at: the characters that may
come next say which it is, or the pattern is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

_PARTS = re.compile(
    r"""(?P<escape> \\[dw] ) | (?P<plain> \\[nrt./\\^$*+?()\[\]{}|\-] | [^\\\[\](){}*+?|^$.] )
    | (?P<class> \[ \^? (?: \\[dwnrt./\\^$*+?()\[\]{}|\-] | [^\\\[\]&~|] )+ \] )
    | (?P<dot> \. ) | (?P<end> \$ )
    | (?P<other> \^ | \( (?: \?: | (?!\?) ) | [)|] | [*+?] \?? | \{ [0-9]{1,4} (?:,[0-9]{0,4})? \} \?? )""",
    re.VERBOSE,
)
_SETS = {r"\d": "0-9", r"\w": "A-Za-z0-9_"}
_MOST = 300
"""Parts of a pattern; the longest that is in use for names, of versions, has some 120."""
_COMMON = frozenset(map(chr, (*range(129), *range(0x2027, 0x202B), 0xD7FF, 0x10FFFF)))
"""Characters of which one, or a neighbour of one in the pattern, is in every set that can be written and not empty."""


def read_pattern(pattern: str) -> str | None:
    """A regular expression of ECMA-262 as one of Python that finds the same; `None` where that is not sure.

    Python's `\\d` and `\\w` take digits and letters of all scripts, its `$` stands before a last line break, too, and
    its `.` takes more line ends. What looks around, refers back or names properties of characters is not read, nor what
    could take more time than the length of a text says.
    """
    parts, place = list[tuple[str, str]](), 0
    while place < len(pattern):
        part = _PARTS.match(pattern, place)
        if part is None or len(parts) == _MOST:
            return None
        text, place = part[0], part.end()
        match part.lastgroup:
            case "escape":
                text = f"[{_SETS[text]}]"
            case "class":
                text = re.sub(r"\\.", lambda one: _SETS.get(one[0], one[0]), text)
            case "dot":
                text = r"[^\n\r\u2028\u2029]"
            case "end":
                text = r"\Z"
        parts.append((str(part.lastgroup), text))
    found = "".join(text for _, text in parts)
    try:
        re.compile(found)
    except re.error:
        return None
    return found if _Ways(parts, pattern).is_quick() else None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a pattern: the places where it may begin and end, and whether nothing is enough for it."""

    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    is_nothing: bool = True


@dataclass(slots=True)
class _Ways:
    """The places of a pattern that take a character, which characters, and which places may come next."""

    parts: list[tuple[str, str]]
    pattern: str
    sets: list[frozenset[str]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    is_odd: bool = False
    """A repetition repeats what may be nothing."""
    _at: int = 0

    def is_quick(self) -> bool:
        """Whether the time it takes grows as the text does."""
        whole = self._alternatives()
        if not all(branch.startswith("^") for branch in _branches(self.parts)):
            # It may begin anywhere: as after any characters.
            self.sets.append(self._points())
            self.after.append([len(self.sets) - 1, *whole.first])
        return not self.is_odd and not any(map(self._is_slow, range(len(self.sets))))

    def _is_slow(self, place: int) -> bool:
        """Whether a repetition through a place can go on in two ways for one character, again and again."""
        near = self.after[place]
        if place not in self._beyond(near):
            return False
        if len(set(near)) < len(near):
            return True
        goes_on = {one for one in near if one == place or place in self._beyond([one])}
        for one, other in combinations(near, 2):
            ends = [self._beyond([way]) for way in (one, other) if way not in goes_on]
            if self.sets[one] & self.sets[other] and (not ends or any(self._repeats(end) for end in ends)):
                return True
        return False

    def _repeats(self, places: set[int]) -> bool:
        return any(place in self._beyond(self.after[place]) for place in places)

    def _beyond(self, places: list[int]) -> set[int]:
        """The places, and all that can come after them."""
        found, open_ = set[int](), list(places)
        while open_:
            place = open_.pop()
            if place not in found:
                found.add(place)
                open_ += self.after[place]
        return found

    def _alternatives(self) -> _Piece:
        found = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            found.append(self._sequence())
        first, last = (frozenset().union(*ends) for ends in zip(*((p.first, p.last) for p in found), strict=True))
        return _Piece(first, last, any(piece.is_nothing for piece in found))

    def _sequence(self) -> _Piece:
        whole = _Piece()
        while self._next() not in ("", "|", ")"):
            piece = self._repeated()
            self._join(whole.last, piece.first)
            whole = _Piece(
                whole.first | piece.first if whole.is_nothing else whole.first,
                whole.last | piece.last if piece.is_nothing else piece.last,
                whole.is_nothing and piece.is_nothing,
            )
        return whole

    def _repeated(self) -> _Piece:
        kind, text = self.parts[self._at]
        self._at += 1
        if text.startswith("(") and kind == "other":
            piece = self._alternatives()
            self._at += 1
        elif kind in ("end", "other"):
            return _Piece()
        else:
            self.sets.append(frozenset(one for one in self._points() if re.fullmatch(text, one)))
            self.after.append([])
            piece = _Piece(frozenset({len(self.sets) - 1}), frozenset({len(self.sets) - 1}), False)
        times = self._next()
        if times[:1] not in ("*", "+", "?", "{") or self.parts[self._at][0] != "other":
            return piece
        self._at += 1
        low = times.strip("{}?").partition(",")[0]
        if times[0] != "?" and not (kind != "other" and times[0] == "{" and "," not in times):
            self.is_odd |= piece.is_nothing
            self._join(piece.last, piece.first)
        return _Piece(piece.first, piece.last, piece.is_nothing or times[0] in "*?" or low.strip("0") == "" != low)

    def _next(self) -> str:
        """The next part, if it is more than a character; a space for one that is not, and nothing at the end."""
        if self._at == len(self.parts):
            return ""
        kind, text = self.parts[self._at]
        return text if kind == "other" else " "

    def _join(self, ends: frozenset[int], starts: frozenset[int]) -> None:
        for end in ends:
            self.after[end] += sorted(starts)

    def _points(self) -> frozenset[str]:
        near = {ord(one) + step for one in self.pattern for step in (-1, 0, 1)}
        return _COMMON | {chr(one) for one in near if 0 <= one <= 0x10FFFF}


def _branches(parts: list[tuple[str, str]]) -> Iterator[str]:
    """The alternatives of a whole pattern, as text."""
    depth, branch = 0, ""
    for kind, text in parts:
        depth += (kind == "other") * (text.startswith("(") - (text == ")"))
        if kind == "other" and text == "|" and not depth:
            yield branch
            branch = ""
        else:
            branch += text
    yield branch
