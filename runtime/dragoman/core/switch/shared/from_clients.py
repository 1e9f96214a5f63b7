"""Frames from clients to a shared server, in the server's revision.

Lives here: the way of each kind of frame from a client. Must not: know transports. Called by `switch`.

Everything is decoded and written anew: the server gets one JSON-RPC frame with the proxy's own id and progress token,
even if a client's line has members twice or is not quite JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.calls import Call
from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from dragoman.core.commands import Side
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.envelope import Frame, decoded, error_frame, key_of, result_frame, rewrite
from dragoman.core.exact_json import decode
from dragoman.core.methods import INITIALIZED
from dragoman.core.paging import Paging
from dragoman.core.rules.notifications import RESOURCE_FILTER
from dragoman.core.serving.attribution import NAME_BYTES
from dragoman.core.serving.loans import Hook, Loan
from dragoman.core.serving.questions import is_too_long, token_of
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.switch.shared.allowed import find_fault
from dragoman.core.switch.shared.desk import Desk, params_of
from dragoman.core.switch.shared.levels import LEVELS
from dragoman.core.unchecked import find_object

URI_BYTES: Final = 8192
"""The longest URI that is remembered: RFC 9110, 4.1, asks for no more than 8000 octets to be supported."""

_OF_REQUEST: Final = ("jsonrpc", "id", "method", "params")
"""What is passed on of a request: for some servers, a result beside it would answer what another client was asked."""


class FromClients:
    """Takes what clients say.

    Args:
        desk: The tables.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._requests: Mapping[str, Callable[[ClientSession, Call, Frame], None]] = {
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "tasks/list": self._list_tasks,
        }
        self._notices: Mapping[str, Callable[[ClientSession, Frame], None]] = {
            INITIALIZED: self._initialized,
            "notifications/cancelled": self._cancel,
            "notifications/progress": self._pass_progress,
            "notifications/roots/list_changed": self._change_roots,
        }

    def take_call(self, session: ClientSession, call: Call, frame: Frame) -> None:
        """Take a request."""
        try:
            frame = decoded(frame)
        except ValueError as error:
            self._desk.counters.malformed += 1
            self._desk.pass_answer(session, call, error_frame(call.key, PARSE_ERROR, str(error)))
            return
        fault = find_fault(frame, "client", self._desk.methods)
        if fault is not None:
            self._desk.refuse(session, call, fault.code, fault.reason)
        elif len(call.key) > NAME_BYTES or is_too_long(token_of(params_of(frame.body))):
            reason = f"expected id and progress token to be text or numbers of at most {NAME_BYTES} bytes"
            self._desk.refuse(session, call, INVALID_REQUEST, reason)
        else:
            take = self._use_task if call.method.startswith("tasks/") else self._forward
            self._requests.get(call.method, take)(session, call, frame)

    def take_notice(self, session: ClientSession, frame: Frame) -> None:
        """Pass a notification on if the revision has it and it is mapped; see docs/sessions.md for all others."""
        desk = self._desk
        try:
            frame = decoded(frame)
        except ValueError as error:
            desk.counters.malformed += 1
            desk.drop("a session", frame, str(error))
            return
        fault = find_fault(frame, "client", desk.methods)
        take = self._notices.get(frame.method or "")
        if fault is not None:
            desk.drop("a session", frame, fault.reason)
        elif take is None:
            desk.drop("a session", frame, "a shared server cannot tell whose it is")
        else:
            take(session, frame)

    def take_reply(self, session: ClientSession, frame: Frame) -> None:
        """Pass the answer to a question of the server on, if this session was asked."""
        desk = self._desk
        if not desk.questions.take_answer(frame.key, session):
            desk.counters.unmatched += 1
            return
        try:
            desk.tell_server(rewrite(frame, decoded(frame).body))
        except ValueError as error:
            desk.counters.malformed += 1
            message = f"the client's answer cannot be read: {error}"
            desk.tell_server(error_frame(frame.key, INTERNAL_ERROR, message))

    def _forward(self, session: ClientSession, call: Call, frame: Frame, hook: Hook | None = None) -> None:
        """Send a client's request to the server, under an id of ours, or let it wait for its turn."""
        desk = self._desk
        params = params_of(frame.body)
        if hook is None and "task" in params:
            hook = self._keep_task
        loan = desk.lend(session, call, hook)
        number = decode(loan.key)
        body = {name: frame.body[name] for name in _OF_REQUEST if name in frame.body} | {"id": number}
        if (token := token_of(params)) is not None:
            loan.token = (token,)
            body["params"] = {**params, "_meta": {**params["_meta"], "progressToken": number}}
        lent = rewrite(frame, body)._replace(key=loan.key, sender=session.sender)
        if not desk.turns.must_wait(loan):
            desk.tell_server(lent)
        elif not desk.turns.wait(loan, lent, desk.now):
            desk.refuse_loan(loan, CONNECTION_CLOSED, "too much waits for calls of other sessions to end")
        else:
            desk.let_in()  # with this one there may be calls of several people, and then nobody waits

    def _agree(self, session: ClientSession, call: Call) -> None:
        """Answer in place of the server, which has been told already."""
        self._desk.pass_answer(session, call, result_frame(call.key, {}))

    def _initialized(self, session: ClientSession, frame: Frame) -> None:
        session.ready = True
        if self._desk.upstream.state is UpstreamState.ACCEPTED:
            self._desk.upstream.announce(rewrite(frame, frame.body))
        self._desk.tell_level()  # it has asked for none, and others may want little

    def _set_level(self, session: ClientSession, call: Call, frame: Frame) -> None:
        desk, level = self._desk, params_of(frame.body).get("level")
        if level not in LEVELS:
            self._forward(session, call, frame)
            return
        before, session.level = session.level, LEVELS.index(level)
        told = desk.levels.change(desk.sessions.values())
        if told is None:
            self._agree(session, call)
            return

        def check(loan: Loan, answer: Frame) -> Frame:
            if answer.kind == "error":
                session.level = before
                desk.levels.forget()
            return answer

        frame.body["params"]["level"] = told
        self._forward(session, call, frame, check)

    def _subscribe(self, session: ClientSession, call: Call, frame: Frame) -> None:
        desk, uri = self._desk, params_of(frame.body).get("uri")
        if not isinstance(uri, str):
            self._forward(session, call, frame)
            return
        limit, item = desk.settings.subscriptions, (RESOURCE_FILTER, uri)
        wanted = desk.subscriptions.filter_of(session)
        if len(wanted) >= limit and item not in wanted:
            desk.refuse(session, call, CONNECTION_CLOSED, f"more than {limit} resources are subscribed to")
            return
        if len(uri) > URI_BYTES:
            desk.refuse(session, call, INVALID_PARAMS, f"expected a URI of at most {URI_BYTES} characters")
            return
        if desk.subscriptions.add(session, item):
            self._agree(session, call)
            return

        def check(loan: Loan, answer: Frame) -> Frame:
            if not desk.subscriptions.settle(session, item, answer.kind == "result"):
                desk.upstream.recovery.session.drop(uri)
            return answer

        self._forward(session, call, frame, check)

    def _unsubscribe(self, session: ClientSession, call: Call, frame: Frame) -> None:
        uri = params_of(frame.body).get("uri")
        if isinstance(uri, str) and self._desk.subscriptions.remove(session, (RESOURCE_FILTER, uri)):
            self._agree(session, call)
        else:
            self._forward(session, call, frame)

    def _use_task(self, session: ClientSession, call: Call, frame: Frame) -> None:
        if self._desk.attribution.task_owner(params_of(frame.body).get("taskId")) is session:
            self._forward(session, call, frame)
        else:
            self._desk.refuse(session, call, INVALID_PARAMS, "this session has no such task")

    def _keep_task(self, loan: Loan, answer: Frame) -> Frame:
        answer = decoded(answer)
        task = find_object(find_object(answer.body, "result"), "task")
        self._desk.attribution.add_task(task.get("taskId"), loan)
        return answer

    def _list_tasks(self, session: ClientSession, call: Call, frame: Frame) -> None:
        """Answer with a session's own tasks, of all pages: a cursor of the server says how many others have."""
        own, paging, owner = list[Any](), Paging(), self._desk.attribution.task_owner

        def gather(loan: Loan, answer: Frame) -> Frame | None:
            answer = decoded(answer)
            result = find_object(answer.body, "result")
            tasks = result.get("tasks")
            if not isinstance(tasks, list):
                return answer
            own.extend(task for task in tasks if isinstance(task, dict) and owner(task.get("taskId")) is session)
            cursor = paging.follow(result, len(answer.raw))
            if cursor is not None:
                params = {**params_of(frame.body), "cursor": cursor}
                self._forward(session, call, rewrite(frame, {**frame.body, "params": params}), gather)
                return None
            result["tasks"] = own
            result.pop("nextCursor", None)
            return answer

        self._forward(session, call, frame, gather)

    def _cancel(self, session: ClientSession, frame: Frame) -> None:
        desk, params = self._desk, params_of(frame.body)
        key = key_of(params.get("requestId")) or b""
        call = session.front.exchange.calls[Side.CLIENT].cancelled.get(key)
        loan = None if call is None else desk.loans.by_key.get(call.at_server or b"")
        if loan is None or loan.cancelled_at is not None:
            desk.counters.unmatched += 1
        elif loan.frame is not None or desk.upstream.recovery.forgo(loan.key):
            desk.turns.forget(loan)
            desk.let_in()
        else:
            desk.turns.cancel(loan, desk.now)
            desk.tell_server(rewrite(frame, {**frame.body, "params": {**params, "requestId": decode(loan.key)}}))

    def _pass_progress(self, session: ClientSession, frame: Frame) -> None:
        if self._desk.questions.has_token(params_of(frame.body).get("progressToken"), session):
            self._desk.tell_server(rewrite(frame, frame.body))
        else:
            self._desk.counters.dropped += 1

    def _change_roots(self, session: ClientSession, frame: Frame) -> None:
        """Pass it on where the roots are those of one session: of several, the server is told that there are none."""
        if len(self._desk.sessions) == 1 and self._desk.upstream.state is UpstreamState.READY:
            self._desk.tell_server(rewrite(frame, frame.body))
