"""Which way a question in the middle of a call is put."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.strategy import SETTINGS, Strategy, choose_strategy

READS = {"annotations": {"readOnlyHint": True}}
AGAIN = {"annotations": {"idempotentHint": True}}


def test_there_are_settings_for_all_and_one_for_whichever_applies() -> None:
    assert SETTINGS == ("auto", "task", "park", "replay", "refuse")


@pytest.mark.parametrize(
    ("setting", "method", "options", "strategy"),
    [
        ("auto", "tools/call", {"can_be_task": True}, Strategy.TASK),
        ("auto", "prompts/get", {}, Strategy.PARK),
        ("auto", "tools/call", {"tool": READS}, Strategy.PARK),
        ("auto", "tools/call", {"tool": READS, "can_park": False}, Strategy.REPLAY),
        ("auto", "tools/call", {"tool": AGAIN, "can_park": False}, Strategy.REPLAY),
        ("auto", "tools/call", {"may_repeat": True, "can_park": False}, Strategy.REPLAY),
        ("auto", "resources/read", {"can_park": False}, Strategy.REPLAY),
        ("auto", "tools/call", {"can_park": False}, Strategy.REFUSE),
        ("auto", "tools/call", {"tool": {"annotations": {"readOnlyHint": "yes"}}, "can_park": False}, Strategy.REFUSE),
        ("auto", "tools/call", {"tool": {"annotations": 5}, "can_park": False}, Strategy.REFUSE),
        ("auto", "tools/list", {"may_repeat": True}, Strategy.REFUSE),
        ("task", "tools/call", {"can_be_task": True}, Strategy.TASK),
        ("task", "tools/call", {}, Strategy.REFUSE),
        ("park", "tools/call", {"can_be_task": True}, Strategy.PARK),
        ("park", "tools/call", {"tool": READS, "can_park": False}, Strategy.REFUSE),
        ("replay", "tools/call", {"tool": READS}, Strategy.REPLAY),
        ("replay", "tools/call", {}, Strategy.REFUSE),
        ("refuse", "tools/call", {"tool": READS}, Strategy.REFUSE),
    ],
)
def test_a_strategy_is_chosen(setting: str, method: str, options: dict[str, Any], strategy: Strategy) -> None:
    assert choose_strategy(setting, method, **options) is strategy
