"""The sessions of one front: who has which, how many there are, and when one has lain idle for too long.

Lives here: the table, its cap, the ids, the ends, and when memory may be given back after these. Must not: know how a
session talks (the fronts beside it), what runs it (whoever made the front), or how memory is given back.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import logging
import math
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from dragoman.core.commands import Finish, Outcome
from dragoman.core.label import LABEL, PRINCIPAL, teller_of, write_label
from dragoman.core.places import find_giver, has_place
from dragoman.transports.base import Transport
from dragoman.transports.countdown import Countdown
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import RETRY_AFTER, HttpRequest, RequestRefused
from dragoman.transports.http.flow import Gate
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.http")

MAX_STREAMS: Final = "--max-streams"

VISITS_A_STREAM = 3
"""So many requests of a session are served at once for each stream that it may have.

One waits for its answer, one is a stream of GET, and one is left: an answer to a question has to get through.
"""

_SWEEPS_PER_IDLE = 8

NO_SESSION: Final = "there is no such session, or it is over"
"""Why a request is refused of which nothing has been done."""

_SEVERAL: Final = 2

_RETURNS: Final = 5
"""When the front ends, a client that is away is expected back within so many times the wait that it was asked for."""

_SAID_AFTER_S: Final = 1.0
"""How long sessions may take to end before the log says what they wait for."""

CONNECTIONS: Final = 64
"""So many connections have ended before it is worth it to tidy up for them alone."""

_SELDOM: Final = 12
"""How many times longer it takes while sessions are open, for whom that is a pause."""


@record
class Caller:
    """Who opened a session.

    Attributes:
        principal: The name that goes with its secret; empty where everybody may come in.
        transport: `streamable-http`, `sse` or `websocket`.
        is_per_request: Whether it is not one session, but requests that speak for themselves: all of this principal.
        server: The server at whose path it was opened; empty where all are served as one.
    """

    principal: str
    transport: str
    is_per_request: bool = False
    server: str = ""


class Runner(Protocol):
    """What runs a session: `dragoman.proxy.Proxy`, say."""

    def run(self) -> Awaitable[object]:
        """Serve the session to its end; its transport is closed by then. A `Finish` says how it ended."""

    def drain(self, reason: str) -> None:
        """End it once what is under way is answered, or has had the time to be; take nothing new."""

    def stop(self, reason: str) -> None:
        """End it now."""


class Adopter(Protocol):
    """Keeps what another instance of the proxy needs to go on with a session (`dragoman.instances.adoption`)."""

    async def remember(self, session: Any, posted: Any) -> None:
        """Keep what a client asked that lasts."""

    def forget(self, session_id: str, is_over: bool) -> None:
        """Take note that a session has ended here."""

    async def end_for_good(self, session_id: str) -> None:
        """Take note that a client has ended its session."""

    def watch(self, session: Any) -> None:
        """Have the streams of a session say what they keep."""

    async def find_rest(self, session_id: str, last_event_id: str) -> list[bytes] | None:
        """Return what a client has missed of a stream that another instance had; None where nobody knows."""


class OtherInstances(Protocol):
    """Has requests served by other instances of the proxy (`dragoman.instances.relay`)."""

    name: str

    @property
    def adoption(self) -> Adopter:
        """What goes on elsewhere."""

    def find_session(self, request: HttpRequest) -> str:
        """Return the id that a request names of a session that another instance has, or had; nothing for none."""

    async def serve_session(self, request: HttpRequest, session: str) -> bool:
        """Have a request served by the instance that has its session; false if it is here, or nowhere."""

    def find_owner_of_call(self, request: HttpRequest, params: object) -> str:
        """Return which other instance has the call or task that a request goes on with; nothing for none."""

    async def hand_on(self, request: HttpRequest, owner: str, body: bytes | None = None) -> bool:
        """Hand a request on, and its answer back; false if there is no such instance any more."""


class ClientTransport(Transport, Protocol):
    """What the fronts add to a transport."""

    over: bool

    @property
    def readable(self) -> Gate:
        """Shut while the server does not read: then nothing more of the client's is taken."""

    def end(self, reason: str) -> None:
        """Tell the proxy that the client says no more."""

    def sweep(self, now: float) -> None:
        """Forget what nobody will ask for any more."""


TransportT = TypeVar("TransportT", bound=ClientTransport)


class HttpSession(Generic[TransportT]):
    """A session that runs.

    Attributes:
        id: Nobody can guess it.
        caller: Who opened it; to everybody else it does not exist.
        transport: To the client.
        visits: How many of the client's requests are being served.
        touched_at: When the last one ended.
        finish: How it ended, once it has and what ran it says so.
        label: Names it in the log.
        turn: Held while a body is read and delivered, where that has to wait.
    """

    __slots__ = (
        "_loop",
        "caller",
        "finish",
        "id",
        "label",
        "runner",
        "task",
        "touched_at",
        "transport",
        "turn",
        "visits",
    )

    def __init__(self, session_id: str, caller: Caller, transport: TransportT, runner: Runner, label: str) -> None:
        self.id = session_id
        self.label = label
        self.caller = caller
        self.transport = transport
        self.runner = runner
        self.visits = 0
        self._loop = asyncio.get_running_loop()
        self.touched_at = self._loop.time()
        self.task: asyncio.Task[None] | None = None
        self.finish: Finish | None = None
        self.turn = asyncio.Lock()

    def speak(self) -> None:
        """Say that what happens next is of this session, whoever had this connection before."""
        LABEL.set(self.label)
        PRINCIPAL.set(self.caller.principal)

    @property
    def takes_at_once(self) -> bool:
        """Whether a body can be read and delivered without waiting for a turn.

        While the server does not read, one body at a time is read: the others stay in their sockets, out of our memory.
        """
        return self.transport.readable.shut is None and not self.turn.locked()

    @property
    def idle_since(self) -> float | None:
        """Since when nothing has been done for the client; None while something is.

        What waits for a server that does not read is nothing that is done, and a client that waits cannot be seen to
        have gone.
        """
        readable = self.transport.readable
        if not readable.is_set():
            return readable.shut_at
        return None if self.visits else self.touched_at

    def __enter__(self) -> None:
        self.visits += 1

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Record that one of the client's requests has been served."""
        self.visits -= 1
        self.touched_at = self._loop.time()


class Sessions:
    """The sessions of one front.

    Args:
        config: With the cap, and how long a session may be idle.
        serve: Makes what runs a session; called once for each.
        tidy: Called a while after sessions have ended, or many connections; later if others are open.

    Attributes:
        tidying: Who is told of connections that have ended.
        closing: Whether no session is opened any more.
        relay: Hands on what is for another instance of the proxy; None where this one is alone.
    """

    relay: OtherInstances | None = None

    def __init__(
        self,
        config: FrontConfig,
        serve: Callable[[Transport, Caller], Runner],
        tidy: Callable[[], None] | None = None,
    ) -> None:
        self._limit = config.limits.sessions
        self._idle_s = config.patience.idle_s
        self._return_s = _RETURNS * config.patience.retry_s
        self._serve = serve
        self.tidying = Tidying(tidy, config.patience.tidy_s, lambda: bool(self._sessions))
        self._sessions: dict[str, HttpSession[ClientTransport]] = {}
        self._sweeper = Countdown()
        self._numbers = itertools.count(1)
        self._names: set[str] = set()  # of those who open sessions; two say that there are several
        self.closing = False

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> list[HttpSession[ClientTransport]]:
        """Return every session that runs."""
        return list(self._sessions.values())

    def has(self, session_id: str) -> bool:
        """Whether a session runs here."""
        return session_id in self._sessions

    def open(self, transport: TransportT, caller: Caller, session_id: str = "") -> HttpSession[TransportT]:
        """Run a new session.

        Args:
            transport: To its client.
            caller: Who opens it.
            session_id: The id that it has already, at another instance; otherwise it gets one.

        Raises:
            RequestRefused: 503, when there are too many or the front is closing.
        """
        if self.closing:
            raise RequestRefused(503, "the server is stopping", RETRY_AFTER)
        if not self._has_place(caller.principal):
            raise RequestRefused(503, self._describe_taken(), RETRY_AFTER, option="--max-sessions")
        label = write_label(next(self._numbers), caller.principal)
        LABEL.set(label)  # for whoever opens it, and the task that runs it
        PRINCIPAL.set(caller.principal)
        session_id = session_id or make_id("" if self.relay is None else self.relay.name)
        session = HttpSession(session_id, caller, transport, self._serve(transport, caller), label)
        self._sessions[session.id] = session  # type: ignore[assignment]
        session.task = asyncio.get_running_loop().create_task(self._run(session))
        self._schedule_sweep()
        logger.info("a session opens over %s; %d are open", caller.transport, len(self._sessions))
        return session

    def _has_place(self, principal: str) -> bool:
        """Whether somebody may open one more; if not, whoever has most gives one to those who have fewer."""
        if principal and len(self._names) < _SEVERAL:
            self._names.add(principal)
        holders = (session.caller.principal for session in self._sessions.values())
        holder = principal if len(self._names) == _SEVERAL else ""  # who is alone may have all
        if has_place(holder, holders, len(self._sessions), self._limit):
            return True
        giver = find_giver(principal, Counter[Hashable](one.caller.principal for one in self._sessions.values()))
        given = [one for one in self.all() if one.caller.principal == giver and not one.caller.is_per_request]
        if giver != principal and given:
            longest = min(given, key=lambda one: (one.idle_since is None, one.idle_since or one.touched_at))
            longest.runner.stop("its place is for somebody who has fewer sessions")
        return False

    def _describe_taken(self) -> str:
        left = self._limit - len(self._sessions)
        return f"all {self._limit} sessions are taken" + (f", but for {left} that are for others" if left > 0 else "")

    def find(
        self, session_id: str, principal: str, kind: type[TransportT], server: str = ""
    ) -> HttpSession[TransportT]:
        """Return a session for whoever opened it, over the kind of transport and at the path that they opened it with.

        Raises:
            RequestRefused: 404 for an id that was never given out, belongs to somebody else, or whose session is over.
        """
        session = self._sessions.get(session_id)
        if (
            session is None
            or (session.caller.principal, session.caller.server) != (principal, server)
            or not isinstance(session.transport, kind)
            or session.transport.over
        ):
            raise RequestRefused(404, NO_SESSION)
        session.speak()
        return session  # type: ignore[return-value]

    def revoke(self, principals: frozenset[str]) -> None:
        """End what these have opened, and what of theirs is under way where all are served as one."""
        reason = "the secret that this was opened with has been revoked"
        for session in self.all():
            if teller_of(session.caller.principal) in principals:
                session.runner.stop(reason)
            elif session.caller.is_per_request and principals:
                session.transport.revoke(principals)  # type: ignore[attr-defined]

    def stop_those_of(self, servers: Collection[str]) -> None:
        """End what was opened at the paths of these servers."""
        for session in self.all():
            if session.caller.server in servers:
                session.runner.stop("the server is not served any more")

    async def drain(self, reason: str) -> None:
        """Open no session any more, and wait until each has ended, with the answers to what it has under way.

        An answer that no connection waits for is for a client that comes back; one that does not is not waited for.
        """
        self.closing = True
        for session in self.all():
            session.runner.drain(reason)
        self._sweeper.stop()
        self._schedule_sweep()
        await self._wait_for_ends(_SAID_AFTER_S)
        if self._sessions:
            logger.warning(
                "%s: %d session(s) end once their calls are answered, or --drain-timeout is over; another signal ends "
                "them at once",
                reason,
                len(self._sessions),
            )
        await self._wait_for_ends()

    async def close(self, reason: str) -> None:
        """End every session, and wait until everything of theirs is gone."""
        self.closing = True
        self.tidying.close()
        self._sweeper.stop()
        for session in list(self._sessions.values()):
            session.runner.stop(reason)
        await self._wait_for_ends()

    async def _wait_for_ends(self, limit_s: float | None = None) -> None:
        tasks = [session.task for session in self._sessions.values() if session.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=limit_s)  # unlike `gather`, it leaves them alone if it is cancelled

    async def _run(self, session: HttpSession[TransportT]) -> None:
        try:
            finish = await session.runner.run()
            session.finish = finish if isinstance(finish, Finish) else None
        except Exception as error:  # a defect of ours: say so on one line, and let the client know by the end
            logger.error("internal error: %s: %s", type(error).__name__, error)
            logger.debug("where it happened", exc_info=True)
            session.finish = Finish(Outcome.INTERNAL_ERROR, "internal error")
            await session.transport.close()
        finally:
            session.transport.over = True
            del self._sessions[session.id]
            if self.relay is not None:
                self.relay.adoption.forget(session.id, not self.closing)
            logger.info("a session over %s is over; %d are open", session.caller.transport, len(self._sessions))
            self.tidying.count_session()

    def _schedule_sweep(self) -> None:
        if self._sessions and not self._sweeper.is_set:
            after_s = (self._return_s if self.closing else self._idle_s) / _SWEEPS_PER_IDLE
            self._sweeper.set(min(after_s, 30.0), self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        for session in list(self._sessions.values()):
            LABEL.set(session.label)  # in the context of this timer alone
            session.transport.sweep(now)
            since, away = session.idle_since, self.closing and not session.visits
            limit_s = self._return_s if away else self._idle_s
            if since is not None and (away or not session.transport.over) and now - since > limit_s:
                idle = "the session was idle" if session.transport.readable.is_set() else "the server read nothing"
                reason = "its client was away" if away else idle
                logger.info("a session over %s ends: %s for %g s", session.caller.transport, reason, limit_s)
                session.transport.over = not session.visits  # who is there is told
                session.runner.stop(reason)
        LABEL.set("")
        self._schedule_sweep()


def make_id(instance: str) -> str:
    """Return an id for a session, which names the instance of the proxy that has it, if there are several."""
    # As `secrets.token_urlsafe`, and what else is in there takes a while to import.
    token = base64.urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()
    return f"{instance}.{token}" if instance else token


class Tidying:
    """Calls somebody a while after sessions, or many connections, have ended, and not while others are busy.

    The memory of what has ended is free, but the C library may keep it: about 40 KB of the 330 KB that a TLS connection
    can use, and more if it sent much. For one connection this does not matter; for many it does.

    Args:
        tidy: Who is called; None for nobody.
        after_s: How long after.
        is_busy: Whether sessions are open.
    """

    def __init__(self, tidy: Callable[[], None] | None, after_s: float, is_busy: Callable[[], bool]) -> None:
        self._tidy = tidy
        self._after_s = after_s
        self._is_busy = is_busy
        self._timer = Countdown()
        self._due_at = math.inf
        self._connections = 0

    def count_session(self) -> None:
        """Record that a session has ended."""
        self._schedule()

    def count_connection(self) -> None:
        """Record that a connection has ended."""
        self._connections += 1
        if self._connections >= CONNECTIONS:
            self._schedule()

    def close(self) -> None:
        """Call nobody any more."""
        self._tidy = None
        self._timer.stop()

    def _schedule(self) -> None:
        if self._tidy is None:
            return
        after_s = self._after_s * (_SELDOM if self._is_busy() else 1)
        due_at = asyncio.get_running_loop().time() + after_s
        if due_at < self._due_at:
            self._due_at = due_at
            self._timer.set(after_s, partial(self._run, self._tidy))

    def _run(self, tidy: Callable[[], None]) -> None:
        self._due_at, self._connections = math.inf, 0
        tidy()


def too_many_streams(key: bytes | None) -> RequestRefused:
    """Refuse a request with this id, where so many of its session are under way."""
    reason = "too many requests of this session are under way"
    return RequestRefused(429, reason, (b"retry-after", b"1"), key=key, option=MAX_STREAMS)
