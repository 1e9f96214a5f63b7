"""Five real servers of the five revisions behind one client: names that clash, whole lists, and questions of servers.

The client is made here, and says what no SDK would. `test_router_clients.py` has those of the SDKs.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.matching import REVISIONS
from tests.peers.router_visits import LETTERS, SPOKEN, commands, write_config
from tests.peers.validity import NEWER, complaints
from tests.peers.visits import SELECTION, frames_in, needs_peers, proxy_command

pytestmark = needs_peers

CLIENTS: Final = (*REVISIONS.values(), NEWER) if SELECTION == "full" else ("2024-11-05", NEWER)
LIMIT_S: Final = 120
TEXT_URI: Final = "file:///home/user/document.txt"
META: Final = "io.modelcontextprotocol/"
Body = dict[str, Any]


class Client:
    """A client that says what it is told to, and keeps what it got."""

    def __init__(self, revision: str, path: Path) -> None:
        command = proxy_command("--config", write_config(path, commands(path.parent)))
        self.folder, self.log = path.parent, path.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.watchdog = threading.Timer(LIMIT_S, self.process.kill)
        self.watchdog.start()
        self.revision = revision
        self.record: list[Body] = []
        self.asked: list[Body] = []
        self.capabilities: Body = {"roots": {}, "sampling": {}}
        if revision >= "2025-06-18":
            self.capabilities["elicitation"] = {}
        self._last = 0

    @property
    def is_newer(self) -> bool:
        return self.revision == NEWER

    def say(self, body: Body) -> None:
        assert self.process.stdin is not None
        frame = {"jsonrpc": "2.0", **body}
        self.record.append({"sent": frame})
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def next(self) -> Body:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text(encoding="utf-8")
        frame: Body = json.loads(line)
        self.record.append({"got": frame})
        return frame

    def read_until(self, is_it: Callable[[Body], object]) -> Body:
        while True:
            frame = self.next()
            if "method" in frame and "id" in frame:
                self.asked.append(frame)
                self.say({"id": frame["id"], "result": answer_to(frame["method"])})
            elif is_it(frame):
                return frame

    def ask(self, method: str, **params: Any) -> Body:
        """Ask, and answer what is asked back, in the way of the revision."""
        self._last += 1
        number = self._last
        if self.is_newer:
            own = {f"{META}protocolVersion": NEWER, f"{META}clientCapabilities": self.capabilities}
            params = {**params, "_meta": {**own, **params.get("_meta", {})}}
        self.say({"id": number, "method": method, "params": params})
        answer = self.read_until(lambda frame: frame.get("id") == number)
        result: Body = answer.get("result", {})
        if result.get("resultType") != "input_required":
            return answer
        asked = result.get("inputRequests") or {}
        self.asked += asked.values()
        given = {"inputResponses": {key: answer_to(one["method"]) for key, one in asked.items()}}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return self.ask(method, **{**params, **given, **state})

    def open(self) -> Body:
        if self.is_newer:
            return self.ask("server/discover")["result"]
        info = {"name": "raw", "version": "1"}
        opened = self.ask("initialize", protocolVersion=self.revision, capabilities=self.capabilities, clientInfo=info)
        self.say({"method": "notifications/initialized"})
        result: Body = opened["result"]
        return result

    def list(self, method: str, member: str) -> list[Body]:
        found: list[Body] = []
        params: Body = {}
        while True:
            result = self.ask(method, **params)["result"]
            assert "_meta" not in result or "dragoman/missing" not in result["_meta"], result["_meta"]
            found += result[member]
            if "nextCursor" not in result:
                return found
            params = {"cursor": result["nextCursor"]}

    def call(self, tool: str, **arguments: Any) -> str:
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        return str(answer["result"]["content"][0]["text"]) if "result" in answer else str(answer["error"])

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(LIMIT_S)
        self.process.stdout.close()
        self.watchdog.cancel()
        return code


def answer_to(method: str) -> Body:
    match method:
        case "roots/list":
            return {"roots": [{"uri": "file:///home/user", "name": "home"}]}
        case "sampling/createMessage":
            return {"role": "assistant", "content": {"type": "text", "text": "I say hello"}, "model": "m"}
        case "elicitation/create":
            return {"action": "accept", "content": {"color": "r"}}
        case _:
            return {}


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    one = Client(request.param, tmp_path_factory.mktemp("router") / "mcp.json")
    try:
        one.open()
        yield one
    finally:
        code = one.close()
    assert code == 0
    assert list(complaints(one.record, "client", request.param)) == []
    for name, revision in SPOKEN.items():
        assert list(complaints(frames_in(one.folder / name), "server", revision)) == [], name


def names() -> list[str]:
    return list(LETTERS)


def uri_of(name: str, uri: str) -> str:
    """Give what a resource is known as that several servers have."""
    return f"{name.lower()}+{uri}"


def test_all_servers_are_listed_and_names_are_stable(client: Client) -> None:
    tools = [tool["name"] for tool in client.list("tools/list", "tools")]
    assert [f"{name}_echo" for name in names()] == [tool for tool in tools if tool.endswith("_echo")]
    assert len(tools) == len(set(tools))
    assert max(map(len, tools)) <= 64
    assert [tool["name"] for tool in client.list("tools/list", "tools")] == tools


def test_every_page_of_every_server_is_there(client: Client) -> None:
    uris = [one["uri"] for one in client.list("resources/list", "resources")]
    assert len(uris) == len(set(uris))
    assert {uri_of(name, TEXT_URI) for name in names()} <= set(uris)
    # The release of 2024-11-05 never sees the cursor: it gives its first page for ever.
    assert {uri_of(name, "custom://unique-id-12345") for name in names()[1:]} <= set(uris)
    prompts = [one["name"] for one in client.list("prompts/list", "prompts")]
    assert {f"{name}_greet" for name in names()} <= set(prompts)
    templates = [one["uriTemplate"] for one in client.list("resources/templates/list", "resourceTemplates")]
    assert templates == [uri_of(name, "weather://{city}") for name in names()]


def test_calls_prompts_and_resources_reach_their_servers(client: Client) -> None:
    client.list("tools/list", "tools")
    for name in names():
        assert "hello" in client.call(f"{name}_echo", say="hello")
        got = client.ask("prompts/get", name=f"{name}_greet", arguments={"who": name})["result"]
        assert name in json.dumps(got["messages"])
        read = client.ask("resources/read", uri=uri_of(name, TEXT_URI))["result"]
        assert read["contents"][0]["text"] == "Once upon a time"
        ref = {"type": "ref/prompt", "name": f"{name}_greet"}
        completed = client.ask("completion/complete", ref=ref, argument={"name": "who", "value": "w"})
        assert "values" in completed["result"]["completion"], completed


def test_each_server_knows_only_what_was_meant_for_it(client: Client) -> None:
    before = {name: json.loads(client.call(f"{name}_server_saw")) for name in names()}
    client.call("r2026_echo", say="hello")
    after = {name: json.loads(client.call(f"{name}_server_saw")) for name in names()}
    calls = {name: after[name].get("calls", 0) - before[name].get("calls", 0) for name in names()}
    assert calls["r2026"] == 2


def test_questions_come_from_the_server_that_was_called(client: Client) -> None:
    for name in names():
        client.asked.clear()
        told = client.call(f"{name}_ask_sampling", kind="text")
        assert "I say hello" in told, told
        assert [one["method"] for one in client.asked] == ["sampling/createMessage"]
    if client.revision >= "2025-06-18":
        for name in ("r2025C", "r2025D", "r2026"):
            client.asked.clear()
            client.call(f"{name}_ask_user", kind="form")
            (asked,) = client.asked
            assert asked["params"]["message"].startswith(f"{name}: ")
