"""What an overlay's text means, and that an entry which means nothing is an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codegen.errors import UnusedDecision
from codegen.read.overlay import Change, Decision, Overlay, Rule, matches, parse_overlay, read_overlay
from tests.support.small_specs import NEWER, decision

CHANGE = Change("down", "narrowed", "Tool.name", "string becomes 'a'", "/$defs/Tool", "/$defs/Tool")
KEEP = decision("down", "narrowed", "Tool.name", "keep")


def read(text: str) -> Overlay:
    return parse_overlay(NEWER, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[decision", r"\[the file\]: it is not TOML: "),
        (
            "[[decree]]\n",
            r"\[decree\]: no such table; there are authorization, capability, .*decision, error, .*rule, .*words\.",
        ),
        (KEEP.replace('"Because."', '""'), r"\[it\]: an entry needs a reason\."),
        ('[[rule]]\nname = "kind"\ndefault = true\n', r"\[kind\]: an entry needs a reason\."),
        ('[[rename]]\nname = ""\nold = "A"\nreason = "So."\n', r"\[rename\]: an entry needs a name\."),
        ('[[rename]]\nold = "A"\nreason = "So."\n', r"\[rename\]: .*missing 3 required positional arguments"),
        (KEEP + "colour = 1\n", r"\[it\]: .*got an unexpected keyword argument 'colour'"),
    ],
)
def test_an_overlay_that_means_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnusedDecision, match=rf"^codegen/overlays/2002-02-02\.toml: {said}"):
        read(text)


def test_an_overlay_that_is_not_there_has_no_entries(tmp_path: Path) -> None:
    assert read_overlay(tmp_path, NEWER) == read("")


def test_an_overlay_is_read_from_its_place_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "codegen" / "overlays").mkdir(parents=True)
    (tmp_path / "codegen" / "overlays" / f"{NEWER}.toml").write_text(KEEP, "utf-8")
    assert read_overlay(tmp_path, NEWER) == read(KEEP)


def test_a_decision_is_read_with_its_arguments() -> None:
    (found,) = read(KEEP + "with = { count = 3 }\n").decisions
    assert found == Decision("it", "down", "narrowed", ("Tool.name",), "keep", "Because.", arguments={"count": 3})


def test_a_rule_is_read_with_its_hooks() -> None:
    rule = '[[rule]]\nname = "kind"\nsummary = "Be kind."\ndefault = true\n'
    overlay = read(f'{rule}[[rule.hook]]\ndirection = "up"\nmethod = "ping"\nkind = "result"\ndo = "smile"\n')
    assert overlay.rules == (Rule("kind", "Be kind.", True),)
    assert [(hook.name, hook.reason, hook.rule) for hook in overlay.hooks] == [("kind-up", "Be kind.", "kind")]


def test_a_decision_rules_on_the_change_that_it_names() -> None:
    overlay = read(KEEP)
    assert overlay.rule_on(CHANGE) is overlay.decisions[0]


@pytest.mark.parametrize(
    "text",
    [
        decision("up", "narrowed", "Tool.name", "keep"),
        decision("down", "required", "Tool.name", "refuse"),
        decision("down", "narrowed", "Tool.title", "keep"),
        decision("down", "narrowed", "Tool.name", "keep", arm='"Text"'),
        KEEP.replace('"keep"', '""'),
    ],
)
def test_a_decision_on_something_else_or_not_filled_in_rules_on_nothing(text: str) -> None:
    assert read(text).rule_on(CHANGE) is None


def test_two_decisions_on_one_change_are_refused() -> None:
    overlay = read(KEEP + decision("down", "narrowed", "Tool.*", "drop-invalid", name='"other"'))
    with pytest.raises(UnusedDecision, match=r"\[other\]: rules on down narrowed Tool\.name: .* as 'it' does already"):
        overlay.rule_on(CHANGE)


def test_one_decision_may_name_a_change_twice() -> None:
    overlay = read(KEEP.replace('at = "Tool.name"', 'at = ["Tool.name", "Tool.*"]'))
    overlay.rule_on(CHANGE)
    overlay.check_used()


HOOK = '[[hook]]\nname = "look"\ndirection = "up"\nat = "Tool"\nkind = "before"\ndo = "peek"\nreason = "So."\n'
RENAME = '[[rename]]\nname = "so"\nwhat = "field"\nold = "a"\nnew = "b"\nat = "Tool"\nreason = "So."\n'
COSMETIC = '[[cosmetic]]\nname = "shine"\nat = ["Tool.title", "*.icons"]\nreason = "So."\n'
REFUSAL = '[[refuse]]\nname = "so"\ndirection = "up"\nmethods = ["ping"]\nreason = "So."\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KEEP, r"\[it\]: no narrowed change matches at 'Tool\.name'"),
        (KEEP + 'arm = "Text"\n', r"\[it\]: no narrowed change of 'Text' matches at 'Tool\.name'"),
        (HOOK, r"\[look\]: it matches nothing at 'Tool'"),
        (RENAME, r"\[fielda\]: it matches nothing at 'Tool'"),
        (REFUSAL, r"\[ping\]: it matches nothing at 'up'"),
        (COSMETIC, r"\[shine\]: it matches nothing at 'Tool\.title'"),
    ],
)
def test_an_entry_that_matched_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnusedDecision, match=said):
        read(text).check_used()


def test_a_decision_may_be_about_several_arms_and_each_has_to_be_there() -> None:
    overlay = read(decision("down", "arm-removed", "Tool.name", "keep", arm='["Text", "Sound"]'))
    text = replace(CHANGE, kind="arm-removed", arm="Text")
    assert overlay.rule_on(text) is overlay.decisions[0]
    with pytest.raises(UnusedDecision, match=r"\[it\]: no arm-removed change of 'Sound' matches at 'Tool\.name'"):
        overlay.check_used()
    assert overlay.rule_on(replace(text, arm="Sound")) is overlay.decisions[0]
    overlay.check_used()
    assert overlay.rule_on(replace(text, arm="Image")) is None


@pytest.mark.parametrize("place", ["", 'kind = "error"\n', 'method = "ping"\n'])
def test_a_hook_that_says_no_place_is_told_what_it_needs(place: str) -> None:
    with pytest.raises(
        UnusedDecision, match=r"\[look\]: a hook needs `at`, or `method` and `kind`; .* an \[\[error\]\]"
    ):
        read(f'[[hook]]\nname = "look"\ndirection = "up"\n{place}do = "peek"\nreason = "So."\n')


def test_entries_that_have_been_used_pass() -> None:
    overlay = read(HOOK + RENAME + REFUSAL)
    for name, pattern in (("look", "Tool"), ("fielda", "Tool"), ("ping", "up")):
        overlay.use(name, pattern)
    overlay.check_used()


def test_a_cosmetic_field_is_one_whose_path_an_entry_names() -> None:
    overlay = read(COSMETIC)
    paths = ("Tool.title", "Prompt.icons", "Tool.titles", "Prompt.title")
    assert [overlay.find_cosmetic("down", path) is not None for path in paths] == [True, True, False, False]
    overlay.check_used()


@pytest.mark.parametrize(("direction", "expected"), [("down", True), ("up", False)])
def test_a_cosmetic_entry_with_a_direction_holds_for_that_one(direction: str, expected: bool) -> None:
    found = read(COSMETIC + 'direction = "down"\n').find_cosmetic(direction, "Tool.title")
    assert (found is not None) is expected


def test_two_entries_that_call_the_same_field_cosmetic_are_refused() -> None:
    overlay = read(COSMETIC + COSMETIC.replace('"shine"', '"glitter"'))
    with pytest.raises(UnusedDecision, match=r"\[shine\]: calls Tool\.title cosmetic as 'glitter' does already"):
        overlay.find_cosmetic("up", "Tool.title")


def test_a_cosmetic_entry_may_name_one_field_without_a_list() -> None:
    (entry,) = read('[[cosmetic]]\nname = "shine"\nat = "Tool.title"\nreason = "So."\n').cosmetics
    assert entry.at == ("Tool.title",)


def test_a_change_says_where_it_is_in_both_schemas() -> None:
    arm = Change("down", "arm-removed", "Result.content[]", "Text remain", "/$defs/A", "/$defs/B", "Audio")
    assert str(arm) == "down arm-removed Result.content[] Audio: Text remain (/$defs/A -> /$defs/B)"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("Tool.name", True), ("Tool.*", True), ("*name", True), ("Tool", False), ("Tool?name", False), ("T.*l", False)],
)
def test_a_star_stands_for_anything_and_all_else_for_itself(pattern: str, expected: bool) -> None:
    assert matches("Tool.name", pattern) is expected
