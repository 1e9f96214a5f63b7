"""The middleware that comes with Dragoman, in front of a server of each era, for clients of each era."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

import pytest
from pydantic import AnyUrl

from dragoman.core.commands import Side
from dragoman.core.exact_json import encode_line
from dragoman.core.naming import RESOURCE
from dragoman.middleware import Answer, Message, Proceed
from dragoman.middlewares import Allow, Deny, Inject, RateLimit, Rename
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    result,
    server,
)
from tests.proxy.test_per_request import asks
from tests.proxy.test_per_request import opening as opening_by_request
from tests.support.effort import effort
from tests.support.frames import sent
from tests.support.waiting import run

NEW = "2025-11-25"
OBJECT = {"type": "object"}
NONE: dict[str, Any] = {}


def talk(*steps: Step, around: Any, revision: str = NEW) -> None:
    """A conversation in an open session, with one middleware."""
    whole = getattr(around, "around_request", around)
    notices = (around.around_notice,) if hasattr(around, "around_notice") else ()
    hold([*opening(revision, NEW), *steps], middleware=(whole,), notice_middleware=notices)


def passes(key: Any, method: str, **params: Any) -> list[Step]:
    asked = request(key, method, **params)
    return [client(asked), expect_to_server(asked), server(result(key, NONE)), expect_to_client(result(key, NONE))]


def refused(key: Any, method: str, words: str, **params: Any) -> list[Step]:
    return [client(request(key, method, **params)), expect_to_client(an_error(key, -32602, words))]


def listed(key: Any, method: str, member: str, given: list[Any], seen: list[Any]) -> list[Step]:
    return [
        client(request(key, method)),
        expect_to_server(request(key, method)),
        server(result(key, {member: given, "nextCursor": "more"})),
        expect_to_client(result(key, {member: seen, "nextCursor": "more"})),
    ]


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **members}


TOOLS = [tool("read_file"), tool("remove_file"), tool("remove_all")]


# Lists


def test_what_is_denied_is_neither_listed_nor_called() -> None:
    talk(
        *listed(1, "tools/list", "tools", TOOLS, TOOLS[:1]),
        *refused(2, "tools/call", "unknown tool: remove_all", name="remove_all"),
        *passes(3, "tools/call", name="read_file"),
        around=Deny(tools=["remove_*"]),
    )


def test_what_is_not_allowed_is_neither_listed_nor_called_and_other_kinds_are_left_alone() -> None:
    talk(
        *listed(1, "tools/list", "tools", TOOLS, TOOLS[:1]),
        *refused(2, "tools/call", "unknown tool: remove_all", name="remove_all"),
        *passes(3, "prompts/get", name="anything"),
        around=Allow(tools=["read_*"]),
    )


def test_prompts_are_hidden_from_completion_too() -> None:
    hidden = {"ref": {"type": "ref/prompt", "name": "secret"}, "argument": {"name": "a", "value": ""}}
    talk(
        *listed(1, "prompts/list", "prompts", [{"name": "secret"}, {"name": "open"}], [{"name": "open"}]),
        *refused(2, "prompts/get", "unknown prompt: secret", name="secret"),
        *refused(3, "completion/complete", "unknown prompt: secret", **hidden),
        *passes(4, "completion/complete", ref={"type": "ref/prompt", "name": "open"}, argument=hidden["argument"]),
        around=Deny(prompts=["secret"]),
    )


RESOURCES = [{"uri": "file:///srv/a", "name": "a"}, {"uri": "file:///etc/b", "name": "b"}]
TEMPLATES = [{"uriTemplate": "file:///srv/{x}", "name": "a"}, {"uriTemplate": "file:///{x}", "name": "b"}]


def test_resources_are_allowed_by_uri() -> None:
    talk(
        *listed(1, "resources/list", "resources", RESOURCES, RESOURCES[:1]),
        *listed(2, "resources/templates/list", "resourceTemplates", TEMPLATES, TEMPLATES[:1]),
        *refused(3, "resources/subscribe", "unknown resource", uri="file:///etc/b"),
        *passes(4, "resources/read", uri="file:///srv/a"),
        server(notification("notifications/resources/updated", uri="file:///etc/b")),
        server(notification("notifications/resources/updated", uri="file:///srv/a")),
        expect_to_client(notification("notifications/resources/updated", uri="file:///srv/a")),
        around=Allow(resources=["file:///srv/*"]),
    )


SPELLINGS = [
    "file:///srv/../etc/b",
    "file:///srv/%2e%2e/etc/b",
    "file:///srv/..%2fetc/b",
    "file:///etc/b",
    "FILE:///etc/b",
    "File:/etc/b",
    "file:/etc/b",
    "file:etc/b",
    "file:////etc/b",
    "file://///etc/b",
    "file://localhost/etc/b",
    "file://LOCALHOST/etc/b",
    "file://127.0.0.1/etc/b",
    "file://elsewhere/etc/b",
    "file://srv/../../etc/b",
    "file://srv/../etc/b",
    "file://etc/b",
    "file:\\\\\\etc\\b",
    "file:///etc\\b",
    "file:///srv/..\\etc\\b",
    "file:///srv/..%5cetc%5cb",
    "file:///srv/%252e%252e/etc/b",
    "file:///%65tc/b",
    "file:///%65%74%63%2fb",
    "file:///%2565tc/b",
    "file:///ETC/b",
    "file:///./etc/b",
    "file:///etc/./b",
    "file:///etc//b",
    "file:///srv/x?/../../etc/b",
    "file:///srv/x%23/../../etc/b",
    "/etc/b",
    "\\etc\\b",
    "file:///etc/b?x",
    "file:///etc/b#x",
]
SPELLINGS += [
    "FILE://x@/etc/b",
    "FILE://x:y@/etc/b",
    "FILE://:80/etc/b",
    "FILE://[/etc/b",
    "FILE://x:99999/etc/b",
    "FILE://x:a/etc/b",
    "File://%/etc/b",
    "FILE://a<b/etc/b",
    "FILE://a^b/etc/b",
    "FILE://x|/etc/b",
    "file://\u2100/etc/b",
    "file:///x/\u2025/etc/b",
    "\uff46ile:///etc/b",
    "f%69le:///etc/b",
    "file.:///etc/b",
    "x-file:///etc/b",
    "url:file:///etc/b",
    "<file:///etc/b>",
]
UNREADABLE = ["file:///et\tc/b", " file:///etc/b", "file:///etc/b\n", "\x00file:///etc/b", "\u3000file:///etc/b"]
UNREADABLE += ["file:///et\u200bc/b", "file:///et%09c/b", "file:///etc/b%00.txt", "file:///%" + "25" * 9 + "65tc/b"]


@pytest.mark.parametrize("uri", [*SPELLINGS, *UNREADABLE])
def test_no_other_way_of_writing_a_uri_gets_around_the_list(uri: str) -> None:
    allowed = Allow(resources=["file:///srv/*"])
    for method in ("resources/read", "resources/subscribe"):
        talk(*refused(1, method, "unknown resource", uri=uri), around=allowed)
        talk(*refused(1, method, "unknown resource", uri=uri), around=Deny(resources=["file:///etc/*"]))
        talk(*refused(1, method, "unknown resource", uri=uri), around=Deny(resources=["FILE://localhost/etc/b"]))
    completion = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "a", "value": ""}}
    talk(*refused(1, "completion/complete", "unknown resource", **completion), around=Deny(resources=["file:///etc/*"]))


def _cut(uri: str) -> str:
    return uri.partition("://")[2].partition("/")[2]


READERS: list[Callable[[str], str | None]] = [
    lambda uri: unquote(urlsplit(uri).path),
    lambda uri: unquote(unquote(urlsplit(uri).path)),
    lambda uri: AnyUrl(uri).path and unquote(AnyUrl(uri).path or ""),
    lambda uri: url2pathname(urlsplit(uri).path),
    lambda uri: "/" + unquote(_cut(uri)),
    lambda uri: unquote(uri.lower().removeprefix("file://")),
]
"""How servers read the URI of a file; what raises an error reads nothing."""


@pytest.mark.parametrize("listed", [Allow(resources=["*"]), Deny(resources=["file:///etc/*"])])
def test_a_very_long_uri_is_refused_and_not_looked_at(listed: Allow | Deny) -> None:
    """All its spellings take time, and everybody waits meanwhile."""
    assert listed.shows("resource", "file:///srv/" + 60_000 * "a")
    assert not listed.shows("resource", "file:///srv/" + 1_000_000 * "%25")


@pytest.mark.parametrize(
    "uri",
    [
        "x:///" + "\u0301\u0327" * 16_000,
        "x:///" + quote("\u0f73" * 7_000),
        "x:///" + "\u0f73" * 32_000,
        "\u0327\u0301" * 16_000,
        "x:" + "file" * 16_000,
    ],
    ids=["marks", "encoded", "two in one", "a name", "beginnings"],
)
def test_the_spellings_of_a_uri_take_no_longer_than_it_is_long(uri: str) -> None:
    assert effort(lambda: Deny(resources=["file:///etc/*"]).shows("resource", uri)) < 15


def test_marks_in_another_order_are_the_same_name() -> None:
    shows = Deny(resources=["x:///\u00e9" + "\u0323" * 40]).shows
    assert shows("resource", "x:///e" + "\u0323" * 40)
    assert not shows("resource", "x:///e" + "\u0323" * 20 + "\u0301" + "\u0323" * 20)


def test_others_have_their_turn_while_very_many_names_are_looked_at() -> None:
    turns = 0

    async def main() -> None:
        uris = [f"x:///{number}" for number in range(5_000)]
        listed = Answer.succeed({"resources": [{"uri": uri} for uri in uris]})
        asked = {"notifications": {"resourceSubscriptions": uris}}

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async def answer(call: Message) -> Answer:
            return listed

        counting = asyncio.ensure_future(count())
        for method, params in (("resources/list", NONE), ("subscriptions/listen", asked)):
            (frame,) = sent(encode_line(request(1, method, **params)))
            call = Message(frame, Side.CLIENT, "", NEW, NEW)
            assert await Deny(resources=["y:*"]).around_request(call, answer) == listed
        counting.cancel()

    run(main())
    assert turns > 15


def test_no_reader_of_uris_comes_to_a_denied_file_by_a_spelling_that_passes() -> None:
    """Each spelling of a scheme, an authority and a path with each other."""
    passes, read = Deny(resources=["file:///etc/*"]).shows, 0
    schemes = ["file:", "FILE:", "File:", "f%69le:"]
    authorities = [
        "",
        "/",
        "//",
        "///",
        "//x@",
        "//x:y@h",
        "//:80",
        "//x:99999",
        "//[",
        "//[::1]",
        "//%",
        "//a<b",
        "\\\\",
    ]
    paths = [
        "/etc/b",
        "etc/b",
        "//etc/b",
        "/x/../etc/b",
        "/%65tc/b",
        "\\etc\\b",
        "/etc/b?q",
        "/etc/b#f",
        "/x?/../../etc/b",
    ]
    for parts in itertools.product(schemes, authorities, paths):
        uri = "".join(parts)
        for reader in READERS:
            with contextlib.suppress(ValueError, OSError):
                if posixpath.normpath("/" + (reader(uri) or "").lstrip("/")) == "/etc/b":
                    read += 1
                    assert not passes(RESOURCE, uri), uri
    assert read > 500


@pytest.mark.parametrize("uri", ["users://{id}/profile", "https://x:{port}/", "memo", "a/b", "db://{t}?q={q}"])
def test_names_and_templates_are_not_taken_for_uris_that_nobody_can_read(uri: str) -> None:
    assert Deny(resources=["file:///etc/*"]).shows(RESOURCE, uri)


@pytest.mark.parametrize("uri", ["https://EXAMPLE.com:443/a", "https:\\\\example.com\\a", "https:example.com/%61"])
def test_a_url_is_the_same_however_it_is_written(uri: str) -> None:
    talk(*refused(1, "resources/read", "unknown resource", uri=uri), around=Deny(resources=["https://example.com/a"]))


def test_a_prefixed_uri_is_the_same_however_it_is_written() -> None:
    refusal = refused(1, "resources/read", "unknown resource", uri="files+FILE:/etc/b")
    talk(*refusal, around=Deny(resources=["*file:///etc/*"]))


@pytest.mark.parametrize("uri", ["file:///srv/a", "file:///srv/my%20notes?x=%2f#y", "file:///srv/ü", "file:///srv/a/"])
def test_what_is_on_no_list_of_denied_resources_is_read(uri: str) -> None:
    talk(*passes(1, "resources/read", uri=uri), around=Deny(resources=["file:///etc/*"]))
    talk(*passes(1, "resources/read", uri=uri), around=Allow(resources=["file:///srv/*"]))


@pytest.mark.parametrize("around", [Deny(tools=["hidden"]), Allow(tools=["seen"])])
def test_a_name_that_comes_twice_reaches_no_server(around: Any) -> None:
    """Parsers differ in which of two members counts."""
    twice = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hidden","name":"seen","arguments":{}}}\n'
    talk(
        client(twice),
        expect_to_server(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"seen","arguments":{}}}\n'),
        server(result(1, {"content": []})),
        expect_to_client(result(1, {"content": []})),
        around=around,
    )


SECRET = {"name": "secret", "arguments": {}}
REF = {"argument": {"name": "a", "value": ""}}
ODD: list[tuple[str, Any, str]] = [
    ("tools/call", {"name": ["secret"]}, "params.name to be a string"),
    ("tools/call", {"name": None}, "params.name to be a string"),
    ("tools/call", {"arguments": {}}, "params.name to be a string"),
    ("prompts/get", {"name": {"toString": "secret"}}, "params.name to be a string"),
    ("resources/read", {"uri": ["file:///etc/b"]}, "params.uri to be a string"),
    ("completion/complete", {"ref": {"type": "ref/Prompt", "name": "secret"}, **REF}, "params.ref.type"),
    ("completion/complete", {"ref": {"type": ["ref/prompt"], "name": "secret"}, **REF}, "params.ref.type"),
    ("completion/complete", {"ref": {"name": "secret"}, **REF}, "params.ref.type"),
    ("completion/complete", {"ref": ["ref/prompt", "secret"], **REF}, "params.ref.type"),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "x:y", "name": ["secret"]}, **REF},
        "params.ref.name",
    ),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "x:y", "name": "secret"}, **REF}, "unknown prompt"),
    ("tools/call", {"name": "open", "Name": "secret"}, "params.name to be a string"),
    ("tools/call", {"name": "secret\0"}, "params.name to be a string"),
    ("tools/call", {"name\0": "secret", "name": "open"}, "params.name to be a string"),
    ("resources/read", {"uri": "x:y", "URI": "file:///etc/b"}, "params.uri to be a string"),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "open", "NAME": "secret"}, **REF},
        "params.ref.name",
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "x:y", "Name": "secret"}, **REF},
        "params.ref.name",
    ),
]


@pytest.mark.parametrize(("method", "params", "words"), ODD)
def test_what_no_schema_allows_is_refused_before_a_rule_is_asked(method: str, params: Any, words: str) -> None:
    asked: list[str] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        asked.append(call.method)
        return await proceed(call)

    talk(*refused(1, method, words, **params), around=Deny(tools=["secret"], prompts=["secret"]))
    talk(*refused(1, method, words, **params), around=Allow(tools=[], prompts=[], resources=[]))
    if words.startswith("params"):
        talk(*refused(1, method, words, **params), around=look)
        assert asked == []


TWO = "expected one kind of frame, and id and method no more than once"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b,"method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b,"m\\u0065thod":"tools/call"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":%b,"method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b,"Method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call\\u0000","params":%b}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b,"\\u004dethod":"tools/call"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"},"Params":%b}\n',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"},"param\u017f":%b}\n'.encode(),
    ],
)
@pytest.mark.parametrize("make", [lambda: Deny(tools=["secret"]), lambda: RateLimit(1, methods=["tools/call"])])
def test_a_request_of_two_methods_reaches_neither_rule_nor_server(line: bytes, make: Any) -> None:
    talk(client(line % encode_line(SECRET).strip()), expect_to_client(an_error(1, -32600, TWO)), around=make())


@pytest.mark.parametrize("side", [client, server])
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"tools/call","params":%b}\n',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":%b,"method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":%b,"m\\u0065thod":"tools/call"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":%b,"Method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","method":"tools/call\\u0000","params":%b}\n',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":%b,"ID":1,"Method":"tools/call"}\n',
        b'{"jsonrpc":"2.0","method":"tools/list"}\n',
    ],
)
@pytest.mark.parametrize(
    "make", [lambda: Deny(tools=["secret"]), lambda: Allow(tools=[]), lambda: RateLimit(1, burst=9)]
)
def test_a_request_without_an_id_passes_no_rule(line: bytes, side: Any, make: Any) -> None:
    line = line % encode_line(SECRET).strip() if b"%b" in line else line
    told = [expect_to_client(an_error(None, -32600))] if side is client else []
    talk(side(line), *told, *passes(1, "ping"), around=make())


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":5,"result":{},"method":"tools/call","params":%b}\n',
        b'{"jsonrpc":"2.0","id":5,"result":{},"m\\u0065thod":"tools/call","params":%b}\n',
        b'{"jsonrpc":"2.0","id":5,"result":{},"Method":"tools/call","params":%b}\n',
        b'{"jsonrpc":"2.0","id":5,"Method":"tools/call","params":%b,"result":{}}\n',
    ],
)
def test_an_answer_that_some_servers_take_for_a_call_fails(line: bytes) -> None:
    asked = request(5, "roots/list")
    steps = [server(asked), expect_to_client(asked), client(line % encode_line(SECRET).strip())]
    whole = Deny(tools=["secret"]).around_request
    hold([*opening(NEW, NEW, ["roots"]), *steps, expect_to_server(an_error(5, -32603))], middleware=(whole,))


def test_a_subscription_that_comes_twice_is_that_which_was_looked_at() -> None:
    twice = asks("a", "subscriptions/listen", notifications={"resourceSubscriptions": ["x:y"]})
    line = encode_line(twice).replace(
        b'"resourceSubscriptions"', b'"resourceSubscriptions":["file:///etc/b"],"resourceSubscriptions"'
    )
    per_request(
        client(line),
        *opening_by_request(resources={"subscribe": True}),
        expect_to_server(lambda frame: "etc" not in str(frame)),
        around=Deny(resources=["file:///etc/*"]),
    )
    for other in ("Notifications", "notification\u017f"):
        named = asks("a", "subscriptions/listen", **{"notifications": {}, other: {"resourceSubscriptions": ["x:y"]}})
        once = expect_to_client(an_error("a", -32602, "to be there once"))
        per_request(client(named), once, around=Deny(resources=["x:*"]))


def test_allowing_depends_on_case() -> None:
    allowed = Allow(resources=["file:///srv/*"])
    talk(*refused(1, "resources/read", "unknown resource", uri="file:///SRV/a"), around=allowed)


def test_lists_of_tools_leave_resources_alone() -> None:
    talk(*passes(1, "resources/read", uri="file:///a b"), around=Deny(tools=["x"]))
    talk(*passes(1, "resources/read", uri="file:///a b"), around=Allow(tools=["x"]))


def test_patterns_have_to_be_a_list() -> None:
    with pytest.raises(ValueError, match="expected a list of patterns for tools, found the string 'x'"):
        Allow(tools="x")


# Clients without a session


def per_request(*steps: Step, around: Any, **server_has: Any) -> None:
    whole = getattr(around, "around_request", around)
    hold([*steps], middleware=(whole,))


def test_a_client_without_a_session_gets_around_nothing() -> None:
    per_request(
        client(asks("b", "tools/call", name="remove_all")),
        expect_to_client(an_error("b", -32602, "unknown tool: remove_all")),
        client(asks("a", "tools/list")),
        *opening_by_request(tools={}),
        expect_to_server(lambda frame: frame["method"] == "tools/list"),
        server(result(1, {"tools": TOOLS})),
        expect_to_client(lambda frame: [one["name"] for one in frame["result"]["tools"]] == ["read_file"]),
        client(asks("c", "subscriptions/listen", notifications={"resourceSubscriptions": ["x:y"]})),
        expect_to_client(an_error("c", -32602, "unknown resource: x:y")),
        client(asks("d", "subscriptions/listen", notifications={"resourceSubscriptions": ["X:a/../y"]})),
        expect_to_client(an_error("d", -32602, "unknown resource: X:a/../y")),
        around=Deny(tools=["remove_*"], resources=["x:*"]),
    )


def test_a_made_up_result_for_a_client_without_a_session_is_complete() -> None:
    from dragoman.middleware import Answer

    async def invent(call: Any, proceed: Any) -> Answer:
        return Answer.succeed({"content": []})

    told = {"jsonrpc": "2.0", "id": "a", "result": {"resultType": "complete", "content": []}}
    per_request(client(asks("a", "tools/call", name="x")), expect_to_client(told), around=invent)


# Names


NAMES = {"tools": {"add": "sum"}, "prompts": {"hi": "greet"}}


def test_renamed_tools_are_listed_and_called_by_their_new_names() -> None:
    talk(
        *listed(1, "tools/list", "tools", [tool("add"), tool("x")], [tool("sum", description="Adds"), tool("x")]),
        client(request(2, "tools/call", name="sum", arguments={"a": 1})),
        expect_to_server(request(2, "tools/call", name="add", arguments={"a": 1})),
        server(result(2, NONE)),
        expect_to_client(result(2, NONE)),
        *refused(3, "tools/call", "unknown tool: add", name="add"),
        *passes(4, "tools/call", name="x"),
        around=Rename(**NAMES, tool_descriptions={"add": "Adds"}),
    )


def test_renamed_prompts_are_completed_by_their_new_names() -> None:
    argument = {"name": "to", "value": "A"}
    talk(
        client(request(1, "completion/complete", ref={"type": "ref/prompt", "name": "greet"}, argument=argument)),
        expect_to_server(
            request(1, "completion/complete", ref={"type": "ref/prompt", "name": "hi"}, argument=argument)
        ),
        around=Rename(**NAMES),
    )


def test_a_tool_whose_name_another_one_has_got_is_hidden(caplog: pytest.LogCaptureFixture) -> None:
    talk(
        *listed(1, "tools/list", "tools", [tool("sum"), tool("add")], [tool("sum")]),
        around=Rename(tools={"add": "sum"}),
    )
    assert "tool sum of the server is hidden: add is called so here" in caplog.text


def test_names_may_be_exchanged() -> None:
    talk(
        *listed(1, "tools/list", "tools", [tool("a"), tool("b")], [tool("b"), tool("a")]),
        client(request(2, "tools/call", name="a")),
        expect_to_server(request(2, "tools/call", name="b")),
        around=Rename(tools={"a": "b", "b": "a"}),
    )


def test_one_name_for_two_is_refused() -> None:
    with pytest.raises(ValueError, match="a name of its own for each tool"):
        Rename(tools={"a": "x", "b": "x"})


# Values from the environment


def test_arguments_from_the_environment_are_added_and_hidden() -> None:
    given = tool("find", inputSchema={**OBJECT, "properties": {"q": {}, "key": {}}, "required": ["q", "key"]})
    seen = tool("find", inputSchema={**OBJECT, "properties": {"q": {}}, "required": ["q"]})
    talk(
        client(request(2, "tools/call", name="find", arguments={"q": "x", "key": "mine"})),
        expect_to_server(
            request(
                2,
                "tools/call",
                name="find",
                arguments={"q": "x", "key": "k-1", "price": "$5"},
                _meta={"acme/as": "$me"},
            )
        ),
        around=Inject(
            {"key": "k-${N}", "price": "$5"}, tools=["find"], meta={"acme/as": "$$me"}, environment={"N": "1"}
        ),
    )
    talk(
        *listed(1, "tools/list", "tools", [given, tool("other")], [seen, tool("other")]),
        around=Inject({"key": "k"}, tools=["f*"]),
    )


def test_what_some_servers_read_as_an_added_argument_is_replaced_and_hidden_too() -> None:
    given = tool("find", inputSchema={**OBJECT, "properties": {"KEY": {}, "q": {}}, "required": ["Key", "q"]})
    seen = tool("find", inputSchema={**OBJECT, "properties": {"q": {}}, "required": ["q"]})
    odd = {"key": "x", "Key": "y", "KEY\0": "z", "q": 1}
    talk(
        client(request(2, "tools/call", name="find", arguments=odd, Arguments=odd, _META={"acme/as": "me"})),
        expect_to_server(
            request(2, "tools/call", name="find", arguments={"q": 1, "key": "ours"}, _meta={"acme/as": "us"})
        ),
        around=Inject({"key": "ours"}, meta={"acme/as": "us"}),
    )
    talk(*listed(1, "tools/list", "tools", [given], [seen]), around=Inject({"key": "ours"}))


def test_values_are_read_anew_for_each_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n", "utf-8")
    inject = Inject({"key": f"${{file:{token}}}"}, meta={"acme/as": "$ME"}, environment=(environment := {"ME": "a"}))

    def call(key: str, who: str) -> None:
        asked = request(2, "tools/call", name="find", arguments={"key": key}, _meta={"acme/as": who})
        talk(client(request(2, "tools/call", name="find")), expect_to_server(asked), around=inject)

    call("one", "a")
    token.write_text("two", "utf-8")
    environment["ME"] = "b"
    call("two", "b")
    token.unlink()
    failed = an_error(2, -32603, "a middleware of the proxy failed: ValueError")
    talk(client(request(2, "tools/call", name="find")), expect_to_client(failed), around=inject)


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ValueError, match="the environment has no variable NOWHERE"):
        Inject({"key": "$NOWHERE"}, environment={})


# How many requests


def test_a_request_that_is_one_too_many_is_refused_until_there_is_time() -> None:
    clock = [0.0]
    limit = RateLimit(per_minute=6, burst=2, now_s=lambda: clock[0])
    too_many = an_error(3, -32000, "too many requests: the next one is served in 10 s", "'retryAfterSeconds': 10")
    talk(
        *passes(1, "tools/call", name="x"),
        *passes(2, "tools/call", name="x"),
        client(request(3, "tools/call", name="x")),
        expect_to_client(too_many),
        around=limit,
    )
    clock[0] += 10
    talk(*passes(1, "tools/call", name="x"), around=limit)


def test_who_may_make_all_requests_again_is_forgotten() -> None:
    """Principals of an issuer come without end. Who has none left is remembered among them."""
    clock = [0.0]
    limit = RateLimit(per_minute=6, burst=2, now_s=lambda: clock[0])
    for number in range(2000):
        assert limit._take(f"p{number}") == 0
        assert (limit._take("often") == 0) is (number < 2 or number % 20 == 0)
        assert len(limit._buckets) <= 20 + 2  # one request is made up for after 10 s
        clock[0] += 0.5
    for number in range(3000):
        limit._take(f"at once {number}")
    clock[0] += 20
    for _ in range(1600):
        limit._take("one")
    assert list(limit._buckets) == ["one"]


def test_only_the_methods_that_are_named_count() -> None:
    limit = RateLimit(per_minute=1, methods=["tools/call"], now_s=lambda: 0.0)
    talk(
        *passes(1, "prompts/get", name="x"),
        *passes(2, "prompts/get", name="x"),
        *passes(3, "tools/call", name="x"),
        client(request(4, "tools/call", name="x")),
        expect_to_client(an_error(4, -32000, "served in 60 s")),
        around=limit,
    )


def test_a_limit_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        RateLimit(per_minute=0)
