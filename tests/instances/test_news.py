"""Who listens at one instance hears of changes that a server told another one."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

import pytest

from dragoman.core.envelope import Frame, notification_frame
from dragoman.instances.news import News
from tests.cli.test_listen import Listening
from tests.instances.test_several import CALL, META, instances, is_open, open_session, redis, store
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

__all__ = ["store"]

TELLS = """
import json, sys
def say(**frame): print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)
told = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        say(id=asked["id"], result={"protocolVersion": "2025-11-25", "capabilities": told,
            "serverInfo": {"name": "tells", "version": "1"}})
    elif "id" in asked:
        if asked["method"] == "tools/call":
            say(method="notifications/tools/list_changed")
            say(method="notifications/resources/updated", params={"uri": "a:1", "title": "secret"})
            say(method="notifications/resources/updated", params={"uri": "a:2"})
        tools = [{"name": "tool_1", "inputSchema": {"type": "object"}}]
        say(id=asked["id"], result={"tools": tools} if asked["method"] == "tools/list" else {"content": []})
"""
SERVER = [sys.executable, "-S", "-c", TELLS]
LISTS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def headers_of(method: str, **more: str) -> dict[str, str]:
    named = {"Mcp-Name": "tool_1"} if method == "tools/call" else {}
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **named,
        **more,
    }


def change(proxy: Listening, **headers: str) -> None:
    """Call a tool, as a client without a handshake: its server tells of changes."""
    frame = {**CALL, "params": {"name": "tool_1", "arguments": {}, "_meta": META}}
    given = {name.replace("-", "_"): value for name, value in headers_of("tools/call", **headers).items()}
    assert "result" in proxy.post(frame, **given)[2]


class Heard:
    """What comes on a stream of events."""

    def __init__(self, stream: http.client.HTTPResponse) -> None:
        self._stream = stream
        self._frames: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for line in self._stream:
                if line.startswith(b"data:") and line[5:].strip():
                    self._frames.put(json.loads(line[5:]))
        except (OSError, ValueError, AttributeError):
            return

    def next(self) -> dict[str, Any]:
        return self._frames.get(timeout=PATIENCE_S)

    def wait(self, method: str, uri: str | None = None) -> dict[str, Any]:
        """Wait for a notification, whatever comes before it."""
        while True:
            frame = self.next()
            if frame.get("method") == method and frame.get("params", {}).get("uri") == uri:
                return frame

    def all(self) -> list[dict[str, Any]]:
        """Give what is there, without waiting."""
        found = []
        while True:
            try:
                found.append(self._frames.get_nowait())
            except Empty:
                return found


@contextmanager
def stream(proxy: Listening, verb: str, body: str | None, headers: dict[str, str]) -> Iterator[Heard]:
    where = urlsplit(proxy.url)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE_S)) as connection:
        connection.connect()
        wire = connection.sock
        connection.request(verb, where.path, body, headers)
        answer = connection.getresponse()
        assert answer.status == 200
        yield Heard(answer)
        assert connection.sock is not None or answer.fp is not None
        wire.shutdown(socket.SHUT_RDWR)  # whoever reads has the stream, and closing it would wait for what comes next
        answer.close()


@contextmanager
def listen(proxy: Listening, **headers: str) -> Iterator[Heard]:
    """Listen as a client without a handshake."""
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a:1"]}
    params = {"notifications": wanted, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params})
    with stream(proxy, "POST", body, headers_of("subscriptions/listen", **headers)) as heard:
        acknowledged = heard.next()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == wanted
        yield heard


def test_who_listens_hears_what_a_server_told_another_instance(store: list[str]) -> None:
    with instances(3, *store, server=SERVER) as proxies, listen(proxies[0]) as first, listen(proxies[1]) as second:
        change(proxies[2])
        for heard in (first, second):
            assert "io.modelcontextprotocol/subscriptionId" in heard.wait(LISTS)["params"]["_meta"]
            assert "title" not in heard.wait(UPDATED, "a:1")["params"]  # no more goes there than which it is
            assert not [frame for frame in heard.all() if frame["params"].get("uri") == "a:2"]


def test_changes_are_heard_again_and_again_from_each_instance(store: list[str]) -> None:
    with instances(3, *store, server=SERVER) as proxies, listen(proxies[0]) as heard:
        for number in (1, 2, 1, 2):
            change(proxies[number])
            heard.wait(UPDATED, "a:1")
            heard.all()


def test_nobody_hears_what_the_server_of_another_principal_told(store: list[str], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada secret-of-ada-0001\nbob secret-of-bob-0001\n")
    tokens.chmod(0o600)
    ada, bob = ({"authorization": f"Bearer secret-of-{name}-0001"} for name in ("ada", "bob"))
    with (
        instances(2, *store, "--auth-token-file", str(tokens), server=SERVER) as proxies,
        listen(proxies[0], **ada) as of_ada,
        listen(proxies[0], **bob) as of_bob,
    ):
        change(proxies[1], **ada)
        of_ada.wait(UPDATED, "a:1")
        assert of_bob.all() == []
        change(proxies[1], **bob)
        of_bob.wait(UPDATED, "a:1")


def test_sessions_that_share_a_server_hear_what_that_of_another_instance_told(store: list[str]) -> None:
    with instances(2, *store, "--scope", "shared", server=SERVER) as proxies:
        here, there = (open_session(proxy) for proxy in proxies)
        asked = {"jsonrpc": "2.0", "id": 9, "method": "resources/subscribe", "params": {"uri": "a:1"}}
        assert "result" in proxies[1].post(asked, mcp_session_id=here)[2]  # by way of the other one
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": here}
        with stream(proxies[1], "GET", None, headers) as heard:
            assert "result" in proxies[0].post(CALL, accept="application/json", mcp_session_id=there)[2]
            heard.wait(LISTS)
            heard.wait(UPDATED, "a:1")


def test_sessions_of_their_own_hear_of_their_own_server_alone(store: list[str]) -> None:
    with instances(2, *store, server=SERVER) as proxies, listen(proxies[0]) as listener:
        here, there = (open_session(proxy) for proxy in proxies)
        with stream(proxies[0], "GET", None, {"Accept": "text/event-stream", "Mcp-Session-Id": here}) as heard:
            assert "result" in proxies[0].post(CALL, accept="application/json", mcp_session_id=there)[2]
            change(proxies[1])
            listener.wait(UPDATED, "a:1")
            assert heard.all() == []


def hear_in_time(heard: Heard, cause: Callable[[], object]) -> None:
    def is_heard() -> bool:
        cause()
        return any(frame.get("method") == LISTS for frame in heard.all())

    wait_until(is_heard)


def test_after_the_store_was_away_listeners_are_told_that_all_may_have_changed(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        running = stack.enter_context(ExitStack())
        url = running.enter_context(redis(tmp_path, port))
        options = ("--store", url, "--instance-listen", "http://127.0.0.1:0")
        proxies = stack.enter_context(instances(2, *options, server=SERVER))
        heard = stack.enter_context(listen(proxies[0]))
        change(proxies[1])
        heard.wait(UPDATED, "a:1")
        running.close()
        wait_until(lambda: not is_open(port))
        heard.all()
        change(proxies[1])  # nobody hears of this
        assert heard.all() == []
        with redis(tmp_path, port):
            heard.wait(LISTS)
            heard.wait(UPDATED, "a:1")
            hear_in_time(heard, lambda: change(proxies[1]))


def test_an_instance_that_hangs_keeps_nobody_from_hearing(store: list[str]) -> None:
    with instances(3, *store, server=SERVER) as proxies, listen(proxies[0]) as heard:
        os.kill(proxies[2].process.pid, signal.SIGSTOP)
        try:
            hear_in_time(heard, lambda: change(proxies[1]))
        finally:
            os.kill(proxies[2].process.pid, signal.SIGCONT)


def test_workers_hear_what_each_other_s_servers_tell() -> None:
    with instances(1, "--workers", "3", server=SERVER) as (proxy,), listen(proxy) as heard:
        for _ in range(12):  # each by a connection of its own, for which the system chooses a worker
            change(proxy)
            heard.wait(UPDATED, "a:1")
            heard.all()


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", '[["a"]]', '[["a", "b", 1]]', '[["a", "x", "y"]]', "9" * 5000])
def test_what_is_no_news_is_none(text: str) -> None:
    from dragoman.instances.news import News

    News().hear(text)


def test_who_listens_through_a_router_hears_of_its_servers(store: list[str], tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    entry = {"command": SERVER[0], "args": SERVER[1:]}
    file.write_text(json.dumps({"mcpServers": {"one": entry}, "dragoman": {"prefix": "clash"}}))
    options = (*store, "--config", str(file))
    with instances(2, *options, server=[]) as proxies, listen(proxies[0]) as heard:
        change(proxies[1])
        heard.wait(LISTS)
        heard.wait(UPDATED, "a:1")


class Wire:
    """What instances say to each other, by memory."""

    def __init__(self) -> None:
        self.others: list[News] = []

    async def tell(self, text: str) -> None:
        for other in self.others:
            other.hear(text)


class Hears:
    """A host that notes what it is told."""

    server_name = ""

    def __init__(self, whose: str) -> None:
        self.whose = whose
        self.heard: list[str | None] = []

    def hear(self, frame: Frame | None) -> None:
        self.heard.append(None if frame is None else frame.method)


def test_a_server_that_tells_of_very_much_takes_nothing_of_the_others_away() -> None:
    async def tell() -> tuple[Hears, Hears]:
        here, there, wire = News(), News(), Wire()
        wire.others.append(there)
        here.begin(wire)  # type: ignore[arg-type]
        ada, bob = Hears("ada"), Hears("bob")
        there.join(ada)
        there.join(bob)
        here.tell(Hears("bob"), [notification_frame(LISTS, None)])
        here.tell(Hears("ada"), [notification_frame(UPDATED, {"uri": f"a:{number}"}) for number in range(1000)])
        await asyncio.sleep(0)
        await here.end()
        return ada, bob

    ada, bob = asyncio.run(tell())
    assert bob.heard == [LISTS]
    assert ada.heard == [None]  # everything may have changed
