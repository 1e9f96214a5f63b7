"""Law 7: a valid frame passes or is refused for a declared reason; an invalid one passes or is a typed error; nothing
crashes or hangs.
"""

from __future__ import annotations

import json
import random
import re
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_spec import RULES, TranslationError, Untranslatable, translate
from tests.support.hostile import METHODS, any_frame, wrong_in_each_place
from tests.support.instances import mutants
from tests.support.nesting import deep
from tests.support.profile import THOROUGH, hypothesis_settings, rounds
from tests.support.subjects import PAIRS, REVISIONS, random_frame, subjects

SEEDS = rounds(default=6, thorough=300)
SHAPES = rounds(default=400, thorough=20_000)
OVERLAYS = Path(__file__).parents[2] / "codegen" / "overlays"


@cache
def declared_reasons() -> tuple[str, ...]:
    """The refusals that overlays rule, as patterns of their text."""
    found = [r".* does not exist (before|since) \d{4}-\d\d-\d\d"]
    for file in sorted(OVERLAYS.glob("*.toml")):
        overlay = tomllib.loads(file.read_text("utf-8"))
        found += [re.escape(entry["reason"]) for entry in overlay.get("refuse", [])]
        for entry in (*overlay.get("decision", []), *overlay.get("hook", [])):
            if "reason" in entry.get("with", {}):
                found.append(re.sub(r"\\\{.*?\\\}", ".*", re.escape(entry["with"]["reason"])))
    return tuple(found)


def attempt(frame: Any, source: str, target: str, method: str | None, **options: Any) -> TranslationError | None:
    """Translate, and use what comes of it as the proxy would."""
    try:
        translation = translate(frame, source=source, target=target, method=method, **options)
        for loss in translation.losses:
            assert loss.bytes >= 0
    except TranslationError as error:
        json.dumps([str(error), error.data])
        return error
    return None


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_valid_frames_pass_or_are_refused_for_a_declared_reason(source: str, target: str) -> None:
    for subject in subjects(source):
        for seed in range(SEEDS):
            frame = random_frame(random.Random(f"{subject}{seed}"), subject)
            error = attempt(frame, source, target, subject.asked, profile=("strict", "minimal")[seed % 2])
            if error is not None:
                assert isinstance(error, Untranslatable), (error, frame)
                assert any(re.fullmatch(reason, error.reason, re.DOTALL) for reason in declared_reasons()), error


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_mutants_pass_or_are_typed_errors(source: str, target: str) -> None:
    for subject in subjects(source):
        rng = random.Random(f"mutants {subject}")
        frame = random_frame(rng, subject)
        for number, mutant in enumerate((*mutants(rng, frame, SEEDS), *wrong_in_each_place(frame, rng))):
            rules = RULES if number % 2 else None
            attempt(mutant, source, target, subject.asked, rules=rules, profile=("strict", "minimal")[number % 3 % 2])


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_any_json_passes_or_is_a_typed_error(source: str, target: str) -> None:
    rng = random.Random(f"{source}{target}")
    for number in range(SHAPES):
        rules = RULES if number % 2 else None
        attempt(any_frame(rng), source, target, rng.choice((None, *METHODS)), rules=rules)


@hypothesis_settings(default=100, thorough=50_000)
@given(st.randoms(use_true_random=False), st.sampled_from(PAIRS), st.sampled_from((None, *METHODS)))
def test_no_small_shape_crashes(rng: random.Random, pair: tuple[str, str], method: str | None) -> None:
    attempt(any_frame(rng), *pair, method)


@pytest.mark.parametrize("kind", ["list", "a", "properties", "anyOf"])
@pytest.mark.parametrize("levels", [100, 1_000, 20_000] if THOROUGH else [100, 2_000])
def test_deep_nesting_passes_or_is_a_typed_error(kind: str, levels: int) -> None:
    value = deep(levels, kind)
    tool = {
        "name": "a",
        "title": "A",
        "inputSchema": {"type": "object", "properties": {"a": value}},
        "outputSchema": value,
    }
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": value}}
    listing = {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": [tool, {**tool, "outputSchema": {"type": "array", "items": value}}]},
    }
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "x", "task": {"a": value}, "arguments": value},
    }
    for frame, method in ((result, "tools/call"), (listing, "tools/list"), (request, None)):
        for source, target in PAIRS:
            attempt(frame, source, target, method, rules=RULES)


def test_arguments_nested_deeply_arrive() -> None:
    value = deep(20_000, "list")
    frame = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "x", "task": {}, "arguments": {"a": value}},
    }
    arrived = translate(frame, source="2025-11-25", target="2024-11-05").frame
    assert arrived is not None
    assert arrived["params"]["arguments"]["a"] is value


def test_time_grows_with_size_and_no_faster() -> None:
    """A list ten times as long, every item of which is replaced or hidden, takes about ten times as long."""

    def seconds(count: int) -> float:
        tool = {"name": "a", "title": "A", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        tools = [tool, {**tool, "execution": {}}] * count
        listing = {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}
        begin = time.thread_time()
        assert len(translate(listing, source="2025-11-25", target="2024-11-05", method="tools/list").losses) >= count
        return time.thread_time() - begin

    few = min(seconds(200) for _ in range(5))
    assert min(seconds(2_000) for _ in range(3)) < 60 * few + 0.05


@pytest.mark.parametrize("revision", REVISIONS)
def test_batches_are_not_for_translate(revision: str) -> None:
    other = REVISIONS[0] if revision != REVISIONS[0] else REVISIONS[1]
    with pytest.raises(TranslationError, match="one JSON-RPC object"):
        translate([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], source=revision, target=other)  # type: ignore[arg-type]


def test_results_need_their_method() -> None:
    with pytest.raises(TranslationError, match="which method"):
        translate({"jsonrpc": "2.0", "id": 1, "result": {}}, source="2025-06-18", target="2024-11-05")
