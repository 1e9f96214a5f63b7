"""Joins clients that open no session to a server that opens one.

Lives here: the sessions of the server, one for each set of capabilities that a request declares, and which of them
serves a request. Must not: open one, or serve a request in it (`session`). Made by
`switch.direct`.

Theory of operation. The capabilities of a session are fixed when it opens, and each request brings its own: so a
request goes to the session that was opened with exactly these, and its server asks nothing that the client cannot
answer. What goes on from an earlier request goes to the session that has it. Until the first session is open, it is
not known whether the server has a handshake: requests that need another session wait for that. A session that nothing
has used for a while ends, as long as another one is there; when all of them are in use, a request that needs another is
refused. Where several principals share the server, none has more than half of them.

What a server cannot ask for, such as extensions, tells sessions apart as well, since servers list their tools by it;
but clients choose freely what stands there. So each has a few sessions by that, and none ends for one. What declares
still another variant is served where nobody has told the server more than what it can ask.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Any, Final

from dragoman.core.calls import TOO_MANY
from dragoman.core.codes import CONNECTION_CLOSED, INVALID_PARAMS
from dragoman.core.commands import Close, Outbox, Outcome, Schedule
from dragoman.core.declared import split_declared
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.greeting import Greeting
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.per_request_front import PerRequestCall, PerRequestFront
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.wiring import Bridging, Wiring
from dragoman.core.envelope import Refusal, read_params
from dragoman.core.exact_json import encode, escape
from dragoman.core.places import has_place
from dragoman.core.rules.capabilities import Path, Scope, declare_up
from dragoman.core.rules.names import DISCOVER, NEWER, OLDER, TASK_METHODS
from dragoman.core.rules.state import digest_params
from dragoman.core.rules.strategy import promotes
from dragoman.core.switch.relay import make_relay
from dragoman.core.switch.to_session.loans import holder_of
from dragoman.core.switch.to_session.session import DeclaredSession
from dragoman.core.translate import OnLoss, report_losses
from dragoman_spec import Loss, translator

logger = logging.getLogger("dragoman.bridge")

MOST_SESSIONS: Final = 8
"""How many sessions one server has for the clients of one connection, or of one principal."""

IDLE_S: Final = 300.0
"""A session that was not used between two looks ends; that is how far they are apart."""

GIVEN_UP_S: Final = 2.0
"""What a client asked so long ago may be given up by it; what it asked later waits for its answer."""

MOST_VARIANTS: Final = 3
"""In how many ways the server is told what it cannot ask, for the clients of one connection, or of one principal."""

_MOST_SPELLINGS: Final = 64
_MOST_LEFT_OUT: Final = 64
_SPELLING_BYTES: Final = 4096
"""A longer one is read each time."""

_LEFT_OUT: Final = "capabilities that the server is not told, as its sessions are for others"


class ToSession:
    """Serves the requests of one connection at one server.

    Args:
        wiring: What the edges need.
        bridging: What the bridge needs.
        outbox: Where commands go.
        front: The edge that has the connection.
        upstream: The server's, for the first session.

    Attributes:
        requests: The client's edge, as far as requests go.
    """

    def __init__(
        self, wiring: Wiring, bridging: Bridging, outbox: Outbox, front: FrontEdge, upstream: UpstreamEdge
    ) -> None:
        scope: Scope = "shared" if bridging.shares_server else "client"
        self.requests = PerRequestFront(front.exchange, self)
        self._wiring = wiring
        self._bridging = bridging
        self._outbox = outbox
        self._front = front
        self._path = Path(NEWER, OLDER, scope, tasks=True, promotes=promotes(bridging.questions))
        self._spare: UpstreamEdge | None = upstream  # that no session has yet
        self._has_handshake = False
        self._sessions: dict[str, DeclaredSession] = {}  # by what was declared
        self._spellings: dict[Hashable, DeclaredSession] = {}  # the same, as clients write it
        self._left_out: set[str] = set()  # what the log has said
        self._latest: DeclaredSession | None = None
        self._schedule = Schedule(outbox, front)

    def release(self) -> None:
        """Let go of everything, once the connection is over."""
        self.requests.release()
        self._schedule.clear()
        for upstream in self.servers:
            upstream.release()
        for session in self._sessions.values():
            session.release()
        self._sessions.clear()
        self._spellings.clear()
        del self._front

    def give_back(self) -> UpstreamEdge | None:
        """Close what was opened so far, and give the server that is still being opened, if there is one."""
        spare = self._take_opening() or self._spare
        for session in list(self._sessions.values()):
            self._drop(session)
        self._spare = None
        self.release()
        return spare

    def give_opening(self, greeting: Greeting) -> UpstreamEdge | None:
        """Return the server that is being opened to a client that begins anew elsewhere; None where others wait for it.

        SDKs leave the stream of their `server/discover` open when they have waited for long enough.
        """
        asked = list(self.requests.requests.values())
        if asked:
            own, name = asked[0], read_params(greeting.frame).get("clientInfo")
            is_own = own.method == DISCOVER and own.metadata.client_info == name
            given_up_s = self._bridging.steady_s() - GIVEN_UP_S
            if not is_own or self._latest is None or self._latest.began_s > given_up_s:
                return None
            self.cancel(own, "")
            self.requests.refuse(own, CONNECTION_CLOSED, "the client has sent initialize instead")
        return self._take_opening() if len(asked) <= 1 else None

    def _take_opening(self) -> UpstreamEdge | None:
        for session in self._sessions.values():
            if session.upstream.state is UpstreamState.OPENING:
                self._forget(session)
                session.release()
                return session.upstream
        return None

    @property
    def parked(self) -> int:
        """How many calls have asked their client something."""
        return sum(session.parked for session in self._sessions.values())

    @property
    def servers(self) -> list[UpstreamEdge]:
        """The edges of all that are there."""
        spare = [] if self._spare is None else [self._spare]
        return spare + [session.upstream for session in self._sessions.values()]

    # What the client's edge says

    def carry(self, request: PerRequestCall) -> None:
        """Serve a request, in the session that it needs."""
        try:
            session = self._find(request)
        except ValueError as error:  # nested deeper than can be written
            self.requests.refuse(request, INVALID_PARAMS, str(error))
            return
        if session is None:
            reason = f"{len(self._sessions)} sessions of the server are in use, each for other capabilities; try again"
            logger.warning("%s refused: %s", request.method, reason)
            self.requests.refuse(request, TOO_MANY, reason, {"limit": MOST_SESSIONS})
            return
        self._latest, session.was_used = session, True
        session.carry(request)

    def cancel(self, request: PerRequestCall, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        for session in self._sessions.values():
            session.cancel(request, reason)

    def leave(self, reason: str, sender: str = "") -> None:
        """Give up what waits for the client to come back, and end the streams that would never end."""
        for session in self._sessions.values():
            session.leave(reason, sender)

    # Which session

    def _find(self, request: PerRequestCall) -> DeclaredSession | None:
        """Return the session for a request; the first one, while that is not open; None where it has no place.

        Raises:
            ValueError: What it declares is nested deeper than can be written.
        """
        if request.method == DISCOVER or not self._has_handshake:  # what the server is, each open session knows
            found = next((session for session in self._sessions.values() if session.is_open), self._latest)
            if found is not None:
                return found
        spelled = encode(request.metadata.capabilities)
        known = self._spellings.get(spelled)
        is_the_only = known is not None and len(self._sessions) == 1
        if not is_the_only and ("requestState" in request.params or request.method in TASK_METHODS):
            name = self._bridging.keeper().name_call(request.params.get("requestState", request.params.get("taskId")))
            for session in self._sessions.values():
                if session.has(name):
                    return session
        return known or self._spellings.get((holder_of(request), spelled)) or self._find_declared(request, spelled)

    def _find_declared(self, request: PerRequestCall, spelled: bytes) -> DeclaredSession | None:
        capabilities, revision = request.metadata.capabilities, request.metadata.revision
        if revision != NEWER:
            capabilities = translator(revision, NEWER).definition("ClientCapabilities", capabilities)[1]
        declared = declare_up(capabilities, self._path).capabilities
        if self._bridging.shares_server:
            declared.pop("experimental", None)
        session = self._sessions.get(_key_of(declared))
        if session is not None:
            return self._remember(session, spelled)
        holder = holder_of(request)
        asked, rest = split_declared(declared)
        rest.pop("experimental", None)
        variant = _key_of(rest) if rest else ""
        if not rest or self._may_tell(variant, holder):
            session = self._open(declared, holder, variant)
            return session and self._remember(session, spelled)
        session = self._sessions.get(_key_of(asked)) or self._open(asked, holder, "")
        if session is not None:
            self._leave_out(rest)
            self._remember(session, spelled, holder)
        return session

    def _remember(self, session: DeclaredSession, spelled: bytes, *whose: Hashable) -> DeclaredSession:
        """Find it at once next time: for everybody, or for one."""
        if len(self._spellings) >= _MOST_SPELLINGS:
            self._spellings.clear()
        if len(spelled) <= _SPELLING_BYTES:
            self._spellings[(*whose, spelled) if whose else spelled] = session
        return session

    def _may_tell(self, variant: str, holder: Hashable) -> bool:
        """Whether the server may be told this beside what it can ask: no other session ends for that."""
        told = {session.variant for session in self._sessions.values() if session.holder == holder} - {""}
        return variant in told or (len(told) < MOST_VARIANTS and self._has_place(holder))

    def _leave_out(self, rest: dict[str, Any]) -> None:
        """Count what a server is not told, and log each name once."""
        named = {f"extensions/{escape(name)}": settings for name, settings in rest.pop("extensions", {}).items()}
        named |= {escape(name): value for name, value in rest.items()}
        losses = tuple(Loss(f"/capabilities/{name}", "dropped", value) for name, value in named.items())
        is_new = len(self._left_out) < _MOST_LEFT_OUT and not named.keys() <= self._left_out
        if is_new:
            self._left_out |= named.keys()
        on_loss = self._wiring.settings.on_loss if is_new else OnLoss.SILENT
        report_losses(_LEFT_OUT, (NEWER, OLDER), losses, self._front.exchange.counters, on_loss)

    def _has_place(self, holder: Hashable) -> bool:
        """Whether another session may be opened for somebody: of several principals, none has more than half."""
        taken = len(self._sessions)
        if not self._bridging.shares_server:
            return taken < MOST_SESSIONS
        return has_place(holder, (session.holder for session in self._sessions.values()), taken, MOST_SESSIONS)

    def _open(self, declared: dict[str, Any], holder: Hashable, variant: str) -> DeclaredSession | None:
        if not (self._has_place(holder) or self._make_room(holder)):
            return None
        session = DeclaredSession(
            self, self._wiring, self._bridging, self._outbox, self._front, self._spare, self._path, declared
        )
        if self._spare is None:
            logger.info(
                "opening another session of the server, for a client that declares %s", list(declared) or "nothing"
            )
            session.upstream.open()
        self._spare = None
        session.holder, session.variant = holder, variant
        self._sessions[_key_of(declared)] = session
        if len(self._sessions) == 2:
            self._schedule.clear()
            self._schedule.after(IDLE_S, self._look_round)
        return session

    def _make_room(self, holder: Hashable) -> bool:
        """End a session that is not in use: of whoever wants another, or of others if it has less than its share."""
        idle = [session for session in self._sessions.values() if session.is_idle and session is not self._latest]
        own = sum(session.holder == holder for session in self._sessions.values())
        if self._bridging.shares_server and own >= MOST_SESSIONS // 2:
            idle = [session for session in idle if session.holder == holder]
        if idle:
            self._drop(min(idle, key=lambda session: session.was_used))
        return bool(idle)

    def _look_round(self) -> None:
        """End the sessions that nothing has used since the last look."""
        for session in list(self._sessions.values()):
            if session.is_idle and not session.was_used and session is not self._latest:
                logger.info("a session of the server ends: nothing has used it for %d s", IDLE_S)
                self._drop(session)
            session.was_used = False
        if len(self._sessions) > 1:
            self._schedule.after(IDLE_S, self._look_round)

    def _drop(self, session: DeclaredSession) -> None:
        self._forget(session)
        session.release()
        self._outbox.add(Close(session.upstream))
        session.upstream.release()

    def _forget(self, session: DeclaredSession) -> None:
        self._sessions = {key: other for key, other in self._sessions.items() if other is not session}
        self._spellings = {key: other for key, other in self._spellings.items() if other is not session}
        self._latest = None if self._latest is session else self._latest

    # What the sessions say

    def opened(self, session: DeclaredSession) -> None:
        """Serve what has waited for that, each request in the session that it needs: the server has a handshake."""
        self._has_handshake = True
        for request in session.take_waiting():
            self.carry(request)

    def discovered(self, session: DeclaredSession) -> None:
        """Hand on from here on: the server has no handshake, and there is nothing to bridge."""
        waiting = session.take_waiting()
        relay = make_relay(
            self._front, self.requests, session.upstream, self._wiring, self._bridging, self._schedule.after, waiting
        )
        self.requests.hand_to(relay)
        for request in waiting:
            relay.carry(request)

    def failed(self, session: DeclaredSession, failure: Refusal) -> None:
        """Tell who waits; the next request tries again."""
        for request in session.take_waiting():
            self.requests.refuse(request, failure.code, failure.message, failure.data)
        if not self._has_handshake:
            self._spare = session.upstream  # which tells that session if it ends now
            self._forget(session)

    def lost(self, session: DeclaredSession, reason: str, outcome: Outcome) -> None:
        """End the connection with the last session of its server; before, what this one was asked fails."""
        if len(self._sessions) <= 1:
            self._front.lost(reason, outcome)
            return
        session.end(Refusal(CONNECTION_CLOSED, reason, {}))
        self._drop(session)


def _key_of(declared: dict[str, Any]) -> str:
    """Return what tells sessions apart: what a client can be asked, and not what it tries out."""
    told = {name: value for name, value in declared.items() if name != "experimental"}
    return digest_params({"declared": told})
