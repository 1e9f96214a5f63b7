"""One call of a client with a handshake at a per-request server, from its request to its answer.

Lives here: the rounds of the call, the client's answers to questions in it, and what becomes of an error. Must not:
translate a request or a result, which crosses as any other (`core.exchange`), or decide what a server may ask
(`core.bridge.inputs`). Made by `switch`.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.core.bridge import errors
from dragoman.core.bridge.inputs import FailCall, FinishCall, InputLoop, Retry, Step
from dragoman.core.bridge.metadata import take_identity
from dragoman.core.bridge.posing import Pose
from dragoman.core.bridge.questions import Question
from dragoman.core.bridge.results import COMPLETE, read_type
from dragoman.core.calls import Call
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import Alarm, Wake
from dragoman.core.edges.per_request import Lent
from dragoman.core.envelope import Frame, error_frame, id_of, new_frame, notification_frame
from dragoman.core.exact_json import decode
from dragoman.core.methods import ELICITED, LIST_TOOLS, PROGRESS
from dragoman.core.switch.per_request.posed import PosedQuestions
from dragoman.errors import RemoteProtocolError

if TYPE_CHECKING:
    from dragoman.core.switch.per_request.switch import PerRequest

logger = logging.getLogger("dragoman.session")


class RunningCall:
    """One call.

    Args:
        switch: Who made it.
        call: The client's request.
        params: Of it, in the server's revision, not stamped.
        wants_task: Whether the client asked for a task.
    """

    __slots__ = (
        "_alarm",
        "_call",
        "_has_refreshed",
        "_is_over",
        "_lent",
        "_loop",
        "_params",
        "_posed",
        "_progress",
        "_switch",
        "_wants_task",
    )

    hears_logs = True

    def __init__(self, switch: PerRequest, call: Call, params: dict[str, Any], wants_task: bool = False) -> None:
        self._switch = switch
        self._call = call
        self._params = params
        self._wants_task = wants_task
        self._lent: Lent | None = None
        self._loop: InputLoop | None = None
        self._posed: PosedQuestions | None = None  # made with the first one: few calls are asked about
        self._alarm: Alarm | None = None
        self._progress: float | None = None
        self._is_over = False
        self._has_refreshed = False

    @property
    def owner(self) -> Hashable:
        """Whose call it is."""
        return self._switch

    def send(self, params: dict[str, Any]) -> None:
        """Send the request to the server: the first time, or again; not where the call is over meanwhile."""
        if self._is_over:
            return
        self._lent = self._switch.send(self, self._call.method, params, takes_tasks=self._wants_task)

    def start(self) -> None:
        """Send it the first time."""
        self.send(self._params)

    def cancel(self, reason: str | None) -> None:
        """The client does not wait any more."""
        self._is_over = True
        self._stop()
        if self._lent is not None:
            self._switch.edge.withdraw(self._lent, reason)
        if self._posed is not None:
            self._posed.withdraw("the call that it belongs to was cancelled")

    def fail(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        """Answer the client with an error of ours."""
        self._end()
        answer = error_frame(self._call.key, code, message, {"method": self._call.method, **(data or {})})
        self._switch.front.take_answer(self._call, answer, own=True)

    # What the server says

    def take_garbled(self, reason: str) -> None:
        """What should have been the answer is not a response."""
        logger.warning("%s fails: the server's answer is not a response: %s", self._call.method, reason)
        self.fail(INTERNAL_ERROR, f"the server answered with something that is not a response: {reason}")

    def take_answer(self, frame: Frame) -> None:
        """The server has answered this round."""
        self._lent = None
        if frame.kind == "error":
            self._take_error(frame)
            return
        result: Mapping[str, Any] = frame.body["result"]
        if self._wants_task and result.get("resultType") == "task":
            self._finish(result)
            return
        if self._loop is None:
            try:
                kind = read_type(result, self._call.method)
            except RemoteProtocolError as error:
                logger.warning("%s fails: %s", self._call.method, error.message)
                self.fail(error.code, error.message, error.data)
                return
            if kind is COMPLETE:
                self._finish(result)
                return
            self._loop = InputLoop(self._call.method, self._params, self._switch.client)
        self._follow(self._loop.take_result(result))

    def take_notice(self, frame: Frame) -> None:
        """A notification for this call came."""
        if frame.method == PROGRESS and not self._is_further(frame):
            return
        stream = None if frame.stream is None and frame.method != PROGRESS else self._call.key
        self._switch.front.take_server(frame._replace(raw=b"", stream=stream))

    def _is_further(self, frame: Frame) -> bool:
        """ "The `progress` value MUST increase with each notification", also where a later round begins anew."""
        value = frame.body["params"].get("progress")
        if not isinstance(value, int | float) or (self._progress is not None and value <= self._progress):
            return False
        self._progress = value
        return True

    def _take_error(self, frame: Frame) -> None:
        told = errors.answer_error(
            frame.body["error"],
            self._call.method,
            self._switch.path,
            declared=self._switch.metadata.capabilities,
            has_refreshed=self._has_refreshed,
        )
        match told:
            case errors.Say(code, message, data):
                self.fail(code, message, data)
            case errors.FailTool(result):
                self._finish(result)
            case errors.Refresh():
                self._has_refreshed = True
                self._switch.tools.list(self._switch.ask_page, self.send_again)
            case _:
                self._end()
                body = {**frame.body, "id": decode(self._call.key)}
                answer = Frame(b"", "error", self._call.key, None, body)
                self._switch.front.take_answer(self._call, answer)

    def send_again(self) -> None:
        """Send the request once more, as it went last."""
        self.send(self._params)

    # Rounds

    def _take_reply(self, name: str, body: Mapping[str, Any]) -> None:
        assert self._loop is not None, "nobody is asked before there is one"
        step = self._loop.take_answer(name, body)
        if step is not None:
            self._follow(step)

    def _follow(self, step: Step) -> None:
        match step:
            case Pose(questions):
                self._pose(questions)
            case Retry(params, after_s, losses):
                self._switch.report(f"answers to {self._call.method}", losses)
                self._params = params
                self._wait(after_s)
            case FinishCall(result, elicitations):
                self._finish(result)
                for elicitation in elicitations:
                    self._switch.front.send(notification_frame(ELICITED, {"elicitationId": elicitation}))
            case FailCall(code, message, data):
                self.fail(code, message, data)

    def _pose(self, questions: Mapping[str, Question]) -> None:
        if self._posed is None:
            self._posed = PosedQuestions(self._switch, self._call, self._take_reply)
        for name, question in questions.items():
            if not self._is_over:  # one before it may have ended the call
                self._posed.pose(name, question)

    def _wait(self, after_s: float) -> None:
        if not after_s:
            self.send(self._params)
            return
        self._alarm = Alarm(self._switch.front, self._expire)
        self._switch.outbox.add(Wake(self._alarm, after_s))

    def _expire(self) -> None:
        self._alarm = None
        self.send(self._params)

    def _stop(self) -> None:
        if self._alarm is not None:
            self._switch.outbox.add(Wake(self._alarm, None))
            self._alarm = None

    # The end

    def _finish(self, result: Mapping[str, Any]) -> None:
        self._end()
        call, switch = self._call, self._switch
        rest = take_identity(result)[0] if "_meta" in result else result
        if call.method == LIST_TOOLS:
            rest = switch.tools.note(rest)
        body = {"jsonrpc": "2.0", "id": id_of(call.key), "result": rest}
        switch.front.take_answer(call, new_frame(Frame, (b"", "result", call.key, None, body, None, (), "")))

    def _end(self) -> None:
        self._is_over = True
        if self._alarm is not None:
            self._stop()
        if self._posed is not None:
            self._posed.withdraw("the call that it belongs to is over")
            self._posed = None
        self._switch.forget(self._call)
