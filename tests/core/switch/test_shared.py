"""A shared server: who hears what."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dragoman.core.label import LABEL
from tests.core.switch.talk import Talk
from tests.proxy.conversation import READY, an_error, error, initialize, initialized, notification, request, result

REVISION = "2025-11-25"


def call(key: Any, **params: Any) -> dict[str, Any]:
    return request(key, "tools/call", name="t", **params)


def test_the_server_is_opened_once_in_the_name_of_the_proxy() -> None:
    talk = Talk()
    [(to, offer)] = talk.says("a", initialize(REVISION, key="i", sampling={}))
    assert (to, offer["params"]["clientInfo"]["name"]) == ("server", "dragoman")
    assert set(offer["params"]["capabilities"]) == {"roots", "sampling", "elicitation"}
    assert talk.says("b", initialize(REVISION, key=7)) == []
    answer = initialized(REVISION, offer["id"], tools={})
    heard = talk.says("server", answer)
    assert heard == [("a", {**answer, "id": "i"}), ("b", {**answer, "id": 7})]
    [(to, late)] = talk.says("c", initialize("2025-03-26", key=0))
    assert (to, late["id"], late["result"]["protocolVersion"]) == ("c", 0, "2025-03-26")


def test_what_is_logged_while_one_who_waited_is_answered_is_about_its_session() -> None:
    talk, lines = Talk(), list[tuple[str, str]]()
    offer = talk.says("a", initialize(REVISION, key=1))[0][1]
    talk.says("b", initialize("2025-03-26", key=2))
    with collected(lambda line: lines.append((LABEL.get(), line))):
        talk.says("server", initialized(REVISION, offer["id"]))
    speaks = "the server speaks 2025-11-25, the client"
    assert lines == [("a", f"{speaks} 2025-11-25"), ("b", f"{speaks} 2025-03-26")]


@contextmanager
def collected(take: Callable[[str], object]) -> Iterator[None]:
    """What is logged of sessions meanwhile."""
    handler, logger = logging.Handler(), logging.getLogger("dragoman.session")
    handler.emit = lambda record: take(record.getMessage())  # type: ignore[method-assign,assignment,return-value]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_the_server_is_told_of_the_extensions_of_the_client_that_opens_it() -> None:
    [(to, offer)] = Talk().says("a", initialize(REVISION, extensions={"com.example/x": {"a": 1}}))
    assert (to, offer["params"]["capabilities"]["extensions"]) == ("server", {"com.example/x": {"a": 1}})


def test_only_the_first_initialized_crosses() -> None:
    talk = Talk()
    offer = talk.says("a", initialize(REVISION))[0][1]
    talk.says("b", initialize(REVISION))
    talk.says("server", initialized(REVISION, offer["id"]))
    assert talk.says("b", READY) == [("server", READY)]
    assert talk.says("a", READY) == []


def test_an_initialized_that_comes_early_crosses_once_the_server_has_answered() -> None:
    talk = Talk()
    offer = talk.says("a", initialize(REVISION))[0][1]
    assert talk.says("a", READY) == []
    assert talk.says("server", initialized(REVISION, offer["id"]))[-1] == ("server", READY)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_servers_are_told_of_what_their_revision_has(revision: str) -> None:
    offer = Talk().says("a", initialize(revision))[0][1]
    assert ("elicitation" in offer["params"]["capabilities"]) is (revision == "2025-06-18")


def test_a_refusal_reaches_all_who_offered_the_same_and_the_next_offer_is_made() -> None:
    talk = Talk()
    first = talk.says("a", initialize(REVISION, key=1))[0][1]
    talk.says("b", initialize(REVISION, key=2))
    talk.says("c", initialize("2025-06-18", key=3))
    heard = talk.says("server", error(first["id"], -32603, "no API key"))
    assert [(to, frame.get("id"), "error" in frame) for to, frame in heard[:2]] == [("a", 1, True), ("b", 2, True)]
    assert heard[2][0] == "server"
    assert heard[2][1]["params"]["protocolVersion"] == "2025-06-18"
    assert talk.says("a", initialize("2025-06-18", key="again")) == []
    heard = talk.says("server", initialized("2025-06-18", heard[2][1]["id"]))
    assert [(to, frame["id"]) for to, frame in heard] == [("c", 3), ("a", "again")]


def test_what_the_server_says_before_its_answer_is_no_answer() -> None:
    talk = Talk()
    offer = talk.says("a", initialize(REVISION, key=1))[0][1]
    talk.says("server", notification("notifications/message", level="info", data="starting"))
    talk.says("server", request("p", "ping"))
    assert [to for to, _ in talk.says("server", initialized(REVISION, offer["id"]))] == ["a"]


def test_an_error_without_id_refuses_the_offer() -> None:
    talk = Talk()
    talk.says("a", initialize(REVISION, key=1))
    [(to, frame)] = talk.says("server", {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}})
    assert (to, frame["id"], frame["error"]["code"]) == ("a", 1, -32700)


def test_the_answer_is_kept_when_who_asked_has_gone() -> None:
    talk = Talk()
    offer = talk.says("a", initialize(REVISION, key=1))[0][1]
    talk.says("b", initialize(REVISION, key=2))
    talk.leaves("a")
    assert [to for to, _ in talk.says("server", initialized(REVISION, offer["id"]))] == ["b"]


def test_ids_are_ours_on_the_way_there_and_their_own_on_the_way_back() -> None:
    talk = Talk()
    first = talk.opens("a", "b")
    for number, (name, key) in enumerate([("a", 1), ("b", 1), ("a", "1"), ("b", 2**70), ("a", -3)], first):
        assert talk.says(name, call(key)) == [("server", call(number))]
        assert talk.says("server", result(number, {"n": number})) == [(name, result(key, {"n": number}))]


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":%d,"result":{"id":1,"x":[1.0,"\\ud800"]}}\n',
        b'{"result":{"id":1},"jsonrpc":"2.0","id":%d}\n',
        b'{"result":{"id":1},"id":%d,"jsonrpc":"2.0"}\n',
        b'{ "jsonrpc" : "2.0", "id" : "%d", "result" : {} }\n',
        b'{"x":1,"jsonrpc":"2.0","id":%d.0,"result":{}}\n',
    ],
)
def test_an_answer_keeps_its_bytes_but_for_the_id(answer: bytes) -> None:
    talk = Talk()
    number = talk.opens("a")
    talk.says("a", call("mine"))
    [(to, frame)] = talk.says("server", answer % number)
    assert (to, frame["id"]) == ("a", "mine")


def test_no_member_can_choose_the_id_that_the_server_sees() -> None:
    talk = Talk()
    talk.opens("a", "b")
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"\\u0069d":99,"id":98}\n'
    [(to, frame)] = talk.says("a", line)
    assert to == "a"
    assert an_error(98, -32600, "no more than once")(frame)


def test_what_is_not_json_does_not_reach_the_server() -> None:
    talk = Talk()
    talk.opens("a")
    [(to, frame)] = talk.says("a", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{nonsense}}\n')
    assert (to, frame["error"]["code"]) == ("a", -32700)


def test_progress_goes_to_whose_token_it_is() -> None:
    talk = Talk()
    number = talk.opens("a", "b")
    heard = talk.says("a", call(1, _meta={"progressToken": "t", "vendor": 1}))
    assert heard == [("server", call(number, _meta={"progressToken": number, "vendor": 1}))]
    talk.says("b", call(1, _meta={"progressToken": "t"}))
    progress = notification("notifications/progress", progressToken=number + 1, progress=1)
    assert talk.says("server", progress) == [
        ("b", notification("notifications/progress", progressToken="t", progress=1))
    ]
    talk.says("server", result(number + 1, {}))
    assert talk.says("server", progress) == []
    assert talk.switch.counters.dropped == 1


def test_a_cancellation_names_our_id() -> None:
    talk = Talk()
    number = talk.opens("a", "b")
    talk.says("a", call(5))
    assert talk.says("b", notification("notifications/cancelled", requestId=5)) == []
    heard = talk.says("a", notification("notifications/cancelled", requestId=5, reason="no"))
    assert heard == [("server", notification("notifications/cancelled", requestId=number, reason="no"))]
    assert talk.says("server", result(number, {})) == [("a", result(5, {}))]


def test_a_cancelled_request_is_forgotten_after_a_while() -> None:
    talk = Talk(grace_s=5)
    talk.opens("a")
    talk.says("a", call(5))
    talk.says("a", notification("notifications/cancelled", requestId=5))
    assert talk.switch.needs_clock
    talk.time_passes(6)
    assert (talk.switch.needs_clock, talk.switch.held) == (False, 0)


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_news_about_lists_is_for_everybody_who_is_ready(kind: str) -> None:
    talk = Talk()
    talk.opens("a", "b")
    talk.says("c", initialize(REVISION))
    news = notification(f"notifications/{kind}/list_changed")
    assert talk.says("server", news) == [("a", news), ("b", news)]


def subscribe(key: Any) -> dict[str, Any]:
    return request(key, "resources/subscribe", uri="x:1")


def unsubscribe(key: Any) -> dict[str, Any]:
    return request(key, "resources/unsubscribe", uri="x:1")


def test_the_server_is_subscribed_once_and_until_the_last_one_unsubscribes() -> None:
    talk = Talk()
    number = talk.opens("a", "b", "c")
    assert talk.says("a", subscribe("s")) == [("server", subscribe(number))]
    assert talk.says("server", result(number, {})) == [("a", result("s", {}))]
    assert talk.says("b", subscribe(9)) == [("b", result(9, {}))]
    news = notification("notifications/resources/updated", uri="x:1")
    assert talk.says("server", news) == [("a", news), ("b", news)]
    assert talk.says("a", unsubscribe(10)) == [("a", result(10, {}))]
    assert talk.says("server", news) == [("b", news)]
    assert talk.says("b", unsubscribe(11)) == [("server", unsubscribe(number + 1))]
    assert talk.says("server", news) == []


def test_the_most_verbose_level_wins_and_each_sees_its_own() -> None:
    talk = Talk(is_for_all=False)
    number = talk.opens("a", "b")
    level = "logging/setLevel"
    assert talk.says("a", request(1, level, level="error")) == [("server", request(number, level, level="info"))]
    talk.says("server", result(number, {}))
    assert talk.says("b", request(1, level, level="debug")) == [("server", request(number + 1, level, level="debug"))]
    talk.says("server", result(number + 1, {}))
    debug, bad = (notification("notifications/message", level=name, data=1) for name in ("debug", "error"))
    talk.says("a", call(1))
    assert talk.says("server", debug) == []
    assert talk.says("server", bad) == [("a", bad)]
    talk.says("server", result(number + 2, {}))
    talk.says("b", call(1))
    assert talk.says("server", debug) == [("b", debug)]
    heard = talk.leaves("b")
    assert heard[-1] == ("server", request(number + 4, level, level="error"))


def test_a_level_that_the_server_does_not_take_is_not_set() -> None:
    talk = Talk()
    number = talk.opens("a", "b")
    talk.says("a", request(1, "logging/setLevel", level="debug"))
    assert talk.says("server", error(number, -32601)) == [("a", error(1, -32601))]
    assert talk.says("b", request(1, "logging/setLevel", level="debug"))[0][0] == "server"


def test_the_last_one_there_hears_what_is_nobodys() -> None:
    talk = Talk()
    talk.opens("a")
    message = notification("notifications/vendor", x=1)
    assert talk.says("server", message) == [("a", message)]


def test_too_many_subscriptions_are_refused() -> None:
    talk = Talk(subscriptions=1)
    talk.opens("a")
    talk.says("a", request(1, "resources/subscribe", uri="x:1"))
    [(to, frame)] = talk.says("a", request(2, "resources/subscribe", uri="x:2"))
    assert to == "a"
    assert an_error(2, -32000, "subscribed")(frame)


def test_a_resource_whose_name_is_too_long_is_not_subscribed_to() -> None:
    talk = Talk()
    talk.opens("a")
    [(to, frame)] = talk.says("a", request(1, "resources/subscribe", uri="x:" + "y" * 9000))
    assert to == "a"
    assert an_error(1, -32602, "8192")(frame)
    assert talk.switch.held == 0


def test_an_id_in_use_is_refused() -> None:
    talk = Talk()
    talk.opens("a")
    talk.says("a", call(1))
    [(to, frame)] = talk.says("a", call(1))
    assert (to, frame["id"], frame["error"]["code"]) == ("a", None, -32600)


def test_an_answer_that_nobody_waits_for_is_counted() -> None:
    talk = Talk()
    talk.opens("a")
    assert talk.says("server", result(77, {})) == []
    assert talk.switch.counters.unmatched == 1


def test_what_a_session_leaves_is_cancelled_unsubscribed_and_forgotten() -> None:
    talk = Talk()
    number = talk.opens("a", "b")
    talk.says("a", request(1, "resources/subscribe", uri="x:1"))
    talk.says("server", result(number, {}))
    talk.says("a", call(2))
    heard = talk.leaves("a")
    assert heard[0][1]["params"]["requestId"] == number + 1
    assert heard[1] == ("server", request(number + 2, "resources/unsubscribe", uri="x:1"))
    assert talk.says("server", result(number + 2, {}), result(number + 1, {})) == []
    assert talk.switch.held == 0
    assert talk.says("a", call(3)) == []
    assert talk.leaves("a") == []


def test_a_server_that_does_not_answer_us_leaves_nothing_behind() -> None:
    talk = Talk(grace_s=5)
    number = talk.opens("a")
    talk.says("a", request(1, "resources/subscribe", uri="x:1"))
    talk.says("server", result(number, {}))
    assert [frame["method"] for _, frame in talk.leaves("a")] == ["resources/unsubscribe"]
    talk.time_passes(6)
    assert (talk.switch.held, talk.switch.needs_clock) == (0, False)


def test_what_was_cancelled_is_not_cancelled_again_by_the_end_of_its_session() -> None:
    talk = Talk()
    talk.opens("a")
    talk.says("a", call(1))
    talk.says("a", notification("notifications/cancelled", requestId=1))
    assert talk.leaves("a") == []


def test_the_roots_of_the_only_session_change_for_the_server_too() -> None:
    talk = Talk()
    talk.opens("a", roots={"listChanged": True})
    news = notification("notifications/roots/list_changed")
    assert talk.says("a", news) == [("server", news)]


def test_what_a_session_says_before_it_is_open_waits() -> None:
    talk = Talk()
    offer = talk.says("a", initialize(REVISION))[0][1]
    assert talk.says("a", notification("notifications/roots/list_changed")) == []
    assert talk.says("a", READY) == []
    heard = talk.says("server", initialized(REVISION, offer["id"]))
    methods = [frame["method"] for to, frame in heard if to == "server"]
    assert methods == ["notifications/initialized", "notifications/roots/list_changed"]


def test_a_session_is_not_subscribed_to_what_the_server_has_answered_with_garbage() -> None:
    talk = Talk()
    number = talk.opens("a")
    talk.says("a", subscribe(1))
    [(to, told)] = talk.says("server", b'{"x":1,"jsonrpc":"2.0","id":%d,"result":[]}\n' % number)
    assert (to, told["id"], told["error"]["data"]) == ("a", 1, {"method": "resources/subscribe"})
    assert talk.switch.held == 0
