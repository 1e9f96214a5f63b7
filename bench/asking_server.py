"""A stdio server that asks in the middle of each call: `python -m bench.asking_server REVISION`.

With a handshake it asks by a request of its own, and a call that wants a task becomes one. Without a handshake it asks
by its result, or by a task where the client takes tasks. What it is answered, it says in its result.
"""

import json
import sys
from typing import Any, Final

WITHOUT_A_HANDSHAKE: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"
TASKS: Final = f"{META}tasks"
QUESTION: Final[dict[str, Any]] = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Who?"}}], "maxTokens": 1},
}
WHEN: Final = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
TOOL: Final[dict[str, Any]] = {"name": "ask", "inputSchema": {"type": "object"}}
Frame = dict[str, Any]


class AskingServer:
    """A server with a handshake: its questions are requests."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.asked: dict[int, tuple[Any, str]] = {}  # the call of each question, and its task, if it has one
        self.number = 0

    def take(self, frame: Frame) -> None:
        """Take a frame."""
        params = frame.get("params", {})
        match frame.get("method"):
            case None:
                self.take_answer(frame)
            case "initialize":
                capabilities: Frame = {"tools": {}}
                if self.has_tasks:
                    capabilities["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
                info = {"name": "asking", "version": "1"}
                write_result(frame, protocolVersion=self.revision, capabilities=capabilities, serverInfo=info)
            case "tools/list":
                runs = {"execution": {"taskSupport": "optional"}} if self.has_tasks else {}
                write_result(frame, tools=[TOOL, {**TOOL, "name": "run", **runs}])
            case "tools/call" if "task" in params:
                self.number += 1
                task = {"taskId": str(self.number), "status": "working", **WHEN, "ttl": None, "pollInterval": 100}
                write_result(frame, task=task)
            case "tools/call":
                self.ask(frame["id"], "")
            case "tasks/result":
                self.ask(frame["id"], params["taskId"])
            case "notifications/cancelled":
                self.give_up(params["requestId"])
            case _ if "id" in frame:
                write_error(frame)

    @property
    def has_tasks(self) -> bool:
        """Whether the revision has tasks."""
        return self.revision >= "2025-11-25"

    def ask(self, call: Any, task_id: str) -> None:
        """Ask what the call needs to go on."""
        self.number += 1
        self.asked[self.number] = call, task_id
        params = {**QUESTION["params"], **({"_meta": relate(task_id)} if task_id else {})}
        write({"id": self.number, **QUESTION, "params": params})

    def take_answer(self, frame: Frame) -> None:
        """Go on with the call, unless it was cancelled."""
        call, task_id = self.asked.pop(frame["id"], (None, ""))
        if call is not None:
            result = {"content": [frame["result"]["content"]], **({"_meta": relate(task_id)} if task_id else {})}
            write({"id": call, "result": result})

    def give_up(self, call: Any) -> None:
        """Answer a cancelled call all the same, as servers on SDKs do."""
        self.asked = {number: about for number, about in self.asked.items() if about[0] != call}
        write({"id": call, "error": {"code": 0, "message": "it was cancelled"}})


def relate(task_id: str) -> dict[str, Any]:
    """Say in `_meta` which task something is about."""
    return {f"{META}related-task": {"taskId": task_id}}


class StatelessAskingServer:
    """A server without a handshake: its questions stand in results and in tasks."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}  # by task
        self.cancelled: set[str] = set()
        self.number = 0

    def take(self, frame: Frame) -> None:
        """Take a frame."""
        params = frame.get("params", {})
        match frame.get("method"):
            case "server/discover":
                capabilities: Frame = {"tools": {}, "extensions": {TASKS: {}}}
                kept = {"ttlMs": 0, "cacheScope": "private"}
                write_complete(frame, supportedVersions=[WITHOUT_A_HANDSHAKE], capabilities=capabilities, **kept)
            case "tools/list":
                write_complete(frame, tools=[TOOL, {**TOOL, "name": "run"}], ttlMs=0, cacheScope="private")
            case "tools/call" if TASKS in params["_meta"][f"{META}clientCapabilities"].get("extensions", {}):
                self.number += 1
                self.answers[str(self.number)] = None
                write_result(frame, resultType="task", taskId=str(self.number), status="working", **WHEN, ttlMs=None)
            case "tools/call" if "inputResponses" in params:
                write_complete(frame, content=[params["inputResponses"]["who"]["content"]])
            case "tools/call":
                write_result(frame, resultType="input_required", inputRequests={"who": QUESTION})
            case "tasks/get":
                self.tell(frame, params["taskId"])
            case "tasks/cancel":
                self.cancelled.add(params["taskId"])
                write_complete(frame)
            case "tasks/update":
                self.answers[params["taskId"]] = params["inputResponses"]["who"]["content"]
                write_complete(frame)
            case _ if "id" in frame:
                write_error(frame)

    def tell(self, frame: Frame, task_id: str) -> None:
        """Say how a task stands; it is forgotten once its end is told."""
        task = {"taskId": task_id, **WHEN, "ttlMs": None}
        if task_id in self.cancelled:
            write_complete(frame, **task, status="cancelled")
        elif self.answers[task_id] is None:
            write_complete(frame, **task, status="input_required", inputRequests={"who": QUESTION})
        else:
            result = {"resultType": "complete", "content": [self.answers.pop(task_id)]}
            write_complete(frame, **task, status="completed", result=result)


def write_result(frame: Frame, **result: Any) -> None:
    """Answer a request."""
    write({"id": frame["id"], "result": result})


def write_complete(frame: Frame, **result: Any) -> None:
    """Answer a request of a client without a handshake."""
    write_result(frame, resultType="complete", **result)


def write_error(frame: Frame) -> None:
    """Say that there is no such method."""
    write({"id": frame["id"], "error": {"code": -32601, "message": "there is no such method"}})


def write(members: Frame) -> None:
    """Write a frame."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    speaks = sys.argv[1]
    server = StatelessAskingServer() if speaks >= WITHOUT_A_HANDSHAKE else AskingServer(speaks)
    for line in sys.stdin:
        server.take(json.loads(line))
