"""A stdio server that many share, `python -m tests.soak.server`: it asks back, logs and tells progress.

Every answer repeats the caller's word, and so must the client's answer to a question: whoever gets what is somebody
else's notices.
"""

from __future__ import annotations

import json
import sys
from typing import Any

REVISION = "2025-11-25"
CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}


class Server:
    """What is under way: questions, each with the call that it is about."""

    def __init__(self) -> None:
        self.asked: dict[int, dict[str, Any]] = {}
        self.questions = 0

    def take(self, frame: dict[str, Any]) -> None:
        """Take a frame."""
        if "method" not in frame:
            self.take_answer(frame)
        elif frame["method"] == "notifications/cancelled":
            self.give_up(frame["params"]["requestId"])
        elif frame["method"] == "tools/call":
            self.take_call(frame)
        elif frame["method"] == "resources/subscribe":
            tell("notifications/resources/updated", uri=frame["params"]["uri"])
            answer(frame, {})
        elif "id" in frame:
            info = {"name": "soak", "version": "1"}
            known: dict[str, dict[str, Any]] = {
                "initialize": {"protocolVersion": REVISION, "capabilities": CAPABILITIES, "serverInfo": info},
                "tools/list": {"tools": [{"name": f"tool_{n}", "inputSchema": {"type": "object"}} for n in range(100)]},
            }
            answer(frame, known.get(frame["method"], {}))

    def take_call(self, frame: dict[str, Any]) -> None:
        """Do what the arguments say, then answer or ask."""
        arguments = frame["params"]["arguments"]
        token = frame["params"].get("_meta", {}).get("progressToken")
        for step in range(arguments.get("steps", 0)):
            tell("notifications/progress", progressToken=token, progress=step)
        if arguments.get("logs"):
            tell("notifications/message", level="info", data=arguments["who"])
        if not arguments.get("asks"):
            answer(frame, said(arguments["who"], "x" * arguments.get("size", 0)))
            return
        self.questions += 1
        self.asked[self.questions] = frame
        message = {"role": "user", "content": {"type": "text", "text": arguments["who"]}}
        write(id=self.questions, method="sampling/createMessage", params={"messages": [message], "maxTokens": 1})

    def give_up(self, cancelled: Any) -> None:
        """Answer a cancelled call all the same: as long as one is not, the proxy asks nobody else on a guess."""
        for number, call in list(self.asked.items()):
            if call["id"] == cancelled:
                del self.asked[number]
                answer(call, said(call["params"]["arguments"]["who"], "cancelled"))

    def take_answer(self, frame: dict[str, Any]) -> None:
        """Answer the call that a question was about, with what came."""
        call = self.asked.pop(frame["id"], None)
        if call is not None:
            text = frame["result"]["content"]["text"] if "result" in frame else frame["error"]["message"]
            answer(call, said(call["params"]["arguments"]["who"], text))


def said(*words: str) -> dict[str, Any]:
    """Give the result of a tool."""
    return {"content": [{"type": "text", "text": word} for word in words]}


def answer(frame: dict[str, Any], result: dict[str, Any]) -> None:
    """Answer a request."""
    write(id=frame["id"], result=result)


def tell(method: str, **params: Any) -> None:
    """Send a notification."""
    write(method=method, params=params)


def write(**members: Any) -> None:
    """Write a frame."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    server = Server()
    for line in sys.stdin:
        server.take(json.loads(line))
