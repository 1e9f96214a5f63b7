"""Are recorded frames valid in their receiver's own schema? An independent judge of what crossed.

Reads the canonical schemas of `schema/` with an independent validator; knows nothing of Dragoman's models. Called by
the tests beside it with the records that peers make of their frames, or with those of the proxy's trace (`traces`).

A schema leaves much open. So the judge knows as well who may send what, what only the other era has, which result
answers which request, and what belongs to a subscription.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from jsonschema import Draft202012Validator

SCHEMAS: Final = Path(__file__).parents[2] / "schema"
TASKS: Final = Path(__file__).parent / "tasks_extension.json"
REVISIONS: Final = tuple(path.parent.name for path in SCHEMAS.glob("*/schema.json"))
NEWER: Final = "2026-07-28"
WITH_TASKS: Final = "2025-11-25"
RESULTS: Final = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "logging/setLevel": "EmptyResult",
    "sampling/createMessage": "CreateMessageResult",
    "roots/list": "ListRootsResult",
    "elicitation/create": "ElicitResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tasks/get": "GetTaskResult",
}
TASK_RESULTS: Final = {
    WITH_TASKS: {"tasks/cancel": "CancelTaskResult", "tasks/list": "ListTasksResult", "tasks/result": "CallToolResult"},
    NEWER: {"tasks/cancel": "TaskAcknowledgement", "tasks/update": "TaskAcknowledgement"},
}
"""Tools are all that runs as a task."""

UNIONS: Final = {"client": ("ServerRequest", "ServerNotification"), "server": ("ClientRequest", "ClientNotification")}
"""What each side is sent by the other, as the schemas call it."""

EXTENDED: Final = {
    "ClientRequest": ("GetTaskRequest", "UpdateTaskRequest", "CancelTaskRequest"),
    "ServerNotification": ("TaskNotification",),
}
"""What the tasks extension adds."""

RESULT_TYPES: Final = {
    "tools/call": ("complete", "input_required", "task"),
    "prompts/get": ("complete", "input_required"),
    "resources/read": ("complete", "input_required"),
}
"""What a result of a per-request server can be, where that is more than complete."""

OWN: Final = "io.modelcontextprotocol/"
VERSION: Final = f"{OWN}protocolVersion"
SUBSCRIPTION: Final = f"{OWN}subscriptionId"
RELATED: Final = f"{OWN}related-task"
ONLY_NEWER: Final = ("resultType", "ttlMs", "cacheScope", "inputRequests", "inputResponses", "requestState")
"""Members of params and results that no revision with a handshake has."""

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
SUBSCRIBED: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
    "notifications/tasks": "taskIds",
}
"""Notifications that belong to a subscription, and the member of its filter that lets them come."""

Side = Literal["client", "server"]
Frame = dict[str, Any]


def complaints(record: list[dict[str, Any]], side: Side, revision: str) -> Iterator[str]:
    """Yield what is wrong with each frame that a peer got, as `subject at pointer: message`.

    Args:
        record: What the peer got and sent on one connection, in that order.
        side: What the peer is.
        revision: What it speaks.
    """
    judge = _Judge(side, revision)
    for entry in record:
        if entry.get("sent") is not None:
            judge.note(entry["sent"])
        if entry.get("got") is not None:
            yield from judge.judge(entry["got"])


class _Judge:
    """What is known of a connection, as far as a frame is judged by it."""

    def __init__(self, side: Side, revision: str) -> None:
        self._requests, self._notifications = UNIONS[side]
        self._revision = revision
        self._is_newer = revision == NEWER
        self._asked: dict[Any, Frame] = {}
        self._questions: dict[str, str] = {}  # the methods of embedded requests, by their keys
        self._filters: dict[Any, Frame | None] = {}  # of subscriptions; None until they are acknowledged

    def note(self, frame: Frame) -> None:
        """Take note of what the peer itself has sent."""
        if "method" in frame and "id" in frame:
            self._asked[_key(frame["id"])] = frame
            if frame["method"] == "subscriptions/listen":
                self._filters[_key(frame["id"])] = None
        elif isinstance(frame.get("result"), dict):
            embedded = frame["result"].get("inputRequests") or {}
            self._questions |= {key: question["method"] for key, question in embedded.items()}

    def judge(self, frame: Frame) -> Iterator[str]:
        """Yield what is wrong with a frame that the peer got."""
        if "unreadable" in frame:
            yield f"not a frame: {frame['unreadable']}"
        elif "method" in frame:
            yield from self._judge_message(frame)
        elif _key(frame.get("id")) not in self._asked:
            yield f"answer to nothing asked: {json.dumps(frame)}"
        elif "result" in frame:
            yield from self._judge_result(frame["result"], self._asked.pop(_key(frame["id"])))
        else:
            yield from self._judge_error(frame, self._asked.pop(_key(frame["id"])))

    def _judge_message(self, frame: Frame) -> Iterator[str]:
        method, params = frame["method"], frame.get("params", {})
        revision = _revision_of(frame, self._revision)
        definition = _methods(revision, self._requests if "id" in frame else self._notifications).get(method)
        if definition is None:
            yield f"{method}: {revision} has no such method"
            return
        yield from _validate(frame, definition, revision, method)
        if revision != NEWER:
            yield from self._find_newer(params, method)
        elif "id" in frame:
            if (named := params.get("_meta", {}).get(VERSION)) != revision:
                yield f"{method}: says that it is of {named}"
            answers = params.get("inputResponses")
            for key, answer in answers.items() if isinstance(answers, dict) else ():
                yield from self._judge_embedded(key, answer, method)
        else:
            yield from self._judge_subscribed(method, params)

    def _judge_embedded(self, key: str, answer: Any, method: str) -> Iterator[str]:
        if key not in self._questions:
            yield f"{method}: {key} answers no question"
        else:
            question = self._questions[key]
            yield from _validate(answer, RESULTS[question], NEWER, f"answer to {question} in {method}")

    def _judge_subscribed(self, method: str, params: Frame) -> Iterator[str]:
        """Find out whether a notification comes under a subscription where it has to, and under none otherwise."""
        named = params.get("_meta", {}).get(SUBSCRIPTION)
        if method not in (ACKNOWLEDGED, *SUBSCRIBED):
            if named is not None:
                yield f"{method}: belongs to no subscription, but names one"
            return
        if _key(named) not in self._filters:
            yield f"{method}: there is no subscription {named!r}"
            return
        agreed = self._filters[_key(named)]
        if method == ACKNOWLEDGED:
            if agreed is not None:
                yield f"{method}: a second time for {named!r}"
            wanted = self._asked[_key(named)]["params"]["notifications"]
            self._filters[_key(named)] = params["notifications"]
            if excess := params["notifications"].keys() - wanted.keys():
                yield f"{method}: nobody has asked for {sorted(excess)}"
        elif agreed is None:
            yield f"{method}: {named!r} is not acknowledged"
        elif not agreed.get(SUBSCRIBED[method]):
            yield f"{method}: was not acknowledged"

    def _judge_result(self, result: Frame, request: Frame) -> Iterator[str]:
        method = request["method"]
        subject = f"result of {method}"
        yield from _validate(result, self._definition_of(result, request), self._revision, subject)
        if not self._is_newer:
            yield from self._find_newer(result, subject)
            if method == "tasks/result" and RELATED not in result.get("_meta", {}):
                yield f"{subject}: names no task"
        elif result.get("resultType") not in RESULT_TYPES.get(method, ("complete",)):
            yield f"{subject}: cannot be {result.get('resultType')!r}"
        elif method == "subscriptions/listen":
            del self._filters[_key(request["id"])]
            if _key(result.get("_meta", {}).get(SUBSCRIPTION)) != _key(request["id"]):
                yield f"{subject}: names another subscription"

    def _definition_of(self, result: Frame, request: Frame) -> str:
        """Say which definition a result has to meet."""
        method = request["method"]
        if self._is_newer and result.get("resultType") == "input_required":
            return "InputRequiredResult"
        becomes_task = result.get("resultType") == "task" if self._is_newer else "task" in request.get("params", {})
        if method == "tools/call" and becomes_task:
            return "CreateTaskResult"
        return TASK_RESULTS.get(self._revision, {}).get(method) or RESULTS[method]

    def _judge_error(self, frame: Frame, request: Frame) -> Iterator[str]:
        envelope = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in _definitions(self._revision) else "JSONRPCError"
        subject = f"error of {request['method']}"
        yield from _validate(frame, envelope, self._revision, subject)
        code = frame["error"].get("code")
        if code in _errors(self._revision):
            yield from _validate(frame, _errors(self._revision)[code], self._revision, subject)
        elif any(code in _errors(other) for other in REVISIONS if (other == NEWER) is not self._is_newer):
            yield f"{subject}: {self._revision} has no error {code}"

    def _find_newer(self, members: Frame, subject: str) -> Iterator[str]:
        """Yield what only the era without a handshake has."""
        known = {RELATED} if self._revision == WITH_TASKS else set()
        found = [name for name in ONLY_NEWER if name in members]
        found += [name for name in members.get("_meta", {}) if name.startswith(OWN) and name not in known]
        yield from (f"{subject}: {self._revision} has no {name}" for name in found)


def _key(request_id: Any) -> tuple[type, Any]:
    """Tell ids apart that Python takes for one: 1 and "1" are two, and so are 1 and true."""
    return type(request_id), request_id


def _revision_of(frame: Frame, spoken: str) -> str:
    """Say which revision a frame is of: before a peer has said what it speaks, the frame itself says so."""
    params = frame.get("params", {})
    named = {"initialize": params.get("protocolVersion"), "server/discover": params.get("_meta", {}).get(VERSION)}
    revision: str = named.get(frame["method"]) or spoken
    return revision


def _validate(value: Any, definition: str, revision: str, subject: str) -> Iterator[str]:
    for error in _validator(definition, revision).iter_errors(value):
        yield f"{subject} at /{'/'.join(str(key) for key in error.absolute_path)}: {error.message[:300]}"


@functools.cache
def _definitions(revision: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / revision / "schema.json").read_text("utf-8"))
    added = json.loads(TASKS.read_text("utf-8"))["$defs"] if revision == NEWER else {}
    return {**schema["$defs"], **added}


@functools.cache
def _validator(definition: str, revision: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": _definitions(revision)})


@functools.cache
def _methods(revision: str, union: str) -> dict[str, str]:
    """Give the definition of each method of a union; none where the revision has no such union."""
    definitions = _definitions(revision)
    node = definitions.get(union, {"anyOf": []})
    names = [arm["$ref"].removeprefix("#/$defs/") for arm in node["anyOf"]] if "anyOf" in node else [union]
    names += EXTENDED.get(union, ()) if revision == NEWER else ()
    return {definitions[name]["properties"]["method"]["const"]: name for name in names}


@functools.cache
def _errors(revision: str) -> dict[int, str]:
    """Give the definition of each error that a revision describes as a whole frame."""
    found = {}
    for name, definition in _definitions(revision).items():
        envelope = definition.get("properties", {}).get("error", {}) if name.endswith("Error") else {}
        for part in envelope.get("allOf", ()):
            if "properties" in part:
                found[part["properties"]["code"]["const"]] = name
    return found
