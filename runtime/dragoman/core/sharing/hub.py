"""A shared server: several client sessions on one connection, each of which behaves as if it had it for itself.

Lives here: the entry points: frames of members and of the server in, deliveries out. Must not: touch sockets or a
clock, or translate; each member's session does that on its own side. Called by `dragoman.transports.shared`; tests call
it directly.

Theory of operation. What a member says reaches the server under ids and progress tokens of ours (`member_side`). What
the server says finds its way by the tables beside this module (`server_side`): answers and progress by id, news about
lists to everybody, news about resources to who subscribed, questions and the rest by `attribution`. What belongs to
nobody in particular is dropped and counted, or refused; it is never given to somebody else. All tables are bounded.

Of requests that ended without an answer the server may still speak: as long as it has not answered them, what it says
is not taken to be about the others (`suspects`).
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.core.envelope import Frame, Malformed, error_frame
from dragoman.core.failures import CONNECTION_CLOSED
from dragoman.core.sharing.calls import Member
from dragoman.core.sharing.desk import Deliveries, Desk, SharingCounters, SharingSettings
from dragoman.core.sharing.member_side import MemberSide
from dragoman.core.sharing.server_side import ServerSide


class Hub:
    """The machine. Every entry point gives what is to be delivered.

    Args:
        settings: What was decided.
    """

    def __init__(self, settings: SharingSettings | None = None) -> None:
        self._desk = Desk(settings or SharingSettings())
        self._member_side = MemberSide(self._desk)
        self._server_side = ServerSide(self._desk)
        self._joined = 0

    @property
    def counters(self) -> SharingCounters:
        """What did not find its way."""
        return self._desk.counters

    @property
    def asks(self) -> bool:
        """Whether the server has been found to ask, which is worth remembering when it is started again."""
        return self._desk.lane.asks

    @property
    def is_open(self) -> bool:
        """Whether the server has agreed to a revision."""
        return self._desk.opening.is_open

    @property
    def needs_clock(self) -> bool:
        """Whether `expire` is to be called from time to time."""
        return bool(self._desk.lane) or bool(self._desk.calls.cancelled)

    @property
    def held(self) -> int:
        """How many requests, questions and subscriptions are remembered; 0 once everybody has left, after a while.

        Requests that the server never answered are not among them.
        """
        desk = self._desk
        return len(desk.calls.by_key) + len(desk.questions) + len(desk.subscriptions)

    def join(self) -> Member:
        """Take in a client session."""
        self._joined += 1
        member = Member(self._joined)
        self._desk.members[member] = None
        return member

    def receive(self, member: Member, frames: Sequence[Frame | Malformed], now: float) -> Deliveries:
        """Take what a member sent, in order."""
        self._desk.now = now
        if member.present:
            for frame in frames:
                self._member_side.take(member, frame)
        return self._desk.take_out()

    def receive_server(self, frames: Sequence[Frame | Malformed], now: float) -> Deliveries:
        """Take what the server sent, in order."""
        self._desk.now = now
        for frame in frames:
            self._server_side.take(frame)
        return self._desk.take_out()

    def fail(self, frame: Frame, now: float) -> Deliveries:
        """Take note that the transport gives up a request: the server has not answered it, and may still do so.

        Args:
            frame: The error that answers it, under our id.
            now: The time.
        """
        call = self._desk.calls.find(frame.key)
        if call is None:  # nobody waits for it: what it left behind stays suspect
            return []
        deliveries = self.receive_server((frame,), now)
        if call.method != "initialize":
            self._desk.calls.suspect(call)
        return deliveries

    def leave(self, member: Member, now: float) -> Deliveries:
        """Take note that a client session has ended: what it began ends too."""
        desk = self._desk
        desk.now = now
        if not member.present:
            return []
        member.present = False
        del desk.members[member]
        desk.called_and_left = desk.called_and_left or member.called
        desk.calls.suspects.forget(member)
        desk.opening.forget(member)
        for call in list(member.calls.values()):
            desk.abandon(call)
        for key in desk.questions.forget(member):
            desk.post(None, error_frame(key, CONNECTION_CLOSED, "the client has closed"))
        for uri in desk.subscriptions.remove_all(member):
            desk.ask("resources/unsubscribe", {"uri": uri})
        desk.tell_level()
        desk.attribution.forget(member)
        desk.let_in()
        return desk.take_out()

    def expire(self, now: float) -> Deliveries:
        """Take note that time has passed."""
        desk, settings = self._desk, self._desk.settings
        desk.now = now
        for call in desk.calls.expired(now - settings.grace_s):
            desk.calls.suspect(call)
        for call in desk.lane.expired(now - settings.turn_s):
            reason = f"calls of other sessions held the server for {settings.turn_s:g} s"
            desk.refuse_call(call, CONNECTION_CLOSED, reason)
        desk.let_in()
        return desk.take_out()
