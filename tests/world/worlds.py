"""Worlds: the real proxy between the peers of a plan, from their first word until everything is gone.

`run_world` runs one and gives what happened, with what the rules say of it. Everything that is ours is real: `pool`,
`router`, `proxy` and what is below them. What a world is made of stands in its plan.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dragoman.config import ServerConfig
from dragoman.core.label import LABEL
from dragoman.core.settings import ServerMemory
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.router import Router
from dragoman.router.router import before_router
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import Kind, UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.world import (
    access,
    arrays,
    askings,
    carriers,
    child_rules,
    dues,
    endings,
    flows,
    guards,
    lasting,
    owed,
    promises,
    replica_rules,
    sharing,
    signins,
    tasks,
    ways_seen,
)
from tests.world.books import Books, watched
from tests.world.children import Children
from tests.world.fronts import Front, LineFront, Served, WebFront, make_pool_config
from tests.world.http_server import HttpServer
from tests.world.known_servers import KnownServer
from tests.world.leftovers import Tables, census, collect
from tests.world.link_servers import LINKED, Process
from tests.world.loan_states import DRAWN, LoanStates, watched_loans
from tests.world.loop import Stuck, WorldLoop
from tests.world.machines import HERE
from tests.world.network import Network, Poll
from tests.world.peers.client import Client
from tests.world.peers.server import Server
from tests.world.peers.words import chance_of
from tests.world.plan import Act, ClientPlan, Plan, ServerPlan
from tests.world.record import Record
from tests.world.replicas import Replicas
from tests.world.rules import Finding, Talk, judge
from tests.world.signin_servers import SigningIn
from tests.world.situations import Step, marks_of, steps_counted
from tests.world.system import System, installed
from tests.world.tls import TlsDoor, certificates
from tests.world.transports import LineTransport
from tests.world.wires import LineWire

PATIENCE_S: Final = 2_000.0
"""How long a client waits, after all it does, for what is still to come, on the clock of the world."""

_END_S: Final = 500.0
"""How long everything of ours may take to end when all clients have left."""

_QUIET_S: Final = 45.0
"""How long after that a server that is shared may have rows for what is on its way; it is closed after a minute."""

_IDLE_S: Final = 2_200.0
"""The same where a session may have to end by itself: whose token has ended cannot say goodbye."""

_LAST_TIMERS_S: Final = 15.0
"""How long a timer may be left that does nothing any more."""


RULE_BOOKS: Final = (
    carriers,
    child_rules,
    owed,
    lasting,
    promises,
    askings,
    endings,
    flows,
    dues,
    sharing,
    replica_rules,
    ways_seen,
    access,
    tasks,
    guards,
    arrays,
    signins,
)
"""Modules of rules beside `rules`; they are among `RULES` when they have been imported."""


@dataclass(frozen=True)
class Outcome:
    """How a world went.

    Attributes:
        plan: What it was made of.
        record: What happened.
        findings: Which rules were broken, and how.
        marks: Which situations it was in, of those that must come up.
        steps: How often which event came in which state of an edge; which steps a lent request took.
    """

    plan: Plan
    record: Record
    findings: list[Finding]
    marks: list[str]
    steps: Counter[Step]


class World:
    """One world while it runs."""

    def __init__(self, plan: Plan, system: System, loop: WorldLoop) -> None:
        self.plan = plan
        self.record = Record(system)
        self.clients: list[Client] = []
        self.servers: dict[str, list[Server]] = {server.name: [] for server in plan.servers}
        self.runners: list[Any] = []
        self.pools: list[UpstreamPool] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._system = system
        self._loop = loop
        self.network = Network(plan.network, chance_of(plan.seed, "network"), self.record.turns)
        system.make_poll = lambda: Poll(self.network)
        loop.network = self.network
        self.processes: dict[str, Process] = {}
        self._doors: list[TlsDoor] = []
        self.front: Front | None = None
        self.signing_in = SigningIn(plan, self.network, self.record) if plan.signin else None
        for number, server in enumerate(plan.servers):
            if self.signing_in is not None:
                place, runs = self.signing_in.place(number), self.servers[server.name]
                made = self.signing_in.serve(server.name, self.network, place, server, plan.seed, self.record, runs)
                self.processes[server.name] = made
            elif server.link != "lines":
                address = f"10.0.0.{number + 1}", 80
                runs = self.servers[server.name]
                if server.tls:
                    self._doors.append(TlsDoor(self.network, (address[0], 443), address))
                make = LINKED.get(server.link, HttpServer)
                self.processes[server.name] = make(self.network, address, server, plan.seed, self.record, runs)
        self.children: Children | None = None
        if plan.children:
            self.children = Children(plan, self.network, self.record, loop, self.servers)
            system.kernel = self.children.kernel
        self._known: dict[tuple[str, int], KnownServer] = {}
        self.router: Router | None = None
        self.gate: access.Gate | None = None

    # The servers

    def open_server(self, plan: ServerPlan) -> Callable[[], Transport]:
        """Give what opens a connection to another run of a server."""
        if self.signing_in is not None:
            return self.signing_in.opens(plan.name)
        if plan.link != "lines":
            where = f"//10.0.0.{self.plan.servers.index(plan) + 1}/mcp"
            kind = Kind.SSE if plan.link == "sse" else Kind.STREAMABLE_HTTP
            scheme = f"{'ws' if plan.link == 'websocket' else 'http'}{'s' * plan.tls}:"
            trusted = str(certificates() / "ca.pem") if plan.tls else None
            config = UpstreamConfig(scheme + where, kind=kind, proxy="none", name=plan.name, ca_file=trusted)
            return lambda: open_upstream(config)
        if self.children is not None:
            return self.children.opener(plan.name)

        def opens() -> Transport:
            here = HERE.get()
            if here is not None and here.is_gone:
                return LineTransport(self.network.pair("nobody", "proxy")[1], is_child=True)
            runs = self.servers[plan.name]
            run = Server(plan, len(runs) + 1, self.plan.seed, self.record)
            runs.append(run)
            self.record.add(run.name, "opens")
            theirs, ours = self.network.pair(run.name, "proxy")
            run.wire = LineWire(theirs, run, self.record, plan.arrays)
            return LineTransport(ours, is_child=True)

        return opens

    def open_member(self, plan: ServerPlan, server: ServerConfig) -> Callable[[], Transport]:
        """The same, for a server behind a router."""
        if self.children is not None and plan.link == "lines":
            return self.children.opener_behind_router(server)
        return self.open_server(plan)

    def know(self, server: ServerPlan | ServerConfig, hop: int = 0) -> ServerMemory:
        """Give what is remembered of a server; for a proxy, another one in front of it is another server."""
        return self._known.setdefault((server.name, hop), KnownServer())

    # The proxy

    def make_pool(self) -> UpstreamPool:
        """Put together what is between clients and servers."""
        config = self.make_config()
        by_name = {server.name: server for server in self.plan.servers}
        connect_upstream = self.open_server(self.plan.servers[0])
        if self.plan.router:
            configuration = access.configure(list(by_name), self.plan.access.get("rules"))
            self.router = Router(configuration, config, lambda one: self.open_member(by_name[one.name], one), self.know)
            connect_upstream = self.router.connect
        for hop in range(1, self.plan.hops):
            connect_upstream = self._behind(connect_upstream, hop)
        return UpstreamPool(Scope(self.plan.scope), connect_upstream, make_pool_config(self.plan))

    def make_config(self, hop: int = 0) -> ProxyConfig:
        known = None if self.plan.router else self.know(self.plan.servers[0], hop)
        key = chance_of(self.plan.seed, "key").randbytes(32)
        here = HERE.get()
        keys = key if here is None else (key, hashlib.sha256(here.identity).digest())  # what is made of it is its own
        options = {**self.plan.options, **self.plan.inner} if hop else self.plan.options
        return ProxyConfig(**options, known=known, state_key=keys)

    def make_front_config(self) -> ProxyConfig:
        """Give what is decided about the proxies of sessions."""
        config = self.make_config()
        if self.plan.access:
            self.gate = access.Gate(self.plan, self.router)
            config = self.gate.guard(config)
        return before_router(config) if self.plan.router else config

    def _behind(self, connect_upstream: Callable[[], Transport], hop: int) -> Callable[[], Transport]:
        """Give what opens a connection to another proxy, which stands before the server."""
        config = self.make_config(hop)

        def opens() -> Transport:
            theirs, ours = self.network.pair("proxy 2", "proxy")
            self.tasks.append(asyncio.ensure_future(Proxy(config, LineTransport(theirs), connect_upstream).run()))
            return LineTransport(ours, is_child=True)

        return opens

    # From the beginning to the end

    async def run(self) -> None:
        """Let everything happen."""
        faults = [asyncio.ensure_future(self._fail(fault)) for fault in self.plan.faults]
        if self.plan.instances > 1:
            self.front = replicas = Replicas(self)
            await replicas.begin()
            tables = Tables(replicas.everything)
        else:
            pool = self.make_pool()
            tables = Tables(pool)
            self.pools.append(pool)
            self.front = self._open_front(pool, self.make_front_config())
        await asyncio.gather(*(self._live(client, self.front) for client in self.plan.clients))
        for fault in faults:
            fault.cancel()
        await self._end(tables)

    def _open_front(self, pool: UpstreamPool, config: ProxyConfig) -> Front:
        if self.plan.front == "http":
            paths = {
                server.name: self._serve_path(server) for server in self.plan.servers if self.plan.guard.get("paths")
            }
            pages = None if self.signing_in is None else self.signing_in.invitations
            return WebFront(self.plan, self.network, (pool, config), self.record, paths, pages)
        open_streams = LineTransport if self.children is None else self.children.standard_streams
        return LineFront(self.network, pool, config, self.record, self._start, open_streams)

    def _serve_path(self, server: ServerPlan) -> Served:
        """Give what serves the path of a server: a router of it alone, with a pool of its own."""
        configuration = access.configure([server.name], None, is_alone=True)
        router = Router(configuration, self.make_config(), lambda one: self.open_server(server), self.know)
        pool = UpstreamPool(Scope(self.plan.scope), router.connect, make_pool_config(self.plan))
        self.pools.append(pool)
        return pool, before_router(self.make_config())

    def _start(self, runner: Any) -> None:
        self.runners.append(runner)
        self.tasks.append(asyncio.ensure_future(runner.run()))

    async def _live(self, plan: ClientPlan, front: Front) -> None:
        """Let a client come, do everything, and leave."""
        if plan.begins_s:
            await asyncio.sleep(plan.begins_s)
        client = Client(plan, self.plan.seed, self.record)
        self.clients.append(client)
        if self.signing_in is not None and self.signing_in.far is not None:
            client.visit = partial(self.signing_in.far.open, plan)
        front.admit(client)
        await client.live(PATIENCE_S)

    async def _end(self, tables: Tables) -> None:
        """See everything end, and what is left."""
        _, left = await asyncio.wait(self.tasks, timeout=_END_S) if self.tasks else (set(), set())
        for _ in left:
            self.record.note("ends", "a session has not ended though its client has left")
        await asyncio.sleep(_IDLE_S if self.plan.guard else _QUIET_S)
        self.record.left_over = tables.left_over()
        assert self.front is not None
        await asyncio.wait_for(self.front.close(), _END_S)
        for pool in self.pools:
            await asyncio.wait_for(pool.close(), _END_S)
        if self.signing_in is not None:
            await self.signing_in.close()
        for door in self._doors:
            door.close()
        if self.children is not None:
            self.children.close()
        for runs in self.servers.values():
            for run in runs:
                run.stop()
        for task in self.tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                self.record.note("no-defect", f"a session ended with {task.exception()!r}")
        await asyncio.sleep(_LAST_TIMERS_S)
        if self.children is not None:
            self.children.note_left()

    async def _fail(self, fault: Act) -> None:
        await asyncio.sleep(fault["at"])
        match fault["do"]:
            case "die":
                await self._kill(fault["whom"], fault.get("for_s", 0.0))
            case "silence" if self.servers.get(fault.get("whom", "")):
                self.servers[fault["whom"]][-1].fall_silent()
            case "forget" if fault["whom"] in self.processes:
                self.processes[fault["whom"]].forget()
            case "stop" | "drain":
                number = fault["client"] % max(1, len(self.runners))
                if self.runners:  # in the order in which clients came
                    self.record.add(self.clients[number].name, f"is told to {fault['do']}")
                    getattr(self.runners[number], fault["do"])("the world says so")
            case "sign-in" if self.signing_in is not None:
                await self.signing_in.fail(fault)
            case "reload" if self.gate is not None:
                self.record.add("proxy", "is read again", fault.get("servers"))
                self.gate.reload(fault)
            case "clock":
                self.record.add("clock", f"jumps by {fault['by_s']} s")
                self._system.wall_s += fault["by_s"]
            case _ if self.front is not None:
                await self.front.fail(fault)

    async def _kill(self, whom: str, for_s: float) -> None:
        """Let a server die; a process that listens is started again after a while."""
        process, runs = self.processes.get(whom), self.servers.get(whom)
        if process is not None:
            process.die()
            await asyncio.sleep(for_s)
            process.start()
        elif runs:
            runs[-1].die()
            if self.children is not None and for_s:
                self.children.missing.add(whom)
                await asyncio.sleep(for_s)
                self.children.missing.discard(whom)


class _Log(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, record: Record) -> None:
        super().__init__(logging.INFO)
        self._record = record

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "dragoman.child":
            self._record.words.append((LABEL.get(), record.getMessage()))
        else:
            self._record.log.append((record.levelname, record.getMessage()))


def run_world(plan: Plan) -> Outcome:
    """Run a world, and hold what happened against the rules."""
    with installed(System(f"{plan.cell} {plan.seed}")) as system:
        collect()
        before = census()
        with steps_counted() as steps, watched() as books, watched_loans() as loans:
            record = _run(plan, system, books, loans)
        access.forget()
        collect()
        steps.update((kind, *step) for kind, taken in loans.taken.items() for step in taken & DRAWN[kind])
        record.notes += [("loan-states", text) for text in loans.undrawn()]
        record.notes += [("nothing-left", f"{count} x {kind}") for kind, count in sorted((census() - before).items())]
    talk = Talk(record)
    return Outcome(plan, record, judge(plan, talk), marks_of(plan, talk), steps)


def _run(plan: Plan, system: System, books: Books, loans: LoanStates) -> Record:
    loop = WorldLoop(system)
    world = World(plan, system, loop)
    record = world.record

    def look() -> None:
        record.notes.extend(books.look(system.now_s))
        loans.look()

    loop.at_each_pause(look)
    handler = _Log(record)
    loggers = [logging.getLogger(name) for name in ("dragoman", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.INFO)
            logger.propagate = False
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(world.run())
                left = asyncio.all_tasks(loop)
                record.notes += [("nothing-left", f"a task: {_name(task)}") for task in left]
                record.notes += [("nothing-left", f"a timer: {name}") for name in loop.timers()]
        except (Stuck, TimeoutError) as error:
            record.note("ends", str(error) or "it does not end")
        record.notes += [("no-defect", text) for text in loop.defects]
    finally:
        loop.at_each_pause(None)
        system.forget()
        for logger, level, propagate in before:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
    return record


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", repr(task))
