"""What steps spare when another step follows."""

from __future__ import annotations

from codegen.plan.chains import spare_copies
from codegen.plan.nodes import Action, ObjectNode
from codegen.plan.plan import StepPlan, plan_step
from codegen.read.model import Spec
from codegen.read.overlay import parse_overlay
from dragoman_spec import translate
from tests.support.small_specs import STRING, Schema, object_of, spec

FIRST, SECOND, THIRD = "2001-01-01", "2002-02-02", "2003-03-03"
BARE: Schema = object_of(name=STRING)
NOTED: Schema = object_of(name=STRING, notes=object_of(title=STRING))
TITLED: Schema = object_of(name=STRING, notes=object_of(title=STRING), title=STRING)
KEEP_TITLE = """
[[hook]]
name = "keep-title"
direction = "down"
at = "It"
kind = "before"
do = "copy-into"
when = "title"
with = { field = "title", into = ["notes", "title"] }
reason = "Because."
"""


def it(revision: str, schema: Schema) -> Spec:
    return spec({"It": schema}, revision)


def planned(first: Schema, second: Schema, third: Schema) -> list[StepPlan]:
    middle = it(SECOND, second)
    return [
        plan_step(it(FIRST, first), middle, parse_overlay(SECOND, "")),
        plan_step(middle, it(THIRD, third), parse_overlay(THIRD, KEEP_TITLE)),
    ]


def hook(plan: StepPlan) -> Action:
    node = plan.ways["down", "strict"].nodes["it"]
    assert isinstance(node, ObjectNode)
    return node.hooks_before[0]


def test_what_the_next_step_drops_is_not_filled_on_the_way_there() -> None:
    assert hook(spare_copies(planned(BARE, NOTED, TITLED))[1]).vain_towards == (FIRST,)


def test_what_the_next_step_keeps_is_filled() -> None:
    assert hook(spare_copies(planned(NOTED, NOTED, TITLED))[1]).vain_towards == ()


def test_the_last_step_of_a_way_has_none_to_look_at() -> None:
    plans = planned(BARE, NOTED, TITLED)[1:]
    assert spare_copies(plans) == plans


def test_a_dropped_object_is_a_loss_as_it_stood_in_the_frame_given() -> None:
    tool = {"name": "t", "title": "T", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}
    frame = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}
    done = translate(frame, source="2025-06-18", target="2024-11-05", method="tools/list")
    assert {loss.pointer: loss.value for loss in done.losses} == {
        "/result/tools/0/title": "T",
        "/result/tools/0/annotations": {"readOnlyHint": True},
    }
