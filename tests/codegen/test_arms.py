"""Which arm of the target a value goes to: by its tag, by its name, by its shape."""

from __future__ import annotations

import pytest

from codegen.compare.arms import Arms
from codegen.read.model import Ref
from tests.support.small_specs import NEWER, STRING, Schema, const, object_of, spec

PLAIN = object_of("type", "a", type=const("text"), a=STRING)
RICH = object_of("type", "a", "b", type=const("text"), a=STRING, b=STRING)


@pytest.mark.parametrize("others", [("Rich", "Text"), ("Text", "Rich")])
def test_an_arm_finds_itself_by_its_name_where_two_have_its_tag(others: tuple[str, ...]) -> None:
    arms = Arms(spec({"Text": PLAIN}), spec({"Rich": RICH, "Text": PLAIN}, NEWER), str)
    assert arms.match(Ref("Text"), [Ref("Text")], [Ref(name) for name in others]) == Ref("Text")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (PLAIN, True),
        (object_of("type", "a", type=const("text"), a=STRING, c=STRING), True),
        (RICH, False),
        (object_of("type", type=const("text")), False),
        (object_of("type", "a", type=const("sound"), a=STRING), False),
    ],
)
def test_an_arm_goes_to_another_of_its_tag_that_takes_what_it_requires(other: Schema, expected: bool) -> None:
    arms = Arms(spec({"Text": PLAIN, "Rich": RICH}), spec({"Other": other}, NEWER), str)
    found = arms.match(Ref("Text"), [Ref("Text"), Ref("Rich")], [Ref("Other")])
    assert (found == Ref("Other")) is expected
