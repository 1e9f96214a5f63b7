"""Tasks of either form, made at one instance and asked for at another one, also when the first is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_listen import INITIALIZE, Listening
from tests.instances.test_adoption import kill
from tests.instances.test_several import INITIALIZED, META, instances, store
from tests.support.lines import Lines
from tests.support.waiting import PATIENCE_S, wait_until

__all__ = ["store"]

SERVER = """
import http.server, json, sys, threading, uuid
TASKS = "io.modelcontextprotocol/tasks"
is_newer, listens = sys.argv[1] == "newer", sys.argv[2:] == ["listen"]
tasks, changed = {}, threading.Condition()

def answer(method, params):
    kept = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if is_newer else {}
    tool, finish = ({"name": name, "inputSchema": {"type": "object"}} for name in ("run", "finish"))
    offered = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    if method == "initialize" and not is_newer:
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": offered},
            "serverInfo": {"name": "s", "version": "1"}}
    if method == "server/discover" and is_newer:
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {TASKS: {}}}, **kept}
    if method == "tools/list":
        return {"tools": [tool if is_newer else {**tool, "execution": {"taskSupport": "optional"}}, finish], **kept}
    if method == "tools/call" and params["name"] == "finish":
        tasks.update({task_id: "completed" for task_id, status in tasks.items() if status == "working"})
        changed.notify_all()
        return {**({"resultType": "complete"} if is_newer else {}), "content": []}
    if method == "tools/call":
        task_id = uuid.uuid4().hex
        tasks[task_id] = "working"
        return {"resultType": "task", **about(task_id)} if is_newer else {"task": about(task_id)}
    if method == "ping":
        return {}
    task_id = params.get("taskId")
    if task_id not in tasks:
        return None
    if method == "tasks/get":
        done = {"result": {"resultType": "complete", **DONE}} if is_newer and tasks[task_id] == "completed" else {}
        return {**about(task_id), **({"resultType": "complete"} if is_newer else {}), **done}
    if method == "tasks/cancel":
        tasks[task_id] = "cancelled"
        changed.notify_all()
        return {"resultType": "complete"} if is_newer else about(task_id)
    if method == "tasks/result" and not is_newer:
        changed.wait_for(lambda: tasks[task_id] != "working")
        if tasks[task_id] == "cancelled":
            return None
        return {**DONE, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": task_id}}}

DONE = {"content": [{"type": "text", "text": "done"}]}

def about(task_id):
    when = "2026-01-01T00:00:00Z"
    lasts = {"ttlMs": None, "pollIntervalMs": 20} if is_newer else {"ttl": None, "pollInterval": 20}
    return {"taskId": task_id, "status": tasks[task_id], "createdAt": when, "lastUpdatedAt": when, **lasts}

def take(told):
    if "id" not in told:
        return b""
    with changed:
        found = answer(told["method"], told.get("params") or {})
    outcome = {"error": {"code": -32602, "message": "not here"}} if found is None else {"result": found}
    if told["method"] in ("initialize", "server/discover") and found is None:
        outcome["error"]["code"] = -32601
    return json.dumps({"jsonrpc": "2.0", "id": told["id"], **outcome}).encode()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = take(told)
        self.send_response(200 if body else 202)
        if told["method"] == "initialize":
            self.send_header("Mcp-Session-Id", uuid.uuid4().hex)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_DELETE = do_GET

if listens:
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(served.server_port, flush=True)
    served.serve_forever()

def tell(line):
    if body := take(json.loads(line)):
        sys.stdout.write(body.decode() + "\\n")
        sys.stdout.flush()

for line in sys.stdin:
    threading.Thread(target=tell, args=(line,), daemon=True).start()
"""

ERAS = ("older", "newer")


def command(era: str) -> list[str]:
    """Give the command of a server, which has tasks as long as its process lives."""
    return [sys.executable, "-S", "-c", SERVER, era]


@contextmanager
def over_http(era: str) -> Iterator[tuple[str, str]]:
    """Start one that listens, and give the options by which a proxy finds it."""
    with subprocess.Popen([*command(era), "listen"], stdout=subprocess.PIPE) as process:
        try:
            yield "--url", f"http://127.0.0.1:{Lines(process.stdout, PATIENCE_S).read().decode().strip()}/mcp"
        finally:
            process.kill()


class Client:
    """Has tasks of its era: in a session, or by requests of their own."""

    def __init__(self, era: str, proxy: Listening) -> None:
        self._is_newer = era == "newer"
        self._headers: dict[str, str] = {}
        if not self._is_newer:
            params = {**INITIALIZE["params"], "protocolVersion": "2025-11-25"}  # type: ignore[dict-item]
            self._headers["mcp_session_id"] = proxy.post({**INITIALIZE, "params": params})[1]["mcp-session-id"]
            assert proxy.post(INITIALIZED, **self._headers)[0] == 202

    def post(self, proxy: Listening, method: str, **params: Any) -> tuple[int, Any]:
        headers = {"accept": "application/json, text/event-stream", **self._headers}
        if self._is_newer:
            extensions = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            params["_meta"] = {**META, "io.modelcontextprotocol/clientCapabilities": extensions}
            headers |= {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
            headers["mcp_name"] = params.get("name", params.get("taskId"))
        status, _, answer = proxy.post({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, **headers)
        return status, answer

    def ask(self, proxy: Listening, method: str, **params: Any) -> Any:
        status, answer = self.post(proxy, method, **params)
        assert (status, "result" in answer) == (200, True), answer
        return answer["result"]

    def create(self, proxy: Listening) -> str:
        asked = {"name": "run", "arguments": {}}
        created = self.ask(proxy, "tools/call", **asked, **({} if self._is_newer else {"task": {}}))
        task_id: str = (created if self._is_newer else created["task"])["taskId"]
        return task_id

    def status(self, proxy: Listening, task_id: str) -> str:
        found: str = self.ask(proxy, "tasks/get", taskId=task_id)["status"]
        return found

    def result(self, proxy: Listening, task_id: str) -> Any:
        """Have all tasks of the server end, and give what has come of one."""
        self.ask(proxy, "tools/call", name="finish", arguments={})
        if self._is_newer:
            return self.ask(proxy, "tasks/get", taskId=task_id)["result"]["content"]
        return self.ask(proxy, "tasks/result", taskId=task_id)["content"]


@pytest.mark.parametrize(("client", "server"), [("older", "older"), ("newer", "older"), ("older", "newer")])
def test_a_task_is_cancelled_at_another_instance(store: list[str], client: str, server: str) -> None:
    """Each has a server of its own, which knows its own tasks alone."""
    with instances(3, *store, server=command(server)) as proxies:
        asks = Client(client, proxies[0])
        task, other = asks.create(proxies[1]), asks.create(proxies[1])
        assert task != other
        asks.ask(proxies[2], "tasks/cancel", taskId=task)
        for proxy in proxies:
            assert asks.status(proxy, task) == "cancelled"
            assert asks.status(proxy, other) == "working"


@pytest.mark.parametrize("era", ERAS)
def test_a_task_is_found_after_its_instance_was_killed(store: list[str], era: str) -> None:
    """At a server over HTTP that has it still, though it sees another session."""
    with over_http(era) as behind, instances(3, *store, *behind, server=[]) as proxies:
        asks = Client(era, proxies[0])
        task, other = asks.create(proxies[0]), asks.create(proxies[0])
        kill(proxies[0])
        wait_until(lambda: asks.post(proxies[1], "tasks/get", taskId=task)[0] == 200)
        asks.ask(proxies[2], "tasks/cancel", taskId=other)
        assert asks.status(proxies[1], other) == "cancelled"
        assert asks.result(proxies[2], task) == [{"type": "text", "text": "done"}]
        assert asks.result(proxies[1], task) == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize(("client", "server"), [("newer", "older"), ("older", "newer")])
def test_what_the_proxy_knows_of_a_task_of_the_other_form_is_gone_with_it(
    store: list[str], client: str, server: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("5a" * 32 + "\n")
    keys.chmod(0o600)
    options = (*store, "--state-key-file", str(keys))
    with over_http(server) as behind, instances(2, *options, *behind, server=[]) as proxies:
        asks = Client(client, proxies[0])
        task = asks.create(proxies[0])
        kill(proxies[0])
        wait_until(lambda: asks.post(proxies[1], "tasks/get", taskId=task)[0] == 200)
        _, answer = asks.post(proxies[1], "tasks/get", taskId=task)
        assert answer["error"]["code"] == -32602


def test_a_session_of_a_command_is_over_once_its_instance_has_ended_in_order(store: list[str]) -> None:
    """It is served until then, and 404 has its client initialise again."""
    with instances(2, *store, "--shutdown-delay", "0.5", server=command("older")) as proxies:
        asks = Client("older", proxies[0])
        task = asks.create(proxies[1])
        proxies[0].process.send_signal(signal.SIGTERM)
        assert asks.status(proxies[1], task) == "working"
        proxies[0].process.wait(PATIENCE_S)
        for _ in range(2):
            assert asks.post(proxies[1], "tasks/get", taskId=task)[0] == 404
        again = Client("older", proxies[1])
        assert again.status(proxies[1], again.create(proxies[1])) == "working"
