"""Several instances, as processes: whatever comes to one is answered by the one that has it."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "tool_1", "arguments": {"path": "p"}}}

ASKS = """
import json, sys
def say(**frame): print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)
calls = {}
for line in sys.stdin:
    told = json.loads(line)
    method = told.get("method")
    if method == "initialize":
        say(id=told["id"], result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "asks", "version": "1"}})
    elif method == "tools/list":
        say(id=told["id"], result={"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        calls[f"q{told['id']}"] = told["id"]
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        say(id=f"q{told['id']}", method="elicitation/create",
            params={"message": "Who?", "mode": "form", "requestedSchema": schema})
    elif method is None and told.get("id") in calls:
        text = told["result"]["content"]["name"]
        say(id=calls.pop(told["id"]), result={"content": [{"type": "text", "text": f"hello {text}"}]})
    elif "id" in told:
        say(id=told["id"], result={})
"""
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def call_newer(proxy: Listening, **params: Any) -> dict[str, Any]:
    """Call the tool that asks, as a client without a handshake."""
    frame = {**CALL, "params": {"name": "ask", "arguments": {}, "_meta": META, **params}}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": "tools/call",
        "mcp_name": "ask",
    }
    answer: dict[str, Any] = proxy.post(frame, **headers)[2]
    return answer


@pytest.fixture(params=["folder", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """The options by which instances find each other."""
    if request.param == "folder":
        yield ["--store", str(tmp_path / "i")]
        return
    with redis(tmp_path) as url:
        yield ["--store", url, "--instance-listen", "http://127.0.0.1:0"]


@contextmanager
def redis(folder: Path, port: int | None = None) -> Iterator[str]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("neither redis-server nor valkey-server is installed")
    port = port or free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_open(port))
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def instances(count: int, *options: str, **more: Any) -> Iterator[list[Listening]]:
    with ExitStack() as stack:
        yield [stack.enter_context(listening(*options, **more)) for _ in range(count)]


def open_session(proxy: Listening) -> str:
    session: str = proxy.post(INITIALIZE)[1]["mcp-session-id"]
    assert proxy.post(INITIALIZED, mcp_session_id=session)[0] == 202
    return session


def end_session(proxy: Listening, session: str) -> int:
    where = urlsplit(proxy.url)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE_S)) as connection:
        connection.request("DELETE", where.path, headers={"Mcp-Session-Id": session})
        with connection.getresponse() as answer:
            return answer.status


def test_a_session_is_served_wherever_its_requests_come(store: list[str]) -> None:
    with instances(3, *store) as proxies:
        session = proxies[0].post(INITIALIZE)[1]["mcp-session-id"]
        assert proxies[1].post(INITIALIZED, mcp_session_id=session)[0] == 202
        for proxy in (*proxies, *proxies):
            status, _, answer = proxy.post(CALL, mcp_session_id=session)
            assert (status, answer["id"]) == (200, 3)
        assert len(proxies[2].post(LIST, mcp_session_id=session)[2]["result"]["tools"]) == 100
        assert end_session(proxies[1], session) == 204
        for proxy in proxies:
            assert proxy.post(CALL, mcp_session_id=session)[0] == 404


def test_a_head_request_that_names_another_instance_holds_nobody_up(store: list[str]) -> None:
    """Its answer has a length and no body; who waits for that waits for ever, and so does what follows."""
    with instances(2, *store) as (first, second):
        head = f"Host: 127.0.0.1\r\nMcp-Session-Id: {open_session(first)}\r\n"
        peer = socket.create_connection(("127.0.0.1", urlsplit(second.url).port), PATIENCE_S)
        peer.sendall(f"HEAD /mcp HTTP/1.1\r\n{head}\r\nGET /healthz HTTP/1.1\r\n{head}\r\n".encode())
        said = b""
        with peer:
            while said.count(b"HTTP/1.1 ") < 2:
                said += (part := peer.recv(4096))
                assert part
        assert said.startswith(b"HTTP/1.1 405 ")


def test_an_answer_that_was_handed_on_says_nothing_twice(store: list[str]) -> None:
    with instances(2, *store) as proxies:
        session = open_session(proxies[0])
        where = urlsplit(proxies[1].url)
        for _ in range(2):  # the second time, instances know the head of such a request
            with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE_S)) as connection:
                headers = {"Content-Type": "application/json", "Mcp-Session-Id": session}
                connection.request("POST", where.path, json.dumps(CALL), headers)
                with connection.getresponse() as answer:
                    names = [name.lower() for name, _ in answer.getheaders()]
            assert sorted(names) == ["content-length", "content-type", "date"]


def test_an_event_stream_comes_through(store: list[str]) -> None:
    with instances(2, *store, server=[sys.executable, "-c", ASKS]) as proxies:
        initialize = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "2025-11-25"}}  # type: ignore[dict-item]
        initialize["params"]["capabilities"] = {"elicitation": {"form": {}}}
        session = proxies[0].post(initialize)[1]["mcp-session-id"]
        proxies[0].post(INITIALIZED, mcp_session_id=session)
        where = urlsplit(proxies[1].url)
        with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE_S)) as connection:
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "Mcp-Session-Id": session,
            }
            connection.request("POST", where.path, json.dumps({**CALL, "params": {"name": "ask"}}), headers)
            stream = connection.getresponse()
            assert stream.getheader("Content-Type") == "text/event-stream"
            question = read_event(stream)
            assert question["method"] == "elicitation/create"
            answer = {"action": "accept", "content": {"name": "Ada"}}
            told = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
            assert proxies[1].post(told, mcp_session_id=session)[0] == 202
            assert read_event(stream)["result"]["content"][0]["text"] == "hello Ada"


def read_event(stream: http.client.HTTPResponse) -> dict[str, Any]:
    while True:
        line = stream.readline()
        assert line, "the stream is over"
        if line.startswith(b"data:") and line[5:].strip():
            found: dict[str, Any] = json.loads(line[5:])
            return found


def test_an_answer_comes_to_where_its_call_waits(store: list[str]) -> None:
    with instances(3, *store, server=[sys.executable, "-c", ASKS]) as proxies:
        for first, second in ((0, 1), (1, 2), (2, 0)):
            asked = call_newer(proxies[first])["result"]
            (name,) = asked["inputRequests"]
            answers = {name: {"action": "accept", "content": {"name": "Ada"}}}
            told = call_newer(proxies[second], inputResponses=answers, requestState=asked["requestState"])
            assert told["result"]["content"][0]["text"] == "hello Ada"


def test_what_an_instance_had_that_was_killed_is_gone(store: list[str]) -> None:
    with instances(2, *store) as proxies:
        session = open_session(proxies[0])
        assert proxies[1].post(CALL, mcp_session_id=session)[0] == 200
        proxies[0].process.send_signal(signal.SIGKILL)
        proxies[0].process.wait(PATIENCE_S)
        assert proxies[1].post(CALL, mcp_session_id=session)[0] in (404, 502)  # it may have been sent before
        assert proxies[1].post(CALL, mcp_session_id=session)[0] == 404


def test_an_instance_that_ends_serves_its_sessions_to_the_last(store: list[str]) -> None:
    with instances(2, *store, "--shutdown-delay", "600") as proxies:
        session = open_session(proxies[0])
        proxies[0].process.send_signal(signal.SIGTERM)
        assert proxies[1].post(CALL, mcp_session_id=session)[0] == 200


def test_secrets_are_asked_for_by_the_instance_that_has_the_session(store: list[str], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada secret-of-ada-0001\nbob secret-of-bob-0001\n")
    tokens.chmod(0o600)
    ada, bob = ({"authorization": f"Bearer secret-of-{name}-0001"} for name in ("ada", "bob"))
    with instances(2, *store, "--auth-token-file", str(tokens)) as proxies:
        session = proxies[0].post(INITIALIZE, **ada)[1]["mcp-session-id"]
        assert proxies[1].post(INITIALIZED, mcp_session_id=session, **ada)[0] == 202
        assert proxies[1].post(CALL, mcp_session_id=session, **bob)[0] == 404
        assert proxies[1].post(CALL, mcp_session_id=session)[0] == 401
        assert proxies[1].post(CALL, mcp_session_id=session, **ada)[0] == 200


def test_while_the_store_is_away_own_sessions_go_on(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        running = stack.enter_context(ExitStack())
        url = running.enter_context(redis(tmp_path, port))
        options = ("--store", url, "--instance-listen", "http://127.0.0.1:0")
        proxies = stack.enter_context(instances(3, *options))
        sessions = [open_session(proxy) for proxy in proxies]
        assert proxies[1].post(CALL, mcp_session_id=sessions[0])[0] == 200
        running.close()
        wait_until(lambda: not is_open(port))
        for proxy, session in zip(proxies, sessions, strict=True):
            assert proxy.post(CALL, mcp_session_id=session)[0] == 200
        assert proxies[1].post(CALL, mcp_session_id=sessions[0])[0] == 200  # known from before
        status, headers, _ = proxies[1].post(CALL, mcp_session_id=sessions[2])
        assert (status, headers["retry-after"]) == (503, "5")
        with redis(tmp_path, port):
            wait_until(lambda: proxies[1].post(CALL, mcp_session_id=sessions[2])[0] == 200)


def test_a_store_that_has_lost_what_it_knew_takes_nobody_for_gone(tmp_path: Path) -> None:
    """Until each instance has had time to say that it is there; after 404 a client would give its session up."""
    port = free_port()
    with ExitStack() as stack:
        running = stack.enter_context(ExitStack())
        url = running.enter_context(redis(tmp_path, port))
        options = ("--store", url, "--instance-listen", "http://127.0.0.1:0")
        proxies = stack.enter_context(instances(2, *options))
        session = open_session(proxies[0])
        running.close()
        wait_until(lambda: not is_open(port))
        with redis(tmp_path, port):
            statuses = [503]

            def is_served() -> bool:
                statuses.append(proxies[1].post(CALL, mcp_session_id=session)[0])
                return statuses[-1] != 503

            wait_until(is_served)
        assert statuses[-1] == 200
