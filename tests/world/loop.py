"""The event loop of a world: time passes where it would wait, and the network is its own.

Everything that a real loop does is asyncio's; only waiting and sockets are replaced. Callbacks keep the order in which
they were asked for, which asyncio promises and the runtime builds on; what is in no order in life (bytes, timers,
peers) comes in the order that the seed says (`streams`). Why this is no library's: docs/decisions/0060.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

from tests.world.network import Address, Network, StreamTransport
from tests.world.streams import End
from tests.world.system import FIRST_NUMBER, System
from tests.world.tls import start_tls

_MOST_TURNS: Final = 300_000
"""How many turns of the loop one world may take: one that never ends is a finding, too."""

_TURN_S: Final = 1e-6
"""How long a turn of the loop takes: a clock that stands still would be asked without end whether it is time."""


class Stuck(Exception):
    """Somebody waits, and nobody has anything to do; or what is done has no end."""


class _Waiting(selectors.SelectSelector):
    """Lets time pass instead of waiting for it.

    Attributes:
        on_pause: Called before that: everything that could be done at once is done then.
    """

    def __init__(self, system: System) -> None:
        super().__init__()
        self.on_pause: Callable[[], None] | None = None
        self._system = system
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        if self._turns > _MOST_TURNS:
            self._turns = 0  # for what follows, when everything is ended
            raise Stuck(f"{_MOST_TURNS} turns of the loop, and no end")
        if timeout is None:
            raise Stuck("nobody has anything to do, and somebody waits")
        if timeout > _TURN_S and self.on_pause is not None:
            self.on_pause()
        self._system.now_s += max(timeout, 0) + _TURN_S
        return []


class Listening:
    """What asyncio calls a server: somebody who listens.

    Attributes:
        sockets: One, which knows where.
    """

    def __init__(self, network: Network, address: Address) -> None:
        self.sockets = [self]
        self._network = network
        self._address = address

    def getsockname(self) -> Address:
        return self._address

    def close(self) -> None:
        self._network.stop(self._address)


class WorldLoop(asyncio.SelectorEventLoop):
    """An event loop in a world.

    Attributes:
        network: Where connections are made.
        defects: What the loop was told that nobody else has taken: exceptions of callbacks and of tasks.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._timers: list[tuple[asyncio.TimerHandle, str]] = []  # of ours, and what each calls
        self._dialled: dict[Any, tuple[tuple[End, Address], Address]] = {}
        self.network: Network = None  # type: ignore[assignment]  # of the world, which comes next
        self.defects: list[str] = []
        self._waiting = _Waiting(system)
        super().__init__(self._waiting)
        self.set_exception_handler(self._note_defect)

    def at_each_pause(self, looks: Callable[[], None] | None) -> None:
        """Have somebody look each time before time passes."""
        self._waiting.on_pause = looks

    def time(self) -> float:
        return self._system.now_s

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        called = getattr(callback, "func", callback)
        if (getattr(called, "__module__", None) or "").startswith("dragoman."):
            self._timers.append((handle, called.__qualname__))
        return handle

    def timers(self) -> list[str]:
        """Give what the timers of our code call that are still to fire."""
        return [name for handle, name in self._timers if not handle.cancelled() and handle.when() > self.time()]

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        if self._is_ours(fd):
            self.network.kernel.add_watch(fd, "read", callback, args)
        else:
            super().add_reader(fd, callback, *args)

    def remove_reader(self, fd: Any) -> bool:
        return bool(self.network.kernel.remove_watch(fd, "read") if self._is_ours(fd) else super().remove_reader(fd))

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        if self._is_ours(fd):
            self.network.kernel.add_watch(fd, "write", callback, args)
        else:
            super().add_writer(fd, callback, *args)

    def remove_writer(self, fd: Any) -> bool:
        return bool(self.network.kernel.remove_watch(fd, "write") if self._is_ours(fd) else super().remove_writer(fd))

    def _is_ours(self, fd: Any) -> bool:
        return isinstance(fd, int) and fd >= FIRST_NUMBER

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect to somebody in the world; the socket itself is never connected."""
        await self.network.wait_to_dial()
        self._dialled[sock] = self.network.dial((address[0], address[1]), "proxy"), (address[0], address[1])

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Any, host: str = "", port: int = 0, *, sock: Any = None, **more: Any
    ) -> Any:
        """Speak over a socket that was connected so, or connect."""
        if sock is None:
            await self.network.wait_to_dial()
            there = host, port
            end, here = self.network.dial(there, "proxy")
        else:
            (end, here), there = self._dialled.pop(sock)
            sock.close()
        protocol = protocol_factory()
        transport = StreamTransport(end, protocol, self.network, there, here)
        if more.get("ssl") is not None:
            transport.set_protocol(asyncio.Protocol())
            return await start_tls(transport, protocol, more["ssl"], more["server_hostname"]), protocol
        transport.begin()
        return transport, protocol

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Any, host: str, port: int, **more: Any
    ) -> Listening:
        """Listen: for a person who comes back, say.

        Raises:
            OSError: Somebody else does at this port.
        """
        address = host, port or self.network.free_port()
        if self.network.listens(address):
            raise OSError(98, "address already in use")

        def accept(end: End, source: Address) -> None:
            StreamTransport(end, protocol_factory(), self.network, source, address).begin()

        self.network.listen(address, accept)
        return Listening(self.network, address)

    async def create_unix_connection(self, protocol_factory: Any, path: Any = None, **more: Any) -> Any:
        """Connect to a socket in a folder, which is an address without a port here."""
        return await self.create_connection(protocol_factory, str(path))

    def _note_defect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.defects.append(f"{context.get('message')}: {error!r}")
