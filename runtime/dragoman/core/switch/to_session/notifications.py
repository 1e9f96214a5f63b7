"""What the clients of a server with a handshake hear of it between answers.

Lives here: where a notification goes, the log level of the session, and who gets a log message. Must not: know who
listens to changes (`subscriptions`). Called by `session`.

A server has one log level a session, its clients have one a request. It is set to the most verbose that any request
under way wants; each request gets what it wants of it. What belongs to no request, or to one of several, is dropped:
"the server MUST NOT emit" what no request has asked for (2026-07-28/server/utilities/logging).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.commands import Alarm
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.envelope import Frame, decoded, read_params
from dragoman.core.methods import TASK_STATUS
from dragoman.core.rules.names import FACTS
from dragoman.core.switch.to_session.loans import SessionLoan
from dragoman.core.switch.to_session.promoting import Promoting
from dragoman.core.switch.to_session.reading import Served
from dragoman.core.switch.to_session.subscriptions import ListenRequests

logger = logging.getLogger("dragoman.bridge")

_RANKS: Final = {level: rank for rank, level in enumerate(FACTS.log_levels)}
_LEAST: Final = FACTS.log_levels[-1]

PAUSE_S: Final = 5.0
"""For how long a level stays that nobody wants any more."""


class ServerNotifications:
    """What clients hear of one server.

    Args:
        served: The session.
        promoting: The tasks.

    Attributes:
        listens: The clients' listen requests.
    """

    __slots__ = ("_alarm", "_promoting", "_served", "_told", "_wanted", "listens")

    def __init__(self, served: Served, promoting: Promoting) -> None:
        self._served = served
        self._promoting = promoting
        self._alarm: Alarm | None = None
        self.listens = ListenRequests(served, promoting)
        self._wanted: dict[PerRequestCall, str] = {}  # from which level on
        self._told: str | None = None

    def take_notification(self, frame: Frame) -> None:
        """Take a notification of the server that is not about a request of its own."""
        if frame.method == TASK_STATUS:
            self._promoting.take_status(read_params(frame))
            return
        self._served.tools.hear(frame.method)
        adapted = self._served.downward.adapt(frame, frame.method)
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
            loan = (
                self._served.loans.find_only() if frame.stream is None else self._served.loans.table.find(frame.stream)
            )
            self.tell_log(loan, frame.method, params or {})
        elif frame.method in FACTS.announced:
            self.listens.hear(adapted.method or "", params)
        else:
            logger.debug("%s notification of the server dropped: it belongs to no request", frame.method)

    def _tell_progress(self, params: dict[str, Any]) -> None:
        loan = self._served.loans.find_by_token(params.get("progressToken"))
        if loan is not None and loan.request is not None and loan.request.progress_token is not None:
            told = {**params, "progressToken": loan.request.progress_token}
            self._served.front.tell(loan.request, "notifications/progress", told)

    # Log messages

    def set_level(self, request: PerRequestCall, level: str) -> None:
        """Have the server say as much as this request wants to hear, and others that are under way."""
        if "logging" not in self._served.capabilities:
            return
        self._wanted[request] = level
        request.ended = self._finish
        if self._told is None or _RANKS[level] < _RANKS[self._told]:
            self._tell_level(level)
        elif level == self._told:
            self._keep_level()

    def _finish(self, request: PerRequestCall) -> None:
        """A while after a request has ended the server may say less."""
        del self._wanted[request]
        if self._alarm is None and self._find_most_verbose() != self._told:
            self._alarm = self._served.loans.schedule.after(PAUSE_S, self._lower)

    def _lower(self) -> None:
        self._tell_level(self._find_most_verbose())

    def _keep_level(self) -> None:
        self._served.loans.schedule.stop(self._alarm)
        self._alarm = None

    def _tell_level(self, level: str) -> None:
        self._keep_level()
        self._told = level
        self._served.loans.send_own("logging/setLevel", {"level": level}, lambda answer: _note_level(level, answer))

    def _find_most_verbose(self) -> str:
        return min(self._wanted.values(), key=_RANKS.__getitem__, default=_LEAST)

    def tell_log(self, loan: SessionLoan | None, method: str, params: Mapping[str, Any]) -> None:
        """Give a log message to the request that it is about, if that is known and wants it."""
        request, level = None if loan is None else loan.request, params.get("level")
        least = None if request is None else self._wanted.get(request)
        if request is None or least is None or not isinstance(level, str) or _RANKS.get(level, -1) < _RANKS[least]:
            logger.debug("a log message of the server dropped: no request wants it")
        else:
            self._served.front.tell(request, method, dict(params))


def _note_level(level: str, answer: Frame) -> None:
    if answer.kind == "error":
        logger.warning("the server did not take the log level %s", level)
