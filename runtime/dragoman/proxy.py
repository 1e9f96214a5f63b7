"""The proxy: one client, one server, any two revisions, any two transports.

Lives here: what can be decided about a proxy, and making the switch and the host of one client. Must not: look into
frames (`core`), or own a transport (`host`). Called by `dragoman.cli.proxy`, and by programs that embed it:

    proxy = Proxy(ProxyConfig(), front, connect)
    outcome = await proxy.run()
"""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

import dragoman_spec
from dragoman.core.calls import OPEN_REQUESTS
from dragoman.core.commands import Finish, Side
from dragoman.core.consent import Method
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.wiring import Bridging, Wiring
from dragoman.core.label import PRINCIPAL
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.core.negotiation import AUTO
from dragoman.core.settings import RestartPolicy, ServerMemory, Settings
from dragoman.core.switch.direct import Direct
from dragoman.core.translate import Counters, OnLoss, Translator
from dragoman.host.host import Host, Opening
from dragoman.host.settings import HostSettings, NewsDesk
from dragoman.transports.base import Transport
from dragoman_spec.record import record

if TYPE_CHECKING:
    from dragoman.core.edges.greeting import Greeting
    from dragoman.core.edges.upstream import UpstreamEdge
    from dragoman.core.rules.state import Keeper
    from dragoman.middleware import HeaderMiddleware, Middleware, NoticeMiddleware
    from dragoman.status import StatusBoard
    from dragoman.trace.calls import CallWatch
    from dragoman.trace.spans import Tracing
    from dragoman.trace.trace import Watcher

_OVER: Final = frozenset({FrontState.CLOSED, FrontState.FAILED})


@record
class ProxyConfig:
    """What can be decided about a proxy.

    Attributes:
        client_revision: `auto` (what the client asks for), or the revision to speak with a client that has a handshake.
        server_revision: `auto` (the newest, then what the client asks for), a handshake revision to offer first, or a
            per-request revision for a server that is known to have no handshake; `same` is what the client speaks, for
            a server that speaks every revision.
        profile: `strict` drops every field the target revision does not name; `minimal` what validity needs.
        rules: Names of the repair rules that are on; None for the default ones.
        on_loss: What to do about a frame that cannot be carried whole.
        retry_older: Whether to offer another revision, once, to a server that rejects the first explicitly.
        init_timeout_s: How long to wait for each half of the handshake, in seconds.
        drain_timeout_s: How long a client is still answered that has closed its end, or whose session is drained, in
            seconds.
        limit_bytes: The longest line accepted from either peer, for whoever makes the transports: those that read lines
            take a `limit_bytes` of their own. The proxy itself gives up a server that reads nothing once so much was
            written to it.
        open_requests: How many requests of either peer may be unanswered.
        request_timeout_s: How long a request of the client may be with the server without an answer or progress, in
            seconds, to a tenth or, above ten seconds, to a second; None for as long as that takes.
        request_ceiling_s: How long at most, whatever progress it makes, in seconds; None for as long as it makes any.
        restarts: How often in a row a server that is lost while its session is open is started again, or connected to
            again: the session of its clients goes on, and requests that it had fail. 0: their sessions end.
        health_s: How long a server may say nothing before it is sent a `ping`, in seconds; if it is silent for as long
            again, it is lost. None: it may be silent for ever.
        trace: Where frames are written down; None where they are not. It may be that of several proxies.
        calls: Sees each call, for metrics and the access log; None: nobody does. It may be that of several proxies.
        spans: Records spans of OpenTelemetry around each call, before all middleware; None: nobody does.
        middleware: Your own code around each request, the outermost first: `dragoman.middleware`.
        notice_middleware: The same around each notification.
        header_middleware: Gives headers for each request over HTTP to the server; a server that is not reached over
            HTTP cannot be used then.
        middleware_timeout_s: How long middleware may take for each of them, in seconds, without the time that a peer
            takes to answer.
        known: What is remembered of the server from one start to the next, as `dragoman.host.known.know` gives it; None
            where nothing is.
        greets: Whether a client is answered from what is remembered of the server's answers, while the server starts.
        board: Where the state of the servers is put up, for `dragoman.status`; None where nobody looks.
        names_server: Whether a client is told which command it is, or which address, that cannot be used. Right where
            the client has started us; others need not know.
        questions: How a per-request client is asked what a server with a handshake wants to know in the middle of a
            call: `task`, `park`, `replay`, `refuse`, or `auto`, which is the first of them that applies.
        repeatable: The tools that may be run twice for that, beside those of which their server says so.
        parked_s: How long a call waits for a per-request client that was asked something, in seconds.
        most_parked: How many calls may wait so.
        task_s: How long a task is kept that the proxy makes of a call, from its beginning, in seconds.
        roots_ttl_s: For how many seconds a server gets the roots again that such a client has told; 0 is not at all.
        state_key: 32 secret bytes that seal the states which such clients carry: what does not wait in memory is then
            good after a restart, and in every proxy with this key. Of several, the first seals and all open. Made at
            start if None.
        says_why: Whether the log says why the session has failed; a router says it itself of each of its servers.
        server_name: What the user calls the server; such states are good there alone, and a client is told this name
            where the server has none.
        shares_server: Whether a router is before this whose requests are of several principals, and say whose.
        news: Has what servers tell at other instances of this proxy; None where there are none.
    """

    client_revision: str = AUTO
    server_revision: str = AUTO
    profile: str = "strict"
    rules: frozenset[str] | None = None
    on_loss: OnLoss = OnLoss.WARN
    retry_older: bool = True
    init_timeout_s: float = 60.0
    drain_timeout_s: float = 30.0
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    open_requests: int = OPEN_REQUESTS
    request_timeout_s: float | None = None
    request_ceiling_s: float | None = None
    restarts: int = 0
    health_s: float | None = None
    trace: Watcher | None = None
    calls: CallWatch | None = None
    spans: Tracing | None = None
    middleware: tuple[Middleware, ...] = field(default=(), hash=False)
    notice_middleware: tuple[NoticeMiddleware, ...] = field(default=(), hash=False)
    header_middleware: tuple[HeaderMiddleware, ...] = field(default=(), hash=False, repr=False)
    middleware_timeout_s: float = 60.0
    known: ServerMemory | None = None
    greets: bool = False
    board: StatusBoard | None = None
    names_server: bool = False
    questions: str = "auto"
    repeatable: frozenset[str] = frozenset()
    parked_s: float = 600.0
    most_parked: int = 256
    task_s: float = 3600.0
    roots_ttl_s: float = 0.0
    state_key: bytes | tuple[bytes, ...] | None = field(default=None, repr=False)
    says_why: bool = True
    server_name: str = ""
    shares_server: bool = False
    news: NewsDesk | None = None

    def to_settings(self) -> Settings:
        """Return the part that the core needs."""
        rules = dragoman_spec.DEFAULT_RULES if self.rules is None else self.rules
        return Settings(
            client_revision=self.client_revision,
            server_revision=self.server_revision,
            retry_older=self.retry_older,
            expect_echo="echoing-server" in rules,
            on_loss=self.on_loss,
            restore_ids="restore-id-type" in rules,
            assume_logging="assume-logging" in rules,
            accept_legacy_initialized="legacy-initialized-name" in rules,
            init_timeout_s=self.init_timeout_s,
            drain_timeout_s=self.drain_timeout_s,
            open_requests=self.open_requests,
            request_timeout_s=self.request_timeout_s,
            request_ceiling_s=self.request_ceiling_s,
            restart=RestartPolicy(self.restarts, chance=_chance) if self.restarts else None,
            health_s=self.health_s,
            known=self.known,
            has_middleware=bool(self.middleware or self.notice_middleware or self.spans),
            watch=None if self.trace is None else self.trace.translated,
            observer=self.calls,
        )


class Proxy:
    """Joins a client to a server.

    Args:
        config: What was decided.
        front: The transport to the client.
        connect: Opens a transport to the server; called once, and once more if a server has to be started again.
        translate: Gives the composed steps from one revision to another; for tests.
        principal: Whose requests come over this transport, where each has a stream of its own; None where the
            transport is the connection of one client, or says it itself.
        shares_server: Whether these are the requests of several principals, each of which says whose it is.
        opening: Of the proxy for the requests of this client that open no session: the server is taken over, if it can.
    """

    def __init__(
        self,
        config: ProxyConfig,
        front: Transport,
        connect: Callable[[], Transport],
        translate: Callable[[str, str], Translator] | None = None,
        *,
        principal: str | None = None,
        shares_server: bool = False,
        opening: Opening | None = None,
    ) -> None:
        wiring, settings = wiring_of(config, translate), host_settings_of(config)
        principal = getattr(front, "principal", None) if principal is None else principal
        if principal is not None and wiring.bridging is not None:
            bridging = dataclasses.replace(
                wiring.bridging,
                principal=principal,
                shares_channel=False,
                shares_server=shares_server or config.shares_server,
            )
            wiring = dataclasses.replace(wiring, bridging=bridging)
        self._transport = watched(config, front, Side.CLIENT)
        self._switch = Direct(wiring)
        self._host = Host(self._switch, watched_connect(config, connect), settings)
        self._host.whose = "" if shares_server or config.shares_server else principal or PRINCIPAL.get()
        if opening is not None:
            self._switch.inherits = functools.partial(opening, self._host)

    @property
    def opening(self) -> Opening | None:
        """What gives the server that is being opened to another host, if nobody else waits for it; None without any."""
        is_opening = any(upstream.state is UpstreamState.OPENING for upstream in self._switch.servers)
        return self._give_opening if is_opening else None

    def _give_opening(self, heir: Host, greeting: Greeting) -> UpstreamEdge | None:
        upstream = self._switch.give_opening(greeting)
        if upstream is not None:
            heir.take_over(upstream, self._host)
        self._host.flush()
        return upstream

    @property
    def counters(self) -> Counters:
        """What the session has seen so far."""
        return self._switch.front.exchange.counters

    @property
    def open_requests(self) -> int:
        """How many requests, of the client and of the server, wait for their answers."""
        return sum(len(calls.waiting) for calls in self._switch.front.exchange.calls.values())

    @property
    def not_started(self) -> str:
        """Why the server could not be started or reached, with its command or address: for the log alone."""
        return self._host.not_started

    @property
    def was_asked(self) -> bool:
        """Whether what failed last did because a person was asked to sign in, in vain: by now they may have."""
        return self._host.was_asked

    @property
    def is_over(self) -> bool:
        """Whether the session is past saving: what its client is told from then on are not the server's words."""
        return self._switch.front.state in _OVER

    @property
    def server_revision(self) -> str | None:
        """What the server speaks; None as long as that is not agreed on."""
        return self._switch.upstream.revision

    @property
    def is_signing_in(self) -> bool:
        """Whether a person is signing in to the server: that takes as long as it takes."""
        return self._host.is_signing_in

    def stop_signing_in(self) -> None:
        """Fail what waits for that: nobody waits for it."""
        self._host.stop_signing_in()

    async def run(self) -> Finish:
        """Serve one session to its end.

        Returns:
            How it ended and why; both transports are closed by then.
        """
        try:
            return await self._host.serve(self._switch.front, self._transport, self._switch.open)
        finally:
            self._switch.release()

    def drain(self, reason: str) -> None:
        """End the session once what is under way is answered, or `drain_timeout_s` later; nothing new is taken."""
        self._host.drain(self._switch.front, reason)

    def stop(self, reason: str) -> None:
        """End the session now.

        Args:
            reason: Why, for a person: requests that wait are answered with it.
        """
        self._host.stop(self._switch.front, reason)


def know_nothing(server: object) -> None:
    """Return what is remembered of a server where nothing is."""


def _chance() -> float:
    import random  # hardly ever needed

    return random.random()


# A front makes a proxy for each of its sessions, all with the same config: what follows from it is made once.


def wiring_of(config: ProxyConfig, translate: Callable[[str, str], Translator] | None = None) -> Wiring:
    """Return what the edges of a switch need."""
    if translate is None:
        return _wiring_of(config)
    return Wiring(config.to_settings(), translate, _methods_of, time.monotonic, make_bridging(config))


@functools.lru_cache(maxsize=8)
def _wiring_of(config: ProxyConfig) -> Wiring:
    def translate(source: str, target: str) -> Translator:
        return dragoman_spec.translator(source, target, profile=config.profile, rules=config.rules)

    return Wiring(config.to_settings(), translate, _methods_of, time.monotonic, make_bridging(config))


def make_bridging(config: ProxyConfig) -> Bridging:
    """Return what the bridge between the eras needs; all bridges of one process can read each other's states."""
    return Bridging(
        time.time,
        time.monotonic,
        _make_nonce,
        functools.partial(_keeper_of, config.parked_s, config.state_key),
        config.server_name,
        questions=config.questions,
        repeatable=config.repeatable,
        most_parked=config.most_parked,
        task_s=config.task_s,
        roots_ttl_s=config.roots_ttl_s,
        shares_server=config.shares_server,
    )


def _make_nonce() -> bytes:
    from dragoman.core.rules.state import NONCE_BYTES

    return os.urandom(NONCE_BYTES)


def change_state_keys(config: ProxyConfig, keys: tuple[bytes, ...]) -> None:
    """Let every proxy with this configuration seal with the first of these keys from now on, and open with any."""
    _keeper_of(config.parked_s, config.state_key).seal.change_keys(keys)


def instance_of_process() -> bytes:
    """Return the random bytes by which this process is named in what it seals."""
    return _random_key()[1]


@functools.lru_cache(maxsize=8)
def _keeper_of(ttl_s: float, key: bytes | tuple[bytes, ...] | None) -> Keeper:
    from dragoman.core.rules.state import Keeper, Seal

    made, instance = _random_key()
    return Keeper(Seal(key or made, instance), ttl_s)


@functools.cache
def _random_key() -> tuple[bytes, bytes]:
    from dragoman.core.rules.state import INSTANCE_BYTES, KEY_BYTES

    return os.urandom(KEY_BYTES), os.urandom(INSTANCE_BYTES)


@functools.lru_cache(maxsize=8)
def host_settings_of(config: ProxyConfig) -> HostSettings:
    """Return what a host needs."""
    return HostSettings(
        config.limit_bytes,
        config.names_server,
        board=config.board,
        server_name=config.server_name,
        says_why=config.says_why,
        middleware=(*(() if config.spans is None else (config.spans.around_request,)), *config.middleware),
        notice_middleware=config.notice_middleware,
        middleware_timeout_s=config.middleware_timeout_s,
        news=config.news,
    )


def watched(config: ProxyConfig, transport: Transport, side: Side) -> Transport:
    """Return a transport to this peer, each frame of which is written down where somebody wants that."""
    return transport if config.trace is None else config.trace.watch(transport, side)


def watched_connect(config: ProxyConfig, connect: Callable[[], Transport]) -> Callable[[], Transport]:
    """Return what opens such a transport to a server, with the headers of middleware, and from memory if it is slow."""
    if config.header_middleware:
        from dragoman.host.headers import with_headers

        connect = with_headers(connect, config.header_middleware)
    if config.spans is not None:
        from dragoman.trace.spans import with_carrier

        connect = with_carrier(connect)
    opened = connect if config.trace is None else lambda: watched(config, connect(), Side.SERVER)
    if not config.greets or config.known is None or config.known.answers is None:
        return opened
    from dragoman.host.greeting import with_greeting

    return with_greeting(opened, config.known.answers, wiring_of(config).settings)


def _methods_of(revision: str) -> Mapping[str, Method]:
    methods: Mapping[str, Method] = dragoman_spec.load(revision).METHODS
    return methods
