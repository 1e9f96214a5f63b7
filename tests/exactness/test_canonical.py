"""The canonical schemas accept and reject what upstream's bytes accept and reject: only prose was taken out."""

from __future__ import annotations

import random

import pytest

from dragoman_spec.revisions import REVISIONS
from tests.support.instances import mutants, random_instance
from tests.support.judge import UPSTREAM, canonical, upstream_validator, validator
from tests.support.profile import SEED, rounds

INSTANCES = rounds(default=2, thorough=40)
MUTANTS = rounds(default=3, thorough=8)
PUBLISHED = [revision for revision in REVISIONS if (UPSTREAM / revision / "schema.json").is_file()]


@pytest.mark.skipif(not PUBLISHED, reason="upstream's files are not here: run `nox -s pull -- --proofs`")
@pytest.mark.parametrize("revision", PUBLISHED)
def test_canonical_schema_judges_as_upstreams_bytes_do(revision: str) -> None:
    rng = random.Random(SEED)
    disputed = []
    for definition in canonical(revision, fixed=False)["$defs"]:
        ours, theirs = validator(revision, definition, fixed=False), upstream_validator(revision, definition)
        for _ in range(INSTANCES):
            instance = random_instance(rng, revision, definition)
            values = [instance, *mutants(rng, instance, MUTANTS)]
            disputed += [(definition, value) for value in values if ours.is_valid(value) != theirs.is_valid(value)]
    assert disputed == []


@pytest.mark.skipif(not PUBLISHED, reason="upstream's files are not here: run `nox -s pull -- --proofs`")
@pytest.mark.parametrize("revision", PUBLISHED)
def test_canonical_schema_has_upstreams_definitions(revision: str) -> None:
    validator_schema = upstream_validator(revision, "Result").schema
    theirs = validator_schema.get("$defs") or validator_schema["definitions"]
    assert sorted(canonical(revision, fixed=False)["$defs"]) == sorted(theirs)
