"""How clients reach the proxy in a world: by lines, or by the HTTP front, which is real but for its port."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from dragoman.core.switch.shared.desk import SharingSettings
from dragoman.guard.guard import GuardSettings, TokenGuard
from dragoman.host.shared import PoolConfig
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.transports.base import Transport
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import Admission, FrontConfig, Limits, Patience
from dragoman.transports.http.connection import ServedConnection
from dragoman.transports.http.pages import Pages
from dragoman.transports.http.sessions import Caller, Runner
from dragoman.transports.http.site import Site
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.http_client import HttpWire
from tests.world.network import Address, Network, StreamTransport
from tests.world.peers.client import Client
from tests.world.peers.issuer import OURS, URL, Issuer
from tests.world.peers.words import request
from tests.world.plan import Act, ClientPlan, Plan
from tests.world.record import Body, Record
from tests.world.streams import End
from tests.world.ways import SseWire, WebSocketWire
from tests.world.wires import LineWire

_ADDRESS: Final[Address] = ("127.0.0.1", 8080)
_REVISION: Final = HANDSHAKE_REVISIONS[-1]
_STRANGER: Final = "zoe"
"""Who is let in, and asks only in sessions of others."""

_ENDS_S: Final = 20.0
"""How long sessions may take to end whose secret is good no more."""


_OF_SHARING: Final = ("calls", "subscriptions", "questions", "waiting_bytes", "turn_s", "grace_s", "suspects")

_LIMITS: Final = tuple(each.name for each in dataclasses.fields(Limits))
_PATIENCE: Final = tuple(each.name for each in dataclasses.fields(Patience))


def make_pool_config(plan: Plan) -> PoolConfig:
    """Give what is decided about servers that are shared."""
    sharing = {name: value for name, value in plan.pool.items() if name in _OF_SHARING}
    rest = {name: value for name, value in plan.pool.items() if name not in _OF_SHARING}
    return PoolConfig(sharing=SharingSettings(**sharing), **rest)


def secret_of(principal: str) -> str:
    """Give what a principal shows the proxy."""
    return f"token-of-{principal}-0123456789"


Served = tuple[UpstreamPool, ProxyConfig]
"""What serves those who come at one path."""


class Front(Protocol):
    """How clients reach the proxy."""

    def admit(self, client: Client) -> None:
        """Give a client its way to the proxy."""

    async def fail(self, fault: Act) -> None:
        """Let something go wrong that only this can know."""

    async def close(self) -> None:
        """End everything."""


class LineFront:
    """Each client has a connection of lines, and a session of its own.

    Args:
        start: Called with what runs each session.
        opens: Makes a transport of our end of a connection.
    """

    def __init__(
        self,
        network: Network,
        pool: UpstreamPool,
        config: ProxyConfig,
        record: Record,
        start: Any,
        opens: Callable[[End], Transport],
    ) -> None:
        self._network = network
        self._pool = pool
        self._config = config
        self._record = record
        self._start = start
        self._opens = opens

    def admit(self, client: Client) -> None:
        theirs, ours = self._network.pair(client.name, "proxy")
        client.wire = LineWire(theirs, client, self._record)
        self._start(self._pool.proxy(self._config, self._opens(ours), client.plan.principal))

    async def fail(self, fault: Act) -> None: ...

    async def close(self) -> None: ...


class _Thief:
    """Asks in a session of somebody else, and has to hear nothing."""

    name = "x"

    def __init__(self, record: Record) -> None:
        self._record = record

    def hear(self, frame: Body, via: str = "") -> None:
        if "result" in frame:
            self._record.note("own-session", f"somebody was answered in a session of somebody else: {frame}")

    def over(self, reason: str) -> None: ...

    def refuse(self, key: Any) -> None: ...

    def waits_for(self, key: Any) -> bool:
        return False


class WebFront:
    """The HTTP front, with its connections."""

    def __init__(
        self,
        plan: Plan,
        network: Network,
        served: Served,
        record: Record,
        paths: dict[str, Served],
        pages: Pages | None = None,
    ) -> None:
        self._network = network
        self._record = record
        self.draining: list[asyncio.Future[None]] = []

        def serve(transport: Transport, caller: Caller) -> Runner:
            pool, config = paths.get(caller.server, served)
            return pool.proxy(config, transport, caller.principal or None, is_per_request=caller.is_per_request)

        self.principals = {client.principal for client in plan.clients} | {_STRANGER}
        self._issuer = Issuer(plan, network, record) if plan.guard else None
        self._guard = make_guard(plan) if plan.guard else None
        config = config_of(plan, self.principals)
        self.front = HttpFront(serve, dataclasses.replace(config, admission=self._admission()), pages=pages)
        if paths:
            self.front.offer(list(paths))
        tidying = self.front.sessions.tidying.count_connection
        self.site = Site(self.front, self.front.config, self.front.budget, self.front.refusals, tidying)
        network.listen(_ADDRESS, self._accept)

    def _accept(self, end: End, source: Address) -> None:
        StreamTransport(end, ServedConnection(self.site), self._network, source, _ADDRESS).begin()

    def _admission(self) -> Admission:
        return dataclasses.replace(admission_of(self.principals), guard=self._guard)

    def _shown_by(self, plan: ClientPlan) -> str:
        """Give what a client shows just now."""
        if self._issuer is None or plan.shows == "secret":
            return secret_of(plan.principal)
        return "" if plan.shows == "nothing" else self._issuer.token_for(plan)

    def admit(self, client: Client) -> None:
        plan: ClientPlan = client.plan
        listens = plan.manner != "mute"
        secret = secret_of(plan.principal)
        if plan.way == "websocket":
            client.wire = WebSocketWire(self._network, _ADDRESS, client, self._record, self._shown_by(plan))
        elif plan.way == "sse":
            client.wire = SseWire(self._network, _ADDRESS, client, self._record, secret)
        else:
            shown = partial(self._shown_by, plan)
            client.wire = wire = HttpWire(self._network, _ADDRESS, client, self._record, plan.revision, shown, listens)
            wire.path = plan.path

    async def fail(self, fault: Act) -> None:
        """Let somebody in no more, or end in order, as after SIGTERM."""
        match fault["do"]:
            case "revoke":
                self._record.add("proxy", "lets in no more", fault["principal"])
                self.principals.discard(fault["principal"])
                self.front.admit(self._admission())
                asyncio.get_running_loop().call_later(_ENDS_S, self._see_revoked, fault["principal"])
            case "steal":
                self._steal(fault["principal"])
            case "withdraw" if self._issuer is not None:
                self._issuer.withdraw(fault["whom"])
            case "rotate" if self._issuer is not None:
                self._issuer.rotate()
            case "issuer" if self._issuer is not None:
                await self._lose_issuer(self._issuer, fault)
            case "terminate":
                self._record.add("proxy", "ends in order")
                self.draining.append(asyncio.ensure_future(self.front.drain("the world says so")))

    async def _lose_issuer(self, issuer: Issuer, fault: Act) -> None:
        """Let nobody reach the issuer, or have it answer with errors, for a while."""
        self._record.add("issuer", "is away")
        if fault["how"] == "away":
            issuer.stop()
        issuer.is_ill = True
        await asyncio.sleep(fault["for_s"])
        issuer.is_ill = False
        issuer.start()
        self._record.add("issuer", "is back")

    def _see_revoked(self, principal: str) -> None:
        """Nobody has a session whose secret is good no more."""
        left = [one for one in self.front.sessions.all() if one.caller.principal == principal]
        if principal not in self.principals and any(not one.caller.is_per_request for one in left):
            self._record.note("revoked", f"a session of {principal} goes on, who was let in until {_ENDS_S:.0f} s ago")

    def _steal(self, principal: str) -> None:
        """Somebody else asks something in the sessions of a principal."""
        thief = next((one for one in sorted(self.principals) if one != principal), None)
        for session in self.front.sessions.all():
            if thief is not None and session.caller.principal == principal and not session.caller.is_per_request:
                who, shows = _Thief(self._record), secret_of(thief)
                wire = HttpWire(self._network, _ADDRESS, who, self._record, _REVISION, shows, listens=False)
                wire.session, wire.path = session.id, session.caller.server
                wire.opened({})
                wire.say(request("stolen", "ping"))
                asyncio.get_running_loop().call_later(_ENDS_S, wire.close)

    async def close(self) -> None:
        if self._issuer is not None:
            self._issuer.stop()
            told = [text for _, text in self._record.log if any(token in text for token in self._issuer.given)]
            for text in told:
                self._record.note("no-token", f"a token is in the log: {text}")
        if self.draining:
            await asyncio.wait(self.draining)
        await self.front.close("the world is over")
        self._network.stop(_ADDRESS)
        await self.site.close(self.front.config.patience.closing_s)


def make_guard(plan: Plan) -> TokenGuard:
    """Make what looks at tokens, with the clocks of the world."""
    asked = f"{URL}/introspect" if plan.guard["asks"] else ""
    settings = GuardSettings(URL, audiences=(OURS,), introspection=asked)
    return TokenGuard(settings, lambda: time.time(), lambda: time.monotonic())


def admission_of(principals: set[str]) -> Admission:
    """Say who is let in."""
    return Admission(tokens={name: secret_of(name) for name in sorted(principals)} or {"nobody": secret_of("nobody")})


def config_of(plan: Plan, principals: set[str]) -> FrontConfig:
    """Give what the plan decides about the front."""
    options = plan.front_options
    return FrontConfig(
        limits=Limits(**{name: options[name] for name in _LIMITS if name in options}),
        patience=Patience(**{name: options[name] for name in _PATIENCE if name in options}),
        admission=admission_of(principals),
        answers=options.get("answers", "auto"),
        shares_requests=plan.scope == Scope.SHARED.value,
    )
