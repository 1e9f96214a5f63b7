"""A catalogue on its own: frames in, frames out, and no clock but reminders."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.envelope import Frame
from dragoman.core.peek import read_line
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.switch.router.names import NameKind, Names
from dragoman.core.switch.router.switch import Catalogue
from tests.proxy.conversation import notification, request

Body = dict[str, Any]
NEWER = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": NEWER, "io.modelcontextprotocol/clientCapabilities": {}}
ALL = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "completions": {},
    "tasks": {"list": {}},
    "logging": {},
}


def frame_of(body: Body | list[Body]) -> Frame:
    frame = read_line(json.dumps(body).encode() + b"\n")
    assert isinstance(frame, Frame)
    return frame


class Stage:
    """A catalogue with its client and servers, which are this test.

    Attributes:
        client: What the client was told and has not looked at.
        servers: The same of each server.
        reminders: What was asked for.
    """

    def __init__(self, *servers: str, is_per_request: bool = False, capabilities: Body | None = None) -> None:
        self.is_paused = False
        self.client: list[Body] = []
        self.servers: dict[str, list[Body]] = {name: [] for name in servers}
        self.reminders: list[tuple[float, Callable[[], None]]] = []
        self.names = Names()
        self.names.set_servers({name: name for name in servers})
        self.members = {name: Member(name) for name in servers}
        self.catalogue = Catalogue(self, self.names, self.members.values(), {"name": "all", "version": "1"}, mark="m")
        self.is_per_request = is_per_request
        self._last = 0
        if is_per_request:
            self.ask("server/discover")
        else:
            self.ask("initialize", protocolVersion="2025-11-25", capabilities={})
        for name in servers:
            self.answer(name, {"capabilities": ALL if capabilities is None else capabilities})
        self.opened = self.client.pop()
        if not is_per_request:
            self.tell("notifications/initialized")
            for name in servers:
                self.servers[name].clear()

    # What the catalogue calls

    def tell_client(self, frame: Frame) -> None:
        self.client.append(json.loads(frame.raw))

    def tell_member(self, member: Member, frame: Frame) -> None:
        self.servers[member.name].append(json.loads(frame.raw))

    def remind(self, after_s: float, then: Callable[[], None]) -> None:
        self.reminders.append((after_s, then))

    def note_state(self, member: Member) -> None: ...

    # What the client does

    def ask(self, method: str, **params: Any) -> int:
        self._last += 1
        given = {**params, "_meta": {**META, **params.get("_meta", {})}} if self.is_per_request else params
        self.catalogue.take_from_client(
            frame_of({"jsonrpc": "2.0", "id": self._last, "method": method, "params": given})
        )
        return self._last

    def tell(self, method: str, **params: Any) -> None:
        self.catalogue.take_from_client(frame_of({"jsonrpc": "2.0", "method": method, "params": params}))

    def reply(self, key: Any, result: Body) -> None:
        self.catalogue.take_from_client(frame_of({"jsonrpc": "2.0", "id": key, "result": result}))

    # What servers do

    def heard(self, name: str) -> Body:
        """Give the next frame that a server got."""
        return self.servers[name].pop(0)

    def says(self, name: str, body: Body | list[Body]) -> None:
        whole = body if isinstance(body, list) else {"jsonrpc": "2.0", **body}
        self.catalogue.take_from_server(self.members[name], frame_of(whole))

    def answer(self, name: str, result: Body, kind: str = "result") -> Body:
        """Let a server answer the next request that it got."""
        asked = self.heard(name)
        self.says(name, {"id": asked["id"], kind: result})
        return asked

    def list(self, method: str, **listed: Body) -> Body:
        """Let the client list, with these answers."""
        self.ask(method)
        for name in self.servers:
            self.answer(name, listed[name])
        return self.client.pop()

    def tools(self, **tools: list[str]) -> Body:
        return self.list("tools/list", **{name: {"tools": [{"name": t} for t in ts]} for name, ts in tools.items()})

    def expire(self) -> None:
        reminders, self.reminders = self.reminders, []
        for _, what in reminders:
            what()


def test_a_call_passes_as_the_bytes_that_came() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    raw = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"y","arguments":{"z":1}}}\n'
    seen: list[bytes] = []
    stage.tell_member = lambda member, frame: seen.append(frame.raw)  # type: ignore[method-assign]
    stage.catalogue.take_from_client(read_line(raw))  # type: ignore[arg-type]
    assert seen == [raw]


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}])
def test_a_call_without_a_name_is_refused(params: Body) -> None:
    stage = Stage("a", "b")
    stage.ask("tools/call", **params)
    assert stage.client.pop()["error"]["code"] == -32602


def test_an_array_is_taken_apart_both_ways() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    calls = [
        {"jsonrpc": "2.0", "id": f"c{name}", "method": "tools/call", "params": {"name": name}} for name in ("x", "y")
    ]
    stage.catalogue.take_from_client(frame_of([*calls, {"jsonrpc": "1.0"}]))  # type: ignore[list-item]
    assert [stage.heard("a")["id"], stage.heard("b")["id"]] == ["cx", "cy"]
    stage.says("a", [{"jsonrpc": "2.0", "id": "cx", "result": {}}, {"jsonrpc": "1.0"}])
    assert stage.client == [{"jsonrpc": "2.0", "id": "cx", "result": {}}]


def test_what_cannot_be_decoded_is_answered() -> None:
    stage = Stage("a")
    line = b'{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"\xff"}}\n'
    stage.catalogue.take_from_client(read_line(line))  # type: ignore[arg-type]
    assert stage.client.pop()["error"]["code"] == -32700


NONSENSE = [
    b'{"jsonrpc":"2.0","id":%b,"error":5}',
    b'{"jsonrpc":"2.0","id":%b,"error":{"code":"x","message":["\xff"]}}',
    b'{"jsonrpc":"2.0","id":%b,"error":{"code":[]}}',
    b'{"jsonrpc":"2.0","id":%b,"result":5}',
    b'{"jsonrpc":"2.0","id":%b,"result":[{"taskId":"t"}]}',
    b'{"jsonrpc":"2.0","id":%b,"result":{"tools":{"\xff":1}}}',
    b'{"jsonrpc":"2.0","id":%b,"result":{"tools":[{"name":[]},[],{"name":"x","y":' + b"[" * 800 + b"]" * 800 + b"}]}}",
]


@pytest.mark.parametrize("line", NONSENSE)
@pytest.mark.parametrize("method", ["tools/list", "logging/setLevel", "initialize", "resources/read", "tools/call"])
def test_nonsense_of_one_server_is_an_answer_too(line: bytes, method: str) -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    stage.catalogue.common.inspects = True
    key = stage.ask(method, name="x", uri="odd:1", protocolVersion="2025-11-25")
    for _ in range(6):
        for name in stage.servers:
            while stage.servers[name]:
                asked = stage.heard(name)
                if "id" not in asked:
                    continue
                if name == "a":
                    raw = line % json.dumps(asked["id"]).encode()
                    stage.tell_client = lambda frame: stage.client.append({"id": frame.key})  # type: ignore[method-assign]
                    stage.catalogue.take_from_server(
                        stage.members["a"], Frame(raw + b"\n", kind_of(raw), key_in(asked), None)
                    )
                else:
                    stage.says(name, {"id": asked["id"], "result": {}})
    assert stage.client[-1]["id"] == b"%d" % key


def kind_of(raw: bytes) -> str:
    return "error" if b'"error"' in raw else "result"


def key_in(asked: Body) -> bytes:
    return json.dumps(asked["id"]).encode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"\xff":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"\xff":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"\xff":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"\xff":1}}',
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"\xff":1}}',
    ],
)
def test_what_cannot_be_read_on_either_side_stops_nobody(line: bytes) -> None:
    stage = Stage("a", "b", is_per_request=True)
    seen: list[Frame] = []
    stage.tell_client = seen.append  # type: ignore[method-assign, assignment]
    stage.tell_member = lambda member, frame: seen.append(frame)  # type: ignore[method-assign]
    method = json.loads(line.replace(b"\xff", b"x"))["method"]
    kind, key = ("request", b"1") if b'"id"' in line else ("notification", None)
    frame = Frame(line + b"\n", kind, key, method)
    stage.catalogue.take_from_client(frame)
    stage.catalogue.take_from_server(stage.members["a"], frame)


def test_a_ping_is_answered_here() -> None:
    stage = Stage("a")
    key = stage.ask("ping")
    assert stage.client == [{"jsonrpc": "2.0", "id": key, "result": {}}]


def test_what_nobody_is_known_to_have_goes_to_the_only_server_or_nowhere() -> None:
    alone = Stage("a")
    alone.ask("vendor/x")
    assert alone.heard("a")["method"] == "vendor/x"
    two = Stage("a", "b")
    two.ask("vendor/x")
    assert two.client.pop()["error"]["code"] == -32601


def test_an_id_of_a_client_that_is_a_router_itself_stays() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    stage.ask("tools/list")
    ours = [stage.heard(name)["id"] for name in ("a", "b")]
    last = int(ours[0].split("/")[-1])
    for number in range(last + 3):
        call = {"jsonrpc": "2.0", "id": f"dragoman/{number}", "method": "tools/call", "params": {"name": "x"}}
        stage.catalogue.take_from_client(frame_of(call))
        assert stage.heard("a") == call
        stage.says("a", {"id": call["id"], "result": {"ok": number}})
        assert stage.client.pop() == {"jsonrpc": "2.0", "id": call["id"], "result": {"ok": number}}
    for name, key in zip("ab", ours, strict=True):
        stage.says(name, {"id": key, "result": {"tools": []}})
    assert stage.client.pop()["result"]["tools"] == []


def test_a_cancellation_that_names_nothing_known_goes_nowhere() -> None:
    stage = Stage("a")
    stage.tell("notifications/cancelled")
    stage.tell("notifications/cancelled", requestId=99)
    assert stage.servers["a"] == []


def test_roots_that_changed_are_told_to_all() -> None:
    stage = Stage("a", "b")
    stage.tell("notifications/roots/list_changed")
    assert stage.heard("a") == stage.heard("b")


# Questions of servers


def test_progress_of_an_answer_finds_who_asked() -> None:
    stage = Stage("a", "b")
    for name in ("a", "b"):
        params = {"messages": [], "_meta": {"progressToken": "t"}}
        stage.says(name, {"id": 1, "method": "sampling/createMessage", "params": params})
    one, other = stage.client
    assert one["id"] != other["id"]
    stage.tell("notifications/progress", progressToken=other["params"]["_meta"]["progressToken"], progress=1)
    stage.tell("notifications/progress", progressToken="unknown", progress=1)
    stage.tell("notifications/progress", progress=1)
    stage.catalogue.take_from_client(frame_of({"jsonrpc": "2.0", "method": "notifications/progress"}))
    assert stage.servers["a"] == []
    assert stage.heard("b")["params"] == {"progressToken": "t", "progress": 1}
    stage.reply(other["id"], {"model": "m"})
    assert stage.heard("b") == {"jsonrpc": "2.0", "id": 1, "result": {"model": "m"}}
    stage.reply(other["id"], {"model": "again"})
    assert stage.servers["b"] == []


@pytest.mark.parametrize("how", ["answered", "taken back", "lost"])
def test_progress_of_a_question_that_is_over_goes_nowhere(how: str) -> None:
    stage = Stage("a", "b")
    params = {"messages": [], "_meta": {"progressToken": "t"}}
    stage.says("a", {"id": 1, "method": "sampling/createMessage", "params": params})
    asked = stage.client.pop()
    match how:
        case "answered":
            stage.reply(asked["id"], {"model": "m"})
        case "taken back":
            stage.says("a", {"method": "notifications/cancelled", "params": {"requestId": 1}})
        case "lost":
            stage.catalogue.lost(stage.members["a"], "it died")
    stage.servers["a"].clear()
    stage.tell("notifications/progress", progressToken=asked["params"]["_meta"]["progressToken"], progress=1)
    assert stage.servers["a"] == []  # a server that is gone would be started again by it


def test_a_server_may_ask_about_what_it_has_not_answered_itself() -> None:
    """Whether it was cancelled, or given up by the proxy before that server."""
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    told: list[tuple[Any, ...]] = []
    stage.tell_client = lambda frame: frame.method and told.append(frame.source)  # type: ignore[method-assign]
    one, other = stage.ask("tools/call", name="x"), stage.ask("tools/call", name="x")
    stage.tell("notifications/cancelled", requestId=one)
    given_up = {"code": -32000, "message": "not in time", "data": {"dragoman/unanswered": True}}
    stage.says("a", {"id": other, "error": given_up})
    stage.says("a", {"id": 1, "method": "roots/list"})
    assert told.pop() == ("a", b"%d" % one, b"%d" % other)
    stage.says("a", {"id": one, "result": {}})
    stage.says("a", {"id": other, "result": {}})
    stage.says("a", {"id": 2, "method": "roots/list"})
    assert told.pop() == ("a",)


def test_a_question_that_is_taken_back_is_taken_back_under_its_id() -> None:
    stage = Stage("a", "b")
    stage.says("b", {"id": 1, "method": "roots/list"})
    asked = stage.client.pop()
    stage.says("a", {"method": "notifications/cancelled", "params": {"requestId": 1}})
    assert stage.client == []
    stage.says("b", {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "r"}})
    assert stage.client.pop()["params"] == {"requestId": asked["id"], "reason": "r"}


def test_an_answer_says_whose_question_it_answers_and_which_of_two_under_one_id() -> None:
    stage = Stage("a", "a:1")
    stage.says("a", {"id": 7, "method": "roots/list"})
    first = stage.client.pop()["id"]
    stage.says("a", {"method": "notifications/cancelled", "params": {"requestId": 7}})
    stage.client.clear()
    for name in ("a", "a:1"):
        stage.says(name, {"id": 7, "method": "roots/list"})
    second, other = (asked["id"] for asked in stage.client)
    assert (first, second, other) == ("a:1:7", "a:2:7", "a:1:3:7")
    for key in (first, "a:7", "a:x:7", "b:1:7", 7, other):
        stage.reply(key, {"roots": []})
    assert stage.servers["a"] == []
    assert stage.heard("a:1")["id"] == 7
    stage.reply(second, {"roots": []})
    assert stage.heard("a")["id"] == 7


def test_questions_of_a_server_that_is_lost_are_taken_back() -> None:
    stage = Stage("a", "b")
    stage.says("a", {"id": 1, "method": "ping"})
    stage.says("b", {"id": 1, "method": "elicitation/create", "params": {"message": "?"}})
    asked = stage.client.pop()
    stage.client.clear()
    stage.catalogue.lost(stage.members["b"], "it died")
    assert stage.client[0]["method"] == "notifications/cancelled"
    assert stage.client[0]["params"]["requestId"] == asked["id"]


def test_odd_requests_for_input_are_handed_on() -> None:
    stage = Stage("a", "b", is_per_request=True)
    stage.tools(a=["x"], b=[])
    for asked in (None, 5, {"k": 5}, {"k": {"method": "roots/list", "params": {}}}):
        key = stage.ask("tools/call", name="x", _meta={"progressToken": 1})
        stage.heard("a")
        result = {"resultType": "input_required", "inputRequests": asked, "taskId": "t"}
        stage.says("a", {"id": key, "result": result})
        assert stage.client.pop()["result"] == {**result, "taskId": "a:t"}
    key = stage.ask("tools/call", name="x")
    stage.heard("a")
    line = b'{"jsonrpc":"2.0","id":%d,"result":{"taskId":"t","x":"\xff"}}\n' % key
    seen: list[bytes] = []
    stage.tell_client = lambda frame: seen.append(frame.raw)  # type: ignore[method-assign]
    stage.catalogue.take_from_server(stage.members["a"], read_line(line))  # type: ignore[arg-type]
    assert len(seen) == 1


# Resources, completion and tasks


PAGE = "ui://weather/dash"


def test_a_page_is_read_from_the_server_whose_tool_named_it() -> None:
    stage = Stage("a", "b")
    tool = {"name": "x", "_meta": {"ui": {"resourceUri": PAGE, "csp": {}}, "ui/resourceUri": PAGE, "note": "gui: x"}}
    told = stage.list("tools/list", a={"tools": [tool]}, b={"tools": [tool]})["result"]["tools"]
    pages = [one["_meta"]["ui"]["resourceUri"] for one in told]
    assert pages == [one["_meta"]["ui/resourceUri"] for one in told] == ["ui://a/weather/dash", "ui://b/weather/dash"]
    assert told[0]["_meta"]["note"] == "gui: x"
    for name, uri in zip("ab", pages, strict=True):
        stage.ask("resources/read", uri=uri)
        assert stage.answer(name, {"contents": [{"uri": PAGE, "text": "<html>"}]})["params"]["uri"] == PAGE
        assert stage.client.pop()["result"]["contents"][0]["uri"] == uri


def test_uris_in_the_scheme_of_an_extension_keep_it_wherever_they_stand() -> None:
    stage = Stage("a", "b")
    skill = {"uri": "skill://git/SKILL.md", "name": "s"}
    listed = stage.list("resources/list", a={"resources": [skill, {"uri": "x:1"}]}, b={"resources": []})["result"]
    assert [one["uri"] for one in listed["resources"]] == ["skill://a/git/SKILL.md", "x:1"]
    templates = {"resourceTemplates": [{"uriTemplate": "ui://{app}/page", "name": "t"}]}
    listed = stage.list("resources/templates/list", a={"resourceTemplates": []}, b=templates)["result"]
    assert listed["resourceTemplates"][0]["uriTemplate"] == "ui://b/{app}/page"
    stage.ask("resources/subscribe", uri="ui://b/clock/page")
    assert stage.answer("b", {})["params"]["uri"] == "ui://clock/page"
    stage.client.clear()
    stage.says("b", {"method": "notifications/resources/updated", "params": {"uri": "ui://clock/page"}})
    assert stage.client.pop()["params"]["uri"] == "ui://b/clock/page"
    ref = {"type": "ref/resource", "uri": "ui://b/{app}/page"}
    stage.ask("completion/complete", ref=ref, argument={"name": "app", "value": "c"})
    assert stage.heard("b")["params"]["ref"]["uri"] == "ui://{app}/page"
    stage.tools(a=["x"], b=["y"])
    stage.ask("tools/call", name="y")
    link = {"type": "resource_link", "uri": "ui://clock/page", "name": "l", "_meta": {"see": ["skill://git/SKILL.md"]}}
    plain = {"uri": "ui://clock/page", "structured": ["ui://x"]}
    stage.answer("b", {"content": [link], "structuredContent": plain, "_meta": {"ui": {"resourceUri": "ui://z"}}})
    told = stage.client.pop()["result"]
    assert told["content"][0]["uri"] == "ui://b/clock/page"
    assert told["content"][0]["_meta"] == {"see": ["skill://b/git/SKILL.md"]}
    assert told["structuredContent"] == plain
    assert told["_meta"]["ui"]["resourceUri"] == "ui://b/z"


def test_a_page_of_no_servers_name_is_sought() -> None:
    stage = Stage("a", "weather")
    listed = {"resources": [{"uri": PAGE}]}
    stage.list("resources/list", a={"resources": []}, weather=listed)
    for uri in ("ui://weather/weather/dash", PAGE):
        stage.ask("resources/read", uri=uri)
        assert stage.heard("weather")["params"]["uri"] == PAGE
    stage.ask("resources/read", uri="ui://elsewhere/x")
    assert {asked["method"] for asked in stage.servers["a"]} == {"resources/list", "resources/templates/list"}


def test_metadata_that_is_nested_deeply_is_left_alone() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=[])
    deep: Any = "ui://x"
    for _ in range(500):
        deep = {"x": deep}
    stage.ask("tools/call", name="x")
    stage.answer("a", {"content": [], "_meta": deep})
    assert stage.client.pop()["result"]["_meta"] == deep


def read_unlisted(stage: Stage) -> int:
    key = stage.ask("resources/read", uri="odd:1")
    for _ in range(2):
        for name in ("a", "b"):
            member = "resources" if stage.servers[name][0]["method"] == "resources/list" else "resourceTemplates"
            stage.answer(name, {member: []})
    return key


def test_a_resource_on_no_list_is_sought_and_remembered() -> None:
    stage = Stage("a", "b")
    key = read_unlisted(stage)
    assert stage.servers["b"] == []
    stage.answer("a", {"code": -32002, "message": "no"}, "error")
    stage.answer("b", {"contents": []})
    assert stage.client.pop() == {"jsonrpc": "2.0", "id": key, "result": {"contents": []}}
    stage.ask("resources/read", uri="odd:1")
    assert stage.heard("b")["params"]["uri"] == "odd:1"


def test_a_resource_that_nobody_has_is_an_error() -> None:
    stage = Stage("a", "b")
    key = read_unlisted(stage)
    for name in ("a", "b"):
        stage.answer(name, {"code": -32002, "message": f"not at {name}"}, "error")
    assert stage.client.pop() == {"jsonrpc": "2.0", "id": key, "error": {"code": -32002, "message": "not at b"}}


def test_a_subscription_to_what_nobody_lists_is_refused_unless_one_server_alone_has_such() -> None:
    stage = Stage("a", "b")
    stage.members["b"].capabilities = {"resources": {}}
    stage.ask("resources/subscribe", uri="odd:1")
    for name in ("a", "b"):
        stage.answer(name, {"resources": []})
        stage.answer(name, {"resourceTemplates": []})
    assert stage.heard("a")["method"] == "resources/subscribe"
    stage.members["a"].capabilities = {"resources": {}}
    stage.ask("resources/subscribe", uri="odd:1")
    for name in ("a", "b"):
        stage.answer(name, {"resources": []})
        stage.answer(name, {"resourceTemplates": []})
    assert stage.client.pop()["error"]["code"] == -32602


def test_notices_of_resources_come_under_the_uri_that_is_known() -> None:
    stage = Stage("a", "b")
    stage.says("a", {"method": "notifications/resources/updated", "params": {"uri": "x:1"}})
    assert stage.client.pop()["params"] == {"uri": "x:1"}
    both = {"resources": [{"uri": "x:1"}]}
    stage.list("resources/list", a=both, b=both)
    for params, told in (({"uri": "x:1"}, {"uri": "a+x:1"}), ({"uri": "x:2"}, {"uri": "x:2"}), ({}, {})):
        stage.says("a", {"method": "notifications/resources/updated", "params": params})
        assert stage.client.pop()["params"] == told


def test_uris_in_answers_are_those_that_are_known() -> None:
    stage = Stage("a", "b")
    both = {"resources": [{"uri": "x:1"}]}
    stage.list("resources/list", a=both, b=both)
    link, known = {"type": "resource_link", "uri": "x:1"}, {"type": "resource_link", "uri": "a+x:1"}
    text = {"type": "text", "text": "x:1"}
    answers: list[tuple[Body, Body]] = [
        ({"contents": [{"uri": "x:1"}]}, {"contents": [{"uri": "a+x:1"}]}),
        (
            {"content": [text, link, 5, {"resource": {"uri": "x:1"}}]},
            {"content": [text, known, 5, {"resource": {"uri": "a+x:1"}}]},
        ),
        (
            {"messages": [{"content": link}, {"content": [text]}, 5]},
            {"messages": [{"content": known}, {"content": [text]}, 5]},
        ),
        (
            {"content": [{"uri": "x:2"}], "messages": [{"content": text}]},
            {"content": [{"uri": "x:2"}], "messages": [{"content": text}]},
        ),
        ({"structuredContent": {"uri": "x:1"}}, {"structuredContent": {"uri": "x:1"}}),
    ]
    for result, told in answers:
        key = stage.ask("resources/read", uri="a+x:1")
        stage.heard("a")
        stage.says("a", {"id": key, "result": result})
        assert stage.client.pop()["result"] == told
    key = stage.ask("resources/read", uri="a+x:1")
    stage.says("a", {"id": key, "error": {"code": 1, "message": "no", "data": {"uri": "x:1"}}})
    assert stage.client.pop()["error"]["data"] == {"uri": "x:1"}


def test_completion_goes_to_who_has_the_prompt_or_the_template() -> None:
    stage = Stage("a", "b")
    stage.list("prompts/list", a={"prompts": [{"name": "p"}]}, b={"prompts": [{"name": "p"}]})
    stage.ask("completion/complete", ref={"type": "ref/prompt", "name": "b_p"})
    assert stage.heard("b")["params"]["ref"]["name"] == "p"
    stage.ask("completion/complete", ref=5)
    assert stage.client.pop()["error"]["code"] == -32602
    stage.ask("completion/complete", ref={"type": "ref/prompt", "name": "q"})
    for name in ("a", "b"):
        stage.answer(name, {"prompts": []})
    assert "unknown prompt: q" in stage.client.pop()["error"]["message"]


RELATED = "io.modelcontextprotocol/related-task"


def about(task: str) -> dict[str, Any]:
    return {"_meta": {RELATED: {"taskId": task}, "x/y": 1}}


def test_tasks_go_to_who_made_them() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=[])
    key = stage.ask("tools/call", name="x", task={})
    stage.heard("a")
    stage.says("a", {"id": key, "result": {"task": {"taskId": "t1"}, **about("t1")}})
    assert stage.client.pop()["result"] == {"task": {"taskId": "a:t1"}, **about("a:t1")}
    key = stage.ask("tasks/get", taskId="a:t1", **about("a:t1"))
    assert stage.heard("a")["params"] == {"taskId": "t1", **about("t1")}
    stage.says("a", {"id": key, "result": {"taskId": "t1", "status": "working"}})
    assert stage.client.pop()["result"] == {"taskId": "a:t1", "status": "working"}
    listed = stage.list(
        "tasks/list", a={"tasks": [{"taskId": "t1"}]}, b={"tasks": [{"taskId": "t1"}, {"taskId": "a:t1"}]}
    )
    assert [task["taskId"] for task in listed["result"]["tasks"]] == ["a:t1", "b:t1", "b:a:t1"]
    stage.ask("tasks/cancel", taskId="b:a:t1")
    assert stage.heard("b")["params"]["taskId"] == "a:t1"
    stage.ask("tasks/get", taskId="t3")
    assert stage.client.pop()["error"]["code"] == -32602
    stage.members["b"].capabilities = {}
    stage.ask("tasks/get", taskId="t3")
    assert stage.heard("a")["params"]["taskId"] == "t3"


def test_no_server_takes_over_the_tasks_of_another() -> None:
    """It names ids that the other will give, in any result, before the other does."""
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    key = stage.ask("tools/call", name="y")
    stage.heard("b")
    stage.says("b", {"id": key, "result": {"content": [], "taskId": "t1", "task": {"taskId": "a:t1"}}})
    told = stage.client.pop()["result"]
    assert (told["taskId"], told["task"]) == ("b:t1", {"taskId": "b:a:t1"})
    key = stage.ask("tools/call", name="x", task={})
    stage.heard("a")
    stage.says("a", {"id": key, "result": {"task": {"taskId": "t1"}}})
    task = stage.client.pop()["result"]["task"]["taskId"]
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        stage.ask(method, taskId=task)
        assert stage.heard("a")["method"] == method


def test_what_servers_say_of_a_task_names_it_as_the_client_knows_it() -> None:
    stage = Stage("a", "b")
    stage.says("b", notification("notifications/tasks/status", taskId="t", status="working"))
    assert stage.client.pop()["params"] == {"taskId": "b:t", "status": "working"}
    stage.says("b", notification("notifications/message", level="info", data={"taskId": "own"}, **about("t")))
    assert stage.client.pop()["params"] == {"level": "info", "data": {"taskId": "own"}, **about("b:t")}
    stage.says("b", request(1, "elicitation/create", message="?", **about("t")))
    asked = stage.client.pop()
    assert asked["params"] == {"message": "b: ?", **about("b:t")}
    stage.reply(asked["id"], {"action": "cancel", **about("b:t")})
    assert stage.heard("b") == {"jsonrpc": "2.0", "id": 1, "result": {"action": "cancel", **about("t")}}
    stage.says("b", request(2, "tasks/get", taskId="of the client"))
    assert stage.client.pop()["params"] == {"taskId": "of the client"}


def test_an_id_of_a_task_whose_name_is_escaped_names_its_server_too() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    key = stage.ask("tools/call", name="y")
    stage.heard("b")
    answered = b'{"jsonrpc":"2.0","id":%s,"result":{"task\\u0049d":"a:t1"}}\n'
    told = b'{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"\\u0074askId":"a:t1"}}\n'
    for line in (answered % json.dumps(key).encode(), told):
        frame = read_line(line)
        assert isinstance(frame, Frame)
        stage.catalogue.take_from_server(stage.members["b"], frame)
    seen = [frame.get("result", frame.get("params")) for frame in stage.client]
    assert seen == [{"taskId": "b:a:t1"}, {"taskId": "b:a:t1"}]


# Lists


def test_pages_are_asked_for_one_after_the_other() -> None:
    stage = Stage("a")
    stage.ask("tools/list")
    stage.answer("a", {"tools": [{"name": "x"}], "nextCursor": "2"})
    assert stage.answer("a", {"tools": [{"name": "y"}]})["params"] == {"cursor": "2"}
    assert [tool["name"] for tool in stage.client.pop()["result"]["tools"]] == ["x", "y"]


@pytest.mark.parametrize("second", [[], ["x"]])
def test_a_server_that_never_comes_to_an_end_is_cut_off(second: list[str]) -> None:
    stage = Stage("a")
    stage.ask("tools/list")
    stage.answer("a", {"tools": [{"name": "x"}], "nextCursor": "2"})
    for page in range(1 if second else 21):
        assert not stage.client
        stage.answer("a", {"tools": [{"name": name} for name in second], "nextCursor": f"after {page}"})
    assert [tool["name"] for tool in stage.client.pop()["result"]["tools"]] == ["x"]


def test_a_cursor_that_comes_twice_ends_a_list() -> None:
    stage = Stage("a")
    for _ in range(2):
        stage.ask("tools/list")
        stage.answer("a", {"tools": [{"name": "x"}], "nextCursor": "2"})
        stage.answer("a", {"tools": [{"name": "y"}], "nextCursor": "2"})
        assert len(stage.client.pop()["result"]["tools"]) == 2


def test_a_list_has_no_more_bytes_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.core.paging.MOST_BYTES", 10_000)
    stage = Stage("a")
    stage.ask("tools/list")
    for number in range(2):
        stage.answer("a", {"tools": [{"name": f"x{number}", "title": "x" * 5_000}], "nextCursor": f"{number}"})
    assert len(stage.client.pop()["result"]["tools"]) == 2
    assert not stage.servers["a"]


def test_a_late_list_is_not_asked_for_its_other_pages() -> None:
    stage = Stage("a", "b")
    stage.ask("tools/list")
    stage.answer("a", {"tools": [{"name": "x"}]})
    stage.answer("b", {"tools": [{"name": "y"}], "nextCursor": "2"})
    stage.expire()
    assert [tool["name"] for tool in stage.client.pop()["result"]["tools"]] == ["x"]
    stage.answer("b", {"tools": [{"name": "z"}], "nextCursor": "3"})
    assert not stage.servers["b"]
    assert stage.client.pop()["method"] == "notifications/tools/list_changed"
    stage.ask("tools/call", name="z")
    assert stage.heard("b")["params"]["name"] == "z"


def test_what_a_server_had_last_is_better_than_a_part_of_a_late_list() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y", "z"])
    stage.ask("tools/list")
    stage.answer("a", {"tools": [{"name": "x"}]})
    stage.expire()
    stage.answer("b", {"tools": [{"name": "y"}], "nextCursor": "2"})
    assert [tool["name"] for tool in stage.client.pop()["result"]["tools"]] == ["x", "y", "z"]


def test_an_answer_that_cannot_be_read_leaves_its_server_out() -> None:
    stage = Stage("a", "b")
    stage.ask("tools/list")
    asked = stage.heard("a")
    line = b'{"jsonrpc":"2.0","id":"%b","result":{"tools":"\xff"}}\n' % asked["id"].encode()
    stage.catalogue.take_from_server(stage.members["a"], read_line(line))  # type: ignore[arg-type]
    stage.answer("b", {"tools": [{"name": "x"}]})
    told = stage.client.pop()["result"]
    assert told["tools"] == [{"name": "x"}]
    assert told["_meta"]["dragoman/missing"][0]["server"] == "a"


def test_two_readers_of_one_list_ask_once() -> None:
    stage = Stage("a")
    keys = [stage.ask("tools/list"), stage.ask("tools/list")]
    assert len(stage.servers["a"]) == 1
    stage.answer("a", {"tools": []})
    assert [answer["id"] for answer in stage.client] == keys


def test_a_server_that_one_list_has_waited_for_is_hardly_waited_for_by_the_next() -> None:
    stage = Stage("a", "b")
    for kind, member in (("tools", "tools"), ("prompts", "prompts"), ("resources", "resources")):
        stage.reminders.clear()
        stage.ask(f"{kind}/list")
        stage.answer("a", {member: []})
        assert [after_s for after_s, _ in stage.reminders] == ([5.0] if kind == "tools" else [5.0, 0.25])
        stage.expire()
        assert stage.client.pop()["result"]["_meta"]["dragoman/missing"][0]["server"] == "b"
    stage.answer("b", {"tools": []})
    assert stage.client == [], "what nobody has missed has not changed"
    stage.reminders.clear()
    stage.servers["b"].clear()
    stage.tools(a=[], b=[])
    assert [after_s for after_s, _ in stage.reminders] == [5.0]


def join_late(stage: Stage, **listed: Body) -> list[str]:
    """Let a server come after the client was answered, with these lists; give what the client is told."""
    stage.members["b"] = Member("b")
    stage.names.set_servers({"a": "a", "b": "b"})
    stage.servers["b"] = []
    stage.catalogue.add(stage.members)
    stage.answer("b", {"capabilities": ALL})
    asked = [frame for frame in stage.servers["b"] if "id" in frame]
    for frame in asked:
        stage.says("b", {"id": frame["id"], "result": listed.get(frame["method"], {})})
    return [frame["method"] for frame in stage.client]


LISTS_OF_ONE: dict[str, Body] = {
    "tools/list": {"tools": []},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}


def test_of_a_server_that_comes_late_the_client_is_told_what_it_has_and_nothing_else() -> None:
    stage = Stage("a")
    assert join_late(stage, **LISTS_OF_ONE) == ["notifications/prompts/list_changed"]


def test_of_a_server_that_comes_late_and_cannot_list_nothing_is_told() -> None:
    assert join_late(Stage("a")) == []


def test_a_list_that_is_asked_for_meanwhile_waits_for_the_late_server_and_needs_no_notice() -> None:
    stage = Stage("a")
    stage.members["b"] = Member("b")
    stage.names.set_servers({"a": "a", "b": "b"})
    stage.servers["b"] = []
    stage.catalogue.add(stage.members)
    stage.answer("b", {"capabilities": {"tools": {}}})
    stage.ask("tools/list")
    stage.answer("a", {"tools": [{"name": "x"}]})
    assert stage.client == []
    (asked,) = [frame for frame in stage.servers["b"] if "id" in frame]
    stage.says("b", {"id": asked["id"], "result": {"tools": [{"name": "y"}]}})
    (answer,) = stage.client
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["x", "y"]


def test_a_server_that_is_lost_and_comes_back_is_told_twice() -> None:
    stage = Stage("a")
    stage.list("tools/list", a={"tools": [{"name": "x"}]})
    stage.catalogue.lost(stage.members["a"], "it died")
    stage.client.clear()
    for _, what in stage.reminders:
        what()
    stage.client.clear()
    stage.servers["a"].clear()
    stage.catalogue.join(stage.members["a"])
    stage.answer("a", {"capabilities": {"tools": {}}})
    (asked,) = [frame for frame in stage.servers["a"] if "id" in frame]
    stage.says("a", {"id": asked["id"], "result": {"tools": [{"name": "x"}]}})
    assert [frame["method"] for frame in stage.client] == ["notifications/tools/list_changed"]


def test_a_server_that_is_still_opening_has_its_time_once() -> None:
    stage = Stage("a")
    stage.members["b"] = member = Member("b")
    stage.names.set_servers({"a": "a", "b": "b"})
    stage.servers["b"] = []
    stage.reminders.clear()
    stage.catalogue.add(stage.members)
    (opening,) = [what for after_s, what in stage.reminders if after_s == 5.0]
    stage.ask("tools/list")
    stage.answer("a", {"tools": []})
    assert stage.client == []
    opening()
    assert "no answer within 5 s" in stage.client.pop()["result"]["_meta"]["dragoman/missing"][0]["reason"]
    stage.ask("tools/call", name="of_b")
    stage.answer("a", {"tools": []})
    assert stage.client.pop()["error"]["message"] == "unknown tool: of_b; not all servers are there: b is late"
    stage.ask("initialize", protocolVersion="2025-11-25")
    stage.answer("a", {"capabilities": ALL})
    assert stage.client.pop()["result"]["capabilities"]
    stage.answer("b", {"capabilities": ALL})
    assert (member.state, member.is_late) == (MemberState.OPEN, False)


def test_pages_of_our_own_can_be_read_for_as_long_as_others_are() -> None:
    stage = Stage("a")
    stage.catalogue.lists._page_size = 1
    first = stage.tools(a=["x", "y"])["result"]
    assert first["tools"] == [{"name": "x"}]
    for _ in range(9):
        stage.tools(a=["x", "y"])
    stage.ask("tools/list", cursor=first["nextCursor"])
    stage.answer("a", {"tools": [{"name": "x"}, {"name": "y"}]})
    last = stage.client.pop()["result"]
    assert last["tools"] == [{"name": "y"}]
    stage.ask("tools/list", cursor=first["nextCursor"].replace("tools", "prompts"))
    assert stage.client.pop()["error"]["code"] == -32602


def test_a_list_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("nested too deep")

    monkeypatch.setattr("dragoman.core.switch.router.lists.write_slice", refuse)
    told = Stage("a").tools(a=["x"])
    assert told["error"] == {"code": -32603, "message": "tools/list cannot be written: nested too deep"}


def test_changes_are_told_once_in_a_while() -> None:
    stage = Stage("a")
    for _ in range(3):
        stage.says("a", {"method": "notifications/tools/list_changed"})
    assert len(stage.client) == 1
    stage.expire()
    assert len(stage.client) == 2
    stage.expire()
    stage.expire()
    assert len(stage.client) == 2


# Log levels, and servers that come and go


def test_a_log_level_that_nobody_takes_is_an_error() -> None:
    stage = Stage("a", "b")
    key = stage.ask("logging/setLevel", level="loud")
    for name in ("a", "b"):
        stage.answer(name, {"code": -32602, "message": name}, "error")
    assert stage.client.pop() == {"jsonrpc": "2.0", "id": key, "error": {"code": -32602, "message": "b"}}
    deaf = Stage("a", capabilities={"tools": {}})
    deaf.ask("logging/setLevel", level="error")
    assert deaf.client.pop()["error"]["code"] == -32601


def test_a_server_that_refuses_to_open_is_left_out() -> None:
    stage = Stage()
    stage.servers["a"] = []
    stage.members["a"] = Member("a")
    stage.names.set_servers({"a": "a"})
    stage.catalogue.add(stage.members)
    stage.answer("a", {"code": -32602, "message": "no"}, "error")
    assert stage.members["a"].state is MemberState.FAILED
    stage.ask("tools/list")
    assert stage.client.pop()["result"]["_meta"]["dragoman/missing"][0]["reason"] == "it could not be opened: no"
    stage.catalogue.common.fail(stage.members["a"], "again")
    assert stage.members["a"].reason == "it could not be opened: no"


def test_a_call_to_a_server_that_is_lost_is_refused() -> None:
    stage = Stage("a", "b")
    stage.tools(a=["x"], b=["y"])
    key = stage.ask("tools/call", name="x")
    stage.ask("prompts/list")
    stage.catalogue.lost(stage.members["a"], "it died")
    stage.catalogue.lost(stage.members["a"], "it died")
    told = [one for one in stage.client if one.get("id") == key]
    assert told[0]["error"]["message"] == "a is gone: it died"
    stage.client.clear()
    stage.ask("tools/call", name="x")
    assert "a cannot be used: it died" in stage.client.pop()["error"]["message"]
    stage.catalogue.remove("a")
    stage.catalogue.remove("a")
    assert list(stage.catalogue.members) == ["b"]


def test_an_opening_does_not_wait_for_a_server_that_is_lost() -> None:
    stage = Stage("a")
    stage.servers["b"] = []
    stage.members["b"] = Member("b")
    stage.catalogue.members["b"] = stage.members["b"]
    stage.ask("initialize", protocolVersion="2025-11-25")
    stage.answer("a", {"capabilities": 5})
    assert stage.client == []
    stage.catalogue.lost(stage.members["b"], "it died")
    assert stage.client[0]["result"]["capabilities"] == {"tools": {"listChanged": True}}


def test_capabilities_are_merged_deeply() -> None:
    stage = Stage("a")
    stage.members["b"] = Member("b")
    stage.catalogue.members["b"] = stage.members["b"]
    stage.servers["b"] = []
    stage.ask("initialize", protocolVersion="2025-11-25")
    stage.answer("a", {"capabilities": {"x": {"p": False, "q": {"r": 1}}, "y": True}, "instructions": " be kind "})
    stage.answer("b", {"capabilities": {"x": {"p": True, "q": {"s": 2}}, "y": False}, "instructions": 5})
    told = stage.client.pop()["result"]
    assert told["capabilities"]["x"] == {"p": True, "q": {"r": 1, "s": 2}}
    assert told["capabilities"]["y"] is True
    assert told["instructions"] == "a:\nbe kind"


def test_a_server_that_lacks_a_list_is_not_asked_for_it() -> None:
    stage = Stage("a", "b")
    stage.members["b"].capabilities = {}
    stage.ask("prompts/list")
    assert stage.servers["b"] == []
    stage.answer("a", {"prompts": []})
    assert stage.client.pop()["result"] == {"prompts": []}


def test_each_server_is_waited_for_as_long_as_it_may_take() -> None:
    stage = Stage("a", "b")
    stage.members["b"].list_timeout_s = 9.0
    stage.reminders.clear()
    stage.ask("tools/list")
    assert [after_s for after_s, _ in stage.reminders] == [5.0, 9.0]
    first, second = stage.reminders
    first[1]()
    assert stage.client == []
    second[1]()
    assert len(stage.client.pop()["result"]["_meta"]["dragoman/missing"]) == 2


def test_a_name_of_a_server_that_this_session_does_not_have_is_unknown() -> None:
    stage = Stage("a")
    stage.names.set_servers({"a": "a", "z": "z"})
    stage.names.learn("z", NameKind.TOOL, ["far"])
    stage.ask("tools/call", name="far")
    stage.answer("a", {"tools": []})
    assert stage.client.pop()["error"]["message"] == "unknown tool: far"


def test_the_first_request_of_a_client_need_not_ask_what_there_is() -> None:
    stage = Stage(is_per_request=True)
    fresh = Catalogue(stage, stage.names, [], {"name": "all", "version": "1"})
    stage.catalogue = fresh
    stage.ask("tools/list")
    told = stage.client.pop()["result"]
    assert (told["tools"], told["ttlMs"], told["cacheScope"]) == ([], 0, "private")
    stage.servers["a"] = []
    stage.members["a"] = Member("a")
    stage.names.set_servers({"a": "a"})
    fresh.add(stage.members)
    stage.ask("tools/list")
    assert stage.heard("a")["method"] == "tools/list"


def test_a_reminder_that_means_nothing_any_more_does_nothing() -> None:
    stage = Stage("a")
    assert stage.client == []


def test_a_server_that_comes_before_the_client_has_said_anything_waits_for_that() -> None:
    stage = Stage()
    stage.catalogue = Catalogue(stage, stage.names, [], {"name": "all", "version": "1"})
    stage.servers["a"] = []
    stage.members["a"] = Member("a")
    stage.catalogue.add(stage.members)
    assert stage.servers["a"] == []
    stage.ask("initialize", protocolVersion="2025-11-25")
    assert stage.heard("a")["method"] == "initialize"


# Streams of notices

ID = "io.modelcontextprotocol/subscriptionId"


def listening(stage: Stage, **wanted: Any) -> tuple[int, dict[str, Body]]:
    """Begin to listen; give the id, and what each server was asked."""
    key = stage.ask("subscriptions/listen", notifications=wanted)
    return key, {name: stage.heard(name) for name in stage.servers if stage.servers[name]}


def acknowledge(stage: Stage, name: str, asked: Body, agreed: Body) -> None:
    params = {"notifications": agreed, "_meta": {ID: asked["id"]}}
    stage.says(name, {"method": "notifications/subscriptions/acknowledged", "params": params})


def test_streams_are_acknowledged_when_all_have_or_are_late() -> None:
    stage = Stage("a", "b", is_per_request=True)
    key, asked = listening(stage, toolsListChanged=True)
    acknowledge(stage, "a", asked["a"], {"toolsListChanged": True})
    stage.says("a", {"method": "notifications/tools/list_changed", "params": {"_meta": {ID: asked["a"]["id"]}}})
    assert stage.client == []
    stage.expire()
    first, second = stage.client
    assert first["params"] == {"notifications": {"toolsListChanged": True}, "_meta": {ID: key}}
    assert second["method"] == "notifications/tools/list_changed"
    acknowledge(stage, "b", asked["b"], {"toolsListChanged": True})
    stage.expire()
    assert len(stage.client) == 2


def test_a_stream_without_servers_is_acknowledged_at_once_and_gets_those_that_come() -> None:
    stage = Stage(is_per_request=True)
    listening(stage, toolsListChanged=True)
    assert stage.client.pop()["method"] == "notifications/subscriptions/acknowledged"
    stage.servers["a"] = []
    stage.members["a"] = Member("a")
    stage.names.set_servers({"a": "a"})
    stage.catalogue.add(stage.members)
    stage.answer("a", {"capabilities": ALL})
    assert stage.heard("a")["method"] == "subscriptions/listen"
    assert stage.client.pop()["method"] == "notifications/tools/list_changed"


def test_a_stream_names_resources_as_the_client_does() -> None:
    stage = Stage("a", "b", is_per_request=True)
    both = {"resources": [{"uri": "x:1"}], "ttlMs": 5, "cacheScope": "public"}
    told = stage.list("resources/list", a=both, b={**both, "ttlMs": 3})["result"]
    assert (told["ttlMs"], told["cacheScope"], told["resultType"]) == (3, "public", "complete")
    key, asked = listening(stage, resourceSubscriptions=["a+x:1", "odd:1"])
    wanted = {name: one["params"]["notifications"] for name, one in asked.items()}
    assert wanted == {"a": {"resourceSubscriptions": ["odd:1", "x:1"]}, "b": {"resourceSubscriptions": ["odd:1"]}}
    acknowledge(stage, "a", asked["a"], {"resourceSubscriptions": ["x:1"], "other": 5})
    acknowledge(stage, "b", asked["b"], 5)  # type: ignore[arg-type]
    assert stage.client.pop()["params"]["notifications"] == {"resourceSubscriptions": ["a+x:1"]}
    updated = {"uri": "x:1", "_meta": {ID: asked["a"]["id"]}}
    stage.says("a", {"method": "notifications/resources/updated", "params": updated})
    assert stage.client.pop()["params"] == {"uri": "a+x:1", "_meta": {ID: key}}
    stage.says("b", {"method": "notifications/resources/updated", "params": updated})
    stage.says("b", {"method": "notifications/resources/updated", "params": {"uri": "x:1"}})
    assert [frame["params"]["uri"] for frame in stage.client] == ["b+x:1", "b+x:1"]


def test_a_stream_outlives_those_of_its_servers_and_ends_with_the_clients_wish() -> None:
    stage = Stage("a", "b", is_per_request=True)
    key, asked = listening(stage, toolsListChanged=True)
    stage.says("a", {"id": asked["a"]["id"], "result": {"resultType": "complete"}})
    stage.says("b", {"method": "notifications/cancelled", "params": {"requestId": asked["b"]["id"]}})
    stage.catalogue.lost(stage.members["b"], "it died")
    assert stage.client[0]["method"] == "notifications/subscriptions/acknowledged"
    stage.tell("notifications/cancelled", requestId=key)
    stage.client.clear()
    stage.says("a", {"method": "notifications/tools/list_changed"})
    assert stage.client == []


def test_a_wider_filter_takes_over_when_it_is_acknowledged() -> None:
    stage = Stage("a", is_per_request=True)
    _, one = listening(stage, toolsListChanged=True)
    acknowledge(stage, "a", one["a"], {"toolsListChanged": True})
    key, two = listening(stage, resourceSubscriptions=["x:1"])
    assert two["a"]["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]}
    third, none = listening(stage, resourceSubscriptions=["x:2"])
    assert none == {}  # until the server has acknowledged
    stage.client.clear()
    acknowledge(stage, "a", two["a"], {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]})
    assert stage.heard("a")["params"]["requestId"] == one["a"]["id"]
    three = stage.heard("a")
    assert three["params"]["notifications"]["resourceSubscriptions"] == ["x:1", "x:2"]
    assert stage.client == []
    acknowledge(stage, "a", three, {"resourceSubscriptions": ["x:1"]})
    assert [frame["params"]["notifications"] for frame in stage.client] == [{"resourceSubscriptions": ["x:1"]}, {}]
    assert [frame["params"]["_meta"][ID] for frame in stage.client] == [key, third]


def test_notices_of_a_kind_are_told_twice_a_second() -> None:
    stage = Stage("a", is_per_request=True)
    _, asked = listening(stage, toolsListChanged=True, resourceSubscriptions=["x:1"])
    acknowledge(stage, "a", asked["a"], {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]})
    stage.client.clear()
    stage.reminders.clear()
    tag = {"_meta": {ID: asked["a"]["id"]}}
    for number in range(20):
        stage.says("a", {"method": "notifications/tools/list_changed", "params": tag})
        stage.says("a", {"method": "notifications/resources/updated", "params": {"uri": "x:1", "n": number, **tag}})
    assert len(stage.client) == 1
    assert [after_s for after_s, _ in stage.reminders] == [0.5]
    stage.expire()
    assert [frame["params"].get("n") for frame in stage.client] == [None, None, 19]
    stage.is_paused = True
    stage.says("a", {"method": "notifications/tools/list_changed", "params": tag})
    stage.expire()
    assert len(stage.client) == 3
    stage.is_paused = False
    stage.expire()
    assert len(stage.client) == 4


def test_a_call_is_cancelled_where_there_are_streams_too() -> None:
    stage = Stage("a", "b", is_per_request=True)
    stage.tools(a=["x"], b=[])
    key = stage.ask("tools/call", name="x")
    stage.heard("a")
    stage.tell("notifications/cancelled", requestId=key)
    assert stage.heard("a")["params"] == {"requestId": key}


def test_servers_are_told_that_nobody_listens() -> None:
    stage = Stage("a", is_per_request=True)
    key, asked = listening(stage, toolsListChanged=True)
    stage.tell("notifications/cancelled", requestId=key)
    assert stage.heard("a")["params"]["requestId"] == asked["a"]["id"]


def test_a_server_that_is_lost_is_not_listened_to() -> None:
    stage = Stage("a", "b", is_per_request=True)
    stage.catalogue.lost(stage.members["b"], "it died")
    stage.client.clear()
    _, asked = listening(stage, toolsListChanged=True)
    assert list(asked) == ["a"]


def test_a_filter_that_asks_for_nothing_asks_nobody() -> None:
    stage = Stage("a", is_per_request=True)
    _, asked = listening(stage)
    assert asked == {}
    assert stage.client.pop()["params"]["notifications"] == {}
