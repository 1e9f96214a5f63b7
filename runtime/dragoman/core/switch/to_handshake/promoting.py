"""Calls at a server with a handshake that are tasks for their per-request clients: asking, polling, and the end.

Lives here: carrying out what `bridge.promoted` says, and the requests about tasks. Must not: decide which call becomes
one (`asking`, `bridge.strategy`). Called by `open_session` and the other modules of the package.

A call becomes a task where its server asks something in the middle of it, and where it is a task at the server, too
(2025-11-25). Then its result is fetched at once by `tasks/result`, which waits for it, and the questions come on the
stream of that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.bridge.asking import Turned
from dragoman.core.bridge.capabilities import declares_tasks
from dragoman.core.bridge.names import META_SUBSCRIPTION_ID, MISSING_CLIENT_CAPABILITY, TASK_METHODS, TASKS_EXTENSION
from dragoman.core.bridge.promoted import PromotedTasks
from dragoman.core.bridge.questions import Question
from dragoman.core.bridge.state import Binding, Moment
from dragoman.core.bridge.urls import refuse_visit
from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Refusal, decoded, result_frame
from dragoman.core.switch.to_handshake.answers import Answers, VisitFirst
from dragoman.core.switch.to_handshake.leaving import Leaving
from dragoman.core.switch.to_handshake.works import Work, Works, bind
from dragoman.core.unchecked import find
from dragoman.core.wiring import Bridging
from dragoman.errors import RemoteProtocolError

logger = logging.getLogger("dragoman.bridge")

NOTICE: Final = "notifications/tasks"
FILTER: Final = "taskIds"
_NOBODY: Final = b"null"
_TASKS_OF_A_FILTER: Final = 1024


class Promoting:
    """The tasks of the clients of one server.

    Args:
        bridging: What the bridge needs.
        front: The clients' edge.
        upstream: The server's.
        works: What the server is at work on.
        leaving: What of it nobody waits for any more.
        answers: Spells its answers.
    """

    __slots__ = (
        "_answers",
        "_bridging",
        "_front",
        "_leaving",
        "_listeners",
        "_tasks",
        "_upstream",
        "_works",
    )

    def __init__(
        self,
        bridging: Bridging,
        front: PerRequestFront,
        upstream: UpstreamEdge,
        works: Works,
        leaving: Leaving,
        answers: Answers,
    ) -> None:
        self._bridging = bridging
        self._front = front
        self._upstream = upstream
        self._works = works
        self._leaving = leaving
        self._answers = answers
        self._tasks: PromotedTasks | None = None  # made with the first one: few clients know tasks
        self._listeners: dict[Request, frozenset[str]] = {}

    # Calls that become tasks

    def begin(self, work: Work, told: Mapping[str, Any] | None = None) -> bool:
        """Answer the client of a call with a task; False where there are too many.

        Args:
            work: A call with its client there.
            told: What the server says of it, where it is a task there.
        """
        request, bridging = work.request, self._bridging
        assert request is not None
        assert work.caller is not None
        now = Moment(bridging.now(), bridging.steady_s())
        made = self._make_tasks().promote(work.name, work.caller, now, bridging.nonce(), told)
        if made is None:
            return False
        work.request = None
        self._front.answer(request, self._answers.sign(made))
        return True

    def ask(self, work: Work, key: bytes, method: str, params: Any) -> Question | Turned:
        """Take a question that a server asks about a task."""
        asked = self._make_tasks().ask(work.name, key, method, params, self._bridging.now())
        if isinstance(asked, Question):
            self._tell(work.name)
        return asked

    def withdraw(self, work: Work, key: bytes) -> None:
        """Take note that the server does not want an answer to a question any more."""
        self._make_tasks().withdraw(work.name, key, self._bridging.now())
        self._tell(work.name)

    def note(self, work: Work, told: Mapping[str, Any]) -> None:
        """Take note of what the server says of a task of its own."""
        self._make_tasks().note(work.name, told, self._bridging.now())
        self._tell(work.name)

    def finish(self, work: Work, frame: Frame) -> None:
        """Take the server's answer to a call that is a task."""
        said = self._answers.spell(work.method, frame, _NOBODY, None)
        if isinstance(said, Frame):
            self._end(work, decoded(said).body, len(said.raw))
        elif isinstance(said, VisitFirst):
            refused = refuse_visit(said.error)
            self.fail(work, Refusal(refused.code, refused.message, {}))
        else:
            self.fail(work, said)

    def fail(self, work: Work, refusal: Refusal) -> None:
        """End a task with an error."""
        error = {"code": refusal.code, "message": refusal.message} | ({"data": refusal.data} if refusal.data else {})
        self._end(work, {"error": error})

    def _end(self, work: Work, body: Mapping[str, Any], weight_bytes: int = 0) -> None:
        self._make_tasks().finish(work.name, body, self._bridging.now(), weight_bytes)
        self._tell(work.name)

    # Requests about tasks

    def serve(self, request: Request) -> bool:
        """Take a request about a task; False where it is about something else.

        Raises:
            RemoteProtocolError: There is no such task for this client, or it did not say that it knows tasks.
            ValueError: Its params are nested deeper than can be written.
        """
        if request.method not in TASK_METHODS:
            return False
        require_tasks(request)
        tasks, binding, now_s = self._make_tasks(), bind(self._bridging, request), self._bridging.now()
        result: dict[str, Any] = {"resultType": "complete"}
        match request.method:
            case "tasks/get":
                result = tasks.get(request.params, binding, now_s)
            case "tasks/update":
                self._update(tasks, request, binding, now_s)
            case _:
                self._cancel(tasks, request, binding, now_s)
        self._front.answer(request, self._answers.sign(result))
        return True

    def _update(self, tasks: PromotedTasks, request: Request, binding: Binding, now_s: float) -> None:
        call = tasks.find(request.params.get("taskId"), binding, now_s)
        work = self._works.find_named(call)
        updated = tasks.update(request.params, binding, now_s)
        if updated.losses:
            logger.warning("answers of the client: %d value(s) cannot be passed to the server", len(updated.losses))
        for key, result in updated.replies:
            assert work is not None, "only a call that goes on has questions"
            del work.questions[key]
            self._upstream.send(result_frame(key, result))
        self._tell(call)

    def _cancel(self, tasks: PromotedTasks, request: Request, binding: Binding, now_s: float) -> None:
        call = tasks.cancel(request.params, binding, now_s)
        work = None if call is None else self._works.find_named(call)
        if call is not None:
            self._tell(call)
        if work is not None:
            self._leaving.cancel(work, "the client cancelled the task")

    # Who hears of them without asking

    def listen(self, request: Request) -> list[str] | None:
        """Take note of the tasks that a listen request wants to hear of; give those, None where it wants none.

        Raises:
            RemoteProtocolError: It did not say that its client knows tasks (-32021), or names none (-32602).
            ValueError: Its params are nested deeper than can be written.
        """
        wanted = find(request.params, "notifications", FILTER)
        if wanted is None:
            return None
        require_tasks(request)
        if not isinstance(wanted, list) or len(wanted) > _TASKS_OF_A_FILTER:
            raise RemoteProtocolError(
                INVALID_PARAMS,
                f"expected {FILTER} to be a list of at most {_TASKS_OF_A_FILTER} tasks",
                {"pointer": f"/params/notifications/{FILTER}"},
            )
        known = {}
        for task_id in wanted:
            try:
                call = self._make_tasks().find(task_id, bind(self._bridging, request), self._bridging.now())
            except RemoteProtocolError:
                continue  # the acknowledgement says which are heard of
            known[task_id] = call
        self._listeners[request] = frozenset(known.values())
        return list(known)

    def stop_listening(self, request: Request) -> None:
        """Take note that a listen request is over."""
        self._listeners.pop(request, None)

    def _tell(self, call: str) -> None:
        listeners = [request for request, calls in self._listeners.items() if call in calls]
        detail = self._make_tasks().tell(call) if listeners else None
        for request in listeners if detail is not None else ():
            meta = {META_SUBSCRIPTION_ID: request.id}
            self._front.tell(request, NOTICE, {**(detail or {}), "_meta": meta})

    # Time

    @property
    def keeps_any(self) -> bool:
        """Whether there is any task."""
        return bool(self._tasks)

    def has_room(self, principal: str) -> bool:
        """Whether there may be another task of this principal."""
        return self._tasks is None or self._tasks.has_room(principal)

    @property
    def next_s(self) -> float | None:
        """When `expire` has something to do, on the steady clock; None while there is no task."""
        return None if self._tasks is None else self._tasks.find_next_expiry()

    def expire(self) -> None:
        """Forget the tasks whose time is over, and cancel those that run."""
        for call, is_running in [] if self._tasks is None else self._tasks.expire(self._bridging.steady_s()):
            work = self._works.find_named(call)
            if is_running and work is not None:
                logger.warning("%s given up: the time for which its task is kept is over", work.method)
                self._leaving.cancel(work, "the time for this task is over")

    def _make_tasks(self) -> PromotedTasks:
        if self._tasks is None:
            keeper = self._bridging.keeper()._replace(ttl_s=self._bridging.task_s)
            self._tasks = PromotedTasks(keeper, self._bridging.most_parked, shares=self._bridging.shares_server)
        return self._tasks


def require_tasks(request: Request) -> None:
    """Refuse a request about tasks of a client that did not say that it knows them.

    Raises:
        RemoteProtocolError: It did not (-32021).
    """
    if not declares_tasks(request.metadata.capabilities):
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
        message = f"{request.method} needs a client that declares the extension {TASKS_EXTENSION}"
        raise RemoteProtocolError(MISSING_CLIENT_CAPABILITY, message, required)
