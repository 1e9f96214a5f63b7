"""Requests about a task at a per-request server, and a client that waits for the result of one.

Lives here: asking the server, and carrying out what `bridge.awaiting` says. Must not: know which tasks there are
(`tasking`). Made there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.core.bridge.awaiting import GiveUp, Poll, Step, TaskWait, Update
from dragoman.core.bridge.inputs import FinishCall
from dragoman.core.bridge.posing import Pose
from dragoman.core.bridge.tasks import to_older_task
from dragoman.core.calls import Call
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import Alarm, Wake
from dragoman.core.edges.per_request import Lent
from dragoman.core.envelope import Frame, notification_frame
from dragoman.core.methods import ELICITED, TASK_STATUS
from dragoman.core.switch.per_request.posed import PosedQuestions

if TYPE_CHECKING:
    from dragoman.core.switch.per_request.switch import PerRequest
    from dragoman.core.switch.per_request.tasking import ClientTasks

logger = logging.getLogger("dragoman.session")


class Inquiry:
    """One request to the server about a task.

    Args:
        switch: Whose it is.
        then: What to do with the answer.

    Attributes:
        owner: Whose it is.
    """

    hears_logs = False

    def __init__(self, switch: PerRequest, then: Callable[[Frame], None]) -> None:
        self.owner = switch
        self._then = then
        self._lent: Lent | None = None

    def ask(self, method: str, params: Mapping[str, Any]) -> None:
        """Send it."""
        self._lent = self.owner.send(self, method, params, takes_tasks=True)

    def cancel(self, reason: str | None) -> None:
        """The client does not wait any more."""
        if self._lent is not None:
            self.owner.edge.withdraw(self._lent, reason)

    def take_answer(self, frame: Frame) -> None:
        """The server has answered."""
        self._lent = None
        self._then(frame)

    def take_garbled(self, reason: str) -> None:
        """What came is not an answer."""
        self._lent = None
        message = f"the server answered with something that is not a response: {reason}"
        error = {"jsonrpc": "2.0", "id": 0, "error": {"code": INTERNAL_ERROR, "message": message}}
        self._then(Frame(b"", "error", b"0", None, error))

    def take_notice(self, frame: Frame) -> None:
        """Nothing of it concerns the client."""


class WaitingCall:
    """One `tasks/result` of the client.

    Args:
        switch: Whose it is.
        tasks: Who answers it.
        call: The client's request.
        task_id: The task that it is about.
    """

    def __init__(self, switch: PerRequest, tasks: ClientTasks, call: Call, task_id: str) -> None:
        self._switch = switch
        self._tasks = tasks
        self._call = call
        self._task_id = task_id
        self._wait = TaskWait(task_id, switch.client)
        self._inquiry = Inquiry(switch, self._take_task)
        self._posed = PosedQuestions(switch, call, self._take_reply)
        self._alarm: Alarm | None = None
        self._seen: tuple[Any, Any] | None = None
        self._is_over = False

    def poll(self) -> None:
        """Ask for the task."""
        self._alarm = None
        self._inquiry = Inquiry(self._switch, self._take_task)
        self._inquiry.ask("tasks/get", {"taskId": self._task_id})

    def cancel(self, reason: str | None) -> None:
        """The client does not wait any more; its task goes on."""
        self._end()

    def _take_reply(self, name: str, body: Mapping[str, Any]) -> None:
        step = self._wait.take_answer(name, body)
        if step is not None:
            self._follow(step)

    def _take_task(self, answer: Frame) -> None:
        if answer.kind == "error":
            self._end()
            self._tasks.answer_error(self._call, answer)
            return
        task = answer.body["result"]
        self._tell_status(task)
        self._follow(self._wait.take_task(task))

    def _tell_status(self, task: Mapping[str, Any]) -> None:
        """Tell the client what has changed: it is not told of anything that it did not wait for."""
        seen = task.get("status"), task.get("statusMessage")
        if self._seen is not None and seen != self._seen:
            self._switch.front.send(notification_frame(TASK_STATUS, to_older_task({**task, "taskId": self._task_id})))
        self._seen = seen

    def _take_acknowledgement(self, answer: Frame) -> None:
        if answer.kind == "error":
            self._take_task(answer)
        else:
            self.poll()

    def _follow(self, step: Step) -> None:
        match step:
            case Poll(after_s):
                self._alarm = Alarm(self._switch.front, self.poll)
                self._switch.outbox.add(Wake(self._alarm, after_s))
            case Pose(questions):
                for name, question in questions.items():
                    if not self._is_over:  # one before it may have ended the waiting
                        self._posed.pose(name, question)
            case Update(params, losses):
                self._switch.report("answers to a task", losses)
                self._inquiry = Inquiry(self._switch, self._take_acknowledgement)
                self._inquiry.ask("tasks/update", params)
            case FinishCall(result, elicitations):
                self._end()
                self._tasks.answer_result(self._call, self._task_id, result)
                for elicitation in elicitations:
                    self._switch.front.send(notification_frame(ELICITED, {"elicitationId": elicitation}))
            case GiveUp(result):
                self._end()
                Inquiry(self._switch, lambda answer: None).ask("tasks/cancel", {"taskId": self._task_id})
                self._tasks.answer_result(self._call, self._task_id, result)
            case _:
                error = {"code": step.code, "message": step.message} | (
                    {} if step.data is None else {"data": step.data}
                )
                self._end()
                frame = Frame(b"", "error", self._call.key, None, {"error": error})
                self._tasks.answer_error(self._call, frame)

    def _end(self) -> None:
        self._is_over = True
        if self._alarm is not None:
            self._switch.outbox.add(Wake(self._alarm, None))
            self._alarm = None
        self._inquiry.cancel(None)
        self._posed.withdraw("nobody waits for the task that it is about")
