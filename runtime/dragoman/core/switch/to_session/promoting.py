"""Tasks between a server with a handshake and its per-request clients: calls that become tasks, polling, and the end.

Lives here: which calls are tasks and for how long they are kept, the requests about tasks, and the tools that run as
tasks at their server. Must not: say what is told of one (`rules.promoted`), or decide that a question makes a call
one (`asking`, `rules.strategy`).

A server of 2025-11-25 says of each tool whether it runs as a task: "required", "optional" or not at all
(2025-11-25/basic/utilities/tasks). A call of the first kind asks for one in any case, a call of the second kind where
its client takes tasks. Its result is fetched at once by `tasks/result`, which waits for it, and the questions come on
the stream of that: so the client's request waits for the end, or its task does. Any other call becomes a task for its
client where its server asks something in the middle of it.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.core.commands import Alarm
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.envelope import Frame, Refusal, decoded, rewrite
from dragoman.core.methods import CALL_TOOL
from dragoman.core.places import has_place
from dragoman.core.rules.capabilities import declares_tasks
from dragoman.core.rules.names import META_SUBSCRIPTION_ID, MISSING_CLIENT_CAPABILITY, TASKS_EXTENSION
from dragoman.core.rules.promoted import Task
from dragoman.core.rules.state import Binding, Reason, State, refuse
from dragoman.core.rules.strategy import Strategy
from dragoman.core.rules.tasks import read_support
from dragoman.core.rules.urls import refuse_visit
from dragoman.core.switch.to_session.loans import SessionLoan
from dragoman.core.switch.to_session.reading import Served, VisitFirst
from dragoman.core.unchecked import find, find_object
from dragoman.errors import RemoteProtocolError

logger = logging.getLogger("dragoman.bridge")

NOTICE: Final = "notifications/tasks"
FILTER: Final = "taskIds"
_NOBODY: Final = b"null"
_TASKS_OF_A_FILTER: Final = 1024

_TASK: Final = "task"
"""The kind of state that is the id of a task."""

_KEPT: Final = 4
"""How many times as many tasks are kept as may run; then the oldest that has ended is forgotten."""

_MOST_BYTES: Final = 64 * 1024 * 1024
"""How much the results of tasks that have ended may hold together; then the oldest are forgotten."""


class KeptTask(NamedTuple):
    """A call that is a task, and what rings when its time is over."""

    loan: SessionLoan
    task: Task
    alarm: Alarm


class Promoting:
    """The tasks of the clients of one server.

    Args:
        served: The session.

    Attributes:
        kept: The calls that are tasks, by name, and those that have ended.
        listeners: The tasks that each listen request hears of.
    """

    __slots__ = ("_served", "kept", "listeners")

    def __init__(self, served: Served) -> None:
        self._served = served
        self.kept: dict[str, KeptTask] = {}
        self.listeners: dict[PerRequestCall, list[Task]] = {}

    # Calls that become tasks

    def has_room(self, loan: SessionLoan) -> bool:
        """Whether another task of this one's client may run."""
        running = [kept.loan.holder for kept in self.kept.values() if not kept.task.ended]
        return has_place(loan.holder, running, len(running), self._served.bridging.most_parked)

    def begin(self, loan: SessionLoan, told: Mapping[str, Any] | None = None) -> bool:
        """Answer the client of a call with a task; False where there are too many.

        Args:
            loan: A call with its client there.
            told: What the server says of it, where it is a task there.
        """
        request, questions, bridging = loan.request, loan.questions, self._served.bridging
        assert request is not None
        assert questions is not None
        binding, now_s = questions.caller.binding, bridging.now()
        if not self.has_room(loan):
            return False
        if len(self.kept) >= bridging.most_parked * _KEPT:
            self._forget_of(Counter(one.loan.holder for one in self.kept.values() if one.task.ended))
        keeper = bridging.keeper()._replace(ttl_s=bridging.task_s)
        task_id = keeper.write(
            State(_TASK, loan.name), bind_task(binding.server, binding.principal), now_s, bridging.nonce()
        )
        task = loan.task = Task(task_id, questions, now_s, int(bridging.task_s * 1000), told or {})
        alarm = self._served.loans.schedule.after(task.ttl_ms / 1000, lambda: self._expire(loan, task))
        self.kept[loan.name] = KeptTask(loan, task, alarm)
        loan.request = None
        self._served.put_result(request, {"resultType": "task", **task.describe()})
        return True

    def change(self, loan: SessionLoan) -> None:
        """Record that the server asks something else about a task than before."""
        if loan.task is not None:
            loan.task.updated_s = self._served.bridging.now()
            self._tell(loan.task)

    def finish(self, loan: SessionLoan, frame: Frame) -> None:
        """Take the server's answer to a call that is a task."""
        said = self._served.spell(loan, frame, _NOBODY, None)
        if isinstance(said, Frame):
            body = decoded(said).body
            how, member = ("failed", "error") if "error" in body else ("completed", "result")
            self._end(loan, how, {member: body[member]}, len(said.raw))
        elif isinstance(said, VisitFirst):
            refused = refuse_visit(said.error)
            self.fail(loan, Refusal(refused.code, refused.message, {}))
        else:
            self.fail(loan, said)

    def fail(self, loan: SessionLoan, refusal: Refusal) -> None:
        """End a task with an error."""
        error = {"code": refusal.code, "message": refusal.message} | ({"data": refusal.data} if refusal.data else {})
        self._end(loan, "failed", {"error": error})

    def _end(self, loan: SessionLoan, how: str, payload: Mapping[str, Any], weight_bytes: int = 0) -> None:
        task = loan.task
        if task is None or not task.end(how, payload, self._served.bridging.now(), weight_bytes):
            return
        held: Counter[Hashable] = Counter()
        for one in self.kept.values():
            held[one.loan.holder] += one.task.weight_bytes
        while held.total() > _MOST_BYTES:
            gone = self._forget_of(held, is_heavy=True)
            held[gone.loan.holder] -= gone.task.weight_bytes
        self._tell(task)

    def _forget_of(self, held: Counter[Hashable], is_heavy: bool = False) -> KeptTask:
        """Forget the oldest task that has ended, of whoever has most: one with a result, where that is what counts."""
        holder = max(held, key=held.__getitem__)
        ended = (one for one in self.kept.values() if one.task.ended and one.loan.holder == holder)
        gone = next(one for one in ended if one.task.weight_bytes or not is_heavy)
        self._forget(gone.loan.name)
        return gone

    def _expire(self, loan: SessionLoan, task: Task) -> None:
        """Forget a task whose time is over, and cancel it where it runs."""
        del self.kept[loan.name]
        if not task.ended:
            logger.warning("%s given up: the time for which its task is kept is over", loan.method)
            self._served.loans.leave(loan, "the time for this task is over")  # before what is asked is forgotten
            task.end("cancelled", {}, self._served.bridging.now())

    def _forget(self, name: str) -> None:
        self._served.loans.schedule.stop(self.kept.pop(name).alarm)

    # Tasks of the server

    def ask_for(self, loan: SessionLoan, frame: Frame) -> Frame:
        """Ask for a task where a call is to have one: give the request, in the server's revision, that says so."""
        request = loan.request
        if request is None or request.method != CALL_TOOL:
            return frame
        support = read_support(self._served.tools.find(request.params.get("name")))
        if support == "forbidden" or (support == "optional" and not declares_tasks(request.metadata.capabilities)):
            return frame
        loan.wants_task = True
        body = decoded(frame).body
        task = {"ttl": int(self._served.bridging.task_s * 1000)}
        return rewrite(frame, {**body, "params": {**body["params"], "task": task}})

    def follow(self, loan: SessionLoan, frame: Frame) -> bool:
        """Take an answer to a call that is to be a task; False where it does not say that it has become one.

        A client that was asked about the call before goes on as it began: it waits for the result.
        """
        task_id, told = self._read_created(loan, frame)
        if task_id is None:
            return False
        loan.task_id, request = task_id, loan.request
        is_left = loan.is_left
        if request is not None and loan.strategy is None and declares_tasks(request.metadata.capabilities):
            self._served.note_caller(loan, request)
            if self.begin(loan, told):
                loan.strategy = Strategy.TASK
            else:
                is_left = True
                self._served.front.refuse(
                    request, INTERNAL_ERROR, "too many tasks are under way", {"method": loan.method}
                )
        if is_left:
            self._served.loans.leave(loan, "")
        else:
            self._served.loans.follow(loan, "tasks/result", {"taskId": task_id})
        return True

    def take_status(self, params: Mapping[str, Any]) -> None:
        """Take what the server says of a task of its own without being asked."""
        loan = self._served.loans.find_task(params.get("taskId"))
        if loan is not None and loan.task is not None:
            loan.task.note(params, self._served.bridging.now())
            self._tell(loan.task)

    @staticmethod
    def _read_created(loan: SessionLoan, frame: Frame) -> tuple[str | None, Mapping[str, Any]]:
        if loan.task_id is not None or frame.kind != "result":
            return None, {}
        try:
            task = find_object(decoded(frame).body, "result", "task")
        except ValueError:  # whoever it is given to will say so
            return None, {}
        task_id = task.get("taskId")
        return (task_id, task) if isinstance(task_id, str) else (None, {})

    # Requests about them

    def serve(self, request: PerRequestCall) -> None:
        """Answer a request about a task.

        Raises:
            RemoteProtocolError: There is no such task for this client, or it did not say that it knows tasks.
            ValueError: Its params are nested deeper than can be written.
        """
        require_tasks(request)
        loan, task, _ = self._find(request, request.params.get("taskId"))
        result: dict[str, Any] = {"resultType": "complete"}
        match request.method:
            case "tasks/get":
                result |= task.detail()
            case "tasks/update":
                if self._served.pass_answers(task.questions, request):
                    self.change(loan)
            case _ if not task.ended:
                self._served.loans.leave(loan, "the client cancelled the task")  # before what is asked is forgotten
                task.end("cancelled", {}, self._served.bridging.now())
                self._tell(task)
        self._served.put_result(request, result)

    def _find(self, request: PerRequestCall, task_id: object) -> KeptTask:
        bridging = self._served.bridging
        binding = bind_task(bridging.server, request.frame.sender or bridging.principal)
        state = bridging.keeper().read(task_id, binding, bridging.now(), self.kept)
        kept = self.kept.get(state.call) if state.kind == _TASK else None
        if kept is None:
            raise refuse(Reason.UNKNOWN)
        return kept

    # Who hears of them without asking

    def listen(self, request: PerRequestCall) -> None:
        """Record the tasks that a listen request wants to hear of.

        Raises:
            RemoteProtocolError: It did not say that its client knows tasks (-32021), or names none (-32602).
            ValueError: Its params are nested deeper than can be written.
        """
        wanted = find_wanted(request.params)
        if wanted is None:
            return
        require_tasks(request)
        known = {}
        for task_id in wanted:
            with contextlib.suppress(RemoteProtocolError):  # the acknowledgement says which are heard of
                known[task_id] = self._find(request, task_id).task
        self.listeners[request] = list(known.values())

    def _tell(self, task: Task) -> None:
        for request in [one for one, tasks in self.listeners.items() if any(task is other for other in tasks)]:
            self._served.front.tell(request, NOTICE, {**task.detail(), "_meta": {META_SUBSCRIPTION_ID: request.id}})


def require_tasks(request: PerRequestCall) -> None:
    """Refuse a request about tasks of a client that did not say that it knows them.

    Raises:
        RemoteProtocolError: It did not (-32021).
    """
    if not declares_tasks(request.metadata.capabilities):
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
        message = f"{request.method} needs a client that declares the extension {TASKS_EXTENSION}"
        raise RemoteProtocolError(MISSING_CLIENT_CAPABILITY, message, required)


def find_wanted(params: Mapping[str, Any]) -> list[Any] | None:
    """Return the tasks that a listen request names; None where it names none.

    Raises:
        RemoteProtocolError: They are no list, or too many (-32602).
    """
    wanted = find(params, "notifications", FILTER)
    if wanted is not None and (not isinstance(wanted, list) or len(wanted) > _TASKS_OF_A_FILTER):
        raise RemoteProtocolError(
            INVALID_PARAMS,
            f"expected {FILTER} to be a list of at most {_TASKS_OF_A_FILTER} tasks",
            {"pointer": f"/params/notifications/{FILTER}"},
        )
    return wanted


def bind_task(server: str, principal: str) -> Binding:
    """Bind a task to its server and its caller: the requests that name it have other methods and params."""
    return Binding(server, "tasks", "", principal)
