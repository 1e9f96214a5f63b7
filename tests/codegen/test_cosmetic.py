"""Which dropped fields are cosmetic, and how a step says so."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.plan.nodes import ObjectNode
from codegen.plan.plan import StepPlan
from codegen.write.docs import render_docs
from codegen.write.steps import render_steps
from tests.support.small_specs import META, NEWER, OLDER, STRING, Schema, object_of, plan, ref

NOTES = object_of(title=STRING, hint=STRING)
BARE = object_of("name", name=STRING)


def cosmetic(*at: str, **more: str) -> str:
    lines = {"name": '"shine"', "at": str(list(at)), "reason": '"It only shines."', **more}
    return "[[cosmetic]]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())


def step(newer: Schema, overlay: str = "", **more: Any) -> StepPlan:
    """The step between a bare `It` and another one, `Notes` beside it."""
    return plan({**META, "It": BARE, **more}, {**META, "It": newer, "Notes": NOTES, **more}, overlay)


def node(planned: StepPlan, direction: str = "down") -> ObjectNode:
    found = planned.ways[direction, "strict"].nodes["it"]
    assert isinstance(found, ObjectNode)
    return found


def spelled(planned: StepPlan) -> str:
    texts = render_steps([planned], {OLDER: "0", NEWER: "1"})
    return texts[f"dragoman_spec/v{NEWER.replace('-', '_')}/steps.py"]


TITLED = object_of("name", name=STRING, title=STRING, icon=STRING)
NOTED = object_of("name", name=STRING, notes=ref("Notes"))


def test_a_dropped_field_that_an_entry_names_is_cosmetic() -> None:
    assert node(step(TITLED, cosmetic("It.title"))).cosmetic == {"title": ()}


def test_a_guarded_field_that_an_entry_names_is_cosmetic() -> None:
    assert node(step(TITLED, cosmetic("It.title")), "up").cosmetic == {"title": ()}


def test_an_object_that_holds_cosmetic_fields_names_them() -> None:
    assert node(step(NOTED, cosmetic("Notes.title"))).cosmetic == {"notes": ("title",)}


def test_an_object_that_holds_what_its_absence_says_names_the_value() -> None:
    overlay = cosmetic("Notes.hint", value='"none"') + cosmetic("Notes.title", name='"other"')
    assert node(step(NOTED, overlay)).cosmetic == {"notes": ("title", ("hint", "none"))}


def test_a_value_that_cannot_stand_there_is_refused() -> None:
    with pytest.raises(UnusedDecision, match=rf"\[shine\]: 5 is not valid at It\.title in {NEWER}"):
        step(TITLED, cosmetic("It.title", value="5"))


def test_a_capability_may_say_what_its_absence_says() -> None:
    overlay = cosmetic("ServerCapabilities.title", value='"none"')
    planned = plan({"ServerCapabilities": BARE}, {"ServerCapabilities": TITLED}, overlay)
    assert planned.ways["down", "strict"].nodes["server_capabilities"].implied == {"title": "none"}  # type: ignore[union-attr]


def test_an_object_that_stands_in_place_is_asked_by_its_path() -> None:
    planned = step(object_of("name", name=STRING, notes=NOTES), cosmetic("It.notes.hint"))
    assert node(planned).cosmetic == {"notes": ("hint",)}


@pytest.mark.parametrize("path", ["It.name", "Notes.hint", "Other.title"])
def test_an_entry_for_what_is_not_dropped_is_refused(path: str) -> None:
    with pytest.raises(UnusedDecision, match=rf"\[shine\]: it matches nothing at '{path}'"):
        step(TITLED, cosmetic(path))


def test_capabilities_are_never_cosmetic() -> None:
    with pytest.raises(UnusedDecision, match="it matches nothing"):
        plan({"ServerCapabilities": BARE}, {"ServerCapabilities": TITLED}, cosmetic("ServerCapabilities.title"))


@pytest.mark.parametrize(
    ("newer", "overlay", "call"),
    [
        (TITLED, cosmetic("It.title"), 'do.lose_cosmetic(y, "title", at, out)'),
        (TITLED, cosmetic("It.title"), 'do.lose(y, "icon", at, out)'),
        (TITLED, cosmetic("It.title", value='"none"'), 'do.lose_implied(y, "title", "none", at, out)'),
        (NOTED, cosmetic("Notes.title"), 'do.lose_object(y, "notes", ("title",), at, out)'),
    ],
)
def test_a_step_says_what_is_cosmetic(newer: Schema, overlay: str, call: str) -> None:
    assert call in spelled(step(newer, overlay)).replace("'", '"')


def test_the_page_of_a_step_says_what_is_cosmetic_and_why() -> None:
    page = render_docs([step(TITLED, cosmetic("It.title"))])[f"docs/steps/{NEWER}.md"]
    assert "- **shine**: `It.title`. It only shines.\n" in page
    assert "| It | `icon`, `title` *(cosmetic)* |\n" in page


def test_the_page_of_a_step_says_for_which_value() -> None:
    page = render_docs([step(TITLED, cosmetic("It.title", value='"none"'))])[f"docs/steps/{NEWER}.md"]
    assert '- **shine**: `It.title` holding `"none"`. It only shines.\n' in page
    assert '| It | `icon`, `title` *(cosmetic if it is `"none"`)* |\n' in page


def test_the_page_of_a_step_says_when_an_object_is_cosmetic() -> None:
    page = render_docs([step(NOTED, cosmetic("Notes.title", direction='"down"'))])[f"docs/steps/{NEWER}.md"]
    assert "| It | `notes` *(cosmetic if nothing but `title` is in it)* |\n" in page
