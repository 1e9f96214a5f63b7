"""A client of 2025-11-25 for the soak that runs tools as tasks, at a server without a handshake.

It waits for results and answers what is asked meanwhile, looks at its tasks, cancels some, and leaves in the middle.
"""

from __future__ import annotations

import contextlib
import json
import random
import secrets
from typing import Any, Final

from tests.soak.clients import WebSocketPeer

REVISION: Final = "2025-11-25"


class TaskClient:
    """One session of a client that has a word of its own."""

    def __init__(self, peer: WebSocketPeer) -> None:
        self.peer = peer
        self.word = secrets.token_hex(8)

    def demand(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask something and give the result; answer whatever is asked meanwhile."""
        line = self.peer.exchange(self.peer.request(method, params))
        while True:
            frame = json.loads(line)
            if "method" not in frame:
                assert frame["id"] == self.peer.number, frame
                result: dict[str, Any] = frame["result"]
                return result
            if "id" in frame:
                content = {"type": "text", "text": self.word}
                reply = {"role": "assistant", "model": "soak", "content": content}
                self.peer.notify(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": reply}).encode())
            line = self.peer.next()

    def create(self) -> str:
        """Call the tool as a task; give its id."""
        task_id: str = self.demand("tools/call", name="run", arguments={}, task={})["task"]["taskId"]
        return task_id

    def wait(self, task_id: str) -> None:
        """Wait for a result, which has what was answered."""
        said = self.demand("tasks/result", taskId=task_id)["content"][0]["text"]
        assert said == self.word, f"got {said}, which is not {self.word}"

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        assert self.demand("tasks/cancel", taskId=task_id)["status"] == "cancelled"


def visit_with_tasks(port: int, chance: random.Random) -> int:
    """Run tools as tasks; return how many.

    Args:
        port: Of the proxy.
        chance: Decides what becomes of them.
    """
    with contextlib.closing(WebSocketPeer(port, REVISION)) as peer:
        peer.capabilities = {"sampling": {}}
        peer.open()
        client, count = TaskClient(peer), chance.randint(1, 8)
        for _ in range(count):
            task_id = client.create()
            match chance.choice(("wait", "wait", "wait", "look", "cancel", "forget")):
                case "wait":
                    client.wait(task_id)
                case "look":
                    status = client.demand("tasks/get", taskId=task_id)["status"]
                    assert status == "input_required", status
                    client.wait(task_id)
                case "cancel":
                    client.cancel(task_id)
        if chance.random() < 0.3:
            peer.notify(peer.request("tasks/result", {"taskId": client.create()}))
        elif chance.random() < 0.5:
            peer.goodbye()
    return count
