"""The proxy: one client, one server, any two revisions, any two transports.

Lives here: joining two transports through the core, and carrying out the core's commands. Must not: look into frames
(`core`), or at descriptors (`transports`). Called by `dragoman.cli.proxy`, and by whoever embeds it:

    proxy = Proxy(ProxyConfig(), front, connect)
    outcome = await proxy.run()

Theory of operation. Everything runs in one thread by callbacks: frames that one transport has read go through
`Session.receive`, and what comes out is sent by the other before the callback returns: no task and no queue for a
frame. When a transport has more to write than it should, reading from the other side is paused, so memory is bounded.
Middleware, when it comes, goes between `receive` and the commands: `_Edge.received` is the one place.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import dragoman_spec
from dragoman.core.commands import Command, Finish, Outcome, RestartServer, Send, SetTimer, Side, StopTimer
from dragoman.core.consent import Method
from dragoman.core.correlation import OPEN_REQUESTS
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.core.negotiation import AUTO
from dragoman.core.session import Session
from dragoman.core.settings import Settings
from dragoman.core.translate import OnLoss, Translator
from dragoman.errors import TransportClosed
from dragoman.transports.base import Transport

logger = logging.getLogger("dragoman.proxy")


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """What can be decided about a proxy.

    Attributes:
        client_revision: `auto` (what the client asks for), or a handshake revision to speak with it.
        server_revision: `auto` (the newest, then what the client asks for), or a handshake revision to offer first.
        profile: `strict` drops every field the target revision does not name; `minimal` what validity needs.
        rules: Names of the repair rules that are on; None for the default ones.
        on_loss: What to do about a frame that cannot be carried whole.
        retry_older: Whether to offer another revision, once, to a server that rejects the first explicitly.
        init_timeout_s: How long to wait for each half of the handshake, in seconds.
        drain_timeout_s: How long a client that has closed its end is still answered, in seconds.
        limit_bytes: The longest line accepted from either peer, for whoever makes the transports: those that read lines
            take a `limit_bytes` of their own. The proxy itself gives up a server that reads nothing once so much was
            written to it.
        open_requests: How many requests of either peer may be unanswered.
        names_server: Whether a client is told which command it is, or which address, that cannot be used. Right where
            the client has started us; others need not know.
    """

    client_revision: str = AUTO
    server_revision: str = AUTO
    profile: str = "strict"
    rules: frozenset[str] | None = None
    on_loss: OnLoss = OnLoss.WARN
    retry_older: bool = True
    init_timeout_s: float = 60.0
    drain_timeout_s: float = 10.0
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    open_requests: int = OPEN_REQUESTS
    names_server: bool = False

    def to_settings(self) -> Settings:
        """Give the part that the core needs."""
        rules = dragoman_spec.DEFAULT_RULES if self.rules is None else self.rules
        return Settings(
            client_revision=self.client_revision,
            server_revision=self.server_revision,
            retry_older=self.retry_older,
            expect_echo="echoing-server" in rules,
            on_loss=self.on_loss,
            restore_ids="restore-id-type" in rules,
            accept_legacy_initialized="legacy-initialized-name" in rules,
            init_timeout_s=self.init_timeout_s,
            drain_timeout_s=self.drain_timeout_s,
            open_requests=self.open_requests,
        )


class _Edge:
    """What happens at one side's transport, told to the proxy; dead once the proxy has another transport there."""

    __slots__ = ("alive", "proxy", "side", "transport")

    def __init__(self, proxy: Proxy, side: Side, transport: Transport) -> None:
        self.proxy = proxy
        self.side = side
        self.transport = transport
        self.alive = True

    def cut(self) -> None:
        """Tell the proxy nothing more, and let go of it: a circle stays until somebody looks for such."""
        if self.alive:
            self.alive = False
            del self.proxy, self.transport

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        if self.alive:
            self.proxy.perform(lambda session: session.receive(self.side, frames))

    def failed(self, frame: Frame) -> None:
        self.received((frame,))

    def ended(self, reason: str) -> None:
        if self.alive:
            logger.info("%s: %s", self.side.value, reason)
            self.proxy.perform(lambda session: session.close(self.side, reason))

    def broken(self, reason: str) -> None:
        if self.alive:
            self.proxy.take_broken(self, reason)

    def pause_writing(self) -> None:
        if self.alive:
            self.proxy.hold_back(self.side)

    def resume_writing(self) -> None:
        if self.alive:
            self.proxy.let_go(self.side)


_NEITHER: Final[frozenset[Side]] = frozenset()
"""One for all: even an empty set takes 0.2 KB, and there is one a session."""

_HELD_BACK = {Side.CLIENT: (Side.CLIENT, Side.SERVER), Side.SERVER: (Side.CLIENT,)}
"""Whose reading pauses when this peer does not take what we write. What a client does not take may be our own answers
to it, so it is held back itself; a server is not: it may be unable to read until we have read."""

_FAILURES: Final = frozenset(
    {
        Outcome.SERVER_CLOSED,
        Outcome.SERVER_NOT_STARTED,
        Outcome.INITIALIZATION_FAILED,
        Outcome.INITIALIZATION_TIMED_OUT,
    }
)
"""Ends that somebody has to look into; said once, with the reason. An internal error was said when it happened."""

_WHAT_NEXT: Final = {Outcome.INITIALIZATION_TIMED_OUT: "; --init-timeout says how long it is waited for"}

_BROKEN_GRACE_S = 1.0
"""How long a server that closed its input may still answer before it counts as gone."""


class Proxy:
    """Joins a client to a server.

    Args:
        config: What was decided.
        front: The transport to the client.
        connect: Opens a transport to the server; called once, and once more if a server has to be started again.
        translate: Gives the composed steps from one revision to another; for tests.
    """

    __slots__ = (
        "_connect",
        "_edges",
        "_ending",
        "_full",
        "_limit_bytes",
        "_names_server",
        "_not_started",
        "_old_servers",
        "_timer",
        "_unread_bytes",
        "session",
    )

    def __init__(
        self,
        config: ProxyConfig,
        front: Transport,
        connect: Callable[[], Transport],
        translate: Callable[[str, str], Translator] | None = None,
    ) -> None:
        self.session = Session(_settings_of(config), translate or _translate_with(config), _methods_of)
        self._connect = connect
        self._names_server = config.names_server
        self._not_started = ""  # why, for the log, where the client is told less
        self._edges = {Side.CLIENT: _Edge(self, Side.CLIENT, front)}
        self._full = _NEITHER
        self._limit_bytes = config.limit_bytes
        self._unread_bytes = 0  # what was written to the server since it is full
        self._timer: asyncio.TimerHandle | None = None
        self._ending: asyncio.Future[Finish] | None = None
        self._old_servers: dict[asyncio.Task[None], Transport] = {}

    async def run(self) -> Finish:
        """Serve one session to its end.

        Returns:
            How it ended and why; both transports are closed by then.
        """
        self._ending = asyncio.get_running_loop().create_future()
        self.perform(Session.open)
        self._open_server()
        front = self._edges[Side.CLIENT]
        front.transport.start(front)
        is_stopped = False
        try:
            finish = await self._ending
            if finish.outcome in _FAILURES:
                reason = self._not_started or finish.reason
                logger.error("the session failed: %s%s", reason, _WHAT_NEXT.get(finish.outcome, ""))
            is_stopped = finish.outcome is Outcome.STOPPED
            if finish.outcome is Outcome.SERVER_CLOSED:
                self._hurry()  # it is going already
            return finish
        finally:
            self._stop_timer()
            await self._close(front.transport, at_once=is_stopped)
            counters = self.session.exchange.counters
            if counters.lossy_as_before:
                logger.warning("%d more frames lost what is named above", counters.lossy_as_before)
            logger.info("%s", counters.describe())

    async def _close(self, front: Transport, at_once: bool) -> None:
        """Close both sides.

        The client comes last, for it is given what the server says at its end; not where somebody told us to stop: then
        everything that was asked is answered already, and neither side waits for the other.
        """
        closing = [*self._old_servers]
        if Side.SERVER in self._edges:
            closing.append(asyncio.ensure_future(self._edges[Side.SERVER].transport.close()))
        if at_once:
            closing.append(asyncio.ensure_future(front.close()))
        await asyncio.gather(*closing)
        if not at_once:
            await front.close()
        while self._edges:
            self._edges.popitem()[1].cut()

    def stop(self, reason: str) -> None:
        """End the session now; requests that wait are answered with this reason."""
        self._hurry()
        self.perform(lambda session: session.stop(reason))

    def perform(self, step: Callable[[Session], list[Command]]) -> None:
        """Let the session take a step, and carry out what follows."""
        try:
            for command in step(self.session):
                self._carry_out(command)
        except Exception as error:  # a defect of ours: say so on one line, end in order
            reason = f"internal error: {type(error).__name__}: {error}"
            logger.error("%s", reason)
            logger.debug("where it happened", exc_info=True)
            for command in self.session.stop(reason, Outcome.INTERNAL_ERROR):
                self._carry_out(command)

    def take_broken(self, edge: _Edge, reason: str) -> None:
        """Deal with a peer that does not read any more."""
        logger.info("%s: %s", edge.side.value, reason)
        if edge.side is Side.CLIENT:
            self._hurry()
            self.perform(lambda session: session.stop(f"the client does not read: {reason}", Outcome.CLIENT_CLOSED))
        else:
            asyncio.get_running_loop().call_later(_BROKEN_GRACE_S, edge.ended, "the server closed its input")

    def hold_back(self, full: Side) -> None:
        """Stop reading what would only pile up for a peer that does not take it."""
        self._full |= {full}
        for side in _HELD_BACK[full]:
            if side in self._edges:
                self._edges[side].transport.pause_reading()

    def let_go(self, full: Side) -> None:
        """Read again, where nobody else is in the way."""
        self._full -= {full}
        if full is Side.SERVER:
            self._unread_bytes = 0
        for side in _HELD_BACK[full]:
            if side in self._edges and not any(side in _HELD_BACK[other] for other in self._full):
                self._edges[side].transport.resume_reading()

    def _carry_out(self, command: Command) -> None:
        match command:
            case Send(side, frames):
                if side in self._edges:
                    self._edges[side].transport.send(frames)
                    if self._full and side is Side.SERVER:
                        self._count_unread(sum(len(frame.raw) for frame in frames))
            case SetTimer(after_s):
                self._stop_timer()
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(after_s, self.perform, Session.expire)
            case StopTimer():
                self._stop_timer()
            case RestartServer():
                self._restart_server()
            case Finish():
                self._finish(command)

    def _count_unread(self, size: int) -> None:
        """End a session whose server reads nothing and has us answer all the same: its client is held back already."""
        if Side.SERVER not in self._full:
            return
        before, self._unread_bytes = self._unread_bytes, self._unread_bytes + size
        if before <= self._limit_bytes < self._unread_bytes:
            reason = "the server asks without end and reads nothing"
            logger.error("%s", reason)
            self._hurry()
            self.perform(lambda session: session.close(Side.SERVER, reason))

    def _open_server(self) -> None:
        try:
            edge = _Edge(self, Side.SERVER, self._connect())
            self._edges[Side.SERVER] = edge
            edge.transport.start(edge)
        except TransportClosed as error:
            self._not_started = str(error)
            reason = self._not_started if self._names_server else error.unnamed
            self.perform(lambda session: session.close(Side.SERVER, reason, Outcome.SERVER_NOT_STARTED))

    def _restart_server(self) -> None:
        old = self._edges.pop(Side.SERVER)
        self._old_servers[asyncio.get_running_loop().create_task(old.transport.close())] = old.transport
        old.cut()
        self._open_server()

    def _hurry(self) -> None:
        if Side.SERVER in self._edges:
            self._edges[Side.SERVER].transport.hurry()
        for transport in self._old_servers.values():
            transport.hurry()

    def _finish(self, finish: Finish) -> None:
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(finish)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# A front makes a proxy for each of its sessions, all with the same config: what follows from it is made once.


@functools.lru_cache(maxsize=8)
def _settings_of(config: ProxyConfig) -> Settings:
    return config.to_settings()


@functools.lru_cache(maxsize=8)
def _translate_with(config: ProxyConfig) -> Callable[[str, str], Translator]:
    def translate(source: str, target: str) -> Translator:
        return dragoman_spec.translator(source, target, profile=config.profile, rules=config.rules)

    return translate


def _methods_of(revision: str) -> Mapping[str, Method]:
    methods: Mapping[str, Method] = dragoman_spec.load(revision).METHODS
    return methods
