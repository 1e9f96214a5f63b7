"""`python -m dragoman.demo.client REVISION [brief]`: a client that asks its server a few things, and ends.

It is as strict as released clients are: a revision that it does not speak, or content that its revision does not have,
makes it give up. Lives here: the questions, and the answers to what the server asks. Must not: know that there are
other revisions than its own, or that there is a proxy. Called by `demo.stage`, as a process of its own.

It does not stand on `dragoman.connect`, for three reasons. Behind that is the proxy itself, and what a proxy says to a
proxy does not show what happens to somebody else's client. It looks at what a server declared before it asks, and this
client is one that does not. And it loads the models of a revision, which takes as long as the whole conversation.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from dragoman.demo.peer import Answers, Frame, GivenUp, Peer, run_client

SINCE_AUDIO: Final = "2025-03-26"
SINCE_STRUCTURE: Final = "2025-06-18"
SINCE_ICONS: Final = "2025-11-25"
"""When what came; revisions compare as texts."""

MINUTES: Final = "file:///studio/minutes.txt"
AUDIO: Final = {
    "type": "audio",
    "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=",
    "mimeType": "audio/wav",
}
CONTENT_TYPES: Final = {
    "text": "",
    "image": "",
    "resource": "",
    "audio": SINCE_AUDIO,
    "resource_link": SINCE_STRUCTURE,
}
"""Since when there is which content in tool results."""

BRIEF: Final = "brief"
"""What a client is told that shall call one tool alone."""


class DemoClient:
    """Asks, and answers what the server asks meanwhile.

    Args:
        revision: The revision spoken.
        peer: Where requests go and responses come from.
    """

    def __init__(self, revision: str, peer: Peer) -> None:
        self.revision = revision
        self.peer = peer

    def has(self, since: str) -> bool:
        """Whether what came with a revision is there."""
        return self.revision >= since

    def converse(self, is_brief: bool = False) -> None:
        """Hold the whole conversation, or that about one tool.

        Raises:
            GivenUp: The server is not understood.
        """
        server = self.initialize()
        self.ask("tools/list")
        if is_brief:
            self.call("publish", {})
            return
        self.call("record", {"seconds": 2})
        self.ask("resources/read", uri=MINUTES)
        if "completions" in server["capabilities"]:
            self.ask("completion/complete", **self.completion())
        self.call("publish", {})
        if self.has(SINCE_ICONS):
            # Without a look at what the server declared, as clients do ask.
            self.peer.ask("tasks/list", {}, self.take)

    def initialize(self) -> dict[str, Any]:
        """Open the session, and give what the server said of itself."""
        capabilities: dict[str, Any] = {"roots": {}, "sampling": {}}
        if self.has(SINCE_STRUCTURE):
            capabilities["elicitation"] = {"form": {}} if self.has(SINCE_ICONS) else {}
        info = {"name": "caller", "version": "1.0"}
        server = self.ask("initialize", protocolVersion=self.revision, capabilities=capabilities, clientInfo=info)
        if server["protocolVersion"] != self.revision:
            raise GivenUp(f"expected {self.revision}, found {server['protocolVersion']}")
        self.peer.notify("notifications/initialized")
        return server

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and give its result."""
        return self.peer.ask_result(method, params, self.take)

    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool and look at what it gave."""
        meta = {"progressToken": tool}
        for block in self.ask("tools/call", name=tool, arguments=arguments, _meta=meta)["content"]:
            if not self.has(CONTENT_TYPES.get(block["type"], "never")):
                raise GivenUp(f"revision {self.revision} has no content of type {block['type']}")

    def completion(self) -> dict[str, Any]:
        """Ask how a value that the user began to type goes on."""
        question: dict[str, Any] = {
            "ref": {"type": "ref/prompt", "name": "summarise"},
            "argument": {"name": "meeting", "value": "wee"},
        }
        if self.has(SINCE_STRUCTURE):
            question["context"] = {"arguments": {"team": "studio"}}
        return question

    def take(self, frame: Frame) -> None:
        """Take what the server sends meanwhile."""
        answers: Answers = {"sampling/createMessage": self.sample}
        if self.has(SINCE_STRUCTURE):
            place = {"action": "accept", "content": {"place": "team"}}
            answers = {**answers, "elicitation/create": lambda params: place}
        self.peer.answer(frame, answers, self.revision)

    def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer as a model would, in the richest form that the revision has."""
        content: Any = {"type": "text", "text": "The new studio."}
        if self.has(SINCE_AUDIO):
            content = AUDIO
        if self.has(SINCE_ICONS):
            content = [{"type": "text", "text": "The new studio."}, {"type": "text", "text": "All agreed."}]
        return {"role": "assistant", "model": "demo", "content": content}


if __name__ == "__main__":
    client = DemoClient(sys.argv[1], Peer())
    sys.exit(run_client(lambda: client.converse(is_brief=BRIEF in sys.argv[2:])))
