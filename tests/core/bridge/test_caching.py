"""How long results may be used again, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.bridge.caching import (
    CacheableRequest,
    Hint,
    ResultCache,
    Watch,
    is_cacheable,
    join_hints,
    put_hint,
    read_hint,
    take_hint,
)

E = "2026-07-28"
LIST = CacheableRequest("files", E, "tools/list", {}, "alice")
PUBLIC = {"tools": [], "ttlMs": 10_000, "cacheScope": "public"}
PRIVATE = {**PUBLIC, "cacheScope": "private"}


@pytest.mark.parametrize(
    ("result", "hint"),
    [
        ({}, Hint(0, "private")),
        (PUBLIC, Hint(10_000, "public")),
        ({"ttlMs": -5, "cacheScope": "public"}, Hint(0, "public")),
        ({"ttlMs": True, "cacheScope": "shared"}, Hint(0, "private")),
        ({"ttlMs": "10", "cacheScope": 5}, Hint(0, "private")),
        ({"ttlMs": 1.5}, Hint(1, "private")),
    ],
)
def test_a_hint_is_read_with_care(result: dict[str, Any], hint: Hint) -> None:
    assert read_hint(result) == hint


@pytest.mark.parametrize(
    ("hints", "joined"),
    [
        ([], Hint(0, "private")),
        ([Hint(5, "public")], Hint(5, "public")),
        ([Hint(5, "public"), Hint(9, "public")], Hint(5, "public")),
        ([Hint(5, "public"), Hint(0, "public")], Hint(0, "public")),
        ([Hint(5, "public"), Hint(9, "private")], Hint(5, "private")),
    ],
)
def test_joined_results_keep_to_the_strictest_hint(hints: list[Hint], joined: Hint) -> None:
    assert join_hints(hints) == joined


@pytest.mark.parametrize(
    "method",
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"],
)
def test_six_results_carry_a_hint(method: str) -> None:
    assert put_hint({"ttlMs": 5}, method, Hint(7, "public")) == {"ttlMs": 7, "cacheScope": "public"}


@pytest.mark.parametrize(
    ("result", "method"), [({}, "tools/call"), ({"resultType": "input_required"}, "resources/read")]
)
def test_other_results_carry_none(result: dict[str, Any], method: str) -> None:
    assert put_hint(result, method, Hint(7)) is result


def test_a_hint_comes_off_as_a_cosmetic_loss() -> None:
    result, losses = take_hint(PUBLIC)
    assert result == {"tools": []}
    assert [(loss.pointer, loss.cosmetic) for loss in losses] == [("/result/ttlMs", True), ("/result/cacheScope", True)]
    assert take_hint(result) == (result, ())


def test_a_result_is_used_again_until_it_is_stale() -> None:
    cache = ResultCache()
    cache.put(LIST, PRIVATE, 100.0)
    assert cache.get(LIST, 109.9) == PRIVATE
    assert cache.get(LIST, 110.0) is None


def test_a_private_result_is_for_whoever_asked_and_a_public_one_for_everybody() -> None:
    cache = ResultCache()
    cache.put(LIST, PRIVATE, 0.0)
    assert cache.get(LIST._replace(principal="bob"), 1.0) is None
    cache.put(LIST, PUBLIC, 0.0)
    assert cache.get(LIST._replace(principal="bob"), 1.0) == PUBLIC


@pytest.mark.parametrize(
    "other",
    [
        LIST._replace(server="mail"),
        LIST._replace(revision="2027-01-01"),
        LIST._replace(method="prompts/list"),
        LIST._replace(params={"cursor": "2"}),
    ],
)
def test_a_result_is_for_its_request_alone(other: CacheableRequest) -> None:
    cache = ResultCache()
    cache.put(LIST, PUBLIC, 0.0)
    assert cache.get(other, 1.0) is None


def test_metadata_is_not_part_of_the_request() -> None:
    cache = ResultCache()
    cache.put(LIST, PUBLIC, 0.0)
    assert cache.get(LIST._replace(params={"_meta": {"progressToken": 1}}), 1.0) == PUBLIC


def test_a_newer_result_takes_the_place_of_the_older() -> None:
    cache = ResultCache()
    cache.put(LIST, PRIVATE, 0.0)
    cache.put(LIST, {"tools": []}, 1.0)
    assert cache.get(LIST, 1.0) is None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("resources/read", {"uri": "a", "inputResponses": {}}),
        ("resources/read", {"uri": "a", "requestState": "s"}),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/logLevel": "info"}}),
    ],
)
def test_some_results_are_never_kept(method: str, params: dict[str, Any]) -> None:
    assert not is_cacheable(method, params)
    cache, request = ResultCache(), CacheableRequest("files", E, method, params)
    cache.put(request, PUBLIC, 0.0)
    assert cache.get(request, 0.0) is None


@pytest.mark.parametrize("result", [{**PUBLIC, "resultType": "input_required"}, {**PUBLIC, "ttlMs": 0}, {}])
def test_a_result_that_may_not_be_used_again_is_not_kept(result: dict[str, Any]) -> None:
    cache = ResultCache()
    cache.put(LIST, result, 0.0)
    assert cache.get(LIST, 0.0) is None


def test_a_request_that_nobody_can_write_is_not_kept() -> None:
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    request = LIST._replace(params={"a": deep})
    cache = ResultCache()
    cache.put(request, PUBLIC, 0.0)
    assert cache.get(request, 0.0) is None
    assert Watch().see("tools/list", {}, {"tools": deep}) is None
    while deep:
        (deep,) = deep


@pytest.mark.parametrize(
    ("notification", "method", "stale"),
    [
        ("notifications/tools/list_changed", "tools/list", True),
        ("notifications/tools/list_changed", "prompts/list", False),
        ("notifications/resources/list_changed", "resources/templates/list", True),
        ("notifications/resources/updated", "resources/read", True),
        ("notifications/message", "tools/list", False),
    ],
)
def test_a_notification_makes_stale(notification: str, method: str, stale: bool) -> None:
    cache, request = ResultCache(), LIST._replace(method=method)
    cache.put(request, PUBLIC, 0.0)
    cache.invalidate("mail", notification)
    assert cache.get(request, 0.0) == PUBLIC
    cache.invalidate("files", notification)
    assert (cache.get(request, 0.0) is None) is stale


def test_everything_of_a_server_can_be_forgotten() -> None:
    cache = ResultCache()
    for server in ("files", "mail"):
        cache.put(LIST._replace(server=server), PUBLIC, 0.0)
    cache.forget("files")
    assert cache.get(LIST, 0.0) is None
    assert cache.get(LIST._replace(server="mail"), 0.0) == PUBLIC


def test_only_so_many_results_are_kept() -> None:
    cache = ResultCache(most=2)
    pages = [LIST._replace(params={"cursor": str(number)}) for number in range(3)]
    for page in pages:
        cache.put(page, PUBLIC, 0.0)
    assert [cache.get(page, 0.0) is not None for page in pages] == [False, True, True]


def test_a_list_that_differs_from_before_is_noticed() -> None:
    watch = Watch()
    assert watch.see("tools/list", {}, PUBLIC) is None
    assert watch.see("tools/list", {}, {**PUBLIC, "ttlMs": 5}) is None
    assert watch.see("tools/list", {"cursor": "2"}, {"tools": [1]}) is None
    assert watch.see("tools/list", {}, {"tools": [1]}) == "notifications/tools/list_changed"
    assert watch.see("tools/list", {}, {"tools": [1]}) is None


@pytest.mark.parametrize("method", ["resources/read", "tools/call", "server/discover"])
def test_what_is_no_list_is_not_watched(method: str) -> None:
    watch = Watch()
    assert watch.see(method, {}, {"a": 1}) is None
    assert watch.see(method, {}, {"a": 2}) is None


def test_only_so_many_pages_are_remembered() -> None:
    watch = Watch(most=1)
    watch.see("tools/list", {}, {"tools": [1]})
    watch.see("prompts/list", {}, {"prompts": []})
    assert watch.see("tools/list", {}, {"tools": [2]}) is None
