"""Several clients at one server that has no handshake: each has a session of its own, and no id of one is another's."""

from __future__ import annotations

from typing import Any

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.core.switch.talk import Talk
from tests.proxy.conversation import READY, error, initialize, notification, request, result
from tests.proxy.per_request import complete, discovered

OLD, NEW = HANDSHAKE_REVISIONS[0], HANDSHAKE_REVISIONS[-1]
ROOTS = {"r": {"method": "roots/list"}}
HOME = {"roots": [{"uri": "file:///a"}]}


def opened(**capabilities: Any) -> Talk:
    """Two clients have opened their sessions."""
    talk = Talk()
    [(_, offer)] = talk.says("a", initialize(NEW, roots={}))
    assert talk.says("b", initialize(OLD, roots={})) == []
    [(to, probe)] = talk.says("server", error(offer["id"], -32601))
    assert (to, probe["method"]) == ("server", "server/discover")
    welcomes = talk.says("server", discovered(probe["id"], **(capabilities or {"tools": {}})))
    assert [(to, frame["result"]["protocolVersion"]) for to, frame in welcomes] == [("a", NEW), ("b", OLD)]
    return talk


def ready(**capabilities: Any) -> Talk:
    talk = opened(**capabilities)
    for name in ("a", "b"):
        talk.says(name, READY)
    return talk


def test_a_client_that_comes_later_is_told_what_the_server_said() -> None:
    [(to, frame)] = ready().says("c", initialize(NEW))
    assert (to, frame["result"]["serverInfo"]["name"]) == ("c", "stateless")


def test_each_client_gets_its_own_answer() -> None:
    talk = ready()
    [(_, one)] = talk.says("a", request(1, "tools/list"))
    [(_, other)] = talk.says("b", request(1, "tools/list"))
    assert one["id"] != other["id"]
    listed = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    assert talk.says("server", complete(other["id"], **listed)) == [("b", result(1, {"tools": []}))]
    assert talk.says("server", complete(one["id"], **listed)) == [("a", result(1, {"tools": []}))]


def test_a_question_reaches_the_client_whose_call_it_is() -> None:
    talk = ready()
    talk.says("a", request(1, "tools/call", name="x"))
    [(_, call)] = talk.says("b", request(1, "tools/call", name="x"))
    wanted = result(call["id"], {"resultType": "input_required", "inputRequests": ROOTS})
    [(to, question)] = talk.says("server", wanted)
    assert (to, question["method"]) == ("b", "roots/list")
    [(to, retry)] = talk.says("b", result(question["id"], HOME))
    assert (to, retry["params"]["inputResponses"]) == ("server", {"r": HOME})


def test_a_log_message_without_a_request_is_told_only_where_one_client_calls() -> None:
    talk = ready(tools={}, logging={})
    said = notification("notifications/message", level="info", data="x")
    talk.says("a", request(1, "tools/call", name="x"))
    assert [to for to, _ in talk.says("server", said)] == ["a"]
    [(_, call)] = talk.says("b", request(1, "tools/call", name="x"))
    assert talk.says("server", said) == []
    talk.says("server", complete(call["id"], content=[]))
    assert talk.says("server", said) == [], "it may be about the call of b that was answered"


def test_who_leaves_takes_its_calls_and_its_streams_with_it() -> None:
    talk = opened(tools={"listChanged": True})
    [(_, listen)] = talk.says("a", READY)
    [(_, call)] = talk.says("a", request(1, "tools/call", name="x"))
    gone = talk.leaves("a")
    assert sorted(frame["params"]["requestId"] for _, frame in gone) == sorted([listen["id"], call["id"]])
    assert talk.says("server", complete(call["id"], content=[])) == []


def test_what_the_transport_gives_up_is_told_who_asked() -> None:
    talk = ready()
    [(_, call)] = talk.says("b", request("x", "tools/call", name="x"))
    [(to, frame)] = talk.fails(call["id"], "no route")
    assert (to, frame["id"], frame["error"]["message"]) == ("b", "x", "no route")
