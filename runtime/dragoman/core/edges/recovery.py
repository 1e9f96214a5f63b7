"""How a session outlives the loss of its server, or a server that has forgotten it; and how a silent server is noticed.

Theory of operation. A server that answers "no such session" has not looked at the frame. It is offered the same
`initialize` again, asked one by one for what the old session was asked to remember, and then sent that frame again,
once: a server may answer every session like this. Where one of those answers is late, the rest is asked without
waiting. A response is not sent again: in the new session, the server has not asked, or has asked something else under
the same id.

A server that is lost while its session is open may be started again (`settings.RestartPolicy`), and then gets the
session in the same way. Who had asked it something is told at once: the request may have run, so it is never sent
again. The first attempt comes soon and each further one later, with some chance in it, so that many proxies do not all
knock at the same time. If an attempt fails, what waits fails with it. Attempts count until a server has been open for
as long as the longest pause.

A server from which nothing comes for a while is sent a `ping`, or `server/discover` if it has no handshake. If nothing
comes for as long again, it counts as lost.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from dragoman.core.calls import cancelled_key
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.commands import Close, Outbox, Outcome, Reached, Sleeper, Wake
from dragoman.core.edges.lifecycle import UpstreamEvent, UpstreamState
from dragoman.core.edges.offer import WORDS_SHOWN
from dragoman.core.edges.opening import Ended, Event
from dragoman.core.edges.session_state import AGAIN_S, SessionState
from dragoman.core.envelope import (
    Frame,
    Malformed,
    Refusal,
    decoded,
    notification_frame,
    request_frame,
    result_frame,
    to_keep,
    twin_of,
)
from dragoman.core.methods import CANCELLED, INITIALIZED, PING
from dragoman.core.settings import Settings
from dragoman.core.unchecked import find, find_object
from dragoman.core.waiting import WaitingRoom, request_keys

logger = logging.getLogger("dragoman.session")

_MOST: Final = 16 * 1024
"""How many frames may wait for a new session: a client may have thousands of requests under way."""

_PING_ID: Final = "dragoman-health-"
"""How the ids of our own pings begin."""

_LISTS: Final = ("tools", "prompts", "resources")
"""What may have changed while a server was gone."""

_RESPONSES: Final = ("result", "error")

_LATE: Final = Malformed(CONNECTION_CLOSED, f"no answer within {AGAIN_S:g} s")
"""What stands for the answer to what a new session is asked again, where there is none."""

Recovering: TypeAlias = Generator[None, Event, "Ended | Refusal | None"]
"""Yields where it waits for what happens; None: what it waits for is due, or the session is forgotten once more."""


class RecoveringEdge(Reached, Sleeper, Protocol):
    """The edge whose session it is."""

    state: UpstreamState
    revision: str | None
    takes_headers: bool

    def open(self) -> None:
        """Open a connection to the server."""

    def send(self, frame: Frame) -> None:
        """Write a frame to the server, or keep it."""

    def tell(self, frame: Frame | Malformed) -> None:
        """Let clients have what the server says, or what is said in its place."""

    def advance(self, event: UpstreamEvent) -> None:
        """Change the state by the table."""

    def end(self, reason: str, outcome: Outcome) -> None:
        """The server is gone for good."""

    def write_discover(self) -> Frame | None:
        """What a server without a handshake has to answer; None: it has one."""


class Recovery:
    """What outlives a session, and what is done to have another one.

    Attributes:
        outbox: Where commands go.
        session: What it was asked to remember.
        restarts: How often the server has been started again.
        trouble: Why it was lost last; empty if it never was.
        is_paused: Whether it is about to be started again.
        is_dismissed: Whether nobody needs the server any more: that it goes is as it should be.
        heard: Whether anything came since the clock was last looked at.
        ping: The question of our own that was sent last, while it is not answered.
    """

    __slots__ = (
        "_announced",
        "_asked",
        "_attempts",
        "_capabilities",
        "_edge",
        "_given_back",
        "_is_another",
        "_is_dropped",
        "_meanwhile",
        "_offered",
        "_open_s",
        "_pings",
        "_repeated",
        "_repeated_before",
        "_routine",
        "_settings",
        "_waited",
        "heard",
        "is_dismissed",
        "is_paused",
        "outbox",
        "ping",
        "restarts",
        "session",
        "trouble",
    )

    def __init__(self, edge: RecoveringEdge, settings: Settings, outbox: Outbox) -> None:
        self.session = SessionState()
        self.restarts = self._attempts = self._pings = 0
        self.trouble = ""
        self.is_paused = self.is_dismissed = self.heard = False
        self.ping: Frame | None = None
        self._edge, self._settings, self.outbox = edge, settings, outbox
        self._offered: Frame | None = None  # the `initialize` that the server accepted, once it did
        self._announced: Frame | None = None
        self._routine: Recovering | None = None  # while there is no session
        self._asked: Frame | None = None  # what it waits for the answer to
        self._is_dropped = False  # whether no new session was to be had: what comes next tries again
        self._is_another = False  # whether the new session is that of another process
        self._capabilities: dict[str, Any] = {}  # that the server declared when it got a new session
        self._open_s = 0.0  # how long the server has been open, as far as the clock was looked at
        self._given_back = WaitingRoom(_MOST, settings.queue_bytes)
        self._meanwhile = WaitingRoom(_MOST, settings.queue_bytes)
        self._waited = 0  # how much of what came meanwhile was there when `initialize` was offered
        self._repeated: dict[bytes | int, Frame] = {}  # what this session has been sent again
        self._repeated_before: dict[bytes | int, Frame] = {}  # what the one before it has: its word on that may be late

    # What happens

    def begin(self, offered: Frame, announced: Frame) -> None:
        """The server has accepted this `initialize`, and been sent what follows: the next session gets the same."""
        self._offered = offered._replace(raw=to_keep(offered.raw), body=None)
        self._announced = announced._replace(raw=to_keep(announced.raw), body=None)

    def release(self) -> None:
        """Let go of the edge, once nothing more comes."""
        self._routine = None
        del self._edge

    @property
    def _has_session(self) -> bool:
        return self._offered is not None and not self.is_dismissed

    @property
    def starts_again(self) -> bool:
        """Whether the server is started again if it is lost now."""
        policy = self._settings.restart
        return policy is not None and self._has_session and self._attempts < policy.attempts

    def lose(self, reason: str, outcome: Outcome = Outcome.SERVER_CLOSED) -> None:
        """The server is gone; start it again, if that is wanted."""
        if not self.starts_again:
            if self._settings.restart is not None and self._has_session:
                reason = f"{reason} (not started again: it was lost {self._attempts + 1} times in a row)"
            self._asked, self._is_dropped = None, False
            self._edge.end(reason, outcome)
        elif not self.is_paused:
            self.trouble, self._is_another = reason, True
            self._edge.advance(UpstreamEvent.CRASHED)
            self._go_on(Ended(reason))

    def lose_session(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """The server has forgotten the session.

        Args:
            frame: What it was sent in that session and did not look at; None: it says so on its own.
            error: What answers that frame, if nobody sends it again.
            renewed: Whether there is a newer session already: then this is late news.
        """
        name = None if frame is None else _name(frame)
        if self._offered is None or name in self._repeated or name in self._repeated_before:
            if error is not None:
                self._edge.tell(error)
            elif frame is not None:
                logger.warning("%s of the client not delivered: its session is gone", frame.method or "a response")
            return
        if error is not None and self.expects(error):
            self.take(error)  # what the new session is asked again for: it is not opened anew because of that
            return
        if frame is not None:
            self._keep(frame, self._given_back)
        is_ready = self._edge.state is UpstreamState.READY
        if renewed and is_ready:
            self.send_kept()
        elif is_ready or self._is_dropped or (self._is_restoring and frame is None and not renewed):
            self._edge.advance(UpstreamEvent.SESSION_LOST)
            self._go_on(None)

    def take_back(self, frames: Sequence[Frame]) -> None:
        """Take back what was still to be sent in a session that is gone: it goes in the next one."""
        for frame in frames:
            self.session.forget(frame)
            self._edge.send(frame)

    def forgo(self, key: bytes) -> bool:
        """Take back a request that waits for another session; False if it does not: the server may have it."""
        return self._given_back.remove(key) or self._meanwhile.remove(key)

    def keep(self, frame: Frame) -> bool:
        """Let a frame wait for another session; False if it does not have to."""
        is_response = frame.kind in _RESPONSES
        if is_response and (self._is_restoring or not self._is_another):
            return False  # it may be about what the server is asked, or else the transport knows that nobody waits
        self._keep(frame, self._meanwhile)
        if self._is_dropped and not is_response:
            self._go_on(None)
        return True

    def expects(self, frame: Frame | Malformed) -> bool:
        """Whether a frame answers what is asked here: clients hear nothing of that."""
        is_response = frame.is_response if isinstance(frame, Malformed) else frame.kind in _RESPONSES
        if frame.key is None or not is_response:
            return False
        asked = None if self._asked is None else self._asked.key
        is_twin = asked is not None and self._settings.restore_ids and frame.key == twin_of(asked)
        return frame.key == asked or is_twin or (self.ping is not None and frame.key == self.ping.key)

    def take(self, frame: Frame | Malformed) -> bool:
        """Take what the server says; False if it is for clients."""
        if self.ping is not None and frame.key == self.ping.key:
            self.ping = None
            return isinstance(frame, Frame) and frame.kind in _RESPONSES
        if self._edge.state is not UpstreamState.RECOVERING:
            return False
        if self._asked is self._offered and isinstance(frame, Frame) and frame.method == PING:
            self.outbox.post(self._edge, result_frame(frame.key or b"null", {}))
            return True
        if not self.expects(frame):
            return False
        self._go_on(frame)
        return True

    def expire(self) -> None:
        """Do what is due."""
        if self._edge.state is UpstreamState.READY:
            self._note_open()
            self._look_after()
        elif self._edge.state is not UpstreamState.RECOVERING:
            return
        elif self.is_paused:
            self._go_on(None)
        elif self._is_restoring:
            self._go_on(_LATE)
        elif self._is_another and self._asked is not None:
            self.lose(f"the server did not open a session within {self._settings.init_timeout_s:g} s")

    # How it gets another session

    @property
    def failure(self) -> Refusal:
        """What is said to who had asked a server that was lost."""
        return Refusal(CONNECTION_CLOSED, f"the server was lost and is being started again: {self.trouble}", {})

    @property
    def _is_restoring(self) -> bool:
        """Whether there is a new session, which is asked for what the old one was."""
        return self._asked is not None and self._asked is not self._offered

    def _go_on(self, event: Event) -> None:
        if self._routine is None:
            self._routine, event = self._recover(event), None
        try:
            self._routine.send(event)
        except StopIteration:
            self._routine = None
            self._edge.advance(UpstreamEvent.RECOVERED)

    def _recover(self, event: Event) -> Recovering:
        while True:
            if isinstance(event, Ended):
                yield from self._start_again()
            found = yield from self._renew()
            if found is None:
                return None
            event = found if isinstance(found, Ended) else None
            if isinstance(found, Refusal):
                logger.warning("%s", found.message)
            self._fail(found if isinstance(found, Refusal) else self.failure)
            if event is None and not self._given_back and not self._meanwhile:
                self._is_dropped = True
                event = yield
                self._is_dropped = False

    def _start_again(self) -> Recovering:
        policy = self._settings.restart
        assert policy is not None
        pause_s = policy.pause_s(self._attempts)
        self._attempts += 1
        logger.warning("%s; starting it again in %.1f s", self.trouble, pause_s)
        self.outbox.add(Close(self._edge))
        self.outbox.add(Wake(self._edge, pause_s))
        self.is_paused = True
        yield
        self.is_paused = False
        self._edge.open()
        self.restarts += 1
        if self._settings.observer is not None:
            self._settings.observer.restarted()
        self.outbox.add(Wake(self._edge, self._settings.init_timeout_s))
        return None

    def _renew(self) -> Recovering:
        """Open a session, and ask it for what the old one was asked. Returns why there is none, if there is none."""
        assert self._offered is not None
        assert self._announced is not None
        while True:
            logger.warning("the session with the server is gone; opening a new one")
            self._repeated_before, self._repeated = self._repeated, {_name(self._announced): self._announced}
            self._waited = len(self._meanwhile)
            answer = yield from self._ask(self._offered)
            failure = self._read_answer(answer)
            if failure is not None:
                return failure
            self.outbox.post(self._edge, self._announced)
            if repeats := self.session.replay():
                self.outbox.add(Wake(self._edge, AGAIN_S))
            answer = None
            for frame in repeats:
                if answer is _LATE:
                    self._repeated[_name(frame)] = frame
                    self.outbox.post(self._edge, frame)
                    continue
                answer = yield from self._ask(frame)
                if answer is None:
                    break
                if isinstance(answer, Ended):
                    return answer
                if isinstance(answer, Malformed) or answer.kind == "error":
                    words = answer.reason if isinstance(answer, Malformed) else _show(answer)
                    logger.warning("%s not repeated in the new session: %s", frame.method, words)
            else:
                if repeats:
                    self.outbox.add(Wake(self._edge, None))
                return None

    def _ask(self, frame: Frame) -> Generator[None, Event, Event]:
        self._asked = frame
        self.outbox.post(self._edge, frame)
        answer = yield
        self._asked = None
        return answer

    def _read_answer(self, answer: Event) -> Ended | Refusal | None:
        """Read the answer to `initialize`: why there is no new session, if there is none."""
        if answer is None or isinstance(answer, Ended):
            return answer
        if isinstance(answer, Malformed):
            return _explain(f"its answer to initialize is not a response: {answer.reason}")
        try:
            member = decoded(answer).body[answer.kind]
        except ValueError as error:
            return _explain(f"its answer to initialize cannot be read: {error}")
        if not isinstance(member, dict):
            return _explain("its answer to initialize is not an object")
        if answer.kind == "error":
            return _explain(str(member.get("message", "")), member.get("code"), find_object(member, "data"))
        named, before = member.get("protocolVersion"), self._edge.revision
        self._capabilities = find_object(member, "capabilities")
        return None if named == before else _explain(f"in a new session it speaks {named}, not {before}")

    # What waits for it

    def _keep(self, frame: Frame, room: WaitingRoom) -> None:
        """Let a frame wait: one that the old session has not looked at, or one that came meanwhile."""
        if frame.kind in _RESPONSES:
            logger.warning("a response of the client not delivered: the session in which it asked is gone")
        elif frame.method == CANCELLED and (key := cancelled_key(frame)) and self.forgo(key):
            logger.debug("a request was cancelled before it was sent again")
        elif frame.method != INITIALIZED:
            if room is self._given_back:
                self.session.forget(frame)
            if not room.add(frame):
                reason = "too many frames wait for the server's new session"
                self._refuse(frame, Refusal(CONNECTION_CLOSED, reason, {}))

    def _fail(self, failure: Refusal) -> None:
        """Fail what waited when `initialize` was offered; what came since gets an offer of its own."""
        meanwhile = self._meanwhile.take_all()
        for frame in meanwhile[self._waited :]:
            self._meanwhile.add(frame)
        for frame in [*self._given_back.take_all(), *meanwhile[: self._waited]]:
            self._refuse(frame, failure)

    def _refuse(self, frame: Frame, failure: Refusal) -> None:
        keys = request_keys(decoded(frame) if frame.kind == "batch" else frame)
        if not keys:
            logger.warning("%s of the client not delivered: %s", frame.method or frame.kind, failure.message)
        for key in keys:
            self._edge.tell(failure.answer(key))

    def send_kept(self) -> None:
        """Send what waits: first what was sent already, which is not sent a third time."""
        again = self._given_back.take_all()
        self._repeated.update((_name(frame), frame) for frame in again)
        for frame in [*again, *self._meanwhile.take_all()]:
            self._edge.send(frame)

    def tell_changes(self) -> None:
        """Say what may have changed, once the session of a server that was started again is open."""
        if not self._is_another:
            return
        self._is_another = False
        self.tell_all_changed([name for name in _LISTS if find(self._capabilities, name, "listChanged") is True])

    def tell_all_changed(self, lists: Sequence[str] = _LISTS) -> None:
        """Say that these lists may have changed, and every resource that is subscribed to."""
        for name in lists:
            self._edge.tell(notification_frame(f"notifications/{name}/list_changed", {}))
        for uri in self.session.subscribed:
            self._edge.tell(notification_frame("notifications/resources/updated", {"uri": uri}))

    # While there is one

    def watch(self) -> None:
        """Begin to look after a server that has just become ready."""
        self.heard, self.ping, self._open_s = True, None, 0.0
        policy, health_s = self._settings.restart, self._settings.health_s
        if health_s is not None:
            self.outbox.add(Wake(self._edge, health_s))
        elif self._attempts and policy is not None:
            self.outbox.add(Wake(self._edge, policy.longest_s))

    def _note_open(self) -> None:
        """The server has been open for as long as was waited."""
        policy = self._settings.restart
        if policy is not None:
            self._open_s += self._settings.health_s or policy.longest_s
            if self._open_s >= policy.longest_s:
                self._attempts = 0

    def _look_after(self) -> None:
        """See whether the server is still there."""
        wait_s = self._settings.health_s
        if wait_s is None or (self._offered is None and self._edge.takes_headers):
            return  # without a session there is no connection that could be half open
        if self.ping is not None and not self.heard:
            asked = self.ping.method
            self.lose(f"nothing came from the server for {2 * wait_s:g} s, not even an answer to {asked}")
            return
        self.ping = None
        if not self.heard:
            self._pings += 1
            key = f'"{_PING_ID}{self._pings}"'.encode()
            self.ping = self._edge.write_discover() or request_frame(key, PING, {})
            self.outbox.post(self._edge, self.ping)
        self.heard = False
        self.outbox.add(Wake(self._edge, wait_s))


def _name(frame: Frame) -> bytes | int:
    """What a frame is known by: a request by its id, anything else by itself."""
    return id(frame) if frame.kind != "request" or frame.key is None else frame.key


def _show(answer: Frame) -> str:
    return answer.raw[:WORDS_SHOWN].decode(errors="replace").strip()


def _explain(reason: str, code: Any = None, data: dict[str, Any] | None = None) -> Refusal:
    message = f"the session with the server is gone, and a new one cannot be opened: {reason}"
    return Refusal(code if isinstance(code, int) else CONNECTION_CLOSED, message, data or {})
