"""What is done to error responses, where they may be something else than objects and where not."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import TranslationError, translator
from dragoman_spec.losses import Losses
from dragoman_spec.step import Direction, ErrorRepair, Refusal, Repair, error_functions
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


@pytest.mark.parametrize(
    "way",
    [
        Direction(requests={"a": noting("request")}),
        Direction(notifications={"a": noting("notification")}),
        Direction(results={"a": noting("result")}),
        Direction(refused={"a": Refusal("No.")}),
        Direction(swallowed=frozenset({"a"})),
        Direction(methods={"a": "b"}),
        Direction(error=noting("node")),
        Direction(errors=(ErrorRepair(1, 1, noting("code")),)),
        Direction(every_error=(noting("hook"),)),
        Direction(repairs=(Repair("on", "*", "request", noting("repair")),)),
    ],
)
def test_a_way_on_which_anything_is_done_is_no_identity(way: Direction) -> None:
    translator = Translator("2024-11-05", "2025-03-26", "strict", frozenset({"on"}))
    translator.steps = [{"strict": way}]
    assert not translator.identity


def test_a_way_on_which_only_a_rule_that_is_off_does_something_is_an_identity() -> None:
    translator = Translator("2024-11-05", "2025-03-26", "strict", frozenset())
    translator.steps = [{"strict": Direction(repairs=(Repair("off", "*", "request", noting("repair")),))}]
    assert translator.identity


def test_peers_that_make_up_methods_do_not_fill_the_memory() -> None:
    way = Translator("2024-11-05", "2025-03-26", "strict", frozenset())
    for number in range(2_000):
        way.touches("request", f"x/{number}")
    assert len(way._routes) == 1_024
    assert way.touches("result", "initialize") == translator("2024-11-05", "2025-03-26").touches("result", "initialize")


@pytest.mark.parametrize(("code", "seen"), [(-3, []), (-2, ["one"]), (-1, ["one"]), (0, ["two"]), (True, [])])
def test_an_error_is_repaired_by_the_first_that_changes_it(code: Any, seen: list[str]) -> None:
    way = Direction(
        errors=(
            ErrorRepair(-2, -1, noting("one")),
            ErrorRepair(-2, 1, lambda frame, method, out: frame),
            ErrorRepair(0, 0, noting("two")),
        )
    )
    frame: Any = {"error": {"code": code}, "seen": []}
    for function in error_functions(way, "ping", [], odd=False):
        frame = function(frame, None, Losses())
    assert frame["seen"] == seen
