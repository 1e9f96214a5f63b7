"""Names in a session that another instance had before: none is one that was given out there.

Lives here: ids of what the server asks. Must not: know which instance that was. Used by `streamable_session`.

A client may still answer what it was asked by the instance that is gone. Its answer is for nobody; without a mark it
would be taken for the answer to whatever the server asks here under the same id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dragoman.core.envelope import Frame, Malformed, decoded, id_of, key_of, rewrite
from dragoman.core.methods import CANCELLED


class Marking:
    """Marks the ids of requests to the client, and takes the mark from its answers.

    Args:
        mark: In no id that the client has heard in this session before.
    """

    def __init__(self, mark: str) -> None:
        self._head = f"dragoman-{mark}:"

    def mark(self, frame: Frame) -> Frame:
        """Return what goes to the client."""
        return _change(frame, self._mark) or frame

    def unmark(self, frame: Frame) -> Frame | None:
        """Return what comes from it; None where all of it answers what was asked elsewhere."""
        return _change(frame, self._unmark) if frame.method is None else frame

    def unmark_garbled(self, answer: Malformed) -> Malformed:
        """Return an answer that cannot be read under the id that it answers; without one if that is from elsewhere."""
        unmarked = self._unmark({"id": id_of(answer.key or b"null")}) or {"id": None}
        return answer._replace(key=key_of(unmarked["id"]))

    def _mark(self, body: Any) -> Any:
        if isinstance(body, dict) and "method" in body:
            params = body.get("params")
            if "id" in body:
                return {**body, "id": self._name(body["id"])}
            if body["method"] == CANCELLED and isinstance(params, dict) and "requestId" in params:
                return {**body, "params": {**params, "requestId": self._name(params["requestId"])}}
        return body

    def _unmark(self, body: Any) -> Any:
        key = body.get("id") if isinstance(body, dict) and "method" not in body else None
        if key is None:
            return body
        if isinstance(key, str) and key.startswith(self._head):
            with contextlib.suppress(ValueError):
                return {**body, "id": id_of(key.removeprefix(self._head).encode())}
        return None

    def _name(self, key: Any) -> str:
        return f"{self._head}{(key_of(key) or b'null').decode()}"


def _change(frame: Frame, change: Callable[[Any], Any]) -> Frame | None:
    body = decoded(frame).body
    if not isinstance(body, list):
        changed = change(body)
        if changed is None:
            return None
        return rewrite(frame, changed)._replace(key=key_of(changed.get("id")))
    members = [member for member in map(change, body) if member is not None]
    return rewrite(frame, members) if members else None
