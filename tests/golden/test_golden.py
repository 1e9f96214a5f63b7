"""Golden cases: a frame, the two revisions, and what must come of it, row by row of the rules.

`tests/data/golden/*.json` has the cases, `rows.toml` the rules. What a case says is exact: the frame in value and kind,
the losses as a set, the text of a refusal. What comes out is also held against the target's own schema.
"""

from __future__ import annotations

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragoman_spec import DEFAULT_RULES, REVISIONS, RULES, Untranslatable, load, translate
from tests.support.judge import same
from tests.support.subjects import Subject, frame_faults

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "golden"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted(DATA.glob("*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
]
ROWS = {row["id"]: row for row in tomllib.loads((DATA / "rows.toml").read_text(encoding="utf-8"))["row"]}
KEYS = {"name", "row", "source", "target", "method", "profile", "with", "without", "frame", "losses"}
OUTCOMES = {"out", "outcome", "refused"}


@pytest.mark.parametrize("case", CASES)
def test_golden_case(case: dict[str, Any]) -> None:
    frame = copy.deepcopy(case["frame"])
    options = {
        "source": case["source"],
        "target": case["target"],
        "method": case.get("method"),
        "profile": case.get("profile", "strict"),
        "rules": DEFAULT_RULES.union(case.get("with", ())).difference(case.get("without", ())),
    }
    if "refused" in case:
        with pytest.raises(Untranslatable) as caught:
            translate(frame, **options)
        assert {"code": caught.value.code, "message": caught.value.reason} == case["refused"]
        return
    translation = translate(frame, **options)
    expected = {"same": frame, "swallowed": None}[case["outcome"]] if "outcome" in case else case["out"]
    assert translation.frame == expected
    assert same(translation.frame, expected)
    assert case.get("outcome") != "same" or translation.frame is frame
    assert sorted([loss.pointer, loss.kind] for loss in translation.losses) == sorted(case["losses"])
    assert same(frame, case["frame"])


@pytest.mark.parametrize("case", [case for case in CASES if "out" in case.values[0]])
def test_golden_output_is_valid(case: dict[str, Any]) -> None:
    frame, target = case["out"], case["target"]
    kind = next((key for key in ("result", "error") if key in frame), "request" if "id" in frame else "notification")
    name = case.get("method") or frame.get("method") or "ping"
    method = load(target).METHODS.get(name)
    assert method is not None or kind == "error"
    definition = "" if kind == "error" else method.result if kind == "result" else method.frame
    faults = frame_faults(frame, Subject(target, kind, name, definition))
    assert faults == [] or case["row"] == "nulls"


def test_every_case_is_well_formed() -> None:
    for case in (param.values[0] for param in CASES):
        assert case.keys() <= KEYS | OUTCOMES, case["name"]
        assert len(case.keys() & OUTCOMES) == 1, case["name"]
        assert {case["source"], case["target"]} <= set(REVISIONS), case["name"]
        assert {*case.get("with", ()), *case.get("without", ())} <= RULES.keys(), case["name"]


def test_every_case_proves_a_row() -> None:
    assert {param.values[0]["row"] for param in CASES} - ROWS.keys() == set(), "no such [[row]] in rows.toml"


def test_every_row_is_proved() -> None:
    proved = {param.values[0]["row"] for param in CASES}
    for name, row in ROWS.items():
        elsewhere = row.get("proved_by")
        assert (name in proved) != (elsewhere is not None), name
        assert elsewhere is None or (ROOT / elsewhere).exists(), name


def test_every_repair_rule_has_a_case_with_and_without_it() -> None:
    for name in translated_rules():
        switch = "without" if RULES[name].default else "with"
        assert any(name in param.values[0].get(switch, ()) for param in CASES), f'{name} has no case with "{switch}"'


def translated_rules() -> list[str]:
    """The rules that change frames; of the others the overlay has only the switch, and the proxy does the work."""
    overlays = [tomllib.loads(file.read_text("utf-8")) for file in (ROOT / "codegen" / "overlays").glob("*.toml")]
    rules = [rule for overlay in overlays for rule in overlay.get("rule", [])]
    acting = [rule["name"] for rule in rules if rule.keys() & {"hook", "aliases", "nulls", "strict_methods"}]
    hooks = [hook for overlay in overlays for hook in overlay.get("hook", [])]
    return sorted({*acting, *(hook["rule"] for hook in hooks if "rule" in hook)})


def test_names_are_unique() -> None:
    names = [param.id for param in CASES]
    assert len(set(names)) == len(names)
