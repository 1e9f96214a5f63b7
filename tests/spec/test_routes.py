"""How the functions of several steps become one way for a frame."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman_spec import schemas

TOOL = {"name": "t", "inputSchema": {"properties": {}}}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}


def test_what_a_rule_mends_is_mended_once_on_a_way_over_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0
    supply = schemas.supply_type

    def count(*args: Any, **named: Any) -> Any:
        nonlocal times
        times += 1
        return supply(*args, **named)

    monkeypatch.setattr(schemas, "supply_type", count)
    translation = dragoman_spec.translate(ANSWER, source="2025-11-25", target="2024-11-05", method="tools/list")
    assert translation.frame is not None
    assert translation.frame["result"]["tools"][0]["inputSchema"]["type"] == "object"
    assert times == 1
