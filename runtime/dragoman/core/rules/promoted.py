"""A call at a server with a handshake that has become a task for its per-request client: what is told of it.

Lives here: one task, in the form of the extension. Must not: keep it, send, or read clocks (`core.switch`).

Theory of operation. The specification's own place for a call that waits is a task: at the first question the client's
request is answered with one, and the call goes on. The client asks for the task from time to time; what the server asks
stands in it, and `tasks/update` brings the answers (extension `io.modelcontextprotocol/tasks`, SEP-2663). Unlike a
parked call it survives that its client reconnects, can be cancelled, and says how long it is kept. Its id is a sealed
state: it is good for its server and its caller only, and says which instance has the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.rules.asking import OpenQuestions
from dragoman.core.rules.tasks import spell_time

_POLL_MS: Final = 1000
_LONGEST_MS: Final = 366 * 86_400_000


@dataclass(slots=True)
class Task:
    """What is known of a task.

    Attributes:
        questions: What is asked about the call; they stand in the task until they are answered.
        updated_s: When it last changed, in seconds since 1970; at first, when it was made.
        ttl_ms: How long it is kept, from its beginning.
        told: What the server said last, in the form of 2025-11-25, where it is a task there too.
        ended: How it has ended; empty while it runs.
        payload: The result or the error.
        weight_bytes: How much it holds of that.
    """

    task_id: str
    questions: OpenQuestions
    updated_s: float
    ttl_ms: int
    told: Mapping[str, Any] = field(default_factory=dict)
    ended: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    weight_bytes: int = 0
    _created_s: float = 0.0
    _poll_ms: int = 0

    def __post_init__(self) -> None:
        self._created_s = self.updated_s
        self.ttl_ms = _read_ms(self.told.get("ttl"), self.ttl_ms)
        self._poll_ms = _read_ms(self.told.get("pollInterval"), _POLL_MS)

    def note(self, told: Mapping[str, Any], now_s: float) -> None:
        """Record what the server says; what it asks, and how it ended, comes otherwise."""
        if told.get("status") == "cancelled":
            self.end("cancelled", {}, now_s)
        elif not self.ended:
            self.told, self.updated_s = told, now_s

    def end(self, how: str, payload: Mapping[str, Any], now_s: float, weight_bytes: int = 0) -> bool:
        """Record how it has ended; False where it has ended before."""
        if self.ended:
            return False
        self.ended, self.payload, self.updated_s, self.weight_bytes = how, payload, now_s, weight_bytes
        self.questions.clear()
        return True

    def describe(self) -> dict[str, Any]:
        """Return what answers the client's call."""
        message = self.told.get("statusMessage")
        return {
            "taskId": self.task_id,
            "status": self.ended or ("input_required" if self.questions else "working"),
            **({"statusMessage": message} if isinstance(message, str) else {}),
            "createdAt": spell_time(self._created_s),
            "lastUpdatedAt": spell_time(self.updated_s),
            "ttlMs": self.ttl_ms,
            "pollIntervalMs": self._poll_ms,
        }

    def detail(self) -> dict[str, Any]:
        """Return what answers `tasks/get`, and what a notification says."""
        asked = {"inputRequests": self.questions.spell()} if self.questions else {}
        return {**self.describe(), **self.payload, **asked}


def _read_ms(value: Any, otherwise: int) -> int:
    """Read a number of milliseconds; there is no limit to what a server may write there, but to what it may mean."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST_MS:
        return otherwise
    return int(value)
