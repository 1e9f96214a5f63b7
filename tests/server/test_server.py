"""The server core: keeps every rule of its revision, serves clients of every other, and derives what it declares."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import dragoman
from dragoman.check.check import check_server
from dragoman.core.envelope import Frame, Malformed, decoded, notification_frame, request_frame, result_frame
from dragoman.core.exact_json import encode
from dragoman.errors import McpError, RemoteProtocolError, UnsupportedRevision
from dragoman.server import Context, Server, parking
from dragoman.transports.memory import MemoryTransport, connect_pair
from dragoman_spec import HANDSHAKE_REVISIONS, LATEST, REVISIONS, load, v2024_11_05
from tests.server.rooms import NOTE, make
from tests.support.waiting import PATIENCE_S, run, until

LONGEST_S = 30


@pytest.mark.parametrize("revision", REVISIONS)
def test_it_keeps_every_rule_of_its_revision(revision: str) -> None:
    report = run(check_server(make(revision).connect, revisions=[revision], timeout_s=0.2))
    assert (report.served, report.findings) == ((revision,), ())


def test_capabilities_follow_from_handlers_and_notifications() -> None:
    assert make("2025-06-18").capabilities == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True},
        "logging": {},
    }
    assert Server("a", "1", handlers={"completion/complete": lambda params, context: {}}).capabilities == {
        "completions": {}
    }


class Client:
    """The other end of a session, frame by frame."""

    def __init__(self, server: Server) -> None:
        self.transport = server.connect()
        self.heard: list[dict[str, Any]] = []
        assert isinstance(self.transport, MemoryTransport)
        self.transport.start(self)

    def received(self, frames: Any) -> None:
        self.heard += [decoded(frame).body for frame in frames if isinstance(frame, Frame)]
        assert not any(isinstance(frame, Malformed) for frame in frames)

    def failed(self, frame: Any) -> None: ...
    def session_lost(self, frame: Any, error: Any, renewed: bool) -> None: ...
    def unsent(self, frames: Any) -> None: ...
    def ended(self, reason: str) -> None: ...
    def broken(self, reason: str) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.transport.send([notification_frame(method, params)])

    def send(self, number: int, method: str, params: dict[str, Any]) -> None:
        self.transport.send([request_frame(encode(number), method, params)])

    async def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send(number, method, params)
        return await self.answer(number)

    async def answer(self, number: int) -> dict[str, Any]:
        def find() -> list[dict[str, Any]]:
            return [one for one in self.heard if one.get("id") == number and "method" not in one]

        await until(find, LONGEST_S)
        return find()[0]

    def notices(self) -> list[str]:
        return [one["method"] for one in self.heard if "method" in one]


META = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
}
ROOTS = {"roots": [{"uri": "file:///srv"}]}


def test_a_question_without_server_requests_is_a_result_and_the_handler_goes_on() -> None:
    async def work() -> None:
        client = Client(make(LATEST))
        params: dict[str, Any] = {"name": "ask", "_meta": META}
        result = (await client.ask(1, "tools/call", params))["result"]
        for number in (2, 3):
            assert result["resultType"] == "input_required"
            (name,) = result["inputRequests"]
            more = {"requestState": result["requestState"], "inputResponses": {name: ROOTS}}
            result = (await client.ask(number, "tools/call", {**params, **more}))["result"]
        assert result["content"] == [{"type": "text", "text": "1 and 1 roots"}]
        again = await client.ask(4, "tools/call", {**params, **more})
        assert again["error"]["code"] == -32602

    run(work())


Call = Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]


def ask_twice(work: Callable[[Client, Call], Awaitable[None]]) -> None:
    """Run a server one of whose handlers asks two things at once, and says when it ends."""

    async def session() -> None:
        server = Server("twice", "1", revision=LATEST, plain=True)

        @server.on("tools/call")
        async def call(params: Any, context: Context) -> Any:
            try:
                answers = await asyncio.gather(*(context.ask({"method": "roots/list"}) for _ in range(2)))
            finally:
                ended.append(params["arguments"])
            return {"content": [{"type": "text", "text": str(len(answers))}]}

        client = Client(server)
        await work(client, lambda number, more: client.ask(number, "tools/call", {"name": "a", "_meta": META, **more}))

    ended.clear()
    run(session())


ended: list[Any] = []


def test_a_handler_that_is_stopped_for_another_one_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(client: Client, call: Call) -> None:
        for number in range(1, 4):
            await call(number, {"arguments": number})
        await until(lambda: ended == [1], LONGEST_S)

    monkeypatch.setattr(parking, "_MOST", 2)
    ask_twice(work)
    assert caplog.messages.count("2 handlers wait for their clients already: the oldest is stopped for another") == 1


def test_who_answers_a_part_is_asked_the_rest_again() -> None:
    async def work(client: Client, call: Call) -> None:
        asked = (await call(1, {"arguments": 1}))["result"]
        first, second = asked["inputRequests"]
        wrong = {"requestState": asked["requestState"], "inputResponses": {first: ROOTS, second: 5}}
        assert (await call(2, {"arguments": 1, **wrong}))["error"]["code"] == -32602
        half = {**wrong, "inputResponses": {first: ROOTS}}
        asked = (await call(3, {"arguments": 1, **half}))["result"]
        assert list(asked["inputRequests"]) == [second]
        rest = {"requestState": asked["requestState"], "inputResponses": {second: ROOTS}}
        assert (await call(4, {"arguments": 1, **rest}))["result"]["content"] == [{"type": "text", "text": "2"}]

    ask_twice(work)


def test_no_handler_waits_for_a_client_that_has_gone() -> None:
    async def work(client: Client, call: Call) -> None:
        await call(1, {"arguments": 1})
        await client.transport.close()
        await until(lambda: ended == [1])

    ask_twice(work)


def test_a_state_is_good_in_its_session_alone() -> None:
    async def work() -> None:
        server = make(LATEST)
        params: dict[str, Any] = {"name": "ask", "_meta": META}
        asked = (await Client(server).ask(1, "tools/call", params))["result"]
        more = {"requestState": asked["requestState"], "inputResponses": dict.fromkeys(asked["inputRequests"], ROOTS)}
        other = await Client(server).ask(1, "tools/call", {**params, **more})
        assert other["error"]["code"] == -32602

    run(work())


def test_more_handlers_than_may_wait_stop_the_oldest() -> None:
    async def work(client: Client, call: Call) -> None:
        for number in range(257):
            await call(number, {"arguments": number})
        await until(lambda: ended == [0])

    ask_twice(work)


@pytest.mark.parametrize("failure", [asyncio.CancelledError(), ValueError("odd")])
@pytest.mark.parametrize("revision", REVISIONS[-2:])
def test_whatever_a_handler_raises_is_answered(revision: str, failure: BaseException) -> None:
    async def work() -> None:
        def fail(params: Any, context: Context) -> Any:
            raise failure

        server = Server("fails", "1", revision=revision, handlers={"tools/call": fail})
        client = Client(server)
        if revision != LATEST:
            await client.ask(0, "initialize", {})
        error = (await client.ask(1, "tools/call", {"name": "a", "_meta": META}))["error"]
        assert (error["code"], type(failure).__name__ in error["message"]) == (-32603, True)

    run(work())


@pytest.mark.parametrize("data", [{1}, {"a": object()}])
def test_the_data_of_an_error_is_json(data: Any) -> None:
    with pytest.raises(TypeError):
        McpError(-32000, "odd", data)


def test_a_question_that_the_client_did_not_declare_is_refused_by_the_code_for_that() -> None:
    async def work() -> None:
        client = Client(make(LATEST))
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": {}}
        error = (await client.ask(1, "tools/call", {"name": "ask", "_meta": meta}))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"roots": {}}})

    run(work())


def test_whoever_listens_hears_of_changes_until_it_cancels() -> None:
    async def work() -> None:
        server = make(LATEST)
        client = Client(server)
        wanted = {"resourceSubscriptions": [NOTE], "promptsListChanged": True}
        client.send(7, "subscriptions/listen", {"notifications": wanted, "_meta": META})
        await until(client.notices, LONGEST_S)
        assert client.heard[0]["params"]["notifications"] == {"resourceSubscriptions": [NOTE]}
        server.notify("notifications/resources/updated", {"uri": "notes://other"})
        server.notify("notifications/tools/list_changed")
        server.notify("notifications/resources/updated", {"uri": f"{NOTE}/part"})
        await until(lambda: len(client.heard) == 2, LONGEST_S)
        assert client.heard[1]["params"]["uri"] == f"{NOTE}/part"
        assert client.heard[1]["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 7}
        client.tell("notifications/cancelled", {"requestId": 7})
        await client.ask(8, "server/discover", {"_meta": META})
        server.notify("notifications/resources/updated", {"uri": NOTE})
        await client.ask(9, "server/discover", {"_meta": META})
        assert len(client.notices()) == 2

    run(work())


@pytest.mark.parametrize("wanted", [None, [], {"resourceSubscriptions": NOTE}, {"toolsListChanged": "yes"}])
def test_a_filter_that_is_none_is_refused(wanted: Any) -> None:
    async def work() -> None:
        client = Client(make(LATEST))
        answer = await client.ask(7, "subscriptions/listen", {"notifications": wanted, "_meta": META})
        assert answer["error"]["code"] == -32602

    run(work())


def test_a_cancellation_of_what_cannot_be_an_id_is_ignored() -> None:
    async def main() -> None:
        client = Client(make(LATEST))
        wanted = {"toolsListChanged": True}
        client.send(7, "subscriptions/listen", {"notifications": wanted, "_meta": META})
        await until(lambda: len(client.heard) == 1)
        client.tell("notifications/cancelled", {"requestId": [7]})
        assert "tools" in (await client.ask(8, "tools/list", {"_meta": META}))["result"]

    run(main())


def test_a_message_that_is_none_is_not_refused_under_the_id_of_a_call_that_is_under_way() -> None:
    async def main() -> None:
        client = Client(make(LATEST))
        client.send(5, "tools/call", {"name": "hang", "arguments": {}, "_meta": META})
        client.transport.send([Frame(b'{"jsonrpc":"2.0","id":5,"method":7}\n', "request", b"5", "x")])
        client.transport.send([Frame(b'{"jsonrpc":"2.0","id":6,"method":7}\n', "request", b"6", "x")])
        await until(lambda: client.heard)
        assert [one.get("id") for one in client.heard if one.get("id") is not None] == [6]
        await client.transport.close()

    run(main())


def test_a_cancelled_request_is_not_answered() -> None:
    async def work() -> None:
        client = Client(make("2025-06-18"))
        info = {"name": "a", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        await client.ask(1, "initialize", params)
        client.send(2, "tools/call", {"name": "hang"})
        client.tell("notifications/cancelled", {"requestId": 2})
        await client.ask(3, "ping", {})
        assert [one["id"] for one in client.heard] == [1, 3]

    run(work())


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
@pytest.mark.parametrize("spoken", REVISIONS)
def test_clients_of_every_revision_are_served(spoken: str, revision: str) -> None:
    async def work() -> None:
        server = make(spoken)
        told: list[Any] = []

        async def roots() -> Any:
            return load(revision).ListRootsResult(**ROOTS)

        options: dict[str, Any] = {"policy": "translate", "roots": roots, "timeout_s": LONGEST_S}
        async with dragoman.connect(server.connect, revision, **options) as client:  # type: ignore[call-overload]
            assert [tool.name async for tool in client.tools()] == ["count", "ask", "hang"]
            await client.call("count", progress=told.append)
            asked = await client.call("ask")
            assert asked.content[0].text == "1 and 1 roots"
        assert [one.progress for one in told] == [1, 2, 3]

    run(work())


def test_a_handler_that_fails_says_no_secret() -> None:
    async def work() -> None:
        async with dragoman.connect(make("2025-06-18").connect, "2025-06-18") as client:
            with pytest.raises(McpError) as caught:
                await client.call("fail")
            assert (caught.value.code, caught.value.message) == (-32603, "the server's handler failed: RuntimeError")

    run(work())


def test_a_result_that_is_not_valid_does_not_leave() -> None:
    async def work() -> None:
        async with dragoman.connect(make("2025-06-18").connect, "2025-06-18") as client:
            with pytest.raises(McpError, match="/result/content/0/text: expected a string, found nothing"):
                await client.call("odd")

    run(work())


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("tools/lst", "2025-11-25 has no method 'tools/lst' that a server handles"),
        ("initialize", "2025-11-25 has no method 'initialize' that a server handles"),
        ("roots/list", "2025-11-25 has no method 'roots/list' that a server handles"),
    ],
)
def test_a_handler_for_what_there_is_not_is_an_error(method: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Server("a", "1", handlers={method: lambda params, context: {}})


def test_two_handlers_of_one_method_are_an_error() -> None:
    server = Server("a", "1", revision="2024-11-05")
    server.on(v2024_11_05.PingRequest)(lambda params, context: {})
    with pytest.raises(ValueError, match="ping has a handler already"):
        server.on("ping")(lambda params, context: {})


def test_a_notification_that_was_not_announced_is_an_error() -> None:
    with pytest.raises(ValueError, match="name it in `notifies`"):
        Server("a", "1").notify("notifications/tools/list_changed")
    with pytest.raises(ValueError, match="has no notification 'tools/list'"):
        Server("a", "1", notifies=["tools/list"])


def test_a_revision_that_there_is_not_is_an_error() -> None:
    with pytest.raises(UnsupportedRevision):
        Server("a", "1", revision="2023-01-01")


# What servers that stand for others' programs need


def test_it_says_more_of_itself_if_it_has_more_to_say() -> None:
    async def work() -> None:
        async with dragoman.connect(Server("a", "1", about={"title": "A server"}).connect) as client:
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.title) == ("a", "A server")

    run(work())


def test_a_capability_that_is_an_object_is_declared_as_one_and_may_have_more_members() -> None:
    requests = {"requests": {"tools": {"call": {}}}}
    handlers = {"tasks/list": lambda params, context: {"tasks": []}}
    server = Server(
        "a", "1", revision="2025-11-25", handlers=handlers, declares={"tasks": requests, "experimental": {}}
    )
    assert server.capabilities == {"tasks": {"list": {}, **requests}, "experimental": {}}


@pytest.mark.parametrize(("revision", "message"), [("2024-11-05", None), ("2025-03-26", "half")])
def test_progress_has_a_message_where_the_revision_has_one(revision: str, message: str | None) -> None:
    async def call(params: Any, context: Any) -> dict[str, Any]:
        context.progress(1, 2, "half")
        return {"content": []}

    async def work() -> None:
        client = Client(Server("a", "1", revision=revision, handlers={"tools/call": call}))
        await client.ask(0, "initialize", opening(revision))
        await client.ask(1, "tools/call", {"name": "x", "_meta": {"progressToken": "p"}})
        (told,) = [one["params"] for one in client.heard if one.get("method") == "notifications/progress"]
        assert told.get("message") == message

    run(work())


def opening(revision: str) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def test_a_question_may_be_asked_without_a_look_at_what_the_client_declared() -> None:
    async def call(params: Any, context: Any) -> dict[str, Any]:
        roots = await context.ask({"method": "roots/list"}, anyway=params.name == "anyway")
        return {"content": [{"type": "text", "text": str(len(roots.roots))}]}

    async def work() -> None:
        client = Client(Server("a", "1", revision="2025-06-18", handlers={"tools/call": call}))
        await client.ask(0, "initialize", opening("2025-06-18"))
        refused = await client.ask(1, "tools/call", {"name": "properly"})
        assert "roots" in refused["error"]["message"]
        client.send(2, "tools/call", {"name": "anyway"})
        await until(lambda: any(one.get("id") == "ask-1" for one in client.heard), LONGEST_S)
        client.transport.send([result_frame(b'"ask-1"', {"roots": []})])
        assert (await client.answer(2))["result"]["content"][0]["text"] == "0"

    run(work())


def test_a_plain_server_takes_and_gives_json_that_nobody_checks() -> None:
    seen: list[Any] = []

    def call(params: Any, context: Any) -> dict[str, Any]:
        seen.append(params)
        return {"content": "wrong"}

    async def work() -> None:
        client = Client(Server("a", "1", handlers={"tools/call": call}, plain=True))
        await client.ask(0, "initialize", opening("2025-11-25"))
        assert (await client.ask(1, "tools/call", {"name": 5}))["result"] == {"content": "wrong"}

    run(work())
    assert seen == [{"name": 5}]


PLAIN = """
import asyncio, sys
from dragoman.server import Context, Server, parking
from dragoman.transports.memory import connect_pair

async def main():
    server = Server("a", "1", handlers={"tools/list": lambda params, context: {"tools": []}}, plain=True)
    near, far = connect_pair()
    asyncio.ensure_future(server.serve_directly(far))
    heard = asyncio.get_running_loop().create_future()
    class Hears:
        def data_received(self, data): heard.set_result(data)
        def ended(self, reason): pass
    near.start_raw(Hears())
    near.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\\n')
    assert b'"capabilities":{"tools":{}}' in await heard

asyncio.run(main())
assert "pydantic" not in sys.modules
"""


def test_a_plain_server_loads_no_models() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_result_may_say_itself_how_long_it_may_be_kept() -> None:
    def list_tools(params: Any, context: Any) -> dict[str, Any]:
        return {"tools": [], "ttlMs": 5, "cacheScope": "public"}

    async def work() -> None:
        client = Client(Server("a", "1", revision=LATEST, handlers={"tools/list": list_tools}))
        result = (await client.ask(1, "tools/list", {"_meta": META}))["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (5, "public")

    run(work())


def test_a_client_that_is_served_directly_gets_the_servers_revision() -> None:
    async def work() -> None:
        near, far = connect_pair()
        serving = asyncio.ensure_future(make("2025-06-18").serve_directly(far))
        with pytest.raises(RemoteProtocolError, match="expected revision 2024-11-05, found 2025-06-18"):
            async with dragoman.connect(lambda: near, revision="2024-11-05"):
                pass
        await serving

    run(work())


@pytest.mark.parametrize(("revision", "method"), [("2025-11-25", "server/discover"), ("2026-07-28", "initialize")])
def test_a_client_of_the_other_era_is_told_that_there_is_no_such_method(revision: str, method: str) -> None:
    async def work() -> None:
        answer = await Client(make(revision)).ask(0, method, {})
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32601, f"there is no method '{method}'")

    run(work())
