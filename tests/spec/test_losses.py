"""What notes of steps become: losses of the whole chain, one by one or together."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec.losses import At, Loss, Losses, LossGroup, Note, group, settle, spell
from tests.support.nesting import deep

TOOLS: At = ((None, "result"), "tools")


def noted(*notes: tuple[At, str, Any]) -> Losses:
    losses = Losses()
    for note in notes:
        losses.add(*note)
    return losses


def moved(*origins: int) -> Note:
    losses = Losses()
    losses.reorder(TOOLS, list(origins))
    return losses.notes[0]


def tool(index: int, *keys: str) -> At:
    place: At = (TOOLS, index)
    for key in keys:
        place = (place, key)
    return place


GIVEN: dict[str, Any] = {
    "result": {
        "tools": [{"icons": [1], "title": "T", "notes": {"a": 1}}, {"title": "T"}, {"title": "U", "tags": [1, 2, 3]}]
    }
}


def told(*steps: Losses) -> list[Loss]:
    return list(spell(settle(list(steps), GIVEN)))


def said(*steps: Losses) -> list[tuple[str, str]]:
    return [(loss.kind, loss.pointer) for loss in told(*steps)]


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


def test_places_after_items_have_gone_twice_are_led_back_through_both() -> None:
    steps = noted(moved(1, 2)), noted(moved(1)), noted((tool(0, "title"), "dropped", "U"))
    assert told(*steps) == [Loss("/result/tools/2/title", "dropped", "U")]


def test_losses_of_one_step_come_in_their_order_after_a_move() -> None:
    later = noted((tool(0, "title"), "dropped", "T"), (tool(1, "title"), "dropped", "U"))
    assert said(noted(moved(1, 2)), later) == [
        ("dropped", "/result/tools/1/title"),
        ("dropped", "/result/tools/2/title"),
    ]


@pytest.mark.parametrize(
    "steps",
    [
        [noted((tool(0, "title"), "dropped", "T")), noted((tool(0, "icons"), "dropped", [1]))],
        [noted((tool(0, "notes", "b"), "added", 1)), noted((tool(0, "notes", "b"), "dropped", 1))],
        [noted((tool(0, "notes"), "dropped", {"a": 1})), noted((tool(0, "notes"), "added", {"b": 1}))],
        [noted((tool(1, "title"), "replaced", "T")), noted((tool(1, "title", "more"), "dropped", 1))],
        [noted(), noted((tool(1, "title"), "dropped", "a title of the way")), noted((tool(2), "added", 1))],
        [noted(), noted((tool(1, "made", "up"), "dropped", 1)), noted((tool(1, "made", "up"), "dropped", 1))],
        [noted(), noted((tool(1, "made", "up"), "hidden", 1), (None, "hidden", 2))],
    ],
)
def test_a_chain_where_nothing_moves_says_what_one_says_where_all_stays_in_place(steps: list[Losses]) -> None:
    """The first is settled in a shorter way; a move that leads everything to where it was asks for the long one."""
    assert told(*steps) == told(noted(moved(0, 1, 2)), *steps)


def test_places_of_what_was_added_are_led_on() -> None:
    steps = noted((tool(2, "notes"), "added", {"a": 1})), noted((tool(0), "hidden", {}), moved(1, 2))
    assert said(*steps) == [("added", "/result/tools/1/notes"), ("hidden", "/result/tools/0")]


def test_values_are_those_of_the_source() -> None:
    steps = noted((tool(0, "notes"), "added", 1)), noted((tool(1, "title"), "replaced", "a title of the way"))
    assert told(*steps)[1].value == "T"


def test_value_of_what_was_cut_off_is_the_end_of_what_stood_there() -> None:
    steps = noted((tool(2, "title"), "dropped", "U")), noted((tool(2, "tags"), "truncated", ["b", "c"]))
    assert told(*steps)[1].value == [2, 3]


def test_what_is_lost_below_something_written_anew_is_part_of_that() -> None:
    steps = noted((tool(1, "title"), "replaced", "T")), noted((tool(1, "title", "more"), "dropped", 1))
    assert said(*steps) == [("replaced", "/result/tools/1/title")]


def test_what_is_lost_below_something_added_is_no_loss() -> None:
    steps = noted((tool(1, "notes"), "added", {"a": 1})), noted((tool(1, "notes", "a"), "dropped", 1))
    assert said(*steps) == [("added", "/result/tools/1/notes")]


def test_what_stood_nowhere_is_a_change_of_what_stood_above() -> None:
    steps = noted((tool(1, "title"), "dropped", "T")), noted((tool(1, "made", "up"), "dropped", 1))
    assert told(*steps)[1] == Loss("/result/tools/1", "rewritten", {"title": "T"})


def test_the_same_loss_is_said_once() -> None:
    steps = noted(moved(1, 1, 2), (tool(0, "title"), "dropped", "T"), (tool(1, "title"), "dropped", "T"))
    assert said(steps) == [("dropped", "/result/tools/1/title")]


def test_places_below_what_was_unwrapped_are_led_into_it() -> None:
    one = Losses()
    one.move(TOOLS, {TOOLS: (TOOLS, 0)})
    assert said(one, noted(((TOOLS, "title"), "dropped", "T"))) == [("dropped", "/result/tools/0/title")]


def test_place_of_a_new_item_is_nowhere() -> None:
    steps = noted((tool(2, "notes"), "added", 1)), noted(moved(0, 1)), noted((tool(0, "title"), "dropped", "T"))
    assert said(*steps) == [("dropped", "/result/tools/0/title")]


def test_place_of_a_field_with_a_new_name_is_its_old_one() -> None:
    one = Losses()
    one.move(tool(0), {tool(0, "label"): tool(0, "title")})
    steps = one, noted((tool(0, "label"), "dropped", "T"), (tool(0, "icons"), "dropped", [1]))
    assert said(*steps) == [("dropped", "/result/tools/0/title"), ("dropped", "/result/tools/0/icons")]


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
    found = spell(settle([noted((tool(0), "hidden", {}), moved(1, 2)), losses], GIVEN))
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


def test_half_a_character_has_a_size() -> None:
    assert Loss("", "dropped", "\ud800").bytes == 5


def test_a_value_that_the_encoder_cannot_take_has_its_size() -> None:
    beside = {"b": [1, "é", None], "c": {}}
    sizes = [Loss("", "dropped", {"a": deep(levels, "list"), **beside}).bytes for levels in (50, 5_000)]
    assert sizes[1] - sizes[0] == 2 * 4_950


@pytest.mark.parametrize(
    ("value", "cosmetic"),
    [
        ({"title": "a", "hint": None}, True),
        ({"title": "a", "reads": False}, True),
        ({"title": "a", "reads": True}, False),
        ({"hint": 1}, False),
    ],
)
def test_an_object_of_which_parts_are_cosmetic_is_so_if_it_has_no_others(value: Any, cosmetic: bool) -> None:
    note: Note = (TOOLS, "dropped", value, ("title", ("reads", False)))
    assert [loss.cosmetic for loss in spell([note])] == [one.cosmetic for one in group([note])] == [cosmetic]


@pytest.mark.parametrize("key", ["a/b", "a~b", "~/", "~1"])
def test_a_pointer_leads_back_to_its_key(key: str) -> None:
    (loss,) = spell([((None, key), "dropped", 1, False)])
    assert loss.pointer.removeprefix("/").replace("~1", "/").replace("~0", "~") == key
