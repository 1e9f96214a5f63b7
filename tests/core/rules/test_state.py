"""States that we give to clients, and what is refused when one comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dragoman.core.rules.state import Binding, Keeper, Reason, Seal, State, digest_params, refuse
from dragoman.errors import RemoteProtocolError

KEY, NONCE = b"k" * 32, b"n" * 12
KEEPER = Keeper(Seal(KEY, b"1" * 16), ttl_s=60)
BINDING = Binding("files", "tools/call", digest_params({"name": "add"}), "alice")
STATE = State("park", "call-7", "round-1", {"a": [1]})


def reason_of(error: RemoteProtocolError) -> str:
    assert error.code == -32602
    assert error.data is not None
    reason: str = error.data["reason"]
    return reason


def write(state: State = STATE) -> str:
    return KEEPER.write(state, BINDING, 1000.0, NONCE)


def test_a_state_comes_back_as_it_was() -> None:
    assert KEEPER.read(write(), BINDING, 1059.9) == STATE


@pytest.mark.parametrize(
    ("binding", "now_s", "reason"),
    [
        (replace(BINDING, principal="bob"), 1000, Reason.OTHER_CALLER),
        (replace(BINDING, server="mail"), 1000, Reason.OTHER_REQUEST),
        (replace(BINDING, method="prompts/get"), 1000, Reason.OTHER_REQUEST),
        (replace(BINDING, digest=digest_params({"name": "sub"})), 1000, Reason.OTHER_REQUEST),
        (BINDING, 1060, Reason.EXPIRED),
        (replace(BINDING, principal="bob"), 1060, Reason.OTHER_CALLER),
    ],
)
def test_a_state_is_for_one_request_of_one_caller_and_some_time(binding: Binding, now_s: float, reason: Reason) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        KEEPER.read(write(), binding, now_s)
    assert reason_of(caught.value) == reason.value


@pytest.mark.parametrize("text", [None, 5, "", "abc", write()[:-2] + "AA"])
def test_what_is_no_state_of_ours_is_unreadable(text: Any) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        KEEPER.read(text, BINDING, 1000)
    assert reason_of(caught.value) == Reason.UNREADABLE.value


def test_a_call_waits_in_one_instance() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Keeper(Seal(KEY, b"2" * 16)).read(write(), BINDING, 1000)
    assert caught.value.data == {"reason": "other-instance", "instance": (b"1" * 16).hex()}


def test_a_state_without_a_call_is_good_in_every_instance() -> None:
    state = State("url", extra=["e1"])
    assert Keeper(Seal(KEY, b"2" * 16)).read(write(state), BINDING, 1000) == state


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words(reason: Reason) -> None:
    assert len(str(refuse(reason))) > 40


@pytest.mark.parametrize(
    "other",
    [
        {"b": 2, "a": 1},
        {"a": 1, "b": 2, "_meta": {"progressToken": 5}},
        {"a": 1, "b": 2, "requestState": "s", "inputResponses": {}},
    ],
)
def test_a_digest_is_of_what_must_not_change(other: dict[str, Any]) -> None:
    assert digest_params(other) == digest_params({"a": 1, "b": 2})


@pytest.mark.parametrize("other", [{"a": 1}, {"a": 1, "b": "2"}, {"a": 1, "b": True}, {"a": 1, "b": [2]}, None])
def test_a_digest_differs_where_the_params_do(other: Any) -> None:
    assert digest_params(other) != digest_params({"a": 1, "b": 2})


def test_a_digest_of_any_text_can_be_made() -> None:
    assert digest_params({"a": "\ud800\x00é"}) != digest_params({"a": "?"})


def test_params_that_nobody_can_write_have_no_digest() -> None:
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    with pytest.raises(ValueError, match="too deep"):
        digest_params({"a": deep})
    while deep:
        (deep,) = deep
