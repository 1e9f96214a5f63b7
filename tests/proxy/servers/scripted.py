"""A small server for tests, bad on purpose in the ways that its arguments name. No dependencies.

    scripted.py [--speak REV] [--only REV] [--behave WORD ...]

It answers `initialize` in the revision it speaks (or whatever it was offered), `tools/list` with a rich tool, echoes
the params of anything else, and asks for `roots/list` when a tool named `ask` is called.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--speak")
parser.add_argument("--only")
parser.add_argument("--behave", nargs="*", default=[])
parser.add_argument("--note", help="a file to which every start is appended")
options = parser.parse_args()
behaves = set(options.behave)


def say(frame: Any) -> None:
    data = json.dumps(frame).encode() + b"\n"
    # Not by print: where Python does not buffer, it loses what a write leaves that the machine stopped.
    while data:
        data = data[os.write(1, data) :]


def answer(frame: dict[str, Any], result: Any) -> None:
    say({"jsonrpc": "2.0", "id": frame["id"], "result": result})


def initialize(frame: dict[str, Any]) -> None:
    offered = frame["params"]["protocolVersion"]
    if "die-on-initialize" in behaves:
        sys.exit(7)
    if "hang-on-initialize" in behaves:
        return
    if options.only and offered != options.only:
        data = {"supported": [options.only], "requested": offered}
        error = {"code": -32602, "message": "Unsupported protocol version", "data": data}
        say({"jsonrpc": "2.0", "id": frame["id"], "error": error})
        if "die-on-rejection" in behaves:
            sys.exit(1)
        return
    info = {"name": "scripted", "version": "1"}
    revision = options.speak or offered
    answer(frame, {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info})


def call(frame: dict[str, Any]) -> None:
    match frame["params"]["name"]:
        case "die":
            os._exit(9)
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            pass
        case "close-output":
            os.close(1)
            time.sleep(600)
        case "close-input":
            os.close(0)
            answer(frame, {"content": []})
            time.sleep(600)
        case "ask":
            say({"jsonrpc": "2.0", "id": "ask-1", "method": "roots/list"})
        case "flood":
            for _ in range(200):
                say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1_000_000}})
            answer(frame, {"content": []})
        case "slow":
            time.sleep(0.3)
            answer(frame, {"content": []})
        case "env":
            text = json.dumps([os.getpid(), os.getpgid(0)])
            answer(frame, {"content": [{"type": "text", "text": text}]})
        case _:
            content = [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]
            answer(frame, {"content": content, "echo": frame["params"]})


def main() -> None:
    if options.note:
        with open(options.note, "a") as note:
            note.write(f"{os.getpid()}\n")
    if "ignore-term" in behaves:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "banner" in behaves:
        print("Welcome to the scripted server!", flush=True)
    if "grandchild" in behaves:
        import subprocess

        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("scripted server is up", file=sys.stderr, flush=True)
    for line in sys.stdin:
        if "garbage" in behaves:
            os.write(1, b'\x00nonsense\n{"jsonrpc":"2.0","id":\n\n')
        frame = json.loads(line)
        method = frame.get("method")
        if method == "initialize":
            initialize(frame)
        elif method == "tools/list":
            tool = {"name": "t", "title": "T", "inputSchema": {"type": "object"}, "icons": [{"src": "data:,x"}]}
            answer(frame, {"tools": [tool]})
        elif method == "tools/call":
            call(frame)
        elif method == "ping":
            answer(frame, {})
        elif "method" not in frame:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": frame}})
        elif "id" in frame:
            answer(frame, frame.get("params", {}))
    if "linger" in behaves:
        time.sleep(600)


main()
