"""Tasks of a client of 2025-11-25 at a per-request server that has the tasks extension.

Lives here: the requests of the client about tasks, its calls that ask for one, and the tasks that it knows. Must not:
decide what is polled when (`rules.inputs`). Made by `switch` where client and server both have tasks.

Theory of operation. There, a client asks for a task with the call and may; here, a server makes one if it likes, for
clients that take them. So the server is told that this one takes tasks with the calls that ask for one, and with no
other. If it answers at once all the same, the client still gets the task that it asked for: one of ours, which has
ended. `tasks/result` waits here, over `tasks/get` and `tasks/update` there. A task is known in the session that made
it, and in no other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dragoman.core.calls import Call
from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.core.commands import Side
from dragoman.core.edges.backend import Reads
from dragoman.core.edges.wiring import Bridging, Wiring
from dragoman.core.envelope import Frame, Refusal, decoded, error_frame, result_frame, rewrite, written
from dragoman.core.exact_json import encode
from dragoman.core.methods import CALL_TOOL, LIST_TOOLS
from dragoman.core.rules.inputs import wait_for_task
from dragoman.core.rules.metadata import take_identity
from dragoman.core.rules.routines import Ask, Done, Routine
from dragoman.core.rules.tasks import (
    offer_tasks,
    relate,
    spell_time,
    take_task,
    to_older_creation,
    to_older_task,
)
from dragoman.core.switch.to_stateless.hop import Hop
from dragoman.core.switch.to_stateless.running import CallStepper
from dragoman.errors import ProtocolError

logger = logging.getLogger("dragoman.session")

UPDATE: Final = "tasks/update"
"""Of the extension alone, and of no session: what a task asks is put to its client as a request."""

METHODS: Final = frozenset({"tasks/get", "tasks/result", "tasks/cancel"})
_MOST: Final = 1024
_MOST_OWN: Final = 64
_MOST_BYTES: Final = 16 * 1024 * 1024
"""How many tasks a session may know, how many of them may be ours, whose results are kept, and how much these hold."""


class _Own(NamedTuple):
    """A task that has ended, and its result, in the form of the client."""

    task: dict[str, Any]
    result: dict[str, Any]
    weight_bytes: int


class ClientTasks:
    """The tasks of one client.

    Args:
        hop: The way between client and server.
        wiring: What the edges need.
        bridging: Gives time and random bytes.
    """

    def __init__(self, hop: Hop, wiring: Wiring, bridging: Bridging) -> None:
        self.reads: Reads = {
            CALL_TOOL: self._read_call,
            LIST_TOOLS: self._read_list,
            **dict.fromkeys(METHODS, self._read_about),
        }
        self._hop = hop
        self._bridging = bridging
        client, server, counters = hop.path.client, hop.path.server, hop.front.exchange.counters
        self._upward = wiring.make_adaptor(Side.CLIENT, client, server, counters)
        self._downward = wiring.make_adaptor(Side.SERVER, server, client, counters)
        self._known: dict[str, _Own | None] = {}  # None where it is at the server

    # Calls, and the list that says which may be tasks

    def _read_about(self, call: Call, frame: Frame) -> Frame:
        """Let a request about a task be as it is, and its result: both are ours."""
        call.translate = self._pass_result
        return frame

    def _pass_result(self, answer: Frame) -> Frame:
        adapted = self._downward.adapt(answer, CALL_TOOL) if answer.kind == "error" else None
        return written(adapted if isinstance(adapted, Frame) else answer)

    def _read_list(self, call: Call, frame: Frame) -> Frame | Refusal | None:
        call.translate = self._offer
        return self._upward.adapt(frame, LIST_TOOLS)

    def _offer(self, answer: Frame) -> Frame | Refusal | None:
        adapted = self._downward.adapt(answer, LIST_TOOLS)
        if not isinstance(adapted, Frame) or adapted.kind != "result":
            return adapted
        body = decoded(adapted).body
        return rewrite(adapted, {**body, "result": offer_tasks(body["result"])})

    def _read_call(self, call: Call, frame: Frame) -> Frame | Refusal | None:
        """Take off what a call says about running as a task, before it crosses: there is no such field beyond."""
        try:
            body = decoded(frame).body
        except ValueError:  # the steps will say so
            return self._upward.adapt(frame, CALL_TOOL)
        params = body.get("params")
        rest, said, losses = take_task(params if isinstance(params, dict) else {})
        if said is None:
            return self._upward.adapt(frame, CALL_TOOL)
        call.translate = lambda answer: self._create(call, answer)
        self._hop.report(CALL_TOOL, losses)
        return self._upward.adapt(rewrite(frame, {**body, "params": rest}), CALL_TOOL)

    def _create(self, call: Call, answer: Frame) -> Frame | Refusal | None:
        """Return the answer to a call that asked for a task: a task, or an error."""
        if answer.kind == "error":
            return self._downward.adapt(answer, CALL_TOOL)
        result = decoded(answer).body["result"]
        if result.get("resultType") == "task":
            if not isinstance(result.get("taskId"), str):
                return Refusal(INTERNAL_ERROR, "the server answered with a task without a name", {"method": CALL_TOOL})
            self._know(result["taskId"], None)
            return result_frame(call.key, to_older_creation(take_identity(result)[0]))
        adapted = self._downward.adapt(answer, CALL_TOOL)
        if isinstance(adapted, Refusal):
            return adapted
        whole = decoded(adapted or answer)
        return result_frame(call.key, {"task": self._end_at_once(whole.body["result"], len(encode(whole.body)))})

    def _end_at_once(self, result: dict[str, Any], weight_bytes: int) -> dict[str, Any]:
        """Make a task of a result that came at once."""
        now = spell_time(self._bridging.now())
        status = "failed" if result.get("isError") is True else "completed"
        task_id, ttl = self._bridging.nonce().hex(), int(self._bridging.task_s * 1000)
        task = {"taskId": task_id, "status": status, "createdAt": now, "lastUpdatedAt": now, "ttl": ttl}
        self._know(task_id, _Own(task, result, weight_bytes))
        return task

    def _know(self, task_id: str, own: _Own | None) -> None:
        self._known[task_id] = own
        ours = [(known, each.weight_bytes) for known, each in self._known.items() if each is not None]
        while ours and (len(ours) > _MOST_OWN or sum(weight for _, weight in ours) > _MOST_BYTES):
            del self._known[ours.pop(0)[0]]
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    # Requests about tasks

    def take_request(self, call: Call, params: Mapping[str, Any]) -> None:
        """Take a request of the client about a task."""
        task_id = params.get("taskId")
        if not isinstance(task_id, str) or task_id not in self._known:
            self._refuse(call, "there is no such task in this session", {"pointer": "/params/taskId"})
            return
        own = self._known[task_id]
        if own is not None:
            self._answer_own(call, own.task, own.result)
            return
        routines = {"tasks/get": self._get, "tasks/cancel": self._cancel, "tasks/result": self._wait}
        running = CallStepper(self._hop, call, takes_tasks=True, routine=routines[call.method](task_id))
        running.step(None)

    def _get(self, task_id: str) -> Routine:
        task = yield Ask("tasks/get", {"taskId": task_id})
        return Done(to_older_task({**task, "taskId": task_id}))

    def _cancel(self, task_id: str) -> Routine:
        """A cancellation is only acknowledged there; here its answer says what has become of the task."""
        yield Ask("tasks/cancel", {"taskId": task_id})
        return (yield from self._get(task_id))

    def _wait(self, task_id: str) -> Routine:
        result, elicitations = yield from wait_for_task(task_id, self._hop.client)
        frame = Frame(b"", "result", b"0", None, {"jsonrpc": "2.0", "id": 0, "result": take_identity(result)[0]})
        adapted = self._downward.adapt(frame, CALL_TOOL)
        if isinstance(adapted, Refusal):
            raise ProtocolError(adapted.code, adapted.message, adapted.data)
        return Done(relate(decoded(adapted or frame).body["result"], task_id), elicitations)

    def _answer_own(self, call: Call, task: dict[str, Any], result: dict[str, Any]) -> None:
        if call.method == "tasks/get":
            self._hop.finish(call, task)
        elif call.method == "tasks/result":
            self._hop.finish(call, relate(result, task["taskId"]))
        else:
            self._refuse(call, f"the task has ended: it is {task['status']}", {"taskId": task["taskId"]})

    def _refuse(self, call: Call, message: str, data: dict[str, Any]) -> None:
        self._hop.front.take_answer(call, error_frame(call.key, INVALID_PARAMS, message, data), own=True)
