"""What notes of steps become: losses of the whole chain, one by one or together."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec.losses import At, Loss, Losses, LossGroup, Note, group, settle, spell

TOOLS: At = ((None, "result"), "tools")


def noted(*notes: tuple[At, str, Any]) -> Losses:
    losses = Losses()
    for note in notes:
        losses.add(*note)
    return losses


def moved(*origins: int) -> tuple[At, str, Any]:
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
        (tool(0, "title"), "dropped", "A", False),
        (tool(0, "a/b"), "dropped", {"x": 1}, False),
        (tool(1, "title"), "replaced", "B", False),
        (tool(2, "title"), "dropped", "CC", False),
        (None, "swallowed", 7, False),
    ]
    assert group(notes) == [
        LossGroup("/result/tools/*/title", "dropped", ["A", "CC"]),
        LossGroup("/result/tools/0/a~1b", "dropped", [{"x": 1}]),
        LossGroup("/result/tools/1/title", "replaced", ["B"]),
        LossGroup("", "swallowed", [7]),
    ]


def test_cosmetic_losses_and_others_make_two_groups() -> None:
    notes: list[Note] = [(tool(0, "notes"), "dropped", 1, True), (tool(1, "notes"), "dropped", 2, False)]
    assert [(found.pointer, found.cosmetic) for found in group(notes)] == [
        ("/result/tools/0/notes", True),
        ("/result/tools/1/notes", False),
    ]


def test_a_loss_that_moved_stays_cosmetic() -> None:
    losses = Losses()
    losses.add(tool(1, "title"), "dropped", "T", cosmetic=True)
    found = spell(settle([noted((tool(0), "hidden", {}), moved(1, 2)), losses]))
    assert found[1] == Loss("/result/tools/2/title", "dropped", "T", cosmetic=True)


def test_a_loss_says_that_it_is_cosmetic_only_where_it_is() -> None:
    shown = [repr(Loss("/title", "dropped", "T", cosmetic)) for cosmetic in (False, True)]
    assert shown == [
        "Loss(pointer='/title', kind='dropped', bytes=3)",
        "Loss(pointer='/title', kind='dropped', bytes=3, cosmetic=True)",
    ]


def test_a_cosmetic_loss_is_not_equal_to_another() -> None:
    assert Loss("/title", "dropped", "T", cosmetic=True) != Loss("/title", "dropped", "T")


def test_a_group_has_the_size_of_its_losses() -> None:
    values = ["é", {"a": [1, 2]}, 1.5]
    assert LossGroup("", "dropped", values).bytes == sum(Loss("", "dropped", value).bytes for value in values)
