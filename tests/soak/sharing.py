"""Clients of a server that others use too: each brings a word of its own, and must never see anybody else's.

Lives here: what they do in one session. Not here: how frames travel (`clients`), or who runs them (`__main__`).
"""

from __future__ import annotations

import contextlib
import json
import random
import secrets
from collections.abc import Callable
from typing import Any

from bench.peers import Peer
from tests.soak.clients import PoliteHttpPeer, SsePeer, WebSocketPeer

LEVELS = ("debug", "info", "warning", "error")


class Guest:
    """One session of a client with a word of its own.

    Args:
        peer: How it travels.
        takes_questions: Whether it can be asked while it waits for an answer.
    """

    def __init__(self, peer: Peer, takes_questions: bool) -> None:
        self.peer = peer
        self.takes_questions = takes_questions
        self.word = secrets.token_hex(8)

    def demand(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask something and give the result; answer whatever is asked meanwhile."""
        line = self.peer.exchange(self.peer.request(method, params))
        while True:
            frame = json.loads(line)
            if "method" not in frame and frame["id"] == self.peer.number:
                result: dict[str, Any] = frame["result"]
                return result
            if "method" in frame:
                self.check(frame)
                if "id" in frame:
                    self.peer.notify(self.answer(frame))
            line = self.peer.next()

    def check(self, frame: dict[str, Any]) -> None:
        """See that a frame of the server is about nobody else."""
        params = frame["params"]
        match frame["method"]:
            case "sampling/createMessage":
                about = params["messages"][0]["content"]["text"]
            case "notifications/progress":
                about = self.word if params["progressToken"] in (self.word, self.peer.number) else "another call"
            case "notifications/message":
                about = params["data"]
            case "notifications/resources/updated":
                about = params["uri"].removeprefix("x://").replace("all", self.word)
            case method:
                about = method
        assert about == self.word, f"heard {frame['method']} about {about}, which is not {self.word}"

    def answer(self, frame: dict[str, Any]) -> bytes:
        """Answer a question with the own word."""
        result = {"role": "assistant", "model": "soak", "content": {"type": "text", "text": self.word}}
        return json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode()

    def call(self, **arguments: Any) -> list[str]:
        """Call the tool and give what it said; the first is always the own word."""
        meta = {"progressToken": secrets.choice([self.peer.number + 1, self.word])}
        found = self.demand("tools/call", name="t", arguments={"who": self.word, **arguments}, _meta=meta)
        texts = [block["text"] for block in found["content"]]
        assert texts[0] == self.word, f"got {texts[0]}, which is not {self.word}"
        return texts

    # What it can do

    def speak(self, chance: random.Random) -> None:
        """Say something, large or small."""
        size = chance.choice([0, 200, 100_000])
        text = self.call(size=size)[1]
        assert len(text) == size, f"got {len(text)} letters in place of {size}"

    def watch(self, chance: random.Random) -> None:
        """Call something that tells progress and logs."""
        self.call(steps=chance.randint(1, 5), logs=True)

    def be_asked(self, chance: random.Random) -> None:
        """Call something that asks back."""
        if self.takes_questions:
            heard = self.call(asks=True)[1]
            assert heard == self.word, f"the server was answered {heard[:200]!r}, which is not {self.word}"

    def subscribe(self, chance: random.Random) -> None:
        """Subscribe to what others subscribe to as well, or to something of one's own."""
        self.demand("resources/subscribe", uri=chance.choice(["x://all", f"x://{self.word}"]))

    def unsubscribe(self, chance: random.Random) -> None:
        """Take back what may never have been."""
        self.demand("resources/unsubscribe", uri="x://all")

    def set_level(self, chance: random.Random) -> None:
        """Want more or fewer log messages."""
        self.demand("logging/setLevel", level=chance.choice(LEVELS))

    def list_tools(self, chance: random.Random) -> None:
        """List the tools."""
        tools = self.demand("tools/list")["tools"]
        assert len(tools) == 100, f"got {len(tools)} tools"

    def change_mind(self, chance: random.Random) -> None:
        """Call something that asks, and cancel it."""
        if self.takes_questions:
            params = {"name": "t", "arguments": {"who": self.word, "asks": True}}
            self.peer.notify(self.peer.request("tools/call", params))
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": self.peer.number}}
            self.peer.notify(json.dumps({"jsonrpc": "2.0", **cancelled}).encode())

    def leave_in_the_middle(self) -> None:
        """Call something that asks, and never answer."""
        if self.takes_questions:
            params = {"name": "t", "arguments": {"who": self.word, "asks": True}}
            self.peer.notify(self.peer.request("tools/call", params))


DEEDS: dict[Callable[[Guest, random.Random], None], int] = {
    Guest.speak: 12,
    Guest.watch: 8,
    Guest.be_asked: 6,
    Guest.subscribe: 4,
    Guest.unsubscribe: 2,
    Guest.set_level: 2,
    Guest.list_tools: 4,
    Guest.change_mind: 1,
}
"""What can be done, with how often; a call that was cancelled holds up the others for five seconds."""


def visit_shared(port: int, front: str, revision: str, secret: str, chance: random.Random) -> int:
    """Open a session on a shared server, do things, and leave politely or not; return how many were done.

    Args:
        port: Of the proxy.
        front: `http`, `sse` or `ws`.
        revision: Of the client.
        secret: What it shows the proxy; none if empty.
        chance: Decides what it does.
    """
    make: Any = {"http": PoliteHttpPeer, "sse": SsePeer, "ws": WebSocketPeer}[front]
    with contextlib.closing(make(port, revision, secret)) as peer:
        takes_questions = front != "http"  # such a client would have to read and post at once
        peer.capabilities = {"sampling": {}} if takes_questions else {}
        peer.open()
        guest = Guest(peer, takes_questions)
        count = chance.randint(1, 12)
        for deed in chance.choices(tuple(DEEDS), tuple(DEEDS.values()), k=count):
            deed(guest, chance)
        if chance.random() < 0.05:
            guest.leave_in_the_middle()
        elif chance.random() < 0.5:
            for parting in ("delete", "goodbye"):
                getattr(peer, parting, lambda: None)()
    return count
