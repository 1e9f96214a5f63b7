"""Instances, servers and a store that are killed while clients call, and what clients may see of it.

Lives here: who is killed, by SIGKILL and every second or so, and clients that come to any instance. A call may fail; it
must not be answered with another one's answer, or come to a server twice, and a session with a server over HTTP must
not be lost. Not here: what the instance that nobody kills holds (`proxies`).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.peers import started
from tests.soak.clients import LIMIT_S
from tests.soak.proxies import DRAGOMAN, IDLE_S, Watched, watched_proxy
from tests.support.ports import free_port

OLDER: Final = "2025-11-25"
NEWER: Final = "2026-07-28"
INSTANCES: Final = 3
PAUSE_S: Final = 1.0
STORE_KILLS_IN: Final = 10
RENEWED_S: Final = IDLE_S / 2
"""A client that was silent for longer may find its session gone, for it counts as idle."""

KEPT_CONNECTIONS: Final = 16
"""How many more the instance that lives may keep, to others and theirs to it: for a minute, longer than it rests."""

PAUSE_BETWEEN_TRIES_S: Final = 0.1
META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "soak", "version": "1"}
EVENT_ID: Final = re.compile(rb"(?m)^id: *(\S+)")


class Lost(Exception):
    """A call that failed, as it may when something is killed; the text says how."""


class Process:
    """A process that is killed now and then, and started again in the same place."""

    def __init__(self, start: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
        self._start = start
        self._running = contextlib.ExitStack()
        self.found: Any = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self.found = self._running.enter_context(self._start())

    def kill(self) -> None:
        """Kill it without a word, and start it again."""
        process = self.found[0] if isinstance(self.found, tuple) else self.found
        process.kill()
        process.wait()
        self._running.close()
        self.start()

    def restart(self) -> None:
        """End it in order, and start it again in the same place."""
        self._running.close()
        self.start()

    def end(self) -> None:
        """End it."""
        self._running.close()


class Victims:
    """Instances before one server, of which the first one is never killed, and the rest is.

    Attributes:
        watched: The instance that lives.
        ports: Of all instances.
        keeps: Whether sessions outlive whatever is killed, but for a store.
        logs: Whether events do, too.
        wrong: What must not be.
        seen: How often something was killed, and what failed of it.
    """

    def __init__(self, name: str, folder: Path, keeps: bool, logs: bool) -> None:
        self.name = name
        self.keeps = keeps
        self.logs = logs
        self.ports: list[int] = []
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()
        self.watched: Watched
        self.others: dict[str, list[Process]] = {}
        self.notes = folder / f"{name}.calls"
        self.store_at = -LIMIT_S * 1.0
        self._lock = threading.Lock()

    def begin(
        self, stack: contextlib.ExitStack, kind: str, start: Callable[[], contextlib.AbstractContextManager[Any]]
    ) -> None:
        """Start something that can be killed, until the stack is closed."""
        process = Process(start)
        stack.callback(process.end)
        process.start()
        self.others.setdefault(kind, []).append(process)

    def note(self, what: str) -> None:
        """Count something."""
        with self._lock:
            self.seen[what] += 1

    def kill_one(self, chance: random.Random) -> None:
        """Kill an instance, the server, or now and then the store."""
        kinds = [kind for kind in self.others if kind != "store" or not chance.randrange(STORE_KILLS_IN)]
        if not self.others.get("server") and not chance.randrange(2):
            self.kill_child(chance)
            return
        kind = chance.choice(kinds)
        if kind == "store":
            self.kill_store()
            return
        chance.choice(self.others[kind]).kill()
        self.note(f"{kind}s killed")

    def kill_store(self) -> None:
        """Kill the store, which forgets everything."""
        self.store_at = time.monotonic()
        self.others["store"][0].kill()
        self.note("stores killed")

    def kill_child(self, chance: random.Random) -> None:
        """Kill a server of the instance that lives."""
        pid = self.watched.pid
        children = [
            int(pid) for path in Path(f"/proc/{pid}/task").glob("*/children") for pid in path.read_text().split()
        ]
        if children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(children), 9)
            self.note("servers killed")

    def visit(self, revision: str, chance: random.Random) -> int:
        """Call a few times, of any instance each; return how many calls were answered."""
        client, answered = Client(self, revision, chance), 0
        with contextlib.closing(client):
            for _ in range(chance.randint(1, 20)):
                try:
                    client.call()
                    answered += 1
                except Lost as lost:
                    self.note(str(lost))
        return answered

    def take_wrong(self) -> list[str]:
        """Return what was wrong since the last look; among it calls that came to a server twice."""
        words = Counter(self.notes.read_text("ascii").split()) if self.notes.exists() else {}
        self.notes.write_text("", "ascii")
        found, self.wrong = self.wrong, []
        return [*found, *(f"{self.name}: {word} was called {n} times" for word, n in words.items() if n > 1)]


class Client:
    """A client that comes to any instance with each request."""

    def __init__(self, victims: Victims, revision: str, chance: random.Random) -> None:
        self._victims = victims
        self._revision = revision
        self._chance = chance
        self._session = ""
        self._connections: dict[int, http.client.HTTPConnection] = {}
        self._number = 0
        self._heard_at = 0.0

    def call(self) -> None:
        """Call the server with a word, and see that it comes back; sometimes leave before it does."""
        if self._revision != NEWER and not self._session:
            about = {"protocolVersion": self._revision, "capabilities": {}, "clientInfo": INFO}
            if "error" in (answer := self._ask("initialize", about)):
                raise Lost(f"error {answer['error']['code']}")
            self._greet()
        word = secrets.token_hex(8)
        params: dict[str, Any] = {"name": "tool_1", "arguments": {"who": word, "path": "p"}}
        if self._chance.random() < 0.3:
            params["_meta"] = {"progressToken": word}
        if self._chance.random() < 0.03:
            self._vanish({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": self._complete(params)})
            return
        answer = self._ask("tools/call", params)
        if "error" in answer:
            raise Lost(f"error {answer['error']['code']}")
        assert answer["result"]["content"] == [{"type": "text", "text": word}], answer

    def close(self) -> None:
        """Leave; half of the clients say so."""
        if self._session and self._chance.random() < 0.5:
            with contextlib.suppress(Lost):
                self._send("DELETE", None)
        for connection in self._connections.values():
            connection.close()

    def _greet(self) -> None:
        """Say that the session is open, to whoever is there: before that, calls wait."""
        until = time.monotonic() + LIMIT_S
        while True:
            try:
                self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
                return
            except Lost:
                if time.monotonic() > until or not self._session:
                    self._session = ""
                    raise
                time.sleep(PAUSE_BETWEEN_TRIES_S)

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        answer = self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": self._complete(params)})
        assert answer["id"] == self._number, (self._number, answer)
        return answer

    def _complete(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._revision != NEWER:
            return params
        about = {"protocolVersion": NEWER, "clientInfo": INFO, "clientCapabilities": {}}
        return {**params, "_meta": params.get("_meta", {}) | {META + name: value for name, value in about.items()}}

    def _post(self, frame: dict[str, Any]) -> dict[str, Any]:
        status, data = self._send("POST", frame)
        if status == 404 and self._session:
            self._session, silent_s = "", time.monotonic() - self._heard_at
            is_store = time.monotonic() - self._victims.store_at < LIMIT_S
            assert is_store or silent_s > RENEWED_S or not self._victims.keeps, "a session is lost"
            raise Lost("lost sessions")
        if status in (502, 503):
            raise Lost(f"status {status}")
        assert status in (200, 202), (status, data[:200])
        self._heard_at = time.monotonic()
        if data.startswith((b"event:", b"id:", b"data:", b":", b"retry:")):
            data = [line[5:] for line in data.splitlines() if line.startswith(b"data:") and line[5:].strip()][-1]
        found: dict[str, Any] = json.loads(data) if data else {}
        return found

    def _send(self, verb: str, frame: dict[str, Any] | None, last: str = "") -> tuple[int, bytes]:
        port, heard = self._chance.choice(self._victims.ports), bytearray()
        connection = self._connections.setdefault(port, http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S))
        headers = self._headers(frame) | ({"Last-Event-ID": last} if last else {})
        try:
            connection.request(verb, "/mcp", None if frame is None else json.dumps(frame), headers)
            response = connection.getresponse()
            if frame is not None and frame["method"] == "initialize":
                self._session = response.getheader("mcp-session-id", "")
            self._read(response, heard)
        except (ConnectionError, http.client.HTTPException) as error:
            connection.close()
            if self._victims.logs and self._session and (seen := EVENT_ID.findall(heard)):
                return self._resume(seen[-1].decode(), bytes(heard))
            raise Lost(f"connections cut ({type(error).__name__})") from None
        return response.status, bytes(heard)

    def _resume(self, last: str, heard: bytes) -> tuple[int, bytes]:
        """Go on with a stream that was cut, wherever somebody has it; give all that was heard."""
        until = time.monotonic() + LIMIT_S / 2
        while time.monotonic() < until:
            try:
                status, more = self._send("GET", None, last)
            except Lost:
                status, more = 503, b""
            if status == 200:
                self._victims.note("streams resumed")
                return 200, heard + more
            if status == 410:
                raise Lost("streams that nobody has")
            if status not in (502, 503):
                return status, more
            time.sleep(PAUSE_BETWEEN_TRIES_S)
        raise AssertionError("a stream cannot be resumed")

    def _read(self, response: http.client.HTTPResponse, heard: bytearray) -> None:
        began = time.monotonic()
        while part := response.read1(65536):
            heard += part
            assert time.monotonic() - began < LIMIT_S / 2, f"no answer, only {part!r}"  # what keeps a stream open
        heard += response.read()  # which takes note that this was all
        if len(heard) < int(response.getheader("content-length", "0")):  # `read1` says nothing of it
            raise http.client.IncompleteRead(bytes(heard))

    def _vanish(self, frame: dict[str, Any]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._chance.choice(self._victims.ports), timeout=LIMIT_S)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("POST", "/mcp", json.dumps(frame), self._headers(frame))

    def _headers(self, frame: dict[str, Any] | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"Mcp-Session-Id": self._session} if self._session else {}
        if self._revision == NEWER and frame is not None:
            headers |= {"MCP-Protocol-Version": NEWER, "Mcp-Method": frame["method"], "Mcp-Name": "tool_1"}
        return headers


@contextlib.contextmanager
def among_instances(folder: Path, name: str, revision: str, way: str, logs: bool = False) -> Iterator[Victims]:
    """Start three instances before a server.

    Args:
        folder: For what they keep.
        name: Of this group.
        revision: That of the server.
        way: For one over HTTP, `redis` or `folder`: what the instances find each other by; `stdio`, for one that is
            started again in its session, or `command`, for one that is not.
        logs: Whether the instances log events, for who resumes.
    """
    victims = Victims(name, folder, keeps=way not in ("stdio", "command"), logs=logs)
    with contextlib.ExitStack() as stack:
        options = (
            "--log-level",
            "critical",
            "--max-sessions",
            "1000",
            *put_behind(victims, stack, folder, revision, way),
        )
        victims.watched = stack.enter_context(watched_proxy(folder, name, *options))
        victims.ports.append(victims.watched.port)
        limits = ("--session-idle", str(IDLE_S))
        for _ in range(INSTANCES - 1):
            own = free_port()
            line = (*DRAGOMAN, *limits, "--listen", f"http://127.0.0.1:{own}", *options)
            victims.begin(stack, "instance", lambda line=line: started(line))  # type: ignore[misc]
            victims.ports.append(own)
        yield victims


def put_behind(victims: Victims, stack: contextlib.ExitStack, folder: Path, revision: str, way: str) -> tuple[str, ...]:
    """Start a store, and a server if it listens; give the options of instances before them, as `among_instances`."""
    command = (sys.executable, "-m", "tests.soak.noting", str(victims.notes), revision)
    behind: tuple[str, ...] = (*(("--restarts", "1000000") if way == "stdio" else ()), "--", *command)
    if way not in ("stdio", "command"):
        port = free_port()
        victims.begin(stack, "server", lambda: started((*command, str(port))))
        behind = ("--url", f"http://127.0.0.1:{port}/mcp")
    store: tuple[str, ...] = (str(folder / f"{victims.name}.d"),)
    if way == "redis" and (program := shutil.which("redis-server") or shutil.which("valkey-server")):
        redis = free_port()
        victims.begin(stack, "store", lambda: redis_at(program, redis, folder))
        store = (f"redis://127.0.0.1:{redis}", "--instance-listen", "http://127.0.0.1:0")
    if victims.logs:
        keys = folder / f"{victims.name}.keys"
        keys.write_text(f"{secrets.token_hex(32)}\n", "ascii")
        keys.chmod(0o600)
        store += ("--store-events", "--state-key-file", str(keys))
    return ("--store", *store, *behind)


@contextlib.contextmanager
def redis_at(program: str, port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a store that forgets everything when it is killed."""
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


class Killer:
    """Kills something every second or so, or as told, while there is load, and puts it back before the load ends."""

    def __init__(self, groups: list[Victims], seed: int, pause_s: float = PAUSE_S) -> None:
        self._groups = groups
        self._pause_s = pause_s
        self._chance = random.Random(seed)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Kill as long as this is open."""
        is_over = threading.Event()

        def work() -> None:
            while not is_over.wait(self._pause_s * self._chance.uniform(0.5, 1.5)):
                group = self._chance.choice(self._groups)
                try:
                    group.kill_one(self._chance)
                except Exception as error:  # whatever it is, the soak must not go on as if all were well
                    group.wrong.append(f"{group.name}: {type(error).__name__}: {error}"[:300])
                    return

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(LIMIT_S)
