"""Several instances of the proxy behind a balancer, which gives each request to any of them.

Each is what `dragoman proxy --listen --store` puts together, on a machine of its own: it may be killed, stand still and
come back, or end in order. The store is Redis, as `store_server` makes it up, or a folder, which is a real one. What a
killed instance does, until everything of it is closed, nobody hears.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

from dragoman.core.rules.state import INSTANCE_BYTES, KEY_BYTES, Seal
from dragoman.instances.directory import Directory, Folder
from dragoman.instances.door import read_hop
from dragoman.instances.events import EventLog
from dragoman.instances.relay import InstanceRelay, name_instance
from dragoman.instances.store import Store
from dragoman.pool import UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.transports.base import Transport
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.connection import ServedConnection
from dragoman.transports.http.exchange import RETRY_AFTER, RequestRefused
from dragoman.transports.http.sessions import Caller, Runner
from dragoman.transports.http.site import Site
from tests.world.fronts import admission_of, config_of, secret_of
from tests.world.http_client import Connection, HttpWire
from tests.world.machines import Machine
from tests.world.network import Address, Network, StreamTransport
from tests.world.peers.client import Client
from tests.world.peers.words import chance_of
from tests.world.plan import Act, Plan
from tests.world.record import Record
from tests.world.store_server import STORE, StoreClient, StoreServer
from tests.world.streams import End

_NOTICES_S: Final = 3.0
"""How long it takes the balancer to see that an instance stands still."""

_PRIVATE_PORT: Final = 9400


class Making(Protocol):
    """What makes the parts of an instance."""

    plan: Plan
    network: Network
    record: Record

    def make_pool(self) -> UpstreamPool: ...

    def make_front_config(self) -> ProxyConfig: ...


class _Departed:
    """The folder, for an instance that may have been killed: then it does nothing any more."""

    on_return: Callable[[], Awaitable[None]]
    on_news: Callable[[bytes | str], None]
    on_missed: Callable[[], None]
    fresh_s = 0.0

    def __init__(self, folder: Folder, machine: Machine) -> None:
        self._folder = folder
        self._machine = machine

    def listen(self) -> socket.socket:
        return self._folder.listen()

    async def announce(self) -> None: ...

    async def withdraw(self) -> None:
        if not self._machine.is_gone:
            await self._folder.withdraw()

    async def find(self, name: str) -> str | None:
        await self._look()
        return await self._folder.find(name)

    def forget(self, name: str) -> None:
        if not self._machine.is_gone:
            self._folder.forget(name)

    async def keep(self, key: str, text: str, kept_s: float) -> bool:
        await self._machine.until_it_goes()
        return not self._machine.is_gone and await self._folder.keep(key, text, kept_s)

    async def read(self, key: str) -> str | None:
        await self._look()
        return await self._folder.read(key)

    async def claim(self, key: str, text: str, kept_s: float) -> bool:
        await self._look()
        return await self._folder.claim(key, text, kept_s)

    async def drop(self, key: str) -> None:
        await self._machine.until_it_goes()
        if not self._machine.is_gone:
            await self._folder.drop(key)

    async def tell(self, text: str) -> None: ...

    async def _look(self) -> None:
        await self._machine.until_it_goes()
        if self._machine.is_gone:
            raise RequestRefused(503, "this instance is gone", RETRY_AFTER)


class Instance:
    """One instance, from its start to its end.

    Args:
        making: Makes its parts.
        number: Which of those behind the balancer it is.
        run: Which one at this place, from 1.
        principals: Who is let in.
        where: Where instances find each other: a folder, or Redis.
    """

    def __init__(self, making: Making, number: int, run: int, principals: set[str], where: str | StoreServer) -> None:
        plan = making.plan
        self.name = f"i{number}.{run}"
        self.machine = Machine(self.name, chance_of(plan.seed, self.name, "identity").randbytes(INSTANCE_BYTES))
        self.public: Address = (f"10.1.0.{number + 1}", 8080)
        self.is_ending = False
        self._making = making
        self._network = making.network
        self._where = where
        self._own_name = name_instance(self.machine.identity)
        self._private: Address = (self.public[0], _PRIVATE_PORT + run)
        if isinstance(where, str):
            self._private = f"{where}/{self._own_name}.sock", 0
        self.machine.call(self._make, principals)

    def _make(self, principals: set[str]) -> None:
        making, plan = self._making, self._making.plan
        self.pool = making.make_pool()
        config = making.make_front_config()

        def serve(transport: Transport, caller: Caller) -> Runner:
            return self.pool.proxy(config, transport, caller.principal or None, is_per_request=caller.is_per_request)

        self.front = HttpFront(serve, config_of(plan, principals))
        is_away = not plan.router and all(server.link == "http" for server in plan.servers)
        self._directory: Directory = self._make_directory()
        adopts = is_away or bool(plan.options.get("restarts"))
        events = None
        if plan.events:
            key = chance_of(plan.seed, "key").randbytes(KEY_BYTES)
            seal = Seal((key,), self.machine.identity, b"dragoman events")
            events = EventLog(
                self._directory, seal, lambda count: os.urandom(count), 2 * self.front.config.patience.idle_s
            )
        self.relay = InstanceRelay(self._own_name, self._directory, self.front, lambda: adopts, events)
        self.front.sessions.relay = self.relay
        self._directory.on_return = self.relay.adoption.end_inherited
        front, tidying = self.front, self.front.sessions.tidying.count_connection
        self._site = Site(front, front.config, front.budget, front.refusals, tidying)
        self._relayed = Site(front, front.config, front.budget, front.refusals, read_scope=read_hop)

    def _make_directory(self) -> Directory:
        where = self._where
        if not isinstance(where, str):
            url, is_quick = f"redis://{STORE[0]}:{STORE[1]}", self._making.plan.store == "quick"
            make = (lambda _: StoreClient(where)) if is_quick else None
            return Store(url, self._own_name, self._private[0], self._private[1], make)
        folder = Folder(where, self._own_name)
        self._listener = folder.listen()
        return _Departed(folder, self.machine)

    async def begin(self) -> None:
        """Take requests."""
        self._making.record.add(self.name, "starts")
        self._network.listen(self._private, self._take_handed)
        await self._directory.announce()
        if self.machine.is_gone:
            return
        self.relay.adoption.begin()
        self._network.listen(self.public, self._take)

    def _take(self, end: End, source: Address) -> None:
        StreamTransport(end, ServedConnection(self._site), self._network, source, self.public).begin()

    def _take_handed(self, end: End, source: Address) -> None:
        self._making.record.add(self.name, "is handed a request")
        StreamTransport(end, ServedConnection(self._relayed), self._network, source, self._private).begin()

    async def end(self, drains: bool) -> None:
        """End in order: with what is under way, or at once."""
        self.is_ending = True
        if drains:
            await self.front.drain("the world says so")
        closing_s = self.front.config.patience.closing_s
        if not self.machine.is_gone:
            self._network.stop(self.public)
        await self.front.close("the world is over")
        await self._site.close(closing_s)
        await self.pool.close()
        await self.relay.adoption.end()
        await self._directory.withdraw()
        await self.relay.close()
        if not self.machine.is_gone:
            self._network.stop(self._private)
        await self._relayed.close(closing_s)
        if isinstance(self._where, str):
            self._listener.close()

    def kill(self) -> asyncio.Task[None]:
        """Be gone at once; what is given closes what it had."""
        self._making.record.add(self.name, "is killed")
        for address in (self.public, self._private):
            self._network.stop(address)
        self.machine.die()
        return self.machine.start(self.end(drains=False))


class Balancer:
    """Which instance a request goes to: any that takes connections, and does not stand still for long.

    Args:
        chance: What it is drawn from.
        network: Of the world.
    """

    def __init__(self, chance: Any, network: Network) -> None:
        self.instances: list[Instance] = []
        self.silent: set[Instance] = set()
        self._chance = chance
        self._network = network

    def choose(self) -> Address | None:
        """Give an address."""
        here = [one for one in self.instances if self._network.listens(one.public)]
        ready = [one for one in here if one not in self.silent and not one.is_ending] or here
        return self._chance.choice(ready).public if ready else None


class BalancedWire(HttpWire):
    """A client's way to the instances: each request may go to another one."""

    balancer: Balancer

    def take_connection(self) -> Connection | None:
        """Give a connection to whoever gets the next request."""
        address = self.balancer.choose()
        if address is None:
            return None
        idle = next((one for one in reversed(self.idle) if one.address == address), None)
        if idle is not None:
            self.idle.remove(idle)
            return idle
        return self.connect(address)


class Replicas:
    """The instances, their store, and their balancer.

    Args:
        making: Makes the parts of an instance.
    """

    def __init__(self, making: Making) -> None:
        plan = making.plan
        self._plan = plan
        self._making = making
        self._principals = {client.principal for client in plan.clients}
        self._folder = tempfile.TemporaryDirectory(prefix="w") if plan.store == "folder" else None
        self._store: StoreServer | None = None
        if self._folder is None:
            self._store = StoreServer(making.network, chance_of(plan.seed, "store"), making.record)
        self._where = self._store or str(Path(self._folder.name) / "i")  # type: ignore[union-attr]
        self._balancer = Balancer(chance_of(plan.seed, "balancer"), making.network)
        self._runs = [0] * plan.instances
        self._ends: list[asyncio.Task[None]] = []
        self.everything: list[Any] = []

    async def begin(self) -> None:
        """Start them."""
        for number in range(self._plan.instances):
            await self._start(number)

    async def _start(self, number: int) -> None:
        self._runs[number] += 1
        made = Instance(self._making, number, self._runs[number], self._principals, self._where)
        self.everything += [made.pool, made.relay]
        self._balancer.instances = [one for one in self._balancer.instances if one.public != made.public]
        self._balancer.instances.append(made)
        await made.machine.start(made.begin())

    def admit(self, client: Client) -> None:
        """Give a client its way."""
        plan = client.plan
        listens, secret = plan.manner != "mute", secret_of(plan.principal)
        network, record = self._making.network, self._making.record
        wire = BalancedWire(network, ("", 0), client, record, plan.revision, secret, listens)
        wire.balancer = self._balancer
        client.wire = wire

    async def fail(self, fault: Act) -> None:
        """Let something go wrong."""
        record, store = self._making.record, self._store
        number = fault.get("client", 0) % self._plan.instances
        found = next((one for one in self._balancer.instances if one.public[0] == f"10.1.0.{number + 1}"), None)
        match fault["do"]:
            case "kill" if found is not None and not found.is_ending:
                self._ends.append(found.kill())
                await asyncio.sleep(fault["for_s"])
                await self._start(number)
            case "hang" if found is not None and not found.is_ending:
                record.add(found.name, "stands still")
                found.machine.hold()
                await asyncio.sleep(min(_NOTICES_S, fault["for_s"]))
                self._balancer.silent.add(found)
                await asyncio.sleep(max(0.0, fault["for_s"] - _NOTICES_S))
                self._balancer.silent.discard(found)
                record.add(found.name, "goes on")
                found.machine.go_on()
            case "retire" if found is not None and not found.is_ending:
                record.add(found.name, "is told to end")
                end = found.machine.start(found.end(drains=True))
                self._ends.append(end)
                await asyncio.wait([end])
                await self._start(number)
            case "store" if store is not None:
                store.stop(fault["keeps"])
                await asyncio.sleep(fault["for_s"])
                store.start()
                record.add("redis", "is back")
            case "slow" if store is not None:
                record.add("redis", "is slow")
                store.slow_s = 1.0
                await asyncio.sleep(fault["for_s"])
                store.slow_s = 0.0
            case "save" if store is not None:
                store.save()
            case "silence" if store is not None:
                record.add("redis", "stands still")
                store.machine.hold()
                await asyncio.sleep(fault["for_s"])
                store.machine.go_on()
            case "revoke":
                record.add("proxy", "lets in no more", fault["principal"])
                self._principals.discard(fault["principal"])
                for one in self._balancer.instances:
                    if not one.machine.is_gone:
                        one.machine.call(one.front.admit, admission_of(self._principals))

    async def close(self) -> None:
        """End everything."""
        if self._store is not None:
            self._store.machine.go_on()
            self._store.slow_s = 0.0
        for one in self._balancer.instances:
            one.machine.go_on()
            if not one.is_ending and not one.machine.is_gone:
                self._ends.append(one.machine.start(one.end(drains=False)))
        for end in self._ends:
            await end
        if self._store is not None:
            self._store.stop("nothing")
        if self._folder is not None:
            self._folder.cleanup()
