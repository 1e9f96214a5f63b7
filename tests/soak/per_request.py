"""A client without a handshake for the soak: each request speaks for itself, questions come in results or in tasks.

It asks small and large things, listens and leaves, contradicts itself in headers, and has calls parked, repeated or
made tasks: most it goes on with, some it never comes back to.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from tests.soak.clients import LIMIT_S, shown

REVISION: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"
CAPABILITIES: Final[dict[str, Any]] = {"sampling": {}}
TAKES_TASKS: Final[dict[str, Any]] = {**CAPABILITIES, "extensions": {f"{META}tasks": {}}}
POLL_S: Final = 0.02


class StatelessHttpPeer:
    """A client of `/mcp`, with one connection that it keeps."""

    def __init__(self, port: int, secret: str) -> None:
        self._port = port
        self._shown = shown(secret)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self._number = 0
        self.capabilities = CAPABILITIES

    def post(self, method: str, expected: int = 200, **params: Any) -> dict[str, Any]:
        """Send a request, and give its answer."""
        body, headers = self._write(method, params)
        if expected == 400:
            headers["Mcp-Method"] = "prompts/list"
        self._connection.request("POST", "/mcp", body, headers)
        response = self._connection.getresponse()
        data = response.read()
        assert response.status == expected, (response.status, data[:200])
        if response.getheader("content-type", "").startswith("text/event-stream"):
            lines = [line[5:] for line in data.splitlines() if line.startswith(b"data:") and line[5:].strip()]
            data = lines[-1]
        found: dict[str, Any] = json.loads(data)
        assert found["id"] == self._number, found
        return found

    def listen(self) -> None:
        """Listen until the filter is acknowledged, or refused where nothing changes, and leave."""
        body, headers = self._write("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        with socket.create_connection(("127.0.0.1", self._port), LIMIT_S) as connection:
            head = [f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Length: {len(body)}\r\n"]
            head += [f"{name}: {value}\r\n" for name, value in headers.items()]
            connection.sendall("".join([*head, "\r\n"]).encode() + body)
            said = b""
            while b"acknowledged" not in said and b'"error"' not in said:
                part = connection.recv(65536)
                assert part, said[-200:]
                said += part

    def close(self) -> None:
        """Leave."""
        self._connection.close()

    def _write(self, method: str, params: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
        self._number += 1
        info = {"name": "soak", "version": "1"}
        about = {"protocolVersion": REVISION, "clientInfo": info, "clientCapabilities": self.capabilities}
        given = {**params, "_meta": {META + name: value for name, value in about.items()}}
        body = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": given}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **self._shown}
        headers |= {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
        if named := params.get("name", params.get("taskId")):
            headers["Mcp-Name"] = named
        return body, headers


def visit_without_a_handshake(port: int, secret: str, way: str, chance: random.Random) -> int:
    """Ask a few things; return how many requests were answered.

    Args:
        port: Of the proxy.
        secret: What the client shows; none if empty.
        way: How it is asked in the middle of a call: `park`, `replay` or `task`; not at all if empty.
        chance: Decides what it does.
    """
    peer, answered = StatelessHttpPeer(port, secret), 0
    who = f"who-{chance.random()}"
    try:
        for _ in range(chance.randint(1, 8)):
            match chance.choice(("list", "call", "large", "contradict", "listen", "be asked")):
                case "list":
                    assert len(peer.post("tools/list")["result"]["tools"]) == 100
                case "call":
                    peer.post("tools/call", name="tool_1", arguments={"who": who, "text": "x" * 200})
                case "large":
                    peer.post("tools/call", name="tool_1", arguments={"who": who, "text": "x" * 100_000})
                case "contradict":
                    assert peer.post("tools/list", 400)["error"]["code"] == -32020
                case "listen":
                    peer.listen()
                case "be asked" if way:
                    WAYS[way](peer, who, chance)
            answered += 1
    finally:
        peer.close()
    return answered


def _park(peer: StatelessHttpPeer, who: str, chance: random.Random) -> None:
    """Have a call parked; mostly go on with it, sometimes with what is too late or was used."""
    call: dict[str, Any] = {"name": "tool_1", "arguments": {"who": who, "asks": True}}
    result = peer.post("tools/call", **call)["result"]
    if result["resultType"] == "complete":  # nothing said whose question it was
        assert result["content"][0]["text"] == who, result
        return
    if chance.random() < 0.1:
        return
    answers = _answer(result, who)
    for attempt in range(2):
        went_on = peer.post("tools/call", **call, inputResponses=answers, requestState=result["requestState"])
        if "error" in went_on:
            assert went_on["error"]["code"] == -32602, went_on
            assert attempt or went_on["error"]["data"]["reason"] in ("state-expired", "call-unknown"), went_on
        else:
            assert not attempt, went_on
            assert [block["text"] for block in went_on["result"]["content"]] == [who, who], went_on


def _repeat(peer: StatelessHttpPeer, who: str, chance: random.Random) -> None:
    """Have a call repeated with its answers; sometimes twice, for they are good more than once."""
    call: dict[str, Any] = {"name": "tool_1", "arguments": {"who": who, "asks": True}}
    result = peer.post("tools/call", **call)["result"]
    if result["resultType"] == "complete":
        _check_own(result, who)
        return
    answers = _answer(result, who)
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        went_on = peer.post("tools/call", **call, inputResponses=answers, requestState=result["requestState"])
        if "error" in went_on:
            assert went_on["error"]["data"]["reason"] == "state-expired", went_on
        else:
            _check_own(went_on["result"], who)


def _promote(peer: StatelessHttpPeer, who: str, chance: random.Random) -> None:
    """Have a call become a task, and follow it; sometimes cancel it, sometimes forget it."""
    peer.capabilities = TAKES_TASKS
    task = peer.post("tools/call", name="tool_1", arguments={"who": who, "asks": True})["result"]
    if task["resultType"] == "complete":
        _check_own(task, who)
        return
    task_id, fate = task["taskId"], chance.choice(("follow", "follow", "follow", "cancel", "forget"))
    if fate == "cancel":
        peer.post("tasks/cancel", taskId=task_id)
    while fate != "forget" and task["status"] in ("working", "input_required"):
        answer = peer.post("tasks/get", taskId=task_id)
        if "error" in answer:  # it was kept for a second only
            assert answer["error"]["code"] == -32602, answer
            return
        task = answer["result"]
        if task["status"] == "input_required":
            peer.post("tasks/update", taskId=task_id, inputResponses=_answer(task, who))
        elif task["status"] == "working":
            time.sleep(POLL_S)
    if task["status"] == "completed":
        _check_own(task["result"], who)
    else:
        assert task["status"] == "cancelled" or fate == "forget", task


def _answer(asked: dict[str, Any], who: str) -> dict[str, Any]:
    """Answer what is asked with the caller's word."""
    answer = {"role": "assistant", "model": "soak", "content": {"type": "text", "text": who}}
    return dict.fromkeys(asked["inputRequests"], answer)


def _check_own(result: dict[str, Any], who: str) -> None:
    """See that a result has nobody else's word; where nothing said whose question it was, the server got an error."""
    first, second = (block["text"] for block in result["content"])
    assert first == who, result
    assert second == who or not second.startswith("who-"), result


WAYS: Final[dict[str, Callable[[StatelessHttpPeer, str, random.Random], None]]] = {
    "park": _park,
    "replay": _repeat,
    "task": _promote,
}
