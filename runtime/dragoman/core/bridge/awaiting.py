"""A client of 2025-11-25 waits for the result of a task that a per-request server keeps.

Lives here: one `tasks/result` of such a client, which waits until the task has ended, over `tasks/get` and
`tasks/update` of the extension. Must not: send or sleep. Whoever drives it polls as it is told.

Theory of operation. The task is asked for again and again, as often as it advises. What its server wants to know stands
in it, and stands there until it is answered: so each key is asked once, however often it is seen ("clients SHOULD
deduplicate `inputRequests` keys across consecutive polls", SEP-2663). A question that the client cannot be asked ends
the waiting, and the task, for nothing would come of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.bridge.inputs import FailCall, FinishCall, failed_tool
from dragoman.core.bridge.posing import Answered, Asked, Pose, Posing
from dragoman.core.bridge.posing import Step as PosingStep
from dragoman.core.bridge.questions import Question, is_question
from dragoman.core.bridge.tasks import relate
from dragoman.core.codes import INTERNAL_ERROR
from dragoman_spec import Loss

DEFAULT_POLL_S: Final = 1.0
SHORTEST_POLL_S: Final = 0.1
LONGEST_POLL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask for the task after so many seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Update:
    """Send the server `tasks/update` with these params, then ask for the task."""

    params: dict[str, Any]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Send the server `tasks/cancel`, and answer the client with this result, which is of 2026-07-28."""

    result: dict[str, Any]


Step = Poll | Pose | Update | FinishCall | FailCall | GiveUp


@dataclass(slots=True)
class TaskWait:
    """One wait.

    Attributes:
        task_id: As the server knows it.
        client: Who waits, and is asked.
        shown_id: As the client knows it; the same unless it was changed on its way.
    """

    task_id: str
    client: Asked
    shown_id: str = ""
    _seen: set[str] = field(default_factory=set)
    _posing: Posing = field(init=False)

    def __post_init__(self) -> None:
        self._posing = Posing(self.client)

    def take_task(self, task: Mapping[str, Any]) -> Step:
        """Take the server's answer to `tasks/get`.

        Returns:
            What to do next. While questions are open, the task need not be asked for: the answers come first.
        """
        match task.get("status"):
            case "completed" if isinstance(task.get("result"), dict):
                return FinishCall(task["result"], self._posing.visited)
            case "failed" if isinstance(task.get("error"), dict):
                return _fail(task["error"])
            case "cancelled":
                return FailCall(INTERNAL_ERROR, "the task was cancelled", {"taskId": self._name})
            case "input_required":
                return self._ask(task)
            case "working":
                return Poll(_read_poll_s(task))
            case status:
                message = (
                    f"the server answered tasks/get with the state {str(status)[:40]!r} and without what belongs to it"
                )
                return FailCall(INTERNAL_ERROR, message, {"taskId": self._name})

    def take_answer(self, key: str, body: Mapping[str, Any]) -> Step | None:
        """Take the client's answer to a question.

        Args:
            key: Of the question.
            body: The JSON-RPC response.

        Returns:
            What to do next; None while other questions are open, and for what nobody asked.
        """
        step = self._posing.take_answer(key, body)
        return None if step is None else self._follow(step)

    @property
    def _name(self) -> str:
        return self.shown_id or self.task_id

    def _ask(self, task: Mapping[str, Any]) -> Step:
        requests = task.get("inputRequests")
        if not isinstance(requests, dict) or not all(_is_well_formed(asked) for asked in requests.values()):
            message = "the server answered tasks/get with questions that are malformed"
            return FailCall(INTERNAL_ERROR, message, {"taskId": self._name})
        new = {key: asked for key, asked in requests.items() if key not in self._seen}
        if not new:
            return Poll(_read_poll_s(task))
        self._seen |= new.keys()
        return self._follow(self._posing.begin(new))

    def _follow(self, step: PosingStep) -> Step:
        if isinstance(step, Pose):
            return Pose({key: self._relate(question) for key, question in step.questions.items()})
        if isinstance(step, Answered):
            return Update({"taskId": self.task_id, "inputResponses": step.responses}, step.losses)
        return GiveUp(failed_tool(step.reason))

    def _relate(self, question: Question) -> Question:
        return question._replace(params=relate(question.params, self._name))


def _is_well_formed(asked: object) -> bool:
    return isinstance(asked, dict) and is_question(asked.get("method")) and isinstance(asked.get("params"), dict | None)


def _fail(error: Mapping[str, Any]) -> FailCall:
    code = error.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        code = INTERNAL_ERROR
    return FailCall(code, str(error.get("message", "")), error.get("data"))


def _read_poll_s(task: Mapping[str, Any]) -> float:
    advised = task.get("pollIntervalMs")
    if isinstance(advised, bool) or not isinstance(advised, int | float):
        return DEFAULT_POLL_S
    return min(max(advised / 1000, SHORTEST_POLL_S), LONGEST_POLL_S)
