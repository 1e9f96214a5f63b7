"""`validate` takes the frames that the schema takes, and points at a place that is there, or could be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman_spec._validation import validate
from dragoman_spec.errors import ValidationFailed
from dragoman_spec.revisions import REVISIONS, load
from tests.support.instances import mutants, random_frame, random_instance
from tests.support.judge import is_valid
from tests.support.profile import SEED, rounds

INSTANCES = rounds(default=2, thorough=50)
MUTANTS = rounds(default=8, thorough=40)


@pytest.mark.parametrize("revision", REVISIONS)
def test_requests_and_notifications_are_judged_as_by_the_schema(revision: str) -> None:
    disputed = []
    for entry, frame in _calls(revision):
        envelope = load(revision).ENVELOPES["request" if "id" in frame else "notification"]
        valid = all(is_valid(frame, revision, definition) for definition in (envelope, entry.frame))
        if (_failure(frame, revision, None) is None) != valid:
            disputed.append((entry.name, frame))
    assert disputed == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_results_are_judged_as_by_the_schema(revision: str) -> None:
    disputed = []
    for entry, frame in _results(revision):
        envelope = is_valid(frame, revision, load(revision).ENVELOPES["result"])
        valid = envelope and any(is_valid(frame["result"], revision, definition) for definition in entry.results)
        if (_failure(frame, revision, entry.name) is None) != valid:
            disputed.append((entry.name, frame))
    assert disputed == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_pointers_lead_somewhere(revision: str) -> None:
    astray = []
    for frame, method in _frames(revision):
        failure = _failure(frame, revision, method)
        if failure is not None and not _leads(failure.pointer, frame, may_be_absent=failure.found == "nothing"):
            astray.append((str(failure), frame))
    assert astray == []


def _frames(revision: str) -> Iterator[tuple[Any, str | None]]:
    yield from ((frame, None) for _, frame in _calls(revision))
    yield from ((frame, entry.name) for entry, frame in _results(revision))


def _calls(revision: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    rng = random.Random(SEED)
    for entry in load(revision).METHODS.values():
        for _ in range(INSTANCES):
            frame = random_frame(rng, revision, entry.frame)
            yield entry, frame
            params = frame.get("params", {})
            yield from ((entry, {**frame, "params": mutant}) for mutant in mutants(rng, params, MUTANTS))


def _results(revision: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    rng = random.Random(SEED)
    for entry in load(revision).METHODS.values():
        for definition in entry.results:
            for _ in range(INSTANCES):
                result = random_instance(rng, revision, definition)
                for value in (result, *mutants(rng, result, MUTANTS)):
                    yield entry, {"jsonrpc": "2.0", "id": 1, "result": value}


def _failure(frame: Any, revision: str, method: str | None) -> ValidationFailed | None:
    try:
        validate(frame, revision, method)
    except ValidationFailed as failure:
        return failure
    return None


def _leads(pointer: str, frame: Any, *, may_be_absent: bool) -> bool:
    """Whether a pointer leads to a value; or, for what is absent, to a key that an object lacks."""
    keys = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    value = frame
    for key in keys[:-1] if may_be_absent else keys:
        if isinstance(value, list):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return False
    return not may_be_absent or (isinstance(value, dict) and keys[-1] not in value)
