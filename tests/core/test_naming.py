"""What names something is read in one way, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.envelope import Refusal
from dragoman.core.naming import read_named
from tests.core.upstream_talk import frame_of
from tests.proxy.conversation import request


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "x"}),
        ("prompts/get", {"name": ""}),
        ("resources/read", {"uri": "file:///a\0b"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "file:///{a}"}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["file:///a"]}}),
        ("subscriptions/listen", {"notifications": {}}),
        ("tools/list", {"name": ["x"]}),
    ],
)
def test_a_request_with_one_name_passes(method: str, params: dict[str, Any]) -> None:
    frame = read_named(frame_of(request(1, method, **params)))
    assert not isinstance(frame, Refusal)
    assert frame.body["params"] == params


@pytest.mark.parametrize(
    ("method", "params", "fault"),
    [
        *[("tools/call", {"name": wrong}, "name to be a string") for wrong in (["x"], None, 1, "x\0y")],
        *[("resources/read", {"uri": wrong}, "uri to be a string") for wrong in (["file:///a"], None, 1)],
        ("tools/call", {"name": "x", "Name": "y"}, "name to be a string"),
        (
            "completion/complete",
            {"ref": {"type": "ref/tool", "name": "x"}},
            "ref.type to be ref/prompt or ref/resource",
        ),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": 1}}, "ref.uri to be a string"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x", "uri": 1}}, "ref.uri to be a string"),
        (
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": ["file:///a", 1]}},
            "notifications.resourceSubscriptions to be an array of strings",
        ),
        (
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": [], "ResourceSubscriptions": ["file:///a"]}},
            "notifications.resourceSubscriptions to be there once",
        ),
    ],
)
def test_a_request_that_two_servers_may_read_in_two_ways_is_refused(
    method: str, params: dict[str, Any], fault: str
) -> None:
    refusal = read_named(frame_of(request(1, method, **params)))
    assert refusal == Refusal(-32602, f"expected params.{fault}", {"method": method})
