"""Whether a frame that went there and back is the frame it was, up to what the two conversions say they lost.

*Theory of operation.* `x` goes over as `y` and comes back as `z`. Every loss names a place: in the frame given for most
kinds, in the frame that came out for `added`; items that were left out of a list shift the indexes behind them. All
places are led to places in `x` first, then `x` and `z` are walked together, and a difference counts unless it lies at
or below one of those places. Two differences are allowed without a loss, as docs/decisions/0010-what-is-no-loss.md
says: an empty value under a key that the middle revision does not name, and on the step into 2026-07-28 an empty
`params` or `_meta`. Must not live here: making frames, or judging validity.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from dragoman_spec import Loss
from tests.support.judge import canonical, same

Path = tuple["str | int", ...]
NOT_HERE = object()
EMPTY_OVER_THE_ERAS = {("params",): ({}, {"_meta": {}}), ("params", "_meta"): ({},)}
REMOVING = {"hidden", "dropped"}


def path_of(pointer: str, frame: Any) -> Path:
    """A JSON pointer as keys, numbers where the frame has lists."""
    path: list[str | int] = []
    for part in pointer.split("/")[1:]:
        key: str | int = part.replace("~1", "/").replace("~0", "~")
        if isinstance(frame, list) and part.isdigit():
            key = int(part)
        path.append(key)
        frame = at(frame, (key,))
    return tuple(path)


def at(frame: Any, path: Path) -> Any:
    """The value at a place, or `NOT_HERE`."""
    for key in path:
        if (isinstance(frame, dict) and key in frame) or (
            isinstance(frame, list) and isinstance(key, int) and key < len(frame)
        ):
            frame = frame[key]
        else:
            return NOT_HERE
    return frame


class Places:
    """Places of one conversion's losses, and how places in what came out lead back to what was given."""

    def __init__(self, given: Any, losses: Iterable[Loss]) -> None:
        self.given = given
        self.lost: set[Path] = set()
        self.left_out: set[Path] = set()
        self.added: list[str] = []
        for loss in losses:
            if loss.kind == "added":
                self.added.append(loss.pointer)
                continue
            path = path_of(loss.pointer, given)
            self.lost.add(path)
            if loss.kind in REMOVING and path and isinstance(path[-1], int):
                self.left_out.add(path)

    def back(self, path: Path) -> Path:
        """A place in the frame that came out as a place in the frame given."""
        found: Path = ()
        for key in path:
            if isinstance(key, int):
                key = self._index(found, key)
            found = (*found, key)
        return found

    def _index(self, parent: Path, index: int) -> int:
        items = at(self.given, parent)
        kept = [i for i in range(len(items)) if (*parent, i) not in self.left_out] if isinstance(items, list) else []
        return kept[index] if index < len(kept) else index


def difference(
    x: Any, y: Any, z: Any, there: Iterable[Loss], back: Iterable[Loss], source: str, target: str
) -> str | None:
    """The first difference between a frame and what came back that no loss accounts for; `None` if there is none.

    Args:
        x: The frame given, of *source*.
        y: What it became in *target*.
        z: What that became in *source* again.
        there: The losses from x to y.
        back: The losses from y to z.
        source: The revision of x and z.
        target: The revision of y.
    """
    first, second = Places(x, there), Places(y, back)
    lost = first.lost | {first.back(path_of(pointer, y)) for pointer in first.added}
    lost |= {first.back(path) for path in second.lost}
    lost |= {first.back(second.back(path_of(pointer, z))) for pointer in second.added}
    left_out = first.left_out | {first.back(path) for path in second.left_out}
    return next(_differences(x, z, (), _Walk(y, first, lost, left_out, source, target)), None)


class _Walk:
    """What the walk over both frames asks about a place."""

    def __init__(self, y: Any, first: Places, lost: set[Path], left_out: set[Path], source: str, target: str) -> None:
        self.y, self.first, self.lost, self.left_out = y, first, lost, left_out
        self.named = property_names(source)
        self.over_the_eras = (source < "2026-07-28") != (target < "2026-07-28")

    def may_be_absent(self, value: Any, path: Path) -> bool:
        """Whether an empty value may have gone without a loss."""
        if self.over_the_eras and value in EMPTY_OVER_THE_ERAS.get(path, ()):
            return True
        if not _is_empty(value):
            return False
        in_capabilities = any("apabilities" in str(key) for key in path)
        gone_on_the_way = at(self.y, self._over(path)) is NOT_HERE
        return path[-1] in self.named and gone_on_the_way and not (in_capabilities and value is not None)

    def _over(self, path: Path) -> Path:
        """A place in x as a place in y."""
        found: list[str | int] = []
        for depth, key in enumerate(path):
            if isinstance(key, int):
                key -= sum((*path[:depth], i) in self.first.left_out for i in range(key))
            found.append(key)
        return tuple(found)


def _differences(x: Any, z: Any, path: Path, walk: _Walk) -> Iterator[str]:
    if path in walk.lost and path not in walk.left_out:
        return
    if isinstance(x, dict) and isinstance(z, dict):
        for key in [*x, *(key for key in z if key not in x)]:
            below = (*path, key)
            if key not in z and below not in walk.lost and not walk.may_be_absent(x[key], below):
                yield f"/{'/'.join(map(str, below))} went without a loss: {_short(x[key])}"
            elif key not in x and below not in walk.lost:
                yield f"/{'/'.join(map(str, below))} came without being added: {_short(z[key])}"
            elif key in x and key in z and not (_is_empty(x[key]) and walk.may_be_absent(x[key], below)):
                yield from _differences(x[key], z[key], below, walk)
    elif isinstance(x, list) and isinstance(z, list):
        kept = [i for i in range(len(x)) if (*path, i) not in walk.left_out]
        added = sum((*path, i) in walk.lost for i in range(len(x), len(z)))  # at the end
        if len(kept) + added != len(z):
            yield f"/{'/'.join(map(str, path))} has {len(z)} items instead of {len(kept)}"
        for index, item in zip(kept, z, strict=False):
            yield from _differences(x[index], item, (*path, index), walk)
    elif not same(x, z):
        yield f"/{'/'.join(map(str, path))} was {_short(x)} and is {_short(z)}"


def untrue_loss(x: Any, y: Any, losses: Iterable[Loss]) -> str | None:
    """The first loss that says something wrong: of a place that is not there, of the wrong size, or of nothing lost."""
    losses = tuple(losses)
    places = Places(x, losses)
    anew = [loss.pointer for loss in losses if loss.kind in ("rewritten", "replaced")]
    for loss in losses:
        if loss.kind == "added":
            if at(y, path_of(loss.pointer, y)) is NOT_HERE:
                return f"{loss}: nothing stands there in what came out"
            continue
        value = at(x, path_of(loss.pointer, x))
        if value is NOT_HERE:
            return f"{loss}: nothing stood there"
        if loss.kind != "truncated" and (loss.bytes != _size(value) or not same(loss.value, value)):
            return f"{loss}: what stood there has {_size(value)} bytes"
        if loss.kind == "truncated" and not same(loss.value, value[len(value) - len(loss.value) :]):
            return f"{loss}: it is not the end of what stood there"
        within = any(f"{loss.pointer}/".startswith(f"{place}/") for place in anew)  # where it would be now, is not told
        if loss.kind == "dropped" and not within and path_of(loss.pointer, x) not in places.left_out:
            walk = _Walk(y, places, set(), set(), "2024-11-05", "2024-11-05")
            left = at(y, walk._over(path_of(loss.pointer, x)))
            if left is not NOT_HERE and same(left, value):
                return f"{loss}: it is still there"
    return None


def put_back(x: Any, y: Any, losses: Iterable[Loss], loss: Loss) -> Any:
    """What came out with a lost value in its place again; `None` where its place is gone too."""
    losses = tuple(losses)
    path = path_of(loss.pointer, x)
    walk = _Walk(y, Places(x, losses), set(), set(), "2024-11-05", "2024-11-05")
    parent, value = walk._over(path[:-1]), at(x, path)
    rewritten = any(
        f"{loss.pointer}/".startswith(f"{o.pointer}/") for o in losses if o.kind in ("rewritten", "replaced")
    )
    if rewritten or value is NOT_HERE or not isinstance(at(y, parent), dict):
        return None
    again = copy.deepcopy(y)
    at(again, parent)[path[-1]] = value
    return again


@cache
def property_names(revision: str) -> frozenset[str]:
    """Every property name in the schema of a revision."""
    found: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            found.update(node["properties"] if isinstance(node.get("properties"), dict) else ())
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(canonical(revision)["$defs"])
    return frozenset(found)


def _is_empty(value: Any) -> bool:
    return value in (None, "") or value == [] or value == {}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 200 else f"{text[:200]}…"
