"""A call at a server with a handshake that has become a task for its per-request client.

Lives here: the tasks of one instance that are calls in truth: their questions, their ends, how long they are kept. Must
not: send, cancel, or read clocks. Called by `core.switch`, where `strategy` says so.

Theory of operation. The specification's own place for a call that waits is a task: at the first question the client's
request is answered with one, and the call goes on. The client asks for the task from time to time; what the server asks
stands in it, and `tasks/update` brings the answers (extension `io.modelcontextprotocol/tasks`, SEP-2663). Unlike a
parked call it survives that its client reconnects, can be cancelled, and says how long it is kept. Its id is a sealed
state: it is good for its server and its caller only, and says which instance has the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from dragoman.core.bridge.asking import AskedCall, OpenQuestions, Turned
from dragoman.core.bridge.questions import Question
from dragoman.core.bridge.state import Binding, Keeper, Moment, Reason, State, refuse
from dragoman.core.bridge.tasks import spell_time
from dragoman.core.places import has_place
from dragoman_spec import Loss

KIND: Final = "task"
"""The kind of state that is the id of a task."""

_KEPT: Final = 4
_LONGEST_MS: Final = 366 * 86_400_000


class Updated(NamedTuple):
    """What an update brought: answers to the server's requests, by their ids, and what they lose."""

    replies: Sequence[tuple[bytes, dict[str, Any]]]
    losses: tuple[Loss, ...]


class ExpiredTask(NamedTuple):
    """A task that is kept no longer, and whether the server is still at it and is to be told."""

    call: str
    is_running: bool


@dataclass(slots=True)
class _Task:
    task_id: str
    questions: OpenQuestions
    created_s: float
    updated_s: float
    expires_s: float
    ttl_ms: int
    poll_ms: int
    message: str | None = None
    status: str = "working"
    payload: dict[str, Any] = field(default_factory=dict)
    weight_bytes: int = 0

    @property
    def is_running(self) -> bool:
        return self.status in ("working", "input_required")


@dataclass(slots=True)
class PromotedTasks:
    """The tasks of one instance that are calls in truth.

    Attributes:
        keeper: Makes their ids; its time is how long they are kept, from their beginning.
        most: How many may be running; four times as many are kept, and then the oldest that has ended is forgotten.
        most_bytes: How much the results of those that have ended may hold together; then the oldest are forgotten.
        poll_ms: After how many milliseconds a client is advised to ask again.
        shares: Whether these are tasks of several principals: none of them may have all places.
    """

    keeper: Keeper
    most: int = 1024
    most_bytes: int = 64 * 1024 * 1024
    poll_ms: int = 1000
    shares: bool = False
    _tasks: dict[str, _Task] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, call: object) -> bool:
        return call in self._tasks

    def has_room(self, principal: str) -> bool:
        """Whether another one of this principal may run."""
        whose = [task.questions.caller.binding.principal for task in self._tasks.values() if task.is_running]
        return has_place(principal if self.shares else "", whose, len(whose), self.most)

    def promote(
        self, call: str, caller: AskedCall, now: Moment, nonce: bytes, told: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Make a call a task.

        Args:
            call: Which; a name of our own.
            caller: Whose call it is.
            now: The time.
            nonce: Random bytes for the id.
            told: What the server says of it where it is a task there too, in the form of 2025-11-25.

        Returns:
            The result that answers the client's request; None where there are too many tasks.
        """
        if not self.has_room(caller.binding.principal):
            return None
        if len(self._tasks) >= self.most * _KEPT:
            del self._tasks[next(known for known, task in self._tasks.items() if not task.is_running)]
        told = told or {}
        ttl_ms = _read_ms(told.get("ttl"), int(self.keeper.ttl_s * 1000))
        poll_ms = _read_ms(told.get("pollInterval"), self.poll_ms)
        task_id = self.keeper.write(State(KIND, call), _bind(caller.binding), now.wall_s, nonce)
        expires_s = now.steady_s + ttl_ms / 1000
        task = _Task(task_id, OpenQuestions(caller), now.wall_s, now.wall_s, expires_s, ttl_ms, poll_ms)
        task.message = _read_message(told)
        self._tasks[call] = task
        return {"resultType": "task", **self._describe(task)}

    def ask(self, call: str, question_id: bytes, method: str, params: Any, now_s: float) -> Question | Turned:
        """Take a question that the server asks; the client finds it in the task. See `OpenQuestions.ask`."""
        task = self._tasks[call]
        question = task.questions.ask(question_id, method, params)
        if isinstance(question, Question):
            self._change(task, "input_required", now_s)
        return question

    def withdraw(self, call: str, question_id: bytes, now_s: float) -> None:
        """Take note that the server does not want an answer to this any more."""
        task = self._tasks.get(call)
        if task is not None and task.status == "input_required":
            task.questions.withdraw(question_id)
            if not task.questions:
                self._change(task, "working", now_s)

    def get(self, params: Mapping[str, Any], binding: Binding, now_s: float) -> dict[str, Any]:
        """Answer `tasks/get`.

        Args:
            params: Of the request.
            binding: The server that it goes to, and whose request it is.
            now_s: The time.

        Raises:
            RemoteProtocolError: There is no such task for this caller (-32602); the data says why.
        """
        _, task = self._find(params, binding, now_s)
        return {"resultType": "complete", **self._detail(task)}

    def find(self, task_id: object, binding: Binding, now_s: float) -> str:
        """Give the call that is behind a task.

        Args:
            task_id: As a client names it.
            binding: The server that it means, and who it is.
            now_s: The time.

        Raises:
            RemoteProtocolError: There is no such task for this caller (-32602).
        """
        return self._find({"taskId": task_id}, binding, now_s)[0]

    def tell(self, call: str) -> dict[str, Any] | None:
        """Give what a notification says of a task: the same as `get`; None where it is not kept any more."""
        task = self._tasks.get(call)
        return None if task is None else self._detail(task)

    def note(self, call: str, told: Mapping[str, Any], now_s: float) -> None:
        """Take note of what the server says of a task that is one there too, in the form of 2025-11-25.

        What it asks, and how it ended, comes otherwise.
        """
        task = self._tasks.get(call)
        if task is None or not task.is_running:
            return
        if told.get("status") == "cancelled":
            self._end(task, "cancelled", {}, now_s)
        else:
            task.message, task.updated_s = _read_message(told), now_s

    def update(self, params: Mapping[str, Any], binding: Binding, now_s: float) -> Updated:
        """Take `tasks/update`, which is answered with an empty result.

        Args:
            params: Of the request.
            binding: The server that it goes to, and whose request it is.
            now_s: The time.

        Raises:
            RemoteProtocolError: There is no such task for this caller, or an answer is malformed (-32602).
        """
        _, task = self._find(params, binding, now_s)
        replies, losses = task.questions.answer(params.get("inputResponses"))
        if replies and not task.questions:
            self._change(task, "working", now_s)
        return Updated(replies, losses)

    def cancel(self, params: Mapping[str, Any], binding: Binding, now_s: float) -> str | None:
        """Take `tasks/cancel`, which is answered with an empty result.

        Args:
            params: Of the request.
            binding: The server that it goes to, and whose request it is.
            now_s: The time.

        Returns:
            The call to cancel at the server; None where it has ended already.

        Raises:
            RemoteProtocolError: There is no such task for this caller (-32602).
        """
        call, task = self._find(params, binding, now_s)
        if not task.is_running:
            return None
        self._end(task, "cancelled", {}, now_s)
        return call

    def finish(self, call: str, response: Mapping[str, Any], now_s: float, weight_bytes: int = 0) -> None:
        """Take the server's response to the call, in the form of the client; and how much it holds."""
        task = self._tasks.get(call)
        if task is None or not task.is_running:
            return
        task.weight_bytes = weight_bytes
        if "error" in response:
            self._end(task, "failed", {"error": response["error"]}, now_s)
        else:
            self._end(task, "completed", {"result": response["result"]}, now_s)
        self._make_room()

    def _make_room(self) -> None:
        excess = sum(task.weight_bytes for task in self._tasks.values()) - self.most_bytes
        for call in [call for call, task in self._tasks.items() if task.weight_bytes]:
            if excess <= 0:
                break
            excess -= self._tasks.pop(call).weight_bytes

    def expire(self, now_s: float) -> list[ExpiredTask]:
        """Give up the tasks that are kept no longer; on the steady clock."""
        due = [call for call, task in self._tasks.items() if task.expires_s <= now_s]
        return [ExpiredTask(call, self._tasks.pop(call).is_running) for call in due]

    def find_next_expiry(self) -> float | None:
        """Give the time, on the steady clock, at which `expire` has something to do; None while there is no task."""
        return min((task.expires_s for task in self._tasks.values()), default=None)

    def _find(self, params: Mapping[str, Any], binding: Binding, now_s: float) -> tuple[str, _Task]:
        state = self.keeper.read(params.get("taskId"), _bind(binding), now_s, self)
        task = self._tasks.get(state.call) if state.kind == KIND else None
        if task is None:
            raise refuse(Reason.UNKNOWN)
        return state.call, task

    def _change(self, task: _Task, status: str, now_s: float) -> None:
        task.status, task.updated_s = status, now_s

    def _end(self, task: _Task, status: str, payload: dict[str, Any], now_s: float) -> None:
        task.payload = payload
        task.questions.clear()
        self._change(task, status, now_s)

    def _describe(self, task: _Task) -> dict[str, Any]:
        message = {} if task.message is None else {"statusMessage": task.message}
        return {
            "taskId": task.task_id,
            "status": task.status,
            **message,
            "createdAt": spell_time(task.created_s),
            "lastUpdatedAt": spell_time(task.updated_s),
            "ttlMs": task.ttl_ms,
            "pollIntervalMs": task.poll_ms,
        }

    def _detail(self, task: _Task) -> dict[str, Any]:
        detail = dict(task.payload)
        if task.status == "input_required":
            detail["inputRequests"] = task.questions.spell()
        return {**self._describe(task), **detail}


def _bind(binding: Binding) -> Binding:
    """Bind a task to its server and its caller: the requests that name it have other methods and params."""
    return replace(binding, method="tasks", digest="")


def _read_ms(value: Any, otherwise: int) -> int:
    """Read a number of milliseconds; there is no limit to what a server may write there, but to what it may mean."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST_MS:
        return otherwise
    return int(value)


def _read_message(told: Mapping[str, Any]) -> str | None:
    message = told.get("statusMessage")
    return message if isinstance(message, str) else None
