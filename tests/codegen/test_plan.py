"""A whole step between two small schemas: which frames are served, refused or swallowed, and by what."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.plan.nodes import Action, Case, Member, ObjectNode, UnionNode, Work
from codegen.plan.plan import DirectionPlan, Repair
from codegen.read.model import Scalar
from codegen.read.overlay import ErrorCode
from tests.support.small_specs import META, STRING, Schema, any_of, const, decision, object_of, plan, ref, request


def revision(*methods: str, **more: Schema) -> dict[str, Schema]:
    """A schema with requests of these methods, all from clients: `ask` is `AskRequest`."""
    requests = {f"{name.title()}Request": request(name) for name in methods}
    return {**META, **requests, "ClientRequest": any_of(*map(ref, requests)), **more}


def with_notice(*names: str) -> dict[str, Schema]:
    notices = {
        f"{name.title()}Notification": object_of("method", method=const(f"notifications/{name}"), params=ref("Base"))
        for name in names
    }
    base = {"NotificationParams": object_of(_meta=object_of()), "Base": ref("NotificationParams")}
    return {**base, **notices, "ClientNotification": any_of(*map(ref, notices))}


def way(older: Any, newer: Any, overlay: str = "", direction: str = "up", profile: str = "strict") -> DirectionPlan:
    return plan(older, newer, overlay).ways[direction, profile]


HOOK = '[[hook]]\nname = "look"\ndirection = "up"\nmethod = "{}"\nkind = "{}"\ndo = "{}"\nreason = "So."\n'


@pytest.mark.parametrize(
    ("direction", "said"),
    [("down", "tell does not exist before 2002-02-02"), ("up", "ask does not exist since 2002-02-02")],
)
def test_a_request_that_the_target_lacks_is_refused(direction: str, said: str) -> None:
    (refusal,) = way(revision("ask"), revision("tell"), direction=direction).refused.values()
    assert refusal.reason == said


def test_a_refusal_says_what_its_entry_says() -> None:
    entries = "".join(
        f'[[refuse]]\nname = "so"\ndirection = "{direction}"\nmethods = ["{method}"]\nreason = "{reason}"\ncode = -1\n'
        for direction, method, reason in (("up", "ask", "Not now."), ("down", "tell", "Not then."))
    )
    refused = plan(revision("ask"), revision("tell"), entries).ways["down", "strict"].refused
    assert (refused["tell"].reason, refused["tell"].code) == ("Not then.", -1)


def test_each_refused_method_finds_its_entry_among_several() -> None:
    entries = "".join(
        f'[[refuse]]\nname = "so"\ndirection = "up"\nmethods = ["{m}"]\nreason = "No {m}."\n' for m in ("ask", "tell")
    )
    refused = way(revision("ask", "tell", "sing"), revision("sing"), entries).refused
    assert {name: refusal.reason for name, refusal in refused.items()} == {"ask": "No ask.", "tell": "No tell."}


def test_a_notification_that_the_target_lacks_is_swallowed() -> None:
    assert way(with_notice("x", "y"), with_notice("x")).swallowed == ("notifications/y",)


RENAMED = '[[rename]]\nname = "so"\nwhat = "method"\nold = "ask"\nnew = "tell"\nreason = "So."\n'


@pytest.mark.parametrize(("direction", "names"), [("up", {"ask": "tell"}), ("down", {"tell": "ask"})])
def test_a_renamed_method_goes_under_its_other_name(direction: str, names: dict[str, str]) -> None:
    found = way(revision("ask"), revision("tell"), RENAMED, direction)
    assert (found.methods, dict(found.refused)) == (names, {})


def test_a_renamed_method_takes_its_definitions_with_it() -> None:
    results = {f"{name}Result": object_of("a", a=STRING) for name in ("Ask", "Tell")}
    older, newer = revision("ask", AskResult=results["AskResult"]), revision("tell", TellResult=results["TellResult"])
    found = way(older, newer, RENAMED)
    assert found.renamed == {"AskRequest": "TellRequest", "AskResult": "TellResult"}
    node = found.nodes[found.definitions["AskRequest"]]
    assert isinstance(node, ObjectNode)
    assert node.facts == {"method": "tell"}


def test_a_rename_of_a_method_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnusedDecision, match=r"\[methodask\]: it matches nothing"):
        plan(revision("tell"), revision("tell"), RENAMED)


ALONE = "ask: tell came from the same side, with another shape"


@pytest.mark.parametrize(
    ("newer", "said"),
    [
        (request("tell"), ["ask: tell has the same shape"]),
        (request("tell", a=STRING), ["ask: tell has the same shape"]),
        (object_of("method", "params", method=const("tell"), params=object_of("a", a=STRING)), [ALONE]),
    ],
)
def test_a_method_that_is_gone_is_asked_about_where_one_like_it_came(newer: Schema, said: list[str]) -> None:
    step = plan(revision("ask"), revision("tell", TellRequest=newer))
    assert [f"{change.at}: {change.detail}" for change in step.undecided if change.kind == "renamed"] == said


def test_a_method_that_the_other_side_sends_is_not_asked_about() -> None:
    others = {"TellRequest": request("tell"), "ServerRequest": any_of(ref("TellRequest"), ref("SingRequest"))}
    sung = {"SingRequest": request("sing", a=STRING)}
    older = {**revision("ask"), **sung, "ServerRequest": any_of(ref("SingRequest"))}
    newer = {**revision("sing"), **sung, **others}
    assert [change for change in plan(older, newer).undecided if change.kind == "renamed"] == []


def test_frames_with_nothing_to_do_have_no_node() -> None:
    found = way(revision("ask", **with_notice("x")), revision("ask", **with_notice("x")))
    assert [found.requests, found.results, found.notifications, found.nodes] == [{}, {}, {}, {}]


def test_a_definition_that_changed_has_a_node() -> None:
    assert way({"It": object_of(a=STRING)}, {"It": object_of()}).definitions == {"It": "it"}


def test_a_renamed_definition_has_a_node_under_its_old_name() -> None:
    entry = '[[rename]]\nname = "so"\nwhat = "definition"\nold = "Old"\nnew = "New"\nreason = "So."\n'
    found = way({"Old": object_of(a=STRING)}, {"New": object_of()}, entry)
    assert (found.renamed, found.definitions) == ({"Old": "New"}, {"Old": "old_as_new"})


def test_a_definition_that_is_no_object_has_none() -> None:
    older, newer = object_of("a", a=STRING, more=STRING), object_of("a", a=STRING)
    assert way({"It": any_of(older, STRING)}, {"It": any_of(newer, STRING)}).definitions == {}


def test_a_result_that_can_be_two_things_is_a_union() -> None:
    asking = {"AskRequest": request("ask", task=object_of()), "AskResult": object_of("a", a=STRING, more=STRING)}
    task = {"CreateTaskResult": object_of("task", task=STRING)}
    newer = {**asking, "AskResult": object_of("a", a=STRING)}
    found = way(revision("ask", **asking, **task), revision("ask", **newer, **task))
    cases = (Case("dict", Work("ask_result"), needs={"a": Scalar(frozenset({"string"}))}),)
    assert found.nodes["ask_result_"] == UnionNode("ask.result", None, cases)


def test_a_hook_on_results_is_called_first() -> None:
    found = way(revision("ask"), revision("ask"), HOOK.format("ask", "result", "peek"))
    assert found.nodes["ask_result_frame"] == ObjectNode("result of ask", hooks_before=(Action("peek", entry="look"),))


def test_a_hook_that_refuses_results_leaves_the_usual_one() -> None:
    asking = {"AskRequest": request("ask", task=object_of()), "AskResult": object_of(a=STRING)}
    task = {"CreateTaskResult": object_of("task", task=STRING)}
    newer = revision("ask", AskResult=object_of())
    found = way(
        revision("ask", **asking, **task),
        newer,
        HOOK.format("ask", "result", "refuse-result") + 'with = { has = "task" }\n',
    )
    node = found.nodes["ask_result_frame"]
    assert isinstance(node, ObjectNode)
    assert node.members == {"result": Member(Work("ask_result"), needed=True)}


def test_a_result_that_may_lack_what_the_target_requires_is_asked_for_it() -> None:
    """What the hook lets through of the other result has to be whole: here one that is complete."""
    asking = {
        "AskRequest": request("ask", task=object_of()),
        "AskResult": object_of("a", "c", a=STRING, b=STRING, c=STRING),
    }
    task = {"CreateTaskResult": object_of("kind", kind=STRING)}
    newer = revision("ask", AskResult=object_of("a", "c", a=STRING, c=STRING))
    hook = HOOK.format("ask", "result", "refuse-result") + 'with = { has = "kind", other_than = "complete" }\n'
    found = way(revision("ask", **asking, **task), newer, hook)
    node = found.nodes["ask_whole_result"]
    assert isinstance(node, ObjectNode)
    assert (node.drops, node.demands) == (("b",), ("a", "c"))


def test_a_result_that_is_another_by_name_is_asked_for_nothing() -> None:
    asking = {
        "AskRequest": request("ask", task=object_of()),
        "AskResult": ref("Base"),
        "Base": object_of("a", a=STRING, b=STRING),
    }
    task = {"CreateTaskResult": object_of("kind", kind=STRING)}
    newer = revision("ask", AskResult=ref("Base"), Base=object_of("a", a=STRING))
    hook = HOOK.format("ask", "result", "refuse-result") + 'with = { has = "kind", other_than = "complete" }\n'
    assert "ask_whole_result" not in way(revision("ask", **asking, **task), newer, hook).nodes


ENVELOPE = object_of("id", "result", id=ref("RequestId"), result=object_of())


def test_an_id_that_gets_narrower_is_asked_for_in_answers_too() -> None:
    numbers = {"RequestId": {"type": ["string", "integer"]}, "JSONRPCResponse": ENVELOPE}
    node = way(revision("ask", **numbers), revision("ask", JSONRPCResultResponse=ENVELOPE)).nodes["ask_result_frame"]
    assert isinstance(node, ObjectNode)
    assert node.members == {"id": Member(Work("request_id"), needed=True)}


def test_a_schema_without_envelopes_has_nothing_to_ask_of_them() -> None:
    older, newer = revision("ask", AskResult=object_of(a=STRING)), revision("ask", AskResult=object_of())
    bare = object_of("method", "id", method=const("ask"), id=STRING, params=object_of(_meta=object_of()))
    for definitions in (older, newer):
        del definitions["RequestId"]
        definitions["AskRequest"] = bare
    node = way(older, newer).nodes["ask_result_frame"]
    assert isinstance(node, ObjectNode)
    assert list(node.members) == ["result"]


def test_a_hook_on_errors_is_called_for_every_error() -> None:
    found = way(revision("ask"), revision("ask"), HOOK.format("*", "error", "peek"))
    assert found.every_error == (Action("peek", entry="look"),)


def test_a_hook_on_errors_is_called_in_its_profiles_alone() -> None:
    found = way(revision("ask"), revision("ask"), HOOK.format("*", "error", "peek"), profile="minimal")
    assert found.every_error == ()


ERROR = '[[error]]\nname = "code"\ndirection = "{}"\ncodes = [-9, -1]\ndo = "set-code"\nreason = "So."\n'


@pytest.mark.parametrize(("direction", "count"), [("up", 1), ("down", 0)])
def test_an_error_code_is_for_its_direction(direction: str, count: int) -> None:
    entry = ErrorCode("code", "up", (-9, -1), "set-code", "So.")
    found = way(revision("ask"), revision("ask"), ERROR.format("up"), direction)
    assert found.errors == (entry,) * count


RULE = """
[[rule]]
name = "kind"
summary = "Be kind."
default = true
[[rule.hook]]
direction = "up"
method = "{}"
kind = "result"
do = "smile"
"""


@pytest.mark.parametrize("method", ["ask", "*"])
def test_a_rule_repairs_the_frames_of_a_method(method: str) -> None:
    found = way(revision("ask"), revision("ask"), RULE.format(method))
    assert found.repairs == (Repair("kind", method, "result", Action("smile", entry="kind-up")),)


def test_a_rule_for_a_method_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnusedDecision, match=r"\[kind-up\]: it matches nothing at 'tell'"):
        plan(revision("ask"), revision("ask"), RULE.format("tell"))


def test_changes_that_nobody_decided_are_said_for_both_directions() -> None:
    step = plan({"It": object_of(a=STRING)}, {"It": object_of(a=object_of())})
    assert [(change.direction, change.at) for change in step.undecided] == [("up", "It.a"), ("down", "It.a")]


def test_a_decision_on_no_change_is_refused() -> None:
    with pytest.raises(UnusedDecision, match=r"\[it\]: no narrowed change matches at 'It\.b'"):
        plan({"It": object_of()}, {"It": object_of()}, decision("up", "narrowed", "It.b", "keep"))


def test_what_the_way_up_fills_in_is_no_loss_on_the_way_down() -> None:
    filled = decision("up", "required", "It.a", "default", with_='{ value = "x" }')
    step = plan({"It": object_of()}, {"It": object_of("a", a=STRING)}, filled)
    node = step.ways["down", "strict"].nodes["it"]
    assert isinstance(node, ObjectNode)
    assert node.silent == {"a": "x"}
