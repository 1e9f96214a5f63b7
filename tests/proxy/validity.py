"""Conversations in which every frame that reaches a peer is held against the schema of that peer's own revision."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import dragoman_spec
from dragoman.core.exact_json import decode
from dragoman.proxy import Proxy
from tests.proxy import conversation
from tests.proxy.conversation import Peer, Step

NEW = "2026-07-28"


def hold(steps: Sequence[Step], **config: Any) -> Proxy:
    """Hold a conversation of a per-request client, and check what either side has heard."""
    return conversation.hold(steps, check=check, **config)


def check(client: Peer, server: Peer) -> None:
    """Hold every frame against the schema of who heard it."""
    validate_heard(client, NEW)
    answers = [frame["result"] for frame in frames(server.said) if isinstance(frame.get("result"), dict)]
    revision = next((answer["protocolVersion"] for answer in answers if "protocolVersion" in answer), None)
    if revision is not None:
        validate_heard(server, revision)


def validate_heard(peer: Peer, revision: str) -> None:
    """Hold what a peer has heard against a revision; a response by the request that it answers."""
    asked = {(type(frame["id"]), frame["id"]): frame["method"] for frame in frames(peer.said) if is_request(frame)}
    for frame in frames(peer.heard):
        method = frame.get("method")
        if method in ("initialize", "server/discover") or (method or "").startswith("acme/"):
            continue  # said before it is known what the server speaks; of no schema
        if revision == NEW and (method or "").startswith("tasks/"):
            assert isinstance(frame["params"]["taskId"], str)
            continue
        if method == "notifications/tasks":
            check_task(frame["params"], has_payload=True)
            continue
        answered = None if method else asked.get((type(frame.get("id")), frame.get("id")))
        if revision == NEW and is_about_task(answered, frame):
            continue
        dragoman_spec.validate(frame, revision, answered)


def frames(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """Decode lines, those that are objects."""
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(decode(line))
    return [frame for frame in found if isinstance(frame, dict)]


def is_request(frame: dict[str, Any]) -> bool:
    """Whether a frame asks something."""
    return "method" in frame and "id" in frame


PAYLOAD = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}


def is_about_task(answered: str | None, frame: dict[str, Any]) -> bool:
    """Whether a frame is a response of the tasks extension, which the schemas do not have; then it is checked here."""
    found = frame.get("result")
    if not isinstance(found, dict) or not (found.get("resultType") == "task" or (answered or "").startswith("tasks/")):
        return False
    if answered in ("tasks/update", "tasks/cancel"):
        assert {name for name in found if name != "_meta"} == {"resultType"}, found
    else:
        check_task(found, has_payload=found["resultType"] == "complete")
    return True


def check_task(task: dict[str, Any], *, has_payload: bool) -> None:
    """Hold what is said of a task against the page of the extension (SEP-2663)."""
    assert task["status"] in ("working", "cancelled", *PAYLOAD), task
    assert all(isinstance(task[name], str) for name in ("taskId", "createdAt", "lastUpdatedAt")), task
    assert task["ttlMs"] is None or isinstance(task["ttlMs"], int), task
    assert isinstance(task.get("pollIntervalMs", 0), int), task
    payload = {name for name in ("inputRequests", "result", "error") if name in task}
    assert payload == (PAYLOAD.get(task["status"], set()) if has_payload else set()), task
