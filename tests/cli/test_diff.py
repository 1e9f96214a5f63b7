"""`dragoman diff`: what changed, forwards and backwards, for people and for programs."""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.diff import add_arguments, diff, run, text
from dragoman_spec import REVISIONS, load

ROOT = Path(__file__).resolve().parents[2]
OLDEST, NEWEST = REVISIONS[0], REVISIONS[-1]
NEIGHBOURS = list(pairwise(REVISIONS))


def changes(source: str, target: str) -> list[tuple[str, str, str, str]]:
    keys = ("definition", "pointer", "change", "detail")
    return [tuple(change[key] for key in keys) for change in diff(source, target)["changes"]]


def test_diff_names_added_methods() -> None:
    assert diff("2025-03-26", "2025-06-18")["methods"] == {
        "added": ["elicitation/create"],
        "removed": [],
        "changed": [],
    }


def test_diff_names_added_fields_with_their_type() -> None:
    assert ("Tool", "/properties/title", "added", "optional string") in changes("2025-03-26", "2025-06-18")


def test_diff_backwards_removes_what_was_added() -> None:
    assert ("Tool", "/properties/title", "removed", "optional string") in changes("2025-06-18", "2025-03-26")


def test_diff_backwards_swaps_the_types() -> None:
    found = ("CallToolResult", "/properties/structuredContent", "type changed", "any value became object")
    assert found in changes("2026-07-28", "2025-11-25")


@pytest.mark.parametrize(("older", "newer"), NEIGHBOURS)
def test_diff_backwards_has_every_change_once(older: str, newer: str) -> None:
    assert [change[:2] for change in changes(older, newer)] == [change[:2] for change in changes(newer, older)]


@pytest.mark.parametrize(("older", "newer"), NEIGHBOURS)
def test_diff_accounts_for_every_definition_that_came_or_went(older: str, newer: str) -> None:
    old, new = set(load(older).DEFINITIONS), set(load(newer).DEFINITIONS)
    whole = {(change[0], change[2]) for change in changes(older, newer) if change[0] in old ^ new}
    assert whole == {(name, "added") for name in new - old} | {(name, "removed") for name in old - new}


@pytest.mark.parametrize(("older", "newer"), NEIGHBOURS)
def test_the_page_of_a_step_counts_as_diff_does(older: str, newer: str) -> None:
    _, _, definitions = text(diff(older, newer)).partition("\nDefinitions, ")
    signs = [line[:4] for line in definitions.splitlines()]
    came, went = signs.count("  + "), signs.count("  - ")
    page = (ROOT / "docs" / "steps" / f"{newer}.md").read_text(encoding="utf-8")
    assert f"What changed: {came} definitions came, {went} went;" in page


def test_diff_over_several_steps_has_the_changes_of_each_in_order() -> None:
    expected = [change for pair in NEIGHBOURS for change in changes(*pair)]
    assert changes(OLDEST, NEWEST) == expected


def test_every_neighbour_is_visited_backwards_too() -> None:
    steps = [(change["from"], change["to"]) for change in diff(NEWEST, OLDEST)["changes"]]
    assert list(dict.fromkeys(steps)) == [(newer, older) for older, newer in reversed(NEIGHBOURS)]


def test_diff_of_a_revision_with_itself_is_nothing() -> None:
    assert text(diff(OLDEST, OLDEST)) == f"{OLDEST} to {OLDEST}\nnothing changes\n"


def test_text_has_a_line_for_a_definition_that_came() -> None:
    lines = text(diff("2024-11-05", "2025-03-26")).splitlines()
    assert "  + AudioContent: object" in lines


def test_text_has_a_line_for_each_place_in_a_definition() -> None:
    lines = text(diff("2025-03-26", "2025-06-18")).splitlines()
    start = lines.index("  ~ CallToolResult")
    assert lines[start + 1 : start + 3] == [
        "      + content[]: or ResourceLink [breaks clients]",
        "      + structuredContent: optional object",
    ]


def test_text_spells_member_names_as_they_are() -> None:
    assert "_meta.io.modelcontextprotocol/protocolVersion: required string" in text(diff("2025-11-25", "2026-07-28"))


def test_text_says_that_it_goes_backwards() -> None:
    assert text(diff(NEWEST, OLDEST)).splitlines()[1].startswith("(backwards: ")


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(argv)


def test_run_prints_json_that_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(parse(OLDEST, NEWEST, "--json"))
    printed: Any = json.loads(capsys.readouterr().out)
    assert (code, printed) == (0, diff(OLDEST, NEWEST))


def test_run_prints_text(capsys: pytest.CaptureFixture[str]) -> None:
    run(parse(OLDEST, NEWEST))
    assert capsys.readouterr().out == text(diff(OLDEST, NEWEST))


def test_an_unknown_revision_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("2023-01-01", OLDEST)
    assert ", ".join(REVISIONS) in capsys.readouterr().err
