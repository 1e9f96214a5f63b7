"""The network of a world: who listens where, connections to them, and asyncio's transports over those.

The loop of a world asks here where a real one asks the system (`loop`): to connect, and whether a connection that is
not read has ended (`select.poll`).
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import random
import select
from collections.abc import Callable, Iterable
from typing import Any

from tests.world.machines import HERE
from tests.world.streams import RESET, End, Manner, Turns, connect
from tests.world.system import FIRST_NUMBER

Address = tuple[str, int]
Accept = Callable[[End, Address], None]
"""Takes a connection, and the address that it comes from."""


class Socket:
    """What stands in for the socket of a connection, for whoever asks the system about it."""

    def __init__(self, number: int, end: End) -> None:
        self._number = number
        self.end = end

    def fileno(self) -> int:
        return self._number

    def setsockopt(self, *args: Any) -> None: ...


class Network:
    """Who listens where.

    Args:
        manner: How connections behave.
        chance: What that is drawn from.
        turns: Counts what happens.
    """

    def __init__(self, manner: Manner, chance: random.Random, turns: Turns) -> None:
        self.manner = manner
        self.sockets: dict[int, Socket] = {}
        self.kernel: Any = None  # whose descriptors have numbers from here, too
        self.chance = chance
        self._turns = turns
        self._listeners: dict[Address, tuple[Accept, contextvars.Context]] = {}
        self._numbers = itertools.count(FIRST_NUMBER)
        self._ports = itertools.count(40_000)

    def listen(self, address: Address, accept: Accept) -> None:
        """Take connections at an address, on the machine on which this is called."""
        self._listeners[address] = accept, contextvars.copy_context()

    def next_number(self) -> int:
        """Give the number of another descriptor."""
        return next(self._numbers)

    def free_port(self) -> int:
        """Give a port at which nobody has listened yet."""
        return next(self._ports)

    def stop(self, address: Address) -> None:
        """Take no more; those that are open stay."""
        self._listeners.pop(address, None)

    def listens(self, address: Address) -> bool:
        """Whether anybody does at an address."""
        return address in self._listeners

    def pair(self, one: str, other: str, manner: Manner | None = None) -> tuple[End, End]:
        """Make a connection that nobody has to listen for; it behaves as all do, or otherwise."""
        ends = connect((one, other), manner or self.manner, self.chance, self._turns)
        here = HERE.get()
        if here is not None:
            here.own(ends[1])
            if here.is_gone:
                ends[1].cut()
        return ends

    async def wait_to_dial(self) -> None:
        """Wait for as long as it takes to connect from here."""
        here = HERE.get()
        if here is not None:
            await here.until_it_goes()
        if self.chance.random() < self.manner.late:
            await asyncio.sleep(self.chance.uniform(0, min(self.manner.late_s, 1.0)))

    def dial(self, address: Address, name: str, manner: Manner | None = None) -> tuple[End, Address]:
        """Connect to an address; give our end, and the address that the other end sees.

        Raises:
            ConnectionRefusedError: Nobody listens there.
        """
        listener = self._listeners.get(address)
        here = HERE.get()
        if listener is None or (here is not None and here.is_gone):
            raise ConnectionRefusedError(111, "connection refused")
        accept, context = listener
        theirs, ours = self.pair(f"{address[0]}:{address[1]}", name, manner)
        there = context.get(HERE)
        if there is not None:
            there.own(theirs)
        source = "10.0.0.9", next(self._ports)
        context.copy().run(accept, theirs, source)
        return ours, source

    def socket_of(self, end: End) -> Socket:
        """Give what stands in for the socket of an end."""
        number = next(self._numbers)
        made = self.sockets[number] = Socket(number, end)
        return made


class Poll:
    """What `select.poll` gives, for descriptors of a world."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._asked: list[tuple[int, int]] = []

    def register(self, fd: int, events: int) -> None:
        self._asked.append((fd, events))

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        found = [(fd, self._state(fd) & (events | select.POLLHUP)) for fd, events in self._asked]
        return [(fd, state) for fd, state in found if state]

    def _state(self, fd: int) -> int:
        if fd not in self._network.sockets:
            opened = self._network.kernel.opened(fd)
            return (select.POLLHUP if opened.is_hung_up else 0) | (select.POLLIN if opened.is_ready else 0)
        hears = self._network.sockets[fd].end.hears
        if hears.is_dropped:
            return select.POLLHUP
        goodbye = getattr(select, "POLLRDHUP", 0) if hears.is_ended else 0
        return (select.POLLIN if hears.waiting or hears.is_ended else 0) | goodbye


class StreamTransport(asyncio.Transport):
    """What asyncio gives a protocol, over an end of a connection of the world.

    Args:
        end: Of the connection.
        protocol: Who reads it.
        network: Where the end is known by a number.
        peer: The address of the other end.
        here: Our own.
    """

    def __init__(
        self, end: End, protocol: asyncio.BaseProtocol, network: Network, peer: Address, here: Address
    ) -> None:
        self._made = network.socket_of(end)
        super().__init__({"peername": peer, "sockname": here, "socket": self._made})
        self._end = end
        self._network = network
        self._protocol: Any = protocol
        self._loop = asyncio.get_running_loop()
        self._is_closing = self._is_lost = self._is_full = self._is_reading = False

    def begin(self) -> None:
        """Tell the protocol, and begin to read."""
        self._protocol.connection_made(self)
        self._is_reading = True
        self._end.start(self)

    # What protocols call

    _start_tls_compatible = True  # asyncio asks this of transports that are not its own

    def get_protocol(self) -> asyncio.BaseProtocol:
        found: asyncio.BaseProtocol = self._protocol
        return found

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False
        self._end.hears.pause(True)

    def resume_reading(self) -> None:
        if not self._is_closing:
            self._is_reading = True
            self._end.hears.pause(False)

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._end.write(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(bytes(data) for data in list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._end.end()

    def get_write_buffer_size(self) -> int:
        return self._end.says.waiting if self._is_full else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._end.hears.pause(True)
            if not self._is_full:
                self._loop.call_soon(self._lose, None)

    def _force_close(self, error: BaseException | None) -> None:
        """What asyncio's TLS calls when it is broken off."""
        self.abort()

    def abort(self) -> None:
        self._is_closing = True
        if not self._is_lost:
            self._end.cut()
            self._loop.call_soon(self._lose, None)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        self._end.close()
        self._network.sockets.pop(self._made.fileno(), None)
        self._protocol.connection_lost(error)

    # What the connection tells

    def data_received(self, data: bytes) -> None:
        while data and not self._is_closing:
            if not isinstance(self._protocol, asyncio.BufferedProtocol):
                self._protocol.data_received(data)
                return
            room: Any = self._protocol.get_buffer(len(data))
            count = min(len(room), len(data))
            room[:count], data = data[:count], data[count:]
            self._protocol.buffer_updated(count)

    def ended(self, reason: str) -> None:
        if reason == RESET:
            self._lose(ConnectionResetError(104, "connection reset by peer"))
        elif not self._is_closing and not self._protocol.eof_received():
            self.close()

    def broken(self, reason: str) -> None:
        self._lose(BrokenPipeError(32, "broken pipe"))

    def pause_writing(self) -> None:
        self._is_full = True
        if not self._is_lost:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        if self._is_closing:
            self._lose(None)
        else:
            self._protocol.resume_writing()
