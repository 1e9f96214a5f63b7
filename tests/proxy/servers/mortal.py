"""A server that ends once, at a point of its conversation that its caller names, and is well when started again.

    mortal.py DIRECTORY POINT

Points are counted: a line is read, a tool has run, half of an answer is written, the whole of it is. `hang` in place of
a number: the first process stops reading after its first call. What runs is noted in DIRECTORY, one file a run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

REVISION = "2025-11-25"


class Life:
    """How far the process has come."""

    def __init__(self, directory: Path, point: str) -> None:
        self.directory = directory
        self.number = len(list(directory.glob("process-*")))
        (directory / f"process-{self.number}").touch()
        self.hangs = point == "hang" and not self.number
        self.left = int(point) if point.isdecimal() and not self.number else -1

    def step(self) -> None:
        """One point of the conversation; the last one is the end."""
        if not self.left:
            os._exit(1)
        self.left -= 1

    def run(self, name: str) -> None:
        """Note that a tool ran."""
        with (self.directory / "runs").open("a") as file:
            file.write(f"{name}\n")


def answer(request: Any, life: Life) -> Any:
    """Give the result of a request."""
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
                "serverInfo": {"name": "mortal", "version": str(life.number)},
            }
        case "tools/call":
            life.run(request["params"]["name"])
            return {"content": [{"type": "text", "text": f"process {life.number}"}]}
        case method:
            if method != "ping":
                life.run(method)
            return {}


def main() -> None:
    """Answer until the end."""
    life = Life(Path(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        life.step()
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message, life)}) + "\n"
        life.step()
        for part in (text[:20], text[20:]):
            sys.stdout.write(part)
            sys.stdout.flush()
            life.step()
        while life.hangs and message["method"] == "tools/call":
            os.read(os.pipe()[0], 1)


if __name__ == "__main__":
    main()
