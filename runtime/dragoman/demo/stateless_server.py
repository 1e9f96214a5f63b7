"""`python -m dragoman.demo.stateless_server REVISION`: the recording studio without a handshake.

Each request speaks for itself, and what the studio wants to know it asks by a result. Lives here: that server. Must
not: know that there are other revisions than its own, or that there is a proxy. Called by `demo.stage`, as a process of
its own.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from dragoman.core.bridge.names import META_SERVER_INFO
from dragoman.demo.peer import Frame, Peer
from dragoman.demo.server import PLACES

KEPT: Final = {"ttlMs": 60000, "cacheScope": "private"}
TITLED: Final = [{"const": key, "title": title} for key, title in PLACES.items()]
QUESTION: Final = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Where shall the minutes be published?",
        "requestedSchema": {
            "type": "object",
            "properties": {"place": {"type": "string", "oneOf": TITLED}},
            "required": ["place"],
        },
    },
}


class StatelessStudio:
    """Answers requests, one after the other.

    Args:
        revision: The revision spoken.
        peer: Where requests come from and answers go.
    """

    def __init__(self, revision: str, peer: Peer) -> None:
        self.revision = revision
        self.peer = peer
        self.answers = {"server/discover": self.discover, "tools/list": self.list_tools, "tools/call": self.call}

    def serve(self) -> None:
        """Answer until the client closes."""
        for frame in self.peer.frames():
            self.take(frame)

    def take(self, frame: Frame) -> None:
        """Take what the client sends."""
        self.peer.answer(frame, self.answers, self.revision)

    def discover(self, params: dict[str, Any]) -> dict[str, Any]:
        """Say what there is."""
        about = {META_SERVER_INFO: {"name": "studio", "version": "2.0"}}
        told = {"supportedVersions": [self.revision], "capabilities": {"tools": {}}, **KEPT, "_meta": about}
        return {"resultType": "complete", **told}

    def list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        """List the tool."""
        tools = [{"name": "publish", "title": "Publish", "inputSchema": {"type": "object"}}]
        return {"resultType": "complete", "tools": tools, **KEPT}

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        """Publish, once it is known where."""
        answers = params.get("inputResponses")
        if answers is None:
            return {"resultType": "input_required", "inputRequests": {"place": QUESTION}, "requestState": "draft-1"}
        place = answers["place"].get("content", {}).get("place", "nowhere")
        return {"resultType": "complete", "content": [{"type": "text", "text": f"Published: {place}."}]}


if __name__ == "__main__":
    StatelessStudio(sys.argv[1], Peer("ask-")).serve()
