"""How a result of a per-request server is to be read."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.inputs import wants_input
from dragoman.errors import RemoteProtocolError

ASK = {"method": "roots/list"}


@pytest.mark.parametrize("result", [{}, {"resultType": "complete"}, {"content": []}])
def test_a_result_is_complete_unless_it_says_otherwise(result: dict[str, Any]) -> None:
    assert not wants_input(result, "tools/list")


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
@pytest.mark.parametrize(
    "result",
    [
        {"inputRequests": {"a": ASK}},
        {"inputRequests": {"a": {**ASK, "params": {}}}, "requestState": ""},
        {"requestState": "s"},
        {"inputRequests": {}},
    ],
)
def test_three_methods_may_need_input(method: str, result: dict[str, Any]) -> None:
    assert wants_input({"resultType": "input_required", **result}, method)


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/list", {"resultType": "input_required", "requestState": "s"}),
        ("tools/call", {"resultType": "task"}),
        ("tools/call", {"resultType": "later"}),
        ("tools/call", {"resultType": None}),
        ("tools/call", {"resultType": ["complete"]}),
        ("tools/call", {"resultType": "input_required"}),
        ("tools/call", {"resultType": "input_required", "requestState": 5}),
        ("tools/call", {"resultType": "input_required", "inputRequests": []}),
        ("tools/call", {"resultType": "input_required", "inputRequests": {"a": 5}}),
        ("tools/call", {"resultType": "input_required", "inputRequests": {"a": {}}}),
        ("tools/call", {"resultType": "input_required", "inputRequests": {"a": {"method": "tools/call"}}}),
        ("tools/call", {"resultType": "input_required", "inputRequests": {"a": {"method": ["roots/list"]}}}),
        ("tools/call", {"resultType": "input_required", "inputRequests": {"a": {**ASK, "params": []}}}),
    ],
)
def test_any_other_result_is_invalid(method: str, result: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        wants_input(result, method)
    assert caught.value.code == -32603
    assert caught.value.data == {"method": method}
