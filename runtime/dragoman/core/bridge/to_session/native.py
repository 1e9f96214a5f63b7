"""Tools that run as tasks at their server, for clients that know the tasks of the extension or none.

Lives here: which calls ask for a task, and how one is followed. Must not: keep the tasks of clients (`promoting`).
Called by `open_session`.

A server of 2025-11-25 says of each tool whether it runs as a task: "required", "optional" or not at all
(2025-11-25/basic/utilities/tasks). A call of the first kind asks for one in any case, a call of the second kind where
its client takes tasks. `tasks/result` waits for the end: so the client's request, or its task, does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from dragoman.core.bridge.capabilities import declares_tasks, runs_tools_as_tasks
from dragoman.core.bridge.strategy import Strategy
from dragoman.core.bridge.tasks import read_support
from dragoman.core.bridge.to_session.promoting import Promoting
from dragoman.core.bridge.to_session.reading import Served
from dragoman.core.bridge.to_session.works import Work
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.envelope import Frame, decoded, rewrite
from dragoman.core.methods import CALL_TOOL
from dragoman.core.unchecked import find_object

logger = logging.getLogger("dragoman.bridge")


class ServerTasks:
    """The tasks of one server.

    Args:
        served: The session.
        promoting: The tasks of the clients.

    Attributes:
        are_there: Whether the server runs tools as tasks.
    """

    __slots__ = ("_promoting", "_served", "are_there")

    def __init__(self, served: Served, promoting: Promoting) -> None:
        self._served = served
        self._promoting = promoting
        self.are_there = runs_tools_as_tasks(served.capabilities)

    def ask_for(self, work: Work, frame: Frame) -> Frame:
        """Ask for a task where a call is to have one: give the request, in the server's revision, that says so."""
        request = work.request
        if request is None or request.method != CALL_TOOL:
            return frame
        support = read_support(self._served.tools.find(request.params.get("name")))
        if support == "forbidden" or (support == "optional" and not declares_tasks(request.metadata.capabilities)):
            return frame
        work.wants_task = True
        body = decoded(frame).body
        task = {"ttl": int(self._served.bridging.task_s * 1000)}
        return rewrite(frame, {**body, "params": {**body["params"], "task": task}})

    def follow(self, work: Work, frame: Frame) -> bool:
        """Take an answer to a call that is to be a task; False where it does not say that it has become one.

        A client that was asked about the call before goes on as it began: it waits for the result.
        """
        task_id, told = self._read_created(work, frame)
        if task_id is None:
            return False
        work.task_id, request = task_id, work.request
        is_left = work.is_left
        if request is not None and work.way is None and declares_tasks(request.metadata.capabilities):
            self._served.note_caller(work, request)
            if self._promoting.begin(work, told):
                work.way = Strategy.TASK
            else:
                is_left = True
                self._served.front.refuse(
                    request, INTERNAL_ERROR, "too many tasks are under way", {"method": work.method}
                )
        if is_left:
            self._served.works.leave(work, "")
        else:
            self._served.works.follow(work, "tasks/result", {"taskId": task_id})
        return True

    def take_status(self, params: Mapping[str, Any]) -> None:
        """Take what the server says of a task without being asked."""
        work = self._served.works.find_task(params.get("taskId"))
        if work is not None:
            self._promoting.note(work, params)

    @staticmethod
    def _read_created(work: Work, frame: Frame) -> tuple[str | None, Mapping[str, Any]]:
        if work.task_id is not None or frame.kind != "result":
            return None, {}
        try:
            task = find_object(decoded(frame).body, "result", "task")
        except ValueError:  # whoever it is given to will say so
            return None, {}
        task_id = task.get("taskId")
        return (task_id, task) if isinstance(task_id, str) else (None, {})
