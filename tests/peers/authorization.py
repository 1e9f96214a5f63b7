"""An authorization server that others wrote, a server that wants its tokens, and clients before the proxy."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.signing_in import Stdio
from tests.peers.visits import proxy_command

OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}}


@dataclass
class Place:
    """An authorization server, a server that wants its tokens, and a proxy for each sitting."""

    issuer: str
    url: str
    folder: Path
    child: subprocess.Popen[str]

    def tell(self, word: str = "so") -> list[dict[str, Any]]:
        """Say a word to it, such as `end`; return what it has done since it was told the last one."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        print(word, file=self.child.stdin, flush=True)
        events = []
        while (event := json.loads(self.child.stdout.readline())) != {"did": word}:
            events.append(event)
        return events

    def did(self) -> list[str]:
        """What it has done since then, in short."""
        return [event["did"] for event in self.tell()]

    @property
    def pages(self) -> list[str]:
        """The last page of each visit of the person."""
        file = self.folder / "pages"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    @contextlib.contextmanager
    def sitting(self, *options: str) -> Iterator[Sitting]:
        line = Stdio(proxy_command(*options, "--url", self.url))
        try:
            sitting = Sitting(line)
            sitting.ask("initialize", **OPENING)
            line.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield sitting
        finally:
            line.child.communicate(timeout=30)


@dataclass
class Sitting:
    """A client before the proxy."""

    line: Stdio
    asked: int = 0

    def ask(self, method: str, **params: Any) -> Any:
        self.asked += 1
        return self.line.send({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})

    def call(self, name: str) -> str:
        """Call a tool; return who the server takes us for."""
        answer = self.ask("tools/call", name=name, arguments={})
        text: str = answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"]
        return text


@contextlib.contextmanager
def running(command: list[str], folder: Path) -> Iterator[Place]:
    """Start both servers by a command."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            assert child.stdout is not None
            yield Place(**json.loads(child.stdout.readline()), folder=folder, child=child)
        finally:
            child.kill()
