"""A record is a frozen dataclass, but for when its methods are made."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from dragoman_spec.record import quick_record, record

KINDS = [dataclass(frozen=True, slots=True), record, quick_record]


class Place:
    """Where something is."""

    name: str
    secret: str = field(repr=False)
    line: int = 0
    notes: list[str] = field(default_factory=list, compare=False)
    column: int = field(default=1, hash=False)

    def __len__(self) -> int:
        return self.line


@record
class Known:
    name: str
    line: int = 2


@quick_record
class QuickKnown:
    name: str
    line: int = 2


def made(kind: Any) -> Any:
    return kind(type("Place", (), dict(vars(Place))))


@pytest.fixture(params=KINDS, ids=["dataclass", "record", "quick_record"])
def place(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


def test_it_is_made_and_shown_as_a_dataclass(place: Any) -> None:
    assert repr(place("a", "hush", column=3)) == "Place(name='a', line=0, notes=[], column=3)"
    assert len(place("a", "b", 7)) == 7
    assert place.__doc__ == "Where something is."


def test_it_is_compared_as_a_dataclass(place: Any) -> None:
    one, other = place("a", "b", notes=["x"]), place("a", "b")
    assert one == other
    assert one != place("a", "c")
    assert one != ("a", "b", 0, [], 1)
    assert hash(one) == hash(place("a", "b", column=1))
    assert len({one, other}) == 1


def test_each_has_defaults_of_its_own(place: Any) -> None:
    one, other = place("a", "b"), place("a", "b")
    one.notes.append("x")
    assert other.notes == []
    given: list[str] = []
    assert place("a", "b", 0, given).notes is given


def test_what_is_missing_or_too_much_is_said(place: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'secret'"):
        place("a")
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        place("a", "b", colour=1)


def test_dataclasses_know_it(place: Any) -> None:
    one = place("a", "b")
    assert is_dataclass(place)
    assert [known.name for known in fields(place)] == ["name", "secret", "line", "notes", "column"]
    assert replace(one, line=3) == place("a", "b", 3)
    assert asdict(one) == {"name": "a", "secret": "b", "line": 0, "notes": [], "column": 1}
    match one:
        case place(name, _, line):
            assert (name, line) == ("a", 0)


@pytest.mark.parametrize("kind", [record])
def test_nobody_changes_a_record(kind: Any) -> None:
    one = made(kind)("a", "b")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        one.name = "b"
    with pytest.raises(FrozenInstanceError):
        del one.name
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("one", [Known("a", 3), QuickKnown("a")])
def test_it_can_be_copied_and_taken_elsewhere(one: Any) -> None:
    assert copy.copy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_no_method_is_written_before_it_is_used() -> None:
    place = made(record)
    assert {name for name, value in vars(place).items() if type(value).__name__ == "_Late"} == {
        *("__init__", "__repr__", "__eq__", "__hash__", "__dataclass_fields__")
    }
    place("a", "b")
    assert type(vars(place)["__init__"]).__name__ == "function"
    assert type(vars(place)["__eq__"]).__name__ == "_Late"


def test_a_method_of_its_own_stays() -> None:
    @record
    class Own:
        name: str

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = object.__hash__

    one = Own("a")
    assert one != Own("a")
    assert repr(one).endswith("Own(name='a')")
    assert one == one
    assert len({one, Own("a")}) == 2
