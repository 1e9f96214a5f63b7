"""What the clients of a server with a handshake hear of it between answers: log messages, and notices of change.

Lives here: the log level of the session, who gets a log message, and the listen requests of the clients. Must not: know
how subscriptions are counted (`bridge.listens`). Called by `open_session`.

A server has one log level a session, its clients have one a request. It is set to the most verbose that any request
under way wants; each request gets what it wants of it. What belongs to no request, or to one of several, is dropped:
"the server MUST NOT emit" what no request has asked for (2026-07-28/server/utilities/logging).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.core.bridge.levels import RequestLevels
from dragoman.core.bridge.listens import Command, End, ListenId, Listens, Refuse, Subscribe, TellListener, Unsubscribe
from dragoman.core.bridge.names import FACTS
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.envelope import Frame, decoded, key_of, read_params
from dragoman.core.methods import ACKNOWLEDGED, CANCELLED, TASK_STATUS, TOOLS_CHANGED
from dragoman.core.switch.to_handshake.listed import ListedTools
from dragoman.core.switch.to_handshake.native import ServerTasks
from dragoman.core.switch.to_handshake.promoting import FILTER, Promoting
from dragoman.core.switch.to_handshake.works import Work, Works
from dragoman.core.translate import Adaptor

logger = logging.getLogger("dragoman.bridge")


class ServerNotices:
    """What clients hear of one server.

    Args:
        front: The client's edge.
        answer: Answers a request with a result.
        works: What the server is at work on, and the way to ask it something.
        promoting: The tasks of the clients.
        tasks: The tasks of the server.
        listed: What is known of its tools.
        downward: Translates for the clients.
        capabilities: Of the server, in the form of the newest revision with a handshake.
        shares_channel: Whether all that a client hears comes on one channel, so that the end of a stream is told.

    Attributes:
        follows_levels: Whether a request has wanted log messages, so that the end of one matters for what the server
            is told.
    """

    __slots__ = (
        "_acknowledged",
        "_answer",
        "_capabilities",
        "_downward",
        "_front",
        "_levels",
        "_listed",
        "_listens",
        "_promoting",
        "_requests",
        "_shares_channel",
        "_tasks",
        "_works",
        "follows_levels",
    )

    def __init__(
        self,
        front: PerRequestFront,
        answer: Callable[[Request, dict[str, Any]], None],
        works: Works,
        promoting: Promoting,
        tasks: ServerTasks,
        listed: ListedTools,
        downward: Adaptor,
        capabilities: Mapping[str, Any],
        shares_channel: bool,
    ) -> None:
        self._front = front
        self._answer = answer
        self._works = works
        self._promoting = promoting
        self._tasks = tasks
        self._listed = listed
        self._downward = downward
        self._acknowledged: dict[ListenId, list[str]] = {}  # the tasks that are to be named then
        self._capabilities = capabilities
        self._shares_channel = shares_channel
        self._listens = Listens(capabilities)
        self._requests: dict[ListenId, Request] = {}
        self._levels = RequestLevels()
        self.follows_levels = False

    def take(self, frame: Frame) -> None:
        """Take a notification of the server that is not about a request of its own."""
        if frame.method == TASK_STATUS:
            self._tasks.take_status(read_params(frame))
            return
        if frame.method == TOOLS_CHANGED:
            self._listed.forget()
        adapted = self._downward.adapt(frame, frame.method)
        if not isinstance(adapted, Frame):
            return
        try:
            params = decoded(adapted).body.get("params")
        except ValueError as error:
            logger.warning("%s notification of the server dropped: %s", frame.method, error)
            return
        params = params if isinstance(params, dict) else None
        if frame.method == "notifications/progress":
            self._tell_progress(params or {})
        elif frame.method == "notifications/message":
            work = self._works.find_only() if frame.stream is None else self._works.find(frame.stream)
            self.tell_log(work, frame.method, params or {})
        elif frame.method in FACTS.announced:
            self._carry_out(self._listens.hear(adapted.method or "", params))
        else:
            logger.debug("%s notification of the server dropped: it belongs to no request", frame.method)

    def _tell_progress(self, params: dict[str, Any]) -> None:
        work = self._works.find_by_token(params.get("progressToken"))
        if work is not None and work.request is not None and work.request.token is not None:
            told = {**params, "progressToken": work.request.token}
            self._front.tell(work.request, "notifications/progress", told)

    # Log messages

    def prepare(self, request: Request) -> None:
        """Have the server say as much as this request wants to hear, and others that are under way."""
        if "logging" in self._capabilities:
            self.follows_levels = self.follows_levels or request.metadata.log_level is not None
            self._set_level(self._levels.start(request, request.metadata.log_level))

    def finish(self, request: Request, now_s: float) -> None:
        """Take note that a request is not under way any more: a while later the server may say less."""
        self._levels.end(request, now_s)

    def settle(self, now_s: float) -> None:
        """Have the server say less, if it is time."""
        self._set_level(self._levels.settle(now_s))

    @property
    def next_s(self) -> float | None:
        """When `settle` has something to do; None while there is nothing."""
        return self._levels.next_s

    def _set_level(self, level: str | None) -> None:
        if level is not None:
            self._works.ask("logging/setLevel", {"level": level}, lambda answer: _note_level(level, answer))

    def tell_log(self, work: Work | None, method: str, params: Mapping[str, Any]) -> None:
        """Give a log message to the request that it is about, if that is known and wants it."""
        request = None if work is None else work.request
        if request is None or not self._levels.wants(request, params.get("level")):
            logger.debug("a log message of the server dropped: no request wants it")
        else:
            self._front.tell(request, method, dict(params))

    # Listen streams

    def listen(self, request: Request) -> None:
        """Take a listen request."""
        tasks = self._promoting.listen(request)
        self._requests[self._id_of(request)] = request
        if tasks:
            self._acknowledged[self._id_of(request)] = tasks
        self._carry_out(self._listens.open(request.key, request.id, request.params))

    def stop_listening(self, request: Request) -> bool:
        """Take note that a request was cancelled; False where it is not a listen request."""
        listen = self._id_of(request)
        if listen not in self._requests:
            return False
        self._forget(listen)
        del self._requests[listen]
        self._carry_out(self._listens.close(*listen))
        return True

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._requests)

    def end_all(self, reason: str) -> None:
        """End every stream."""
        self._carry_out(self._listens.end_all(reason))

    def _forget(self, to: ListenId) -> None:
        self._acknowledged.pop(to, None)
        self._promoting.stop_listening(self._requests[to])

    @staticmethod
    def _id_of(request: Request) -> ListenId:
        return ListenId(request.key, key_of(request.id) or b"null")

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case TellListener(to, method, params):
                    if method == ACKNOWLEDGED and to in self._acknowledged:
                        params["notifications"][FILTER] = self._acknowledged.pop(to)
                    self._front.tell(self._requests[to], method, params)
                case Refuse(to, error):
                    self._forget(to)
                    self._front.refuse(self._requests.pop(to), error.code, error.message, error.data)
                case End(to, result, cancel):
                    self._forget(to)
                    request = self._requests.pop(to)
                    if self._shares_channel:
                        self._front.tell(request, CANCELLED, cancel)
                    self._answer(request, result)
                case Subscribe(uri):
                    self._works.ask("resources/subscribe", {"uri": uri}, self._settling(uri))
                case Unsubscribe(uri):
                    self._works.ask("resources/unsubscribe", {"uri": uri}, lambda answer: None)

    def _settling(self, uri: str) -> Callable[[Frame], None]:
        return lambda answer: self._carry_out(self._listens.settle(uri, answer.kind == "result"))


def _note_level(level: str, answer: Frame) -> None:
    if answer.kind == "error":
        logger.warning("the server did not take the log level %s", level)
