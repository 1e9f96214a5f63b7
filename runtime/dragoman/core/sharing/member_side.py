"""What members say to a shared server.

Lives here: the way of each kind of frame from a member. Must not: know transports. Called by `hub`.

Everything is decoded and written anew: what reaches the server is one JSON-RPC frame whose id and progress token are
ours, whatever a member puts in twice, and whatever of it would not be JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.core.envelope import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Frame,
    Malformed,
    classify,
    decoded,
    error_frame,
    key_of,
    result_frame,
    rewrite,
)
from dragoman.core.exact_json import decode
from dragoman.core.failures import CONNECTION_CLOSED
from dragoman.core.sharing.allowed import find_fault
from dragoman.core.sharing.attribution import NAME_BYTES
from dragoman.core.sharing.calls import Call, Hook, Member
from dragoman.core.sharing.desk import Desk, object_in, params_of
from dragoman.core.sharing.interests import LEVELS, URI_BYTES
from dragoman.core.sharing.questions import is_too_long, token_of

INVALID_PARAMS = -32602


class MemberSide:
    """Takes what members say.

    Args:
        desk: The tables.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._requests: Mapping[str, Callable[[Member, Frame], None]] = {
            "initialize": self._initialize,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "tasks/get": self._use_task,
            "tasks/result": self._use_task,
            "tasks/cancel": self._use_task,
            "tasks/list": lambda member, frame: self._forward(member, frame, self._filter_tasks),
        }
        self._notices: Mapping[str, Callable[[Member, Frame], None]] = {
            "notifications/initialized": self._initialized,
            "notifications/cancelled": self._cancel,
            "notifications/progress": self._pass_progress,
            "notifications/roots/list_changed": self._change_roots,
        }

    def take(self, member: Member, frame: Frame | Malformed) -> None:
        """Take a frame, or what is not one."""
        frame = _read(frame)
        if isinstance(frame, Frame) and frame.kind == "batch":
            for one in frame.body:  # never sent on: each is answered on its own, and the session joins the answers
                self._take(member, classify(b"", one))
        else:
            self._take(member, frame)

    def _take(self, member: Member, frame: Frame | Malformed) -> None:
        desk = self._desk
        if isinstance(frame, Malformed):
            desk.counters.malformed += 1
            if not frame.is_response:
                desk.post(member, error_frame(frame.key, frame.code, frame.reason))
        elif frame.kind == "request":
            if self._admit(member, frame):
                self._requests.get(frame.method or "", self._forward)(member, frame)
        elif frame.kind == "notification":
            self._take_notice(member, frame)
        elif desk.questions.answer(frame.key, member):
            desk.post(None, _write(frame))
        else:
            desk.counters.unmatched += 1

    def _take_notice(self, member: Member, frame: Frame) -> None:
        """Pass a notification on if the revision has it and it is mapped; see docs/sessions.md for all others."""
        desk = self._desk
        fault = find_fault(frame, "client", desk.methods)
        take = self._notices.get(frame.method or "")
        if not desk.opening.is_open:
            desk.drop("a session", frame, "it came before the server was open")
        elif fault is not None:
            desk.drop("a session", frame, fault.reason)
        elif take is None:
            desk.drop("a session", frame, "a shared server cannot tell whose it is")
        else:
            take(member, frame)

    def _admit(self, member: Member, frame: Frame) -> bool:
        """Refuse what the server will not be asked, before anything is noted about it."""
        desk, limit = self._desk, self._desk.settings.calls
        if frame.method == "initialize":
            return True
        if not desk.opening.is_open:
            desk.refuse(member, frame, INVALID_REQUEST, "expected initialize first")
        elif frame.key in member.calls:
            desk.refuse(member, frame._replace(key=None), INVALID_REQUEST, "the id of this request is in use")
        elif (fault := find_fault(frame, "client", desk.methods)) is not None:
            desk.refuse(member, frame, fault.code, fault.reason)
        elif len(member.calls) >= limit:
            desk.refuse(member, frame, CONNECTION_CLOSED, f"more than {limit} requests are unanswered")
        elif len(frame.key or b"") > NAME_BYTES or is_too_long(token_of(params_of(frame.body))):
            reason = f"expected id and progress token to be text or numbers of at most {NAME_BYTES} bytes"
            desk.refuse(member, frame, INVALID_REQUEST, reason)
        else:
            return True
        return False

    def _forward(self, member: Member, frame: Frame, hook: Hook | None = None) -> None:
        """Send a member's request to the server, under an id of ours, or let it wait for its turn."""
        assert frame.key is not None
        assert frame.method is not None
        desk = self._desk
        body, params = frame.body, params_of(frame.body)
        if hook is None and "task" in params:
            hook = self._keep_task
        call = desk.calls.add(frame.method, member, frame.key, hook)
        number = body["id"] = decode(call.key)
        if (token := token_of(params)) is not None:
            call.token = (token,)
            params["_meta"]["progressToken"] = number
        asked = rewrite(frame, body)._replace(key=call.key)
        if not desk.lane.must_wait(call):
            desk.post(None, asked)
        elif not desk.lane.wait(call, asked, desk.now):
            desk.refuse_call(call, CONNECTION_CLOSED, "too much waits for calls of other sessions to end")

    def _agree(self, member: Member, frame: Frame) -> None:
        """Answer in place of the server, which has been told already."""
        assert frame.key is not None
        self._desk.post(member, result_frame(frame.key, {}))

    def _initialize(self, member: Member, frame: Frame) -> None:
        offer = self._desk.opening.ask(member, frame)
        if offer is not None:
            self._desk.post(None, offer)
        for one, answer in self._desk.opening.answer_waiting():
            self._desk.post(one, answer)

    def _initialized(self, member: Member, frame: Frame) -> None:
        member.ready = True
        if not self._desk.announced:
            self._desk.announced = True
            self._desk.post(None, _write(frame))

    def _set_level(self, member: Member, frame: Frame) -> None:
        desk, level = self._desk, params_of(frame.body).get("level")
        if level not in LEVELS:
            self._forward(member, frame)
            return
        before, member.level = member.level, LEVELS.index(level)
        told = desk.levels.change(desk.members)
        if told is None:
            self._agree(member, frame)
            return

        def check(call: Call, answer: Frame) -> Frame:
            if answer.kind == "error":
                member.level = before
                desk.levels.forget()
            return answer

        frame.body["params"]["level"] = told
        self._forward(member, frame, check)

    def _subscribe(self, member: Member, frame: Frame) -> None:
        desk, uri = self._desk, params_of(frame.body).get("uri")
        if not isinstance(uri, str):
            self._forward(member, frame)
            return
        limit = desk.settings.subscriptions
        if len(member.uris) >= limit and uri not in member.uris:
            desk.refuse(member, frame, CONNECTION_CLOSED, f"more than {limit} resources are subscribed to")
            return
        if len(uri) > URI_BYTES:
            desk.refuse(member, frame, INVALID_PARAMS, f"expected a URI of at most {URI_BYTES} characters")
            return
        if desk.subscriptions.add(uri, member):
            self._agree(member, frame)
            return

        def check(call: Call, answer: Frame) -> Frame:
            if answer.kind == "error":
                desk.subscriptions.refuse(uri, member)
            else:
                desk.subscriptions.confirm(uri, member)
            return answer

        self._forward(member, frame, check)

    def _unsubscribe(self, member: Member, frame: Frame) -> None:
        uri = params_of(frame.body).get("uri")
        if isinstance(uri, str) and self._desk.subscriptions.remove(uri, member):
            self._agree(member, frame)
        else:
            self._forward(member, frame)

    def _use_task(self, member: Member, frame: Frame) -> None:
        if self._desk.attribution.task_owner(params_of(frame.body).get("taskId")) is member:
            self._forward(member, frame)
        else:
            self._desk.refuse(member, frame, INVALID_PARAMS, "this session has no such task")

    def _keep_task(self, call: Call, answer: Frame) -> Frame:
        answer = decoded(answer)
        task = object_in(object_in(answer.body, "result"), "task")
        self._desk.attribution.add_task(task.get("taskId"), call)
        return answer

    def _filter_tasks(self, call: Call, answer: Frame) -> Frame:
        answer = decoded(answer)
        result, owner = object_in(answer.body, "result"), self._desk.attribution.task_owner
        tasks = result.get("tasks")
        if isinstance(tasks, list):
            named = [(task, task.get("taskId")) for task in tasks if isinstance(task, dict)]
            result["tasks"] = [task for task, name in named if owner(name) is call.member]
        return answer

    def _cancel(self, member: Member, frame: Frame) -> None:
        desk, params = self._desk, params_of(frame.body)
        call = member.calls.get(key_of(params.get("requestId")) or b"")
        if call is None or call.cancelled_at is not None:
            desk.counters.unmatched += 1
        elif not call.started:
            desk.lane.remove(call)
            desk.calls.forget(call)
            desk.let_in()
        else:
            params["requestId"] = decode(call.key)
            desk.calls.cancel(call, desk.now)
            desk.post(None, _write(frame))

    def _pass_progress(self, member: Member, frame: Frame) -> None:
        if self._desk.questions.has_token(params_of(frame.body).get("progressToken"), member):
            self._desk.post(None, _write(frame))
        else:
            self._desk.counters.dropped += 1

    def _change_roots(self, member: Member, frame: Frame) -> None:
        """Pass it on where the roots are those of one session: of several, the server is told that there are none."""
        if len(self._desk.members) == 1 and self._desk.announced:
            self._desk.post(None, _write(frame))


def _read(frame: Frame | Malformed) -> Frame | Malformed:
    """Give a frame as its whole JSON says that it is, which is what is written anew."""
    if isinstance(frame, Malformed):
        return frame
    try:
        return classify(frame.raw, decoded(frame).body)
    except ValueError as error:
        return Malformed(PARSE_ERROR, str(error), line=frame.raw)


def _write(frame: Frame) -> Frame:
    return rewrite(frame, frame.body)
