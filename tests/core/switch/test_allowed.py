"""What may pass to and from a shared server: what its revision has, in that kind and from that side."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.exact_json import encode_line
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.core.switch.talk import Talk
from tests.core.switch.test_questions import ALL
from tests.proxy.conversation import READY, an_error, initialize, initialized, notification, request

METHODS = [
    (revision, method) for revision in HANDSHAKE_REVISIONS for method in dragoman_spec.load(revision).METHODS.values()
]


def opened(revision: str) -> Talk:
    talk = Talk()
    for name in "ab":
        heard = talk.says(name, initialize(revision, key="open", **ALL))
        if heard[0][0] == "server":
            talk.says("server", initialized(revision, heard[0][1]["id"]))
        talk.says(name, READY)
    return talk


@pytest.mark.parametrize(("revision", "method"), METHODS, ids=lambda value: getattr(value, "name", value))
def test_a_known_method_in_the_wrong_kind_does_not_reach_the_server(revision: str, method: Any) -> None:
    talk = opened(revision)
    if method.kind == "request":
        [(to, frame)] = talk.says("a", notification(method.name, requestId=1))
        assert to == "a"
        assert an_error(None, -32600, f"expected {method.name} to have an id")(frame)
    else:
        [(to, frame)] = talk.says("a", request(3, method.name, requestId=1))
        assert to == "a"
        assert an_error(3, -32600, method.name)(frame)


@pytest.mark.parametrize(("revision", "method"), METHODS, ids=lambda value: getattr(value, "name", value))
def test_a_known_method_in_the_wrong_kind_does_not_reach_a_client(revision: str, method: Any) -> None:
    talk = opened(revision)
    talk.says("a", request(1, "tools/call", name="t"))
    heard = talk.says(
        "server", notification(method.name) if method.kind == "request" else request(3, method.name, requestId=1)
    )
    assert [to for to, _ in heard] == ([] if method.kind == "request" else ["server"])


@pytest.mark.parametrize("side", ["client", "server"])
def test_what_only_the_other_side_sends_is_refused(side: str) -> None:
    talk = opened("2025-11-25")
    talk.says("a", request(1, "tools/call", name="t"))
    who, wrong = ("a", "sampling/createMessage") if side == "client" else ("server", "tools/call")
    [(to, frame)] = talk.says(who, request(3, wrong))
    assert to == who
    assert an_error(3, -32601, wrong)(frame)


@pytest.mark.parametrize("method", ["tasks/list", "subscriptions/listen", "elicitation/create"])
def test_what_only_other_revisions_have_is_refused(method: str) -> None:
    [(to, frame)] = opened("2024-11-05").says("a", request(3, method))
    assert to == "a"
    assert an_error(3, -32601, method)(frame)


def test_a_request_that_no_revision_knows_passes_under_an_id_of_ours() -> None:
    talk = opened("2025-11-25")
    [(to, frame)] = talk.says("a", request("x", "vendor/do", deep=[1]))
    assert to == "server"
    assert isinstance(frame["id"], int)
    assert talk.says("server", {"jsonrpc": "2.0", "id": frame["id"], "result": {}})[0][1]["id"] == "x"


@pytest.mark.parametrize("method", ["vendor/do", "notifications/vendor/cancelled", "notifications/tasks/status"])
def test_a_notification_that_nothing_maps_does_not_reach_the_server(method: str) -> None:
    talk = opened("2025-11-25")
    assert talk.says("a", notification(method, requestId=1, taskId="t")) == []
    assert talk.switch.counters.dropped == 1


def test_a_request_named_like_a_notification_is_refused_whatever_it_is() -> None:
    talk = opened("2025-11-25")
    [(_, frame)] = talk.says("a", request(3, "notifications/vendor"))
    assert an_error(3, -32600, "notification")(frame)


def test_it_is_the_same_in_an_array() -> None:
    talk = opened("2025-03-26")
    heard = talk.says("a", encode_line([notification("tools/call", name="t"), request(1, "notifications/cancelled")]))
    assert [to for to, _ in heard] == ["a"]


@pytest.mark.parametrize("token", [[], {}, True, "x" * 2000])
def test_a_progress_token_that_cannot_be_kept_is_refused(token: Any) -> None:
    talk = opened("2025-11-25")
    [(to, frame)] = talk.says("a", request(3, "tools/call", name="t", _meta={"progressToken": token}))
    assert to == "a"
    assert an_error(3, -32600, "progress token")(frame)


def test_an_id_that_is_too_long_to_be_kept_is_refused() -> None:
    talk = opened("2025-11-25")
    [(to, _)] = talk.says("a", request("x" * 2000, "tools/list"))
    assert to == "a"
    talk.says("a", request(1, "tools/call", name="t"))
    [(to, frame)] = talk.says("server", request("x" * 2000, "elicitation/create", message="?"))
    assert to == "server"
    assert "longer than" in frame["error"]["message"]
