"""What is done to error responses, where they may be something else than objects and where not."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import TranslationError, translator
from dragoman_spec.losses import Losses
from dragoman_spec.step import Direction, ErrorRepair, error_functions
from dragoman_spec.translation import Translator


def noting(name: str) -> Any:
    return lambda frame, at, out: {**frame, "seen": [*frame["seen"], name]}


WAY = Direction(
    error=noting("node"),
    every_error=(noting("hook"),),
    errors=(ErrorRepair(1, 1, noting("code")),),
)


def seen(error: Any, *, odd: bool) -> list[str]:
    frame: Any = {"error": error, "seen": []}
    for function in error_functions(WAY, "ping", [noting("repair")], odd=odd):
        frame = function(frame, None, Losses())
    found: list[str] = frame["seen"]
    return found


@pytest.mark.parametrize("odd", [False, True])
def test_an_error_goes_through_all_that_there_is(odd: bool) -> None:
    assert seen({"code": 1}, odd=odd) == ["repair", "node", "hook", "code"]


@pytest.mark.parametrize("error", [[], "x", None, [{"code": 1}]])
def test_an_error_that_is_not_an_object_goes_through_what_is_made_for_it(error: Any) -> None:
    assert seen(error, odd=True) == ["node"]


@pytest.mark.parametrize(("source", "target"), [("2024-11-05", "2026-07-28"), ("2026-07-28", "2024-11-05")])
@pytest.mark.parametrize("error", [[], "x", None, 5])
def test_an_error_that_is_not_an_object_is_not_of_today(source: str, target: str, error: Any) -> None:
    with pytest.raises(TranslationError, match="at /error: expected an object"):
        translator(source, target).translate({"jsonrpc": "2.0", "id": 1, "error": error}, "ping")


def test_only_what_the_source_says_is_taken() -> None:
    """An odd error is the business of the revision that has it, not of those before it on the way."""
    plain, odd = Direction(), Direction(odd_errors=True)
    chain = Translator("2025-06-18", "2026-07-28", "strict", frozenset())
    frame = {"jsonrpc": "2.0", "id": 1, "error": []}
    chain.steps = [{"strict": plain}, {"strict": odd}]
    with pytest.raises(TranslationError, match="at /error"):
        chain.translate(frame, "ping")
    chain.steps = [{"strict": odd}, {"strict": plain}]
    assert chain.translate(frame, "ping").frame is frame
