"""What notes of steps become: losses of the whole chain, one by one or together."""

from __future__ import annotations

import pytest

from dragoman_spec.losses import At, Loss, Losses, LossGroup, Note, group, settle, spell

TOOLS: At = ((None, "result"), "tools")


def noted(*notes: Note) -> Losses:
    losses = Losses()
    losses.notes += notes
    return losses


def moved(*origins: int) -> Note:
    return TOOLS, "#", list(origins)


def tool(index: int, *keys: str) -> At:
    place: At = (TOOLS, index)
    for key in keys:
        place = (place, key)
    return place


def said(*steps: Losses) -> list[tuple[str, str]]:
    return [(loss.kind, loss.pointer) for loss in spell(settle(list(steps)))]


def test_losses_of_several_steps_come_in_their_order() -> None:
    steps = noted((tool(0, "icons"), "dropped", [1])), noted((tool(0, "title"), "dropped", "T"))
    assert said(*steps) == [("dropped", "/result/tools/0/icons"), ("dropped", "/result/tools/0/title")]


@pytest.mark.parametrize("dropped", [tool(0, "notes", "title"), tool(0, "notes"), tool(0), TOOLS])
def test_what_was_added_and_later_dropped_is_not_said(dropped: At) -> None:
    steps = noted((tool(0, "notes", "title"), "added", "T")), noted((dropped, "dropped", {}))
    assert all(kind != "added" for kind, _ in said(*steps))


def test_the_drop_of_what_was_added_is_not_said() -> None:
    assert said(noted((tool(0, "notes"), "added", {"a": 1})), noted((tool(0, "notes"), "dropped", {"a": 1}))) == []


def test_what_was_dropped_and_later_added_is_said_twice() -> None:
    steps = noted((tool(0, "notes"), "dropped", {"a": 1})), noted((tool(0, "notes"), "added", {"b": 1}))
    assert said(*steps) == [("dropped", "/result/tools/0/notes"), ("added", "/result/tools/0/notes")]


def test_places_after_items_have_gone_are_led_back() -> None:
    steps = noted((tool(0), "hidden", {}), moved(1, 2)), noted((tool(1, "title"), "dropped", "T"))
    assert said(*steps) == [("hidden", "/result/tools/0"), ("dropped", "/result/tools/2/title")]


def test_places_of_what_was_added_are_led_on() -> None:
    steps = noted((tool(2, "notes"), "added", {"a": 1})), noted((tool(0), "hidden", {}), moved(1, 2))
    assert said(*steps) == [("added", "/result/tools/1/notes"), ("hidden", "/result/tools/0")]


def test_what_was_added_to_an_item_that_goes_is_not_said() -> None:
    steps = noted((tool(0, "notes"), "added", {"a": 1})), noted((tool(0), "hidden", {}), moved(1, 2), moved(1))
    assert said(*steps) == [("hidden", "/result/tools/0")]


def test_losses_in_many_items_make_one_group() -> None:
    notes: list[Note] = [
        (tool(0, "title"), "dropped", "A"),
        (tool(0, "a/b"), "dropped", {"x": 1}),
        (tool(1, "title"), "replaced", "B"),
        (tool(2, "title"), "dropped", "CC"),
        (None, "swallowed", 7),
    ]
    assert group(notes) == [
        LossGroup("/result/tools/*/title", "dropped", ["A", "CC"]),
        LossGroup("/result/tools/0/a~1b", "dropped", [{"x": 1}]),
        LossGroup("/result/tools/1/title", "replaced", ["B"]),
        LossGroup("", "swallowed", [7]),
    ]


def test_a_group_has_the_size_of_its_losses() -> None:
    values = ["é", {"a": [1, 2]}, 1.5]
    assert LossGroup("", "dropped", values).bytes == sum(Loss("", "dropped", value).bytes for value in values)
