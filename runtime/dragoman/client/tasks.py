"""Calls that run as tasks: begun, asked about, waited for and cancelled, in both forms that tasks have.

Lives here: one such call. Must not: know frames or ids (`session`). Made by `Client.start`, and by `Client.call` where
a server has made a task of a call of its own accord.

With a handshake a task is asked for with `params.task` and its result is fetched by `tasks/result`; what the server
asks meanwhile comes as requests. The extension of the per-request era has the result in `tasks/get`, and questions too,
which are answered by `tasks/update`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.client.eras import read_questions
from dragoman.core.codes import CONNECTION_CLOSED, INVALID_PARAMS
from dragoman.errors import CapabilityNotSupported, McpError, RemoteProtocolError

if TYPE_CHECKING:
    from dragoman.client.client import Client

CREATION: Final = "CreateTaskResult"
OVER: Final = frozenset({"completed", "failed", "cancelled"})

_POLL_S: Final = 1.0
_LONGEST_POLL_S: Final = 60.0


def declare_extension(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities with the tasks extension."""
    # The bridge has its name; whoever does without tasks does not load it.
    from dragoman.core.rules.names import TASKS_EXTENSION

    return {**capabilities, "extensions": {**capabilities.get("extensions", {}), TASKS_EXTENSION: {}}}


def check_extension(method: str, capabilities: Mapping[str, Any]) -> None:
    """Make sure that a server declared the tasks extension.

    Raises:
        CapabilityNotSupported: It did not.
    """
    from dragoman.core.rules.names import TASKS_EXTENSION

    if TASKS_EXTENSION not in (capabilities.get("extensions") or {}):
        raise CapabilityNotSupported(method, f"extensions.{TASKS_EXTENSION}")


class ToolTask:
    """A call of a tool that runs as a task.

    Args:
        client: Whose.
        task: What the server said of the task when it made it.
        result: The result, where the server answered at once.

    Attributes:
        id: The server's name for it.
        status: Where it stands, as far as that is known: `working`, `input_required`, `completed`, `failed` or
            `cancelled`.
        message: What the server says about that, for a person.
    """

    def __init__(self, client: Client, task: Mapping[str, Any], result: dict[str, Any] | None = None) -> None:
        self._client = client
        self._result = result
        self._error: McpError | None = None
        self._answered: set[str] = set()
        self.id = ""
        self.status = "completed"
        self.message: str | None = None
        self._poll_s = _POLL_S
        if result is None:
            self._note(task)

    async def poll(self) -> str:
        """Ask where it stands; questions of the server are answered on the way.

        Raises:
            McpError: The server does not know the task any more.
        """
        if self.id:
            frame = await self._client.ask("tasks/get", {"taskId": self.id})
            task = frame["result"]
            self._note(task)
            if self._client.by_requests is not None:
                await self._take(task)
        return self.status

    async def result(self) -> Any:
        """Wait until it is over, and give its result.

        Raises:
            McpError: It failed, or was cancelled.
        """
        while self.status not in OVER:
            await asyncio.sleep(self._poll_s if self._answered or self.status == "working" else 0)
            await self.poll()
            if self.status == "input_required" and self._client.by_requests is None:
                break  # what the server asks comes while it is asked for the result
        return self._client.read_result("tools/call", await self._fetch())

    async def cancel(self) -> None:
        """Ask the server to stop; `poll` tells whether it has."""
        if self.id and self.status not in OVER:
            frame = await self._client.ask("tasks/cancel", {"taskId": self.id})
            if "status" in frame["result"]:
                self._note(frame["result"])

    async def _fetch(self) -> dict[str, Any]:
        if self._error is not None:
            raise self._error
        if self._result is not None:
            return {"jsonrpc": "2.0", "id": 0, "result": self._result}
        if self._client.by_requests is None:
            return await self._client.ask("tasks/result", {"taskId": self.id})
        if self.status == "completed":
            raise RemoteProtocolError(CONNECTION_CLOSED, f"the task {self.id} is completed, and has no result")
        raise McpError(CONNECTION_CLOSED, self.message or f"the task {self.id} is {self.status}")

    async def _take(self, task: Mapping[str, Any]) -> None:
        """Take what the extension tells beside the state."""
        if isinstance(task.get("result"), dict):
            self._result = {"resultType": "complete", **task["result"]}
        if isinstance(error := task.get("error"), dict):
            self._error = McpError(error.get("code", 0), str(error.get("message")), error.get("data"))
        asked = read_questions(task, "tasks/get")
        questions = {name: question for name, question in asked.items() if name not in self._answered}
        era = self._client.by_requests
        if questions and era is not None:
            self._answered.update(questions)
            answers = await era.answer(questions)
            await self._client.ask("tasks/update", {"taskId": self.id, "inputResponses": answers})

    def _note(self, task: Mapping[str, Any]) -> None:
        name, status = task.get("taskId"), task.get("status")
        if not isinstance(name, str) or not isinstance(status, str):
            raise RemoteProtocolError(INVALID_PARAMS, "the server tells of a task without its name or its state")
        self.id, self.status = name, status
        self.message = task.get("statusMessage")
        interval_ms = task.get("pollIntervalMs", task.get("pollInterval"))
        if isinstance(interval_ms, int | float):
            self._poll_s = min(_LONGEST_POLL_S, max(0.01, interval_ms / 1000))
