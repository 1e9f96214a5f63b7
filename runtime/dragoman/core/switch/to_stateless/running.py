"""One call of a client with a handshake at a per-request server, from its request to its answer.

Lives here: stepping the routine of a call that has several rounds, the client's answers to questions in it, and what
becomes of an error. Must not: translate a request or a result, or decide what a server may ask (`core.rules.inputs`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.core.calls import Call
from dragoman.core.codes import PARSE_ERROR
from dragoman.core.commands import Alarm
from dragoman.core.edges.per_request import PerRequestLoan
from dragoman.core.envelope import Frame, decoded, notification_frame
from dragoman.core.methods import CALL_TOOL, ELICITED, PROGRESS, ROOTS
from dragoman.core.rules import errors
from dragoman.core.rules.inputs import run_rounds, wants_input
from dragoman.core.rules.questions import Question
from dragoman.core.rules.routines import Ask, Pause, Pose, Routine, Tell, Wait
from dragoman.core.switch.to_stateless.hop import Hop
from dragoman.errors import ProtocolError

logger = logging.getLogger("dragoman.session")


class CallStepper:
    """One call.

    Args:
        hop: To whom it goes, and who is asked.
        call: The client's request.
        takes_tasks: Whether a task may answer what the server is asked.
        routine: What it does, where it is about a task and takes several rounds anyway.
    """

    __slots__ = (
        "_alarm", "_call", "_has_refreshed", "_hears_logs", "_hop", "_is_over", "_lent", "_method",
        "_params", "_posed", "_progress", "_routine", "_takes_tasks",
    )  # fmt: skip

    def __init__(
        self,
        hop: Hop,
        call: Call,
        takes_tasks: bool = False,
        routine: Routine | None = None,
    ) -> None:
        self._hop = hop
        self._call = call
        self._takes_tasks = takes_tasks
        self._routine = routine
        self._hears_logs = routine is None
        self._method = call.method
        self._params: Mapping[str, Any] = {}
        self._lent: PerRequestLoan | None = None
        self._posed: tuple[bytes, ...] = ()  # the ids of its questions
        self._alarm: Alarm | None = None
        self._progress: float | None = None
        self._is_over = False
        self._has_refreshed = False
        call.at_server = self.cancel

    def send(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a request to the server; not where the call is over meanwhile."""
        if self._is_over:
            return
        self._method, self._params = method, params
        self._lent = self._hop.send(
            PerRequestLoan(method, self._hop, self._take_answer, self._take_notice, self._hears_logs),
            params,
            takes_tasks=self._takes_tasks,
        )

    def cancel(self, reason: str | None) -> None:
        """The client does not wait any more."""
        self._end("the call that it belongs to was cancelled")
        if self._lent is not None:
            self._hop.edge.withdraw(self._lent, reason)

    # What the server says

    def _take_answer(self, frame: Frame) -> None:
        """The server has answered this round."""
        self._lent = None
        if frame.kind == "error":
            self._take_error(frame.body["error"])
            return
        result: Mapping[str, Any] = frame.body["result"]
        if self._takes_tasks and self._call.method == CALL_TOOL and result.get("resultType") == "task":
            self._finish(result)
        elif self._routine is not None:
            self.step(result)
        else:
            self._take_first(result)

    def _take_notice(self, frame: Frame) -> None:
        """A notification for this call came."""
        if not self._hears_logs or (frame.method == PROGRESS and not self._is_further(frame)):
            return
        stream = None if frame.stream is None and frame.method != PROGRESS else self._call.key
        self._hop.front.take_server(frame._replace(raw=b"", stream=stream))

    def _is_further(self, frame: Frame) -> bool:
        """ "The `progress` value MUST increase with each notification", also where a later round begins anew."""
        value = frame.body["params"].get("progress")
        if not isinstance(value, int | float) or (self._progress is not None and value <= self._progress):
            return False
        self._progress = value
        return True

    def _take_first(self, result: Mapping[str, Any]) -> None:
        """Answer with the first result, as most calls do; only one that wants input becomes a routine."""
        try:
            if not wants_input(result, self._method):
                self._finish(result)
                return
        except ProtocolError as error:
            logger.warning("%s fails: %s", self._method, error.message)
            self._fail(error.code, error.message, error.data)
            return
        self._routine = run_rounds(self._method, self._params, self._hop.client, result)
        self.step(None)

    def _take_error(self, error: dict[str, Any]) -> None:
        told = errors.answer_error(
            error,
            self._method,
            self._hop.path,
            declared=self._hop.metadata.capabilities,
            has_refreshed=self._has_refreshed,
        )
        match told:
            case errors.Say(code, message, data):
                self._fail(code, message, data)
            case errors.FailTool(result):
                self._finish(result)
            case errors.Refresh():
                self._has_refreshed = True
                self._hop.tools.list(self._hop.ask_page, lambda: self.send(self._method, self._params))
            case _:
                self._end()
                self._hop.pass_error(self._call, error)

    # Rounds

    def step(self, value: object) -> None:
        """Go on with what the routine has waited for; it begins with nothing."""
        assert self._routine is not None, "a call of one round has no routine"
        try:
            wait = self._routine.send(value)
        except StopIteration as end:
            self._finish(end.value.result)
            for elicitation in end.value.elicitations:
                self._hop.front.send(notification_frame(ELICITED, {"elicitationId": elicitation}))
        except ProtocolError as error:
            self._fail(error.code, error.message, error.data)
        else:
            self._follow(wait)

    def _follow(self, wait: Wait) -> None:
        match wait:
            case Ask(method, params, losses, is_awaited):
                self._hop.report(f"answers to {self._call.method}", losses)
                if is_awaited:
                    self.send(method, params)
                else:
                    self._hop.send(PerRequestLoan(method), params, takes_tasks=self._takes_tasks)
                    self.step(None)
            case Pose(questions):
                for name, question in questions.items():
                    if not self._is_over:  # one before it may have ended the call
                        self._pose(name, question)
            case Tell(method, params):
                self._hop.front.send(notification_frame(method, dict(params)))
                self.step(None)
            case Pause(after_s):
                self._alarm = self._hop.schedule.after(after_s, lambda: self.step(None))

    def _pose(self, name: str, question: Question) -> None:
        self._hop.report(question.method, question.losses)
        take_reply = partial(self._take_reply, name, question.method)
        key = self._hop.pose(question.method, question.params, self._call.key, take_reply)
        self._posed = (*self._posed, key)

    def _take_reply(self, name: str, method: str, frame: Frame) -> None:
        """The client has answered a question, or somebody did in its place."""
        try:
            body = decoded(frame).body
        except ValueError as error:
            body = {"error": {"code": PARSE_ERROR, "message": str(error)}}
        if method == ROOTS:
            self._hop.note_roots(body.get("result"))
        if not self._is_over:  # the answer to another one may have been its end
            self.step((name, body))

    # The end

    def _finish(self, result: Mapping[str, Any]) -> None:
        self._end()
        self._hop.finish(self._call, result)

    def _fail(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        self._end()
        if self._hears_logs:
            self._hop.fail(self._call, code, message, data)
        else:  # what a task says is in the form of the server
            self._hop.pass_error(self._call, {"code": code, "message": message} | ({"data": data} if data else {}))

    def _end(self, reason: str = "the call that it belongs to is over") -> None:
        self._is_over = True
        if self._alarm is not None:
            self._hop.schedule.stop(self._alarm)
        posed, self._posed = self._posed, ()
        for key in posed:
            self._hop.front.exchange.withdraw(key, reason)
        self._call.at_server = None  # the two know each other, and would stay until somebody looks
