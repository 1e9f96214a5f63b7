"""The state of a per-request server, bound to its request on the way to the client and back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.rules.state import Binding, Keeper, Seal, State
from dragoman.core.settings import Settings
from dragoman.core.switch.relay import ByIds, unwrap, wrap
from dragoman.core.translate import Counters
from dragoman.errors import RemoteProtocolError
from tests.core.upstream_talk import frame_of

KEEPER = Keeper(Seal(b"k" * 32, b"1" * 16))
BINDING = Binding("files", "tools/call", "d", "alice")
NONCE = b"n" * 12
STATE = "the server's \u2028 own\ud800"


def test_a_state_comes_back_as_the_server_gave_it() -> None:
    wrapped = wrap({"resultType": "input_required", "requestState": STATE}, KEEPER, BINDING, 0.0, NONCE)
    assert "own" not in wrapped["requestState"]
    params = {"name": "add", "requestState": wrapped["requestState"]}
    assert unwrap(params, Keeper(Seal(b"k" * 32, b"2" * 16)), BINDING, 1.0) == {"name": "add", "requestState": STATE}


@pytest.mark.parametrize("other", [replace(BINDING, server="mail"), replace(BINDING, principal="bob")])
def test_a_state_goes_to_no_other_server_and_for_nobody_else(other: Binding) -> None:
    wrapped = wrap({"requestState": STATE}, KEEPER, BINDING, 0.0, NONCE)
    with pytest.raises(RemoteProtocolError):
        unwrap(wrapped, KEEPER, other, 1.0)


@pytest.mark.parametrize("result", [{}, {"requestState": None}, {"requestState": 5}])
def test_a_result_without_a_state_stays_the_same_object(result: dict[str, Any]) -> None:
    assert wrap(result, KEEPER, BINDING, 0.0, NONCE) is result


def test_params_without_a_state_stay_the_same_object() -> None:
    params = {"name": "add"}
    assert unwrap(params, KEEPER, BINDING, 0.0) is params


def test_a_state_of_another_kind_is_not_passed_on() -> None:
    text = KEEPER.write(State("park", "c"), BINDING, 0.0, NONCE)
    with pytest.raises(RemoteProtocolError) as caught:
        unwrap({"requestState": text}, KEEPER, BINDING, 1.0)
    assert caught.value.data == {"reason": "other-request"}


def make_relay(requests: object = None, **edge: Any) -> ByIds:
    """To a server over HTTP; requests and edge have what a test needs of them."""
    server = SimpleNamespace(upstream=SimpleNamespace(takes_headers=True), **edge)
    wiring, bridging = SimpleNamespace(settings=Settings()), SimpleNamespace(shares_channel=False, principal="")
    return ByIds(*cast(Any, (requests, server, wiring, bridging, None, Counters())))


def test_of_a_request_that_is_not_with_the_server_yet_the_server_is_told_no_end() -> None:
    told: list[tuple[Any, str | None]] = []
    relay = make_relay(withdraw=lambda loan, reason: told.append((loan, reason)))
    relay.cancel(cast(PerRequestCall, SimpleNamespace(at_server=None)), "enough")
    assert told == []
    relay.cancel(cast(PerRequestCall, SimpleNamespace(at_server="loan")), "enough")
    assert told == [("loan", "enough")]


def test_tools_whose_arguments_cannot_go_in_headers_are_not_offered() -> None:
    put: list[Any] = []
    relay = make_relay(SimpleNamespace(put_answer=lambda request, body: put.append(body["result"]["tools"])))
    bad = {"type": "object", "x-mcp-header": "Everything"}
    good = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    tools = [{"name": "bad", "inputSchema": bad}, {"name": "good", "inputSchema": good}]
    frame = frame_of({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})
    asked = SimpleNamespace(method="tools/list", id="a", key=b'"a"', frame=frame, at_server=None)
    relay._take_answer(cast(PerRequestCall, asked), False, frame)
    assert put == [tools[1:]]
    assert [one.name for one in relay.tools.mirrored("tools/call", {"name": "good"})] == ["Region"]
