"""A server over stdio that is no good in one of many ways; no dependencies.

    hostile_server.py MODE

Whatever it does, a check of it has to end. Without a mode it is a simple server of 2025-06-18.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
from typing import Any

REVISION = "2025-06-18"
MODE = sys.argv[1] if len(sys.argv) > 1 else ""
DIES_AFTER = int(MODE.removeprefix("dies ")) if MODE.startswith("dies ") else None
numbers = itertools.count(1)


def write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        sys.exit()


def say(frame: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")


def answer(method: str) -> dict[str, Any]:
    """Answer as a server without fault does, but for pages that never end."""
    if method == "initialize":
        info = {"name": "hostile", "version": "1"}
        return {"result": {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        tool = {"name": f"tool{next(numbers)}", "inputSchema": {"type": "object"}}
        return {"result": {"tools": [tool], **({"nextCursor": tool["name"]} if MODE == "pages" else {})}}
    return {"result": {}} if method == "ping" else {"error": {"code": -32601, "message": "no"}}


def flood() -> None:
    """Say what was not asked for, without end, if that is the mode."""
    while True:
        match MODE:
            case "floods notifications":
                say({"method": "notifications/message", "params": {"level": "info", "data": "hello"}})
            case "floods requests":
                say({"id": next(numbers), "method": "ping"})
            case "floods answers":
                say({"id": f"nobody's {next(numbers)}", "result": {}})
            case "endless line":
                write(b"x" * 65536)
            case _:
                return


def serve() -> None:
    if MODE in ("silent", "stays"):
        if MODE == "stays":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                signal.pause()
        sys.stdin.read()
        return
    for count, line in enumerate(sys.stdin):
        frame = json.loads(line)
        if DIES_AFTER is not None and count >= DIES_AFTER:
            sys.exit(3)
        if "id" not in frame or "method" not in frame:
            continue
        is_open = frame["method"] != "initialize"
        if MODE == "mute" and is_open:
            continue
        if is_open:
            flood()
        said = {"jsonrpc": "2.0", "id": frame["id"], **answer(frame["method"])}
        if MODE == "other ids" and is_open:
            said["id"] = f"another {next(numbers)}"
        if MODE == "drips" and is_open:
            for byte in json.dumps(said).encode():
                write(bytes((byte,)))
                signal.setitimer(signal.ITIMER_REAL, 0.5)
                signal.sigwait({signal.SIGALRM})
        say(said)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    serve()
