"""How a server that is lost is started again, and how one that has gone silent is noticed.

Lives here: what an upstream edge does about both, by the table `lifecycle.UPSTREAM`. Must not: know the time; it asks
to be woken. A base of `upstream.UpstreamEdge`.

Theory of operation. A server that is lost while its session is open may be started again (`settings.RestartPolicy`).
Who had asked it something is told at once: the request may have run, so it is never sent again. What comes meanwhile
waits, and goes out once the new server has the old session: the same `initialize`, then what stands (`renewal`). The
first attempt comes soon and each further one later, with some chance in it, so that many proxies do not all knock at
the same time. If an attempt fails, what waits fails with it. Attempts count until a server has been open for as long
as the longest pause.

A server from which nothing comes for a while is sent a `ping`, or `server/discover` if it has no handshake. If nothing
comes for as long again, it counts as lost.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.commands import Close, Outcome, Wake
from dragoman.core.edges.lifecycle import UpstreamEvent, UpstreamState
from dragoman.core.edges.renewing import Renewing
from dragoman.core.envelope import Frame, Malformed, Refusal, notification_frame, request_frame
from dragoman.core.settings import Settings

logger = logging.getLogger("dragoman.session")

_PING: Final = "dragoman-health-"
"""How the ids of our own pings begin."""

_LISTS: Final = ("tools", "prompts", "resources")
"""What may have changed while a server was gone."""


class Restarting(Renewing):
    """The part of an upstream edge that outlives a server.

    Attributes:
        restarts: How often the server has been started again.
        trouble: Why it was lost last; empty if it never was.
    """

    __slots__ = (
        "_asked",
        "_attempts",
        "_dismissed",
        "_heard",
        "_open_s",
        "_ping",
        "_pings",
        "_returns",
        "restarts",
        "trouble",
    )

    restarts: int
    takes_headers: bool
    trouble: str
    _settings: Settings
    _asked: str | None  # the method of our own question
    _attempts: int  # that were made since the server was last open for long
    _dismissed: bool  # whether nobody needs the server any more
    _heard: bool  # whether anything came since the clock was last looked at
    _open_s: float  # how long the server has been open, as far as the clock was looked at
    _ping: bytes | None  # the id of our own, while it is not answered
    _pings: int
    _returns: bool  # whether the session that is being opened is that of another process

    def _begin_to_watch(self) -> None:
        self.restarts = self._attempts = self._pings = 0
        self.trouble = ""
        self._heard = self._returns = self._dismissed = False
        self._open_s = 0.0
        self._ping = self._asked = None

    def dismiss(self) -> None:
        """Take note that nobody needs the server any more: that it goes is as it should be."""
        self._dismissed = True

    def _interrupt(self, failure: Refusal) -> None:
        """Tell who waits for the server that no answer will come."""
        raise NotImplementedError

    def _lose(self, reason: str, outcome: Outcome) -> None:
        """Take note that the server is gone; start it again, if that is wanted."""
        policy = self._settings.restart
        has_session = self._renewal is not None and not self._dismissed and self.state is not UpstreamState.LOST
        if policy is None or not has_session or self._attempts >= policy.attempts:
            if policy is not None and has_session:
                reason = f"{reason} (not started again: it was lost {self._attempts + 1} times in a row)"
            self._end(reason, outcome)
            return
        self.trouble = reason
        self._failure = Refusal(CONNECTION_CLOSED, f"the server was lost and is being started again: {reason}", {})
        self._advance(UpstreamEvent.CRASHED)

    def _end(self, reason: str, outcome: Outcome) -> None:
        raise NotImplementedError

    def expire(self) -> None:
        """Do what is due."""
        match self.state:
            case UpstreamState.RESTARTING:
                self._advance(UpstreamEvent.DUE)
            case UpstreamState.RENEWING | UpstreamState.RESTORING if self._returns:
                wait_s = self._settings.init_timeout_s
                self._lose(f"the server did not open a session within {wait_s:g} s", Outcome.SERVER_CLOSED)
            case UpstreamState.READY:
                self._note_open()
                self._look_after()
            case _:
                pass

    def _note_open(self) -> None:
        """Take note that the server has been open for as long as was waited."""
        policy = self._settings.restart
        if policy is not None:
            self._open_s += self._settings.health_s or policy.longest_s
            if self._open_s >= policy.longest_s:
                self._attempts = 0

    def _look_after(self) -> None:
        """See whether the server is still there."""
        wait_s = self._settings.health_s
        if wait_s is None or (self._renewal is None and self.takes_headers):
            return  # without a session there is no connection that could be half open
        if self._heard:
            self._ping = None
        elif self._ping is not None:
            reason = f"nothing came from the server for {2 * wait_s:g} s, not even an answer to {self._asked}"
            self._lose(reason, Outcome.SERVER_CLOSED)
            return
        else:
            self._pings += 1
            question = self._write_ping(f'"{_PING}{self._pings}"'.encode())
            self._ping, self._asked = question.key, question.method
            self._outbox.post(self, question)
        self._heard = False
        self._outbox.add(Wake(self, wait_s))

    def _write_ping(self, key: bytes) -> Frame:
        """Write what a server has to answer, whatever it has; its id is this one, unless such a request has its own."""
        return request_frame(key, "ping", {})

    def expects(self, frame: Frame) -> bool:
        """Whether a frame answers what this edge has asked by itself."""
        return super().expects(frame) or (self._ping is not None and frame.key == self._ping)

    def _is_pong(self, frame: Frame | Malformed) -> bool:
        """Whether it answers our own ping; clients hear nothing of that."""
        if self._ping is None or frame.key != self._ping:
            return False
        self._ping = None
        return isinstance(frame, Frame) and frame.kind in ("result", "error")

    def _watch(self) -> None:
        """Begin to look after a server that has just become ready."""
        self._heard, self._ping, self._open_s = True, None, 0.0
        policy, health_s = self._settings.restart, self._settings.health_s
        if health_s is not None:
            self._outbox.add(Wake(self, health_s))
        elif self._attempts and policy is not None:
            self._outbox.add(Wake(self, policy.longest_s))

    # Actions of the table

    def _tell_interrupted(self) -> None:
        assert self._failure is not None
        self._interrupt(self._failure)

    def _wait_to_restart(self) -> None:
        policy = self._settings.restart
        assert policy is not None
        pause_s = policy.pause_s(self._attempts)
        self._attempts += 1
        logger.warning("%s; starting it again in %.1f s", self.trouble, pause_s)
        self._outbox.add(Close(self))
        self._outbox.add(Wake(self, pause_s))

    def _is_another(self) -> bool:
        return self._returns or self.state is UpstreamState.RESTARTING

    def _note_restart(self) -> None:
        self.restarts += 1
        self._returns = True
        self._outbox.add(Wake(self, self._settings.init_timeout_s))

    def _tell_returned(self) -> None:
        """Say what may have changed, once the session of a server that was started again is open."""
        if not self._returns:
            return
        self._returns = False
        self._outbox.add(Wake(self, None))
        assert self._renewal is not None
        for name in _LISTS:
            declared: Any = self._renewal.capabilities.get(name)
            if isinstance(declared, dict) and declared.get("listChanged") is True:
                self._tell(notification_frame(f"notifications/{name}/list_changed", {}))
        for uri in self._renewal.standing.subscribed:
            self._tell(notification_frame("notifications/resources/updated", {"uri": uri}))
        self._watch()
