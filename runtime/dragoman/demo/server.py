"""A recording studio that speaks one revision, whatever it is offered, with what this revision has.

Lives here: a server of functions, as the library's users write them. Must not: know that there is a proxy. Called by
`demo.stage`.
"""

from __future__ import annotations

from typing import Any, Final

import dragoman_spec
from dragoman.core.codes import INVALID_PARAMS
from dragoman.demo.client import AUDIO, MINUTES, SINCE_AUDIO, SINCE_ICONS, SINCE_STRUCTURE
from dragoman.errors import McpError
from dragoman.server import Context, Server
from dragoman.server.definition import RequestHandler

ICON: Final = {"src": "https://studio.example/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
PLACES: Final = {"web": "On the web site", "team": "To the team only"}
NOTIFIES: Final = ("notifications/tools/list_changed", "notifications/message")
SECONDS: Final = {"type": "object", "properties": {"seconds": {"type": "integer"}}, "required": ["seconds"]}


def make_studio(revision: str) -> Server:
    """Make the server.

    Args:
        revision: The one that it speaks.
    """
    studio = Studio(revision)
    handlers: dict[str, RequestHandler] = {
        "tools/list": lambda params, context: {"tools": studio.tools()},
        "tools/call": studio.call,
        "resources/list": lambda params, context: {"resources": [{"uri": MINUTES, "name": "minutes"}]},
        "resources/read": studio.read,
        "completion/complete": lambda params, context: {"completion": {"values": ["weekly meeting"], "total": 1}},
    }
    said: dict[str, Any] = {"about": studio.about(), "notifies": NOTIFIES}
    if studio.has_tasks:
        handlers["tasks/list"] = lambda params, context: {"tasks": []}
        said["declares"] = {"tasks": {"requests": {"tools": {"call": {}}}}}
    return Server("studio", "1.0", revision=revision, handlers=handlers, plain=True, **said)


class Studio:
    """What there is in the studio, in the words of a revision.

    Args:
        revision: The one spoken.
    """

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.has_tasks = "tasks/list" in dragoman_spec.load(revision).METHODS

    def has(self, since: str) -> bool:
        """Whether what came with a revision is there."""
        return self.revision >= since

    def about(self) -> dict[str, Any]:
        """Say what the server is, beside its name."""
        about: dict[str, Any] = {}
        if self.has(SINCE_STRUCTURE):
            about["title"] = "Recording studio"
        if self.has(SINCE_ICONS):
            about["icons"] = [ICON]
        return about

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools, each with what the revision can say about one."""
        record: dict[str, Any] = {"name": "record", "description": "Record a meeting.", "inputSchema": SECONDS}
        publish: dict[str, Any] = {"name": "publish", "inputSchema": {"type": "object"}}
        if self.has(SINCE_AUDIO):
            record["annotations"] = {"readOnlyHint": False}
        if self.has(SINCE_STRUCTURE):
            record |= {"title": "Record", "outputSchema": SECONDS}
            publish["title"] = "Publish"
        if self.has(SINCE_ICONS):
            record["icons"] = [ICON]
        if not self.has_tasks:
            return [record, publish]
        transcribe = {"name": "transcribe", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        return [record, transcribe, publish]

    async def call(self, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """Run a tool."""
        match params:
            case {"name": "publish"}:
                return await self.publish(context)
            case {"name": "record", "arguments": {"seconds": int(seconds)}}:
                return await self.record(seconds, context)
            case {"name": "record"}:
                raise McpError(INVALID_PARAMS, "expected a number of seconds")
        raise McpError(INVALID_PARAMS, f"there is no tool {params.get('name')}")

    async def record(self, seconds: int, context: Context) -> dict[str, Any]:
        """Tell how it goes, ask the client's model for a caption, and give a recording of every kind there is."""
        context.progress(1, 2, "half of it" if self.has(SINCE_AUDIO) else None)
        context.log("info", "recording", "studio")
        content: list[dict[str, Any]] = [{"type": "text", "text": f"{seconds} seconds: {await self.caption(context)}"}]
        if self.has(SINCE_AUDIO):
            content.append(AUDIO)
        if not self.has(SINCE_STRUCTURE):
            return {"content": content}
        link = {"type": "resource_link", "uri": MINUTES, "name": "minutes", "title": "The minutes"}
        return {"content": [*content, link], "structuredContent": {"seconds": seconds}}

    async def caption(self, context: Context) -> str:
        """Ask the client's model what was said."""
        text = {"type": "text", "text": "What was this meeting about?"}
        content: Any = AUDIO if self.has(SINCE_AUDIO) else text
        if self.has(SINCE_ICONS):
            content = [text, AUDIO]
        question = {"messages": [{"role": "user", "content": content}], "maxTokens": 50}
        said = (await context.ask({"method": "sampling/createMessage", "params": question}))["content"]
        return " ".join(block.get("text", "(spoken)") for block in (said if isinstance(said, list) else [said]))

    def read(self, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """Read a file."""
        if params.get("uri") != MINUTES:
            raise McpError(INVALID_PARAMS, f"there is no {params.get('uri')}")
        contents: dict[str, Any] = {"uri": MINUTES, "mimeType": "text/plain", "text": "All agreed."}
        if self.has(SINCE_STRUCTURE):
            contents["_meta"] = {"studio.example/pages": 1}
        return {"contents": [contents]}

    async def publish(self, context: Context) -> dict[str, Any]:
        """Ask the user where to publish, without a look at what the client declared; without an answer, do not."""
        if not self.has(SINCE_STRUCTURE):
            return {"content": [{"type": "text", "text": "Published for the team."}]}
        try:
            answer = await context.ask({"method": "elicitation/create", "params": self.question()}, anyway=True)
        except McpError:
            reason = "Not published: the user could not be asked."
            return {"content": [{"type": "text", "text": reason}], "isError": True}
        place = answer.get("content", {}).get("place", "nowhere")
        return {"content": [{"type": "text", "text": f"Published: {place}."}]}

    def question(self) -> dict[str, Any]:
        """Return the form that asks where to publish."""
        place: dict[str, Any] = {"type": "string", "enum": list(PLACES), "enumNames": list(PLACES.values())}
        if self.has(SINCE_ICONS):
            place = {"type": "string", "oneOf": [{"const": key, "title": title} for key, title in PLACES.items()]}
        form = {"type": "object", "properties": {"place": place}, "required": ["place"]}
        mode = {"mode": "form"} if self.has(SINCE_ICONS) else {}
        return {**mode, "message": "Where shall the minutes be published?", "requestedSchema": form}
