"""The models accept exactly what the schema accepts, and give it back bit by bit: all definitions, all revisions."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman_spec._validation import adapter
from dragoman_spec.revisions import REVISIONS, load
from tests.support.instances import instances, mutants, random_instance, read_schema
from tests.support.judge import UPSTREAM, canonical, is_valid, same
from tests.support.profile import SEED, hypothesis_settings, rounds

EXAMPLES = UPSTREAM / "2026-07-28" / "examples"
INSTANCES = rounds(default=5, thorough=120)
MUTANTS = rounds(default=5, thorough=8)


@pytest.mark.parametrize("revision", REVISIONS)
def test_names_are_one_to_one_with_the_definitions(revision: str) -> None:
    assert list(load(revision).DEFINITIONS) == sorted(canonical(revision)["$defs"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_name_leads_to_its_model(revision: str) -> None:
    package = load(revision)
    found = {name: getattr(package, name).__name__ for name in read_schema(revision).definitions}
    assert found == {name: name for name in found}


@pytest.mark.parametrize("revision", REVISIONS)
def test_instances_are_valid(revision: str) -> None:
    invalid = [
        (definition, instance)
        for definition in canonical(revision)["$defs"]
        for instance in _instances(revision, definition)
        if not is_valid(instance, revision, definition)
    ]
    assert invalid == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_valid_instances_come_back_exactly(revision: str) -> None:
    inexact = [
        (definition, instance)
        for definition in canonical(revision)["$defs"]
        for instance in _instances(revision, definition)
        if not _comes_back(instance, revision, definition)
    ]
    assert inexact == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_mutants_are_judged_as_the_schema_judges_them(revision: str) -> None:
    rng = random.Random(SEED)
    disputed = [
        (definition, mutant)
        for definition in canonical(revision)["$defs"]
        for instance in _instances(revision, definition)
        for mutant in mutants(rng, instance, MUTANTS)
        if _comes_back(mutant, revision, definition) != is_valid(mutant, revision, definition)
    ]
    assert disputed == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_mutants_are_often_invalid(revision: str) -> None:
    rng = random.Random(SEED)
    verdicts = [
        is_valid(mutant, revision, method.frame)
        for method in load(revision).METHODS.values()
        for instance in _instances(revision, method.frame)
        for mutant in mutants(rng, instance, 4)
    ]
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.9


def _roots() -> list[tuple[str, str]]:
    """The definitions that no other one refers to, by revision: together they hold all the others."""
    found = []
    for revision in REVISIONS:
        definitions = canonical(revision)["$defs"]
        inside: set[str] = set()
        for owner, node in definitions.items():
            inside |= set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(node))) - {owner}
        found += [(revision, name) for name in definitions if name not in inside]
    return found


@pytest.mark.parametrize(("revision", "definition"), _roots())
def test_whatever_hypothesis_finds_comes_back_exactly(revision: str, definition: str) -> None:
    @hypothesis_settings(default=4, thorough=400)
    @given(instances(revision, definition))
    def comes_back(instance: Any) -> None:
        assert _comes_back(instance, revision, definition)

    comes_back()


def _example_files() -> list[Path]:
    return sorted(EXAMPLES.glob("*/*.json"))


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="upstream's files are not here: run `nox -s pull -- --proofs`")
@pytest.mark.parametrize("path", _example_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_official_example_comes_back_exactly(path: Path) -> None:
    assert _comes_back(json.loads(path.read_text(encoding="utf-8")), "2026-07-28", path.parent.name)


def _instances(revision: str, definition: str) -> list[Any]:
    rng = random.Random(f"{SEED} {revision} {definition}")
    return [random_instance(rng, revision, definition) for _ in range(INSTANCES)]


def _comes_back(value: Any, revision: str, definition: str) -> bool:
    """Whether the model takes a value; that it then gives back the very same is asserted, as Python and as JSON."""
    judge = adapter(revision, definition)
    try:
        model = judge.validate_python(value)
    except ValidationError:
        return False
    assert same(judge.dump_python(model), value)
    assert same(json.loads(judge.dump_json(model)), value)
    return True


def test_comparison_knows_kinds() -> None:
    pairs = st.sampled_from([(1, 1.0), (1, True), (0.0, -0.0), ([], {}), ({"a": 1}, {"a": 1, "b": None}), ("1", 1)])

    @hypothesis_settings(default=20, thorough=20)
    @given(pairs)
    def differ(pair: tuple[Any, Any]) -> None:
        assert not same(*pair)

    differ()
