"""Holding a large frame against its models piece by piece.

Lives here: cutting a frame into frames that are valid where it is valid. Must not: know what a frame says.

The models of a frame take up to forty times its bytes, and a thousand bytes for each place that is wrong. So no array
or object is held against them with more than some hundred members at once: first comes the frame with the first members
of each, then, for each array or object that has more, the frame with the next ones, and so on. Members are valid or not
without regard to their number, but for limits that are below that: the schemas have one of 100. The members of an
object that the models name are never left out: what is required has to be there, and they say what the object is.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from dragoman.core.exact_json import escape

PIECE: Final = 128
"""How many members of an array or object are looked at together."""

_DEEPEST: Final = 100

Path = tuple[str | int, ...]


class Misfit(NamedTuple):
    """Where a frame is not valid: a JSON pointer, what should stand there, and what does."""

    pointer: str
    expected: str
    found: str


@dataclass(slots=True)
class FrameSlicer:
    """Cuts frames.

    Args:
        names: Gives the members that models name; asked only where something is large.
        piece: How many members are looked at together.
    """

    names: Callable[[], Container[str]]
    piece: int = PIECE
    _large: list[tuple[Path, Any]] = field(default_factory=list)

    def find(
        self, frame: Any, judge: Callable[[Any], Sequence[Misfit]], goes_on: Callable[[], bool]
    ) -> Iterator[Misfit]:
        """Return each place where a frame is not valid, in no particular order.

        Args:
            frame: As it was decoded.
            judge: Gives the places in a frame of moderate size.
            goes_on: Whether to look further; asked before each piece.
        """
        self._large = []
        yield from judge(self._cut(frame, ()))
        while self._large and goes_on():
            yield from self._find_in_rest(frame, *self._large.pop(), judge, goes_on)

    def _find_in_rest(
        self,
        frame: Any,
        path: Path,
        whole: Any,
        judge: Callable[[Any], Sequence[Misfit]],
        goes_on: Callable[[], bool],
    ) -> Iterator[Misfit]:
        """Look at what has more members than one piece, piece by piece; the first has been looked at."""
        is_array, names = isinstance(whole, list), self.names()
        rest = islice(whole if is_array else whole.items(), self.piece, None)
        place, place_in_part = _pointer_to(path), _pointer_to(_path_in_part(frame, path))
        for start in range(self.piece, len(whole), self.piece):
            if not goes_on():
                return
            some: Any = [*islice(rest, self.piece)]
            some = some if is_array else {key: member for key, member in some if key not in names}
            inner = self._cut(some, path, start)
            inner = inner if is_array else self._named(whole) | inner
            for one in judge(self._surround(frame, path, inner)):
                below = one.pointer.removeprefix(f"{place_in_part}/")
                key, slash, way = below.partition("/")
                if below != one.pointer and is_array:
                    yield one._replace(pointer=f"{place}/{start + int(key)}{slash}{way}")
                elif below != one.pointer and _unescape(key) in some:
                    yield one._replace(pointer=f"{place}/{below}")

    def _cut(self, value: Any, path: Path, start: int = 0) -> Any:
        """Return a value with no more than the first members of each array and object; the same one if it has no more.

        Args:
            value: To cut.
            path: To it. What is cut is noted down with it.
            start: The number of the first member, if it is a part of an array.
        """
        if not isinstance(value, list | dict) or len(path) > _DEEPEST:
            return value
        if len(value) > self.piece:
            self._large.append((path, value))
            value = self._begin(value)
        members = enumerate(value) if isinstance(value, list) else value.items()
        changed = {}
        for key, member in members:
            name = key + start if isinstance(value, list) else key
            cut = self._cut(member, (*path, name)) if isinstance(member, list | dict) and member else member
            if cut is not member:
                changed[key] = cut
        if not changed:
            return value
        if isinstance(value, list):
            return [changed.get(index, member) for index, member in enumerate(value)]
        return value | changed

    def _begin(self, value: Any) -> Any:
        """Return the first members of an array or object, and those that models name."""
        if isinstance(value, list):
            return value[: self.piece]
        return dict(islice(value.items(), self.piece)) | self._named(value)

    def _named(self, value: dict[str, Any]) -> dict[str, Any]:
        names = self.names()
        return {key: member for key, member in value.items() if key in names}

    def _surround(self, frame: Any, path: Path, inner: Any) -> Any:
        """Return a frame with something in the place of what a path leads to, and of arrays nothing else."""
        if not path:
            return inner
        key, *rest = path
        inner = self._surround(frame[key], tuple(rest), inner)
        if isinstance(frame, list):
            return [inner]
        before, self._large = self._large, []  # what is large beside it is looked at elsewhere
        beside = self._cut(frame, ())
        self._large = before
        return {**beside, key: inner}


def _path_in_part(frame: Any, path: Path) -> Path:
    """Return the path that leads to the same place where each array has only the member on the way."""
    found: list[str | int] = []
    for key in path:
        found.append(0 if isinstance(frame, list) else key)
        frame = frame[key]
    return tuple(found)


def _pointer_to(path: Path) -> str:
    return "".join(f"/{key if isinstance(key, int) else escape(key)}" for key in path)


def _unescape(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")
