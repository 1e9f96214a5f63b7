"""The laws on the official examples of 2026-07-28: what people wrote, not a generator. Only where they are at hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman_spec import LossyConversion, TranslationError, convert, load
from tests.support.judge import UPSTREAM
from tests.support.laws import LAWS, Case
from tests.support.subjects import REVISIONS, Subject, subjects

REVISION = "2026-07-28"
EXAMPLES = UPSTREAM / REVISION / "examples"
OLDER = [revision for revision in REVISIONS if revision < REVISION]

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="upstream's files are not here: run `nox -s pull -- --proofs`"
)


def examples() -> Iterator[tuple[str, Any]]:
    for file in sorted(EXAMPLES.glob("*/*.json")):
        yield file.parent.name, json.loads(file.read_text(encoding="utf-8"))


def frames() -> Iterator[tuple[Subject, dict[str, Any]]]:
    """Examples of requests and notifications, and of results in an envelope of ours."""
    for definition, value in examples():
        for subject in subjects(REVISION):
            if subject.definition == definition:
                envelope = {"jsonrpc": "2.0", "id": 1, "result": value}
                yield subject, envelope if subject.kind == "result" else value


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("target", OLDER)
def test_law_holds_on_examples(law: str, target: str) -> None:
    for subject, frame in frames():
        for profile in ("strict", "minimal"):
            assert LAWS[law](frame, Case(subject, target, profile)) is None, (subject, frame)


@pytest.mark.filterwarnings(f"ignore::{LossyConversion.__module__}.{LossyConversion.__name__}")
@pytest.mark.parametrize("target", OLDER)
def test_examples_convert_or_are_refused(target: str) -> None:
    converted = 0
    for definition, value in examples():
        model = getattr(load(REVISION), definition, None)
        if not hasattr(model, "model_validate"):
            continue
        try:
            convert(model.model_validate(value), to=target)
            converted += 1
        except TranslationError:
            continue
    assert converted > 20
