"""The laws of translation, each a function that says how a frame breaks it, or `None`.

A law takes a frame and a `Case`: the subject it is of, the revision it goes to, the profile and the rules. The laws are
written so that they can fail: `tests/laws/test_mutations.py` breaks plans on purpose and sees that one of them does.
Identity, which no frame can break alone, is in `tests/laws/test_identity.py`, and totality in `test_totality.py`.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dragoman_spec import DEFAULT_RULES, REVISIONS, Translation, Untranslatable, translate
from tests.support.judge import canonical, same
from tests.support.left_out import left_out_on_the_way_up
from tests.support.renames import method_in
from tests.support.round_trips import difference, put_back, untrue_loss
from tests.support.strictness import strict_validator
from tests.support.subjects import Subject, counterpart, frame_faults, revisions_named

NO_RULES: frozenset[str] = frozenset()
OVER_THE_ERAS = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Case:
    """What a frame is, and where it goes."""

    subject: Subject
    target: str
    profile: str = "strict"
    rules: frozenset[str] = DEFAULT_RULES

    @property
    def source(self) -> str:
        return self.subject.revision

    def over(self, frame: Any) -> Translation | None:
        """The frame translated; `None` if it is refused."""
        return self._translate(frame, self.source, self.target)

    def back(self, frame: Any) -> Translation | None:
        """A translated frame translated back."""
        return self._translate(frame, self.target, self.source)

    def between(self) -> tuple[str, ...]:
        """The revisions between source and target."""
        low, high = sorted((REVISIONS.index(self.source), REVISIONS.index(self.target)))
        return REVISIONS[low + 1 : high]

    def leg(self, frame: Any, source: str, target: str) -> Translation | None:
        """A frame translated over a part of the way."""
        return self._translate(frame, source, target)

    def _translate(self, frame: Any, source: str, target: str) -> Translation | None:
        asked, rules = self.subject.asked, self.rules
        asked = None if asked is None else method_in(self.source, source, asked)
        try:
            return translate(frame, source=source, target=target, method=asked, profile=self.profile, rules=rules)
        except Untranslatable:
            return None


def validity(frame: Any, case: Case) -> str | None:
    """Law 4: what comes out is valid in the target; in the strict profile it has nothing that only the source names."""
    over = case.over(frame)
    if over is None or over.frame is None:
        return None
    there = counterpart(case.subject, case.target)
    if there is None:
        return f"{case.target} has no {case.subject.method}, and the frame was let through"
    faults = frame_faults(over.frame, there)
    if not faults and case.profile == "strict" and there.kind != "error":
        value = over.frame["result"] if there.kind == "result" else over.frame
        faults = [
            error.message for error in strict_validator(case.source, case.target, there.definition).iter_errors(value)
        ]
    return f"{faults[0]}: {over.frame}" if faults else None


def round_trip(frame: Any, case: Case) -> str | None:
    """Laws 2 and 3: there and back is the same frame, up to the losses recorded, and exactly where there are none."""
    over = case.over(frame)
    if over is None or over.frame is None or _speaks_of_the_conversion(frame, case):
        return None
    back = case.back(over.frame)
    if back is None or back.frame is None:
        return f"it does not come back from {over.frame}"
    found = difference(frame, over.frame, back.frame, over.losses, back.losses, case.source, case.target)
    return (
        None if found is None or _is_expected(found, over.frame, case) else f"{found}; on the way it was {over.frame}"
    )


def old_new_old(frame: Any, case: Case) -> str | None:
    """Law 2, its strict half: on the way up nothing is lost, and among the handshake revisions nothing is even touched.

    Only what a step itself leaves out is (`left_out_on_the_way_up`); the rest of an old message, free of keys that only
    newer revisions name, arrives.
    """
    over = case.over(frame)
    if case.source > case.target or over is None or over.frame is None:
        return None
    left_out = left_out_on_the_way_up(case.source, case.target)
    named = case.subject.method == "initialize"  # it says the revision that it is of
    if case.target < OVER_THE_ERAS and case.rules == NO_RULES and over.frame is not frame and not named:
        return f"it was touched: {over.frame}"
    lost = [loss for loss in over.losses if not left_out & set(loss.pointer.split("/"))]
    return f"it lost {lost}" if lost else None


def need(frame: Any, case: Case) -> str | None:
    """No loss without need: a dropped value put back makes the frame invalid, or names what the target does not."""
    over, there = case.over(frame), counterpart(case.subject, case.target)
    if over is None or over.frame is None or there is None or case.between() or case.profile != "strict":
        return None
    for loss in over.losses if there.kind in ("request", "notification", "result") else ():
        again = put_back(frame, over.frame, over.losses, loss) if loss.kind == "dropped" else None
        if again is not None and not frame_faults(again, there):
            value = again["result"] if there.kind == "result" else again
            if strict_validator(case.source, case.target, there.definition).is_valid(value):
                return f"{loss} could have stayed (a [[decision]] on field-removed there: keep): {over.frame}"
    return None


def truth(frame: Any, case: Case) -> str | None:
    """Losses say what is so: something stood where they point, and is not there any more, and has the size they say."""
    over = case.over(frame)
    if over is None or over.frame is None:
        return None
    return untrue_loss(frame, over.frame, over.losses)


def purity(frame: Any, case: Case) -> str | None:
    """Law 5: what is given is not changed, and what is given back is the same object where nothing changed."""
    before = copy.deepcopy(frame)
    over = case.over(frame)
    if not same(before, frame):
        return f"the frame given was changed: it was {before}"
    if over is not None and over.frame is not frame and not over.losses and same(over.frame, frame):
        return "an equal frame came out, but another object"
    return None


def path(frame: Any, case: Case) -> str | None:
    """Law 6: two legs are as good as one."""
    direct = case.over(frame)
    for stop in case.between():
        first = case.leg(frame, case.source, stop)
        second = first if first is None or first.frame is None else case.leg(first.frame, stop, case.target)
        if (direct is None) != (second is None):
            return f"refused on one way and not on the other, by {stop}"
        if direct is not None and second is not None and not same(direct.frame, second.frame):
            return f"by {stop} it is {second.frame} and not {direct.frame}"
    return None


def naming(frame: Any, case: Case) -> str | None:
    """Where what comes out says which revision it is of, it says the target."""
    over = case.over(frame)
    said = revisions_named(over.frame) if over is not None and over.frame is not None else []
    return f"it says {said}: {over.frame}" if over is not None and set(said) - {case.target} else None


Law = Callable[[Any, Case], "str | None"]
LAWS: Mapping[str, Law] = {
    law.__name__: law for law in (validity, round_trip, old_new_old, need, truth, purity, path, naming)
}


def vendor_keys(frame: Any, case: Case, rng: random.Random) -> str | None:
    """Law 5, second half: keys that neither revision names survive in every object that is open, at any depth."""
    rich, places = _with_vendor_keys(frame, case.subject, rng)
    plain, over = case.over(frame), case.over(rich)
    if over is None or over.frame is None or plain is None:
        return None
    lost = [loss.pointer for loss in over.losses if loss.kind != "added"]
    expected = sum(not any(f"{place}/".startswith(f"{pointer}/") for pointer in lost) for place in places)
    found = _count(over.frame)
    return None if found >= expected else f"{expected} vendor keys should be left, {found} are: {over.frame}"


VENDOR = "x-dragoman-test"


def _with_vendor_keys(frame: Any, subject: Subject, rng: random.Random) -> tuple[Any, list[str]]:
    """A copy with a key of ours in every object where it is valid, and the pointers of those objects."""
    rich, places = copy.deepcopy(frame), []
    for pointer, node in list(_objects(rich, "")):
        node[VENDOR] = rng.choice(({"deep": [None]}, 1.0, "text", 10**30))
        if frame_faults(rich, subject):
            del node[VENDOR]
        else:
            places.append(pointer)
    return rich, places


def _objects(value: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield pointer, value
    for key, child in list(children):
        yield from _objects(child, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")


def _count(value: Any) -> int:
    return sum(VENDOR in node for _, node in _objects(value, ""))


def _speaks_of_the_conversion(frame: Any, case: Case) -> bool:
    """Whether an error has the member with which conversions remember a code: then it is taken to be one's work."""
    error = frame.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    return isinstance(data, dict) and "original" in data


def _is_expected(found: str, y: Any, case: Case) -> bool:
    """The differences that docs/decisions/0010 allows: what a frame brings along from the way, and codes that mean
    something there only.
    """
    place, _, rest = found.partition(" ")
    key = place.rpartition("/")[2] if "/_meta/io." not in place else place.partition("/_meta/")[2]
    if "came without being added" in rest:
        by_rule = "resource-contents-name" in case.rules and place.startswith("/result/contents/") and key == "name"
        brought = case.profile == "minimal" and _names(case.target) - _names(case.source) >= _new_keys(place, key, rest)
        return by_rule or brought
    if place == "/error/code" and case.target < OVER_THE_ERAS <= case.source:
        code = int(rest.split()[1])
        return code == -32002 or (-32099 <= code <= -32020 and code not in (-32020, -32021, -32022))
    return False


def _new_keys(place: str, key: str, rest: str) -> frozenset[str]:
    """The key that came, or for an object that was absent, `params` or `_meta`, all keys in it."""
    import json

    if key not in ("params", "_meta"):
        return frozenset({key})
    value = json.loads(rest.partition(": ")[2])
    return frozenset(value.get("_meta", value))


@cache
def _names(revision: str) -> frozenset[str]:
    found: set[str] = set()
    for node in canonical(revision)["$defs"].values():
        found |= set(node.get("properties", {}))
    return frozenset(found)
