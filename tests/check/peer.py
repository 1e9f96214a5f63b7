"""A server in memory, in any revision, that keeps every rule of a check but the one that it is told to break."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dragoman_spec
from dragoman.transports.memory import MemoryTransport, connect_pair

RESOURCE = "notes://one"
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}}
NAMED = {"resources/list": "resources", "prompts/list": "prompts", "resources/templates/list": "resourceTemplates"}


class Peer:
    """One session.

    Args:
        revision: That it speaks.
        broken: The rule that it breaks; empty for none.
    """

    def __init__(self, revision: str, broken: str = "") -> None:
        self.revision = revision
        self.facts = dragoman_spec.facts(revision)
        self.codes = {name: code for code, name in dragoman_spec.load(revision).ERROR_CODES.items()}
        self.rule = broken
        self.level = ""
        self.asked = 0
        self.listed = 0
        self._rest = b""
        self._end: MemoryTransport

    def connect(self) -> MemoryTransport:
        """Give the client's end."""
        theirs, self._end = connect_pair("client", "server")
        self._end.start_raw(self)
        if self.rule == "stdout-messages":
            self._end.write(b"Server is up and running\n")
        return theirs

    # What the transport calls

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.take(json.loads(line))

    def ended(self, reason: str) -> None: ...
    def broken(self, reason: str) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

    # What is said

    def say(self, frame: dict[str, Any]) -> None:
        self._end.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.say({"method": method, "params": params})

    def take(self, frame: dict[str, Any]) -> None:
        if "method" not in frame:
            return
        if "id" not in frame:
            if self.rule == "notification-silence" and frame["method"].endswith("check"):
                self.say({"id": None, "error": {"code": -32601, "message": "what?"}})
            return
        self.asked += 1
        params = frame.get("params") or {}
        try:
            answer = {"result": self.answer(frame["method"], params)}
        except Refusal as refusal:
            answer = {"error": refusal.error}
        except Lasting:
            return
        if self.rule != "answered" or frame["method"] != "prompts/list":
            self.send(frame, answer)

    def send(self, frame: dict[str, Any], answer: dict[str, Any]) -> None:
        """Send an answer, or what comes in its place."""
        whole: Any = {"jsonrpc": "2.0", "id": frame["id"], **answer}
        match self.rule if frame["method"] == "tools/list" else "":
            case "jsonrpc-version":
                whole["jsonrpc"] = "1.0"
            case "result-or-error" if "result" in answer:
                whole["error"] = {"code": -32603, "message": "and yet it is"}
            case "answer-id":
                whole["id"] = str(frame["id"])
            case "answer-once":
                self._end.write(json.dumps(whole).encode() + b"\n")
            case "no-batches":
                whole = [whole]
            case "frame-shape":
                self._end.write(b'{"jsonrpc":"2.0","id":77}\n')
            case "one-member":
                self._end.write(json.dumps(whole)[:-1].encode() + b',"jsonrpc":"2.0"}\n')
                return
            case "error-model" if "error" in answer:
                whole["error"]["message"] = 5
            case "alive":
                self._end.end()
                return
        self._end.write(json.dumps(whole).encode() + b"\n")

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Give the result of a request."""
        if self.facts.era == "per_request":
            self.check_meta(params)
        if method == "initialize":
            return self.initialize(params)
        result = self.answer_open(method, params)
        if self.facts.era == "per_request" and self.rule != "result-model":
            result = {"resultType": "complete", **result}
            if method in self.facts.cacheable:
                result = {"ttlMs": 0, "cacheScope": "private", **result}
        return result

    def check_meta(self, params: dict[str, Any]) -> None:
        meta = params.get("_meta", {})
        if not self.facts.required_meta <= meta.keys() and self.rule != "meta-required":
            raise Refusal(-32602, "no metadata")
        said = meta.get(self.facts.request_meta["protocolVersion"], self.revision)
        if said != self.revision and self.rule != "revision-refused":
            data = {"supported": [self.revision], "requested": said}
            raise Refusal(self.codes["UNSUPPORTED_PROTOCOL_VERSION"], "unsupported", data)
        self.level = meta.get(self.facts.request_meta["logLevel"], "")
        if self.level and self.level not in self.facts.log_levels and self.rule != "log-level-checked":
            raise Refusal(-32602, "no such level")

    def capabilities(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "tools": {"listChanged": True},
            "resources": {},
            "prompts": {},
            "logging": {},
        }
        if "completions" in self.facts.server_capabilities:
            found["completions"] = {}
        if self.rule == "answers-declared":
            del found["prompts"]
        if self.rule == "notices-declared":
            found["tools"] = {}
        return found

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params["protocolVersion"]
        if self.rule == "quiet-before-open":
            self.say({"id": "early", "method": "roots/list"})
        revision = self.revision
        if self.rule == "revision-known":
            revision = "2.0"
        elif self.rule == "revision-answered" and asked.startswith("1999"):
            revision = asked
        info = {"name": "peer", "version": "1"}
        return {"protocolVersion": revision, "capabilities": self.capabilities(), "serverInfo": info}

    def discover(self) -> dict[str, Any]:
        found: dict[str, Any] = {"supportedVersions": [self.revision], "capabilities": self.capabilities()}
        if self.rule != "discover-name":
            found["_meta"] = {self.facts.result_meta["serverInfo"]: {"name": "peer", "version": "1"}}
        if self.rule == "discover-revision":
            found["supportedVersions"] = []
        return found

    def answer_open(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "server/discover": lambda params: self.discover(),
            "ping": lambda params: {"pong": True} if self.rule == "ping" else {},
            "tools/list": self.list_tools,
            "resources/list": self.list_others,
            "tools/call": self.call,
            "resources/read": self.read,
            "prompts/get": self.prompt,
            "logging/setLevel": self.set_level,
            "completion/complete": self.complete,
            "subscriptions/listen": self.listen,
        }
        if self.rule == "log-level-kept" and self.level:
            self.notify("notifications/message", {"level": "debug", "data": "psst"})
        if method in NAMED:
            return {NAMED[method]: self.page(NAMED[method], params)}
        known = dragoman_spec.load(self.revision).METHODS
        if (method not in answers or method not in known) and self.rule != "unknown-method":
            raise Refusal(-32601, f"there is no {method}")
        if self.rule == "declared-answers" and method == "tools/list":
            raise Refusal(-32601, f"there is no {method}")
        return answers[method](params) if method in answers else {}

    def page(self, kind: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        self.check_cursor(params)
        return {
            "resources": self.give_resources,
            "prompts": self.give_prompts,
            "resourceTemplates": self.give_templates,
        }[kind]()

    def check_cursor(self, params: dict[str, Any]) -> None:
        cursor = params.get("cursor")
        if cursor is not None and not cursor.startswith("page") and self.rule != "cursor-checked":
            raise Refusal(-32602, "no such cursor")

    def list_others(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"resources": self.page("resources", params)}

    def give_resources(self) -> list[dict[str, Any]]:
        one = {"uri": RESOURCE, "name": "one", "mimeType": "image/png"}
        match self.rule:
            case "uri":
                one["uri"] = "one.txt"
            case "mime-type":
                one["mimeType"] = "text"
            case "resource-unique":
                return [one, one]
        return [one]

    def give_templates(self) -> list[dict[str, Any]]:
        one = {"uriTemplate": "notes://{name}", "name": "notes"}
        if self.rule == "uri-template":
            one["uriTemplate"] = "notes://{name"
        return [one, one] if self.rule == "template-unique" else [one]

    def give_prompts(self) -> list[dict[str, Any]]:
        topic = {"name": "topic", "required": True}
        arguments = [topic, topic] if self.rule == "argument-unique" else [topic]
        found: list[dict[str, Any]] = [{"name": "greet"}, {"name": "explain", "arguments": arguments}]
        return [*found, found[0]] if self.rule == "prompt-unique" else found

    def list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        self.check_cursor(params)
        self.listed += 1
        tool: dict[str, Any] = {
            "name": "look",
            "inputSchema": SCHEMA,
            "outputSchema": SCHEMA,
            "annotations": {"readOnlyHint": True},
        }
        self.spoil(tool)
        tools = [tool, {**tool, "name": "other", "annotations": {}}]
        if self.rule == "tool-unique":
            tools.append(tool)
        if self.rule == "list-order" and self.listed % 2:
            tools.reverse()
        result: dict[str, Any] = {"tools": tools}
        if self.rule == "cursor-new":
            result = {"tools": [] if "cursor" in params else tools, "nextCursor": "page"}
        if self.rule == "pages-end":
            result = {"tools": [], "nextCursor": f"page {self.asked}"}
        self.remark()
        return result

    def spoil(self, tool: dict[str, Any]) -> None:
        """Break a rule about tools."""
        match self.rule:
            case "result-model":
                tool["description"] = 5
            case "tool-name":
                tool["name"] = "look here!"
            case "input-schema":
                tool["inputSchema"] = {"type": "object", "properties": {"a": {"type": "text"}}}
            case "output-schema":
                tool["outputSchema"] = {"type": "object", "properties": {"a": {"type": "text"}}}
            case "tool-hints":
                tool["annotations"] = {"readOnlyHint": True, "destructiveHint": True}
            case "mirrored-arguments":
                argument = {"type": "object", "x-mcp-header": "not a token"}
                tool["inputSchema"] = {"type": "object", "properties": {"a": argument}}

    def remark(self) -> None:
        """Say what belongs to no request, where that breaks a rule."""
        match self.rule:
            case "notification-model":
                self.notify("notifications/message", {"level": "loud", "data": 1})
            case "method-known":
                self.notify("notifications/dinner", {})
            case "request-model":
                self.say({"id": self.asked + 0.5, "method": "ping"})
            case "request-id-fresh":
                self.say({"id": "a", "method": "ping"})
                self.say({"id": "a", "method": "ping"})
            case "no-requests":
                self.say({"id": "a", "method": "roots/list"})
            case "client-declared" if self.facts.era == "handshake":
                self.say(
                    {
                        "id": f"a{self.asked}",
                        "method": "sampling/createMessage",
                        "params": {"messages": [], "maxTokens": 1},
                    }
                )
            case "notices-declared":
                self.notify("notifications/tools/list_changed", {})
            case "progress-token":
                self.notify("notifications/progress", {"progressToken": "nobody's", "progress": 1})
            case "flood":
                for number in range(1001):
                    self.say({"id": f"nobody's {number}", "result": {}})
            case "log-asked-for":
                self.notify("notifications/message", {"level": "info", "data": "hello"})

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        if not params["name"].startswith("look") and self.rule != "tool-missing":
            raise Refusal(-32602, "no such tool")
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            for progress in (1, 2) if self.rule != "progress-grows" else (2, 2):
                self.notify("notifications/progress", {"progressToken": token, "progress": progress})
        structured: Any = {"a": 1}
        if self.rule == "structured-output":
            structured = {"a": "one"}
        content = [{"type": "text", "text": '{"a": 1}'}]
        if self.rule == "structured-text":
            content = []
        if self.rule == "client-declared" and self.facts.era == "per_request":
            return {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}
        return {"content": content, "structuredContent": structured}

    def read(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["uri"] not in (RESOURCE, "one.txt") and self.rule != "resource-missing":
            raise Refusal(self.codes.get("RESOURCE_NOT_FOUND", -32602), "no such resource")
        if self.rule == "resource-read":
            raise Refusal(-32603, "not today")
        blob = "not base64!" if self.rule == "base64" else "aGk="
        return {"contents": [{"uri": params["uri"], "blob": blob}]}

    def prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["name"] not in ("greet", "explain") and self.rule != "prompt-missing":
            raise Refusal(-32602, "no such prompt")
        if params["name"] == "explain" and "arguments" not in params and self.rule != "prompt-arguments":
            raise Refusal(-32602, "which topic?")
        if self.rule == "prompt-get" and params["name"] == "greet":
            raise Refusal(-32603, "not today")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}

    def set_level(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["level"] not in self.facts.log_levels and self.rule != "log-level-checked":
            raise Refusal(-32602, "no such level")
        self.level = params["level"]
        return {}

    def complete(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["ref"]["name"] not in ("greet", "explain"):
            raise Refusal(-32602, "no such prompt")
        count = 101 if self.rule == "completion-limit" else 3
        return {"completion": {"values": ["a"] * count}}

    def listen(self, params: dict[str, Any]) -> dict[str, Any]:
        told = params["notifications"]
        if self.rule != "subscription-acknowledged":
            self.notify("notifications/subscriptions/acknowledged", {"notifications": told})
        raise Lasting


class Refusal(Exception):
    """The error that answers a request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Lasting(Exception):
    """A request that is not answered as long as it lasts."""
