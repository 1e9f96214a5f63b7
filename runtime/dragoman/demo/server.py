"""`python -m dragoman.demo.server REVISION`: a recording studio that speaks one revision, whatever it is offered.

Lives here: a server as people write them, with what its revision has and nothing that came later. Must not: know that
there are other revisions than its own, or that there is a proxy. Called by `demo.stage`, as a process of its own.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from dragoman.demo.peer import Answers, Frame, Peer

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
ICON: Final = {"src": "https://studio.example/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
PLACES: Final = {"web": "On the web site", "team": "To the team only"}


class Studio:
    """Answers requests, one after the other.

    Args:
        revision: The revision spoken.
        peer: Where requests come from and answers go.
    """

    def __init__(self, revision: str, peer: Peer) -> None:
        self.revision = revision
        self.peer = peer
        self.answers: Answers = {
            "initialize": self.initialize,
            "ping": lambda params: {},
            "tools/list": lambda params: {"tools": self.tools()},
            "tools/call": self.call,
            "resources/list": lambda params: {"resources": [{"uri": MINUTES, "name": "minutes"}]},
            "resources/read": self.read,
            "logging/setLevel": lambda params: {},
            "completion/complete": lambda params: {"completion": {"values": ["weekly meeting"], "total": 1}},
        }
        if self.has(SINCE_ICONS):
            self.answers = {**self.answers, "tasks/list": lambda params: {"tasks": []}}

    def has(self, since: str) -> bool:
        """Whether what came with a revision is there."""
        return self.revision >= since

    def serve(self) -> None:
        """Answer until the client closes."""
        for frame in self.peer.frames():
            self.take(frame)

    def take(self, frame: Frame) -> None:
        """Take what the client sends."""
        self.peer.answer(frame, self.answers, self.revision)

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """Introduce the server, in its own revision: "another protocol version it supports" (basic/lifecycle)."""
        capabilities: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {}, "logging": {}}
        info: dict[str, Any] = {"name": "studio", "version": "1.0"}
        if self.has(SINCE_AUDIO):
            capabilities["completions"] = {}
        if self.has(SINCE_STRUCTURE):
            info["title"] = "Recording studio"
        if self.has(SINCE_ICONS):
            capabilities["tasks"] = {"list": {}, "requests": {"tools": {"call": {}}}}
            info["icons"] = [ICON]
        return {"protocolVersion": self.revision, "capabilities": capabilities, "serverInfo": info}

    def tools(self) -> list[dict[str, Any]]:
        """Give the tools, each with what the revision can say about one."""
        seconds = {"type": "object", "properties": {"seconds": {"type": "integer"}}, "required": ["seconds"]}
        record: dict[str, Any] = {"name": "record", "description": "Record a meeting.", "inputSchema": seconds}
        publish: dict[str, Any] = {"name": "publish", "inputSchema": {"type": "object"}}
        if self.has(SINCE_AUDIO):
            record["annotations"] = {"readOnlyHint": False}
        if self.has(SINCE_STRUCTURE):
            record |= {"title": "Record", "outputSchema": {**seconds}}
            publish["title"] = "Publish"
        if not self.has(SINCE_ICONS):
            return [record, publish]
        record["icons"] = [ICON]
        transcribe = {"name": "transcribe", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        return [record, transcribe, publish]

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        """Run a tool."""
        tools = {"publish": lambda params: self.publish(), "record": self.record}
        return tools[params["name"]](params)

    def record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Tell how it goes, ask the client's model for a caption, and give a recording of every kind there is."""
        progress: dict[str, Any] = {"progress": 1, "total": 2}
        if self.has(SINCE_AUDIO):
            progress["message"] = "half of it"
        self.peer.notify("notifications/progress", progressToken=params["_meta"]["progressToken"], **progress)
        self.peer.notify("notifications/message", level="info", logger="studio", data="recording")
        seconds = params["arguments"]["seconds"]
        content: list[dict[str, Any]] = [{"type": "text", "text": f"{seconds} seconds: {self.caption()}"}]
        if self.has(SINCE_AUDIO):
            content.append(AUDIO)
        if not self.has(SINCE_STRUCTURE):
            return {"content": content}
        link = {"type": "resource_link", "uri": MINUTES, "name": "minutes", "title": "The minutes"}
        return {"content": [*content, link], "structuredContent": {"seconds": seconds}}

    def caption(self) -> str:
        """Ask the client's model what was said."""
        text = {"type": "text", "text": "What was this meeting about?"}
        content: Any = text
        if self.has(SINCE_AUDIO):
            content = AUDIO
        if self.has(SINCE_ICONS):
            content = [text, AUDIO]
        question = {"messages": [{"role": "user", "content": content}], "maxTokens": 50}
        response = self.peer.ask("sampling/createMessage", question, self.take)
        said = response.get("result", {}).get("content", {})
        texts = [block.get("text", "(spoken)") for block in (said if isinstance(said, list) else [said])]
        return " ".join(texts)

    def read(self, params: dict[str, Any]) -> dict[str, Any]:
        """Read a file."""
        if params["uri"] != MINUTES:
            raise KeyError(params["uri"])
        contents: dict[str, Any] = {"uri": params["uri"], "mimeType": "text/plain", "text": "All agreed."}
        if self.has(SINCE_STRUCTURE):
            contents["_meta"] = {"studio.example/pages": 1}
        return {"contents": [contents]}

    def publish(self) -> dict[str, Any]:
        """Ask the user where to publish, without a look at what the client declared; without an answer, do not."""
        if not self.has(SINCE_STRUCTURE):
            return {"content": [{"type": "text", "text": "Published for the team."}]}
        response = self.peer.ask("elicitation/create", self.question(), self.take)
        if "error" in response:
            reason = "Not published: the user could not be asked."
            return {"content": [{"type": "text", "text": reason}], "isError": True}
        place = response["result"].get("content", {}).get("place", "nowhere")
        return {"content": [{"type": "text", "text": f"Published: {place}."}]}

    def question(self) -> dict[str, Any]:
        """Give the form that asks where to publish."""
        place: dict[str, Any] = {"type": "string", "enum": list(PLACES), "enumNames": list(PLACES.values())}
        if self.has(SINCE_ICONS):
            place = {"type": "string", "oneOf": [{"const": key, "title": title} for key, title in PLACES.items()]}
        form = {"type": "object", "properties": {"place": place}, "required": ["place"]}
        mode = {"mode": "form"} if self.has(SINCE_ICONS) else {}
        return {**mode, "message": "Where shall the minutes be published?", "requestedSchema": form}


if __name__ == "__main__":
    Studio(sys.argv[1], Peer("ask-")).serve()
