"""A client that asks its server a few things, and ends.

It is as strict as released clients are: a revision that it does not speak, or content that its revision does not have,
makes it give up. Lives here: the questions, and the answers to what the server asks. Must not: know that there are
other revisions than its own, or that there is a proxy.

It stands on the session of the client library, and not on `dragoman.connect`: behind that is a proxy of its own, which
would leave nothing to show. And `Client` looks at what a server has declared before it asks; this one does not.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from dragoman.client.session import Session
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.rules.names import META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION
from dragoman.errors import ConnectionClosed, McpError
from dragoman_spec import HANDSHAKE_REVISIONS

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

_PLACE: Final = {"action": "accept", "content": {"place": "team"}}
"""What the user answers who is asked where to publish."""


class GivenUp(Exception):
    """The server said something that this client's revision does not have, or does not answer."""


class DemoClient:
    """Asks, and answers what the server asks meanwhile.

    Args:
        revision: The revision spoken.
        is_brief: Whether a client with a session calls one tool alone.

    Attributes:
        session: Where requests go and responses come from.
    """

    def __init__(self, revision: str, is_brief: bool = False) -> None:
        self.revision = revision
        self.session = Session(self, self.answer)
        self._is_brief = is_brief

    def has(self, since: str) -> bool:
        """Whether what came with a revision is there."""
        return self.revision >= since

    async def converse(self) -> None:
        """Hold the whole conversation.

        Raises:
            GivenUp: The server is not understood.
        """
        if self.revision in HANDSHAKE_REVISIONS:
            await self.converse_in_session()
        else:
            await self.converse_by_requests()

    async def converse_in_session(self) -> None:
        """Open a session, and use what the server offers."""
        server = await self.initialize()
        await self.ask("tools/list")
        if not self._is_brief:
            await self.call("record", {"seconds": 2})
            await self.ask("resources/read", uri=MINUTES)
            if "completions" in server["capabilities"]:
                await self.ask("completion/complete", **self.completion())
        await self.call("publish", {})
        if self.has(SINCE_ICONS) and not self._is_brief:
            with contextlib.suppress(GivenUp):  # without a look at what the server declared, as clients do ask
                await self.ask("tasks/list")

    async def converse_by_requests(self) -> None:
        """Call a tool, and call it again with what it asks."""
        about = {
            META_VERSION: self.revision,
            META_CLIENT_INFO: {"name": "caller", "version": "2.0"},
            META_CLIENT_CAPABILITIES: {"elicitation": {"form": {}}},
        }
        await self.ask("server/discover", _meta=about)
        await self.ask("tools/list", _meta=about)
        result = await self.ask("tools/call", name="publish", arguments={}, _meta=about)
        while result["resultType"] == "input_required":
            said: dict[str, Any] = {"inputResponses": dict.fromkeys(result["inputRequests"], _PLACE)}
            if "requestState" in result:
                said["requestState"] = result["requestState"]
            result = await self.ask("tools/call", name="publish", arguments={}, **said, _meta=about)

    async def initialize(self) -> dict[str, Any]:
        """Open the session, and give what the server said of itself."""
        capabilities: dict[str, Any] = {"roots": {}, "sampling": {}}
        if self.has(SINCE_STRUCTURE):
            capabilities["elicitation"] = {"form": {}} if self.has(SINCE_ICONS) else {}
        info = {"name": "caller", "version": "1.0"}
        said = {"protocolVersion": self.revision, "capabilities": capabilities, "clientInfo": info}
        server = await self.ask("initialize", **said)
        if server["protocolVersion"] != self.revision:
            raise GivenUp(f"expected {self.revision}, found {server['protocolVersion']}")
        self.session.notify("notifications/initialized", {})
        return server

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and give its result."""
        try:
            result: dict[str, Any] = (await self.session.ask(method, params))["result"]
        except McpError as error:
            raise GivenUp(f"{method} failed: {error.message}") from None
        except ConnectionClosed:
            raise GivenUp(f"no response to {method}") from None
        return result

    async def call(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool and look at what it gave."""
        meta = {"progressToken": tool}
        for block in (await self.ask("tools/call", name=tool, arguments=arguments, _meta=meta))["content"]:
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

    # What the server says

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the server."""
        if method == "sampling/createMessage":
            return self.sample()
        if method == "elicitation/create" and self.has(SINCE_STRUCTURE):
            return _PLACE
        raise McpError(METHOD_NOT_FOUND, f"revision {self.revision} has no {method}")

    def sample(self) -> dict[str, Any]:
        """Answer as a model would, in the richest form that the revision has."""
        content: Any = {"type": "text", "text": "The new studio."}
        if self.has(SINCE_AUDIO):
            content = AUDIO
        if self.has(SINCE_ICONS):
            content = [{"type": "text", "text": "The new studio."}, {"type": "text", "text": "All agreed."}]
        return {"role": "assistant", "model": "demo", "content": content}

    def deliver(self, body: dict[str, Any]) -> None:
        """Nothing follows from a notification here."""

    def discard(self, what: str, reason: str) -> None:
        """What cannot be read, the record shows."""

    def end(self) -> None:
        """The conversation says itself that it is over."""
