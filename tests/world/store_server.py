"""The store of a world's instances: a server that speaks as Redis does, and is slow, away, and forgets.

It takes the commands that `dragoman.instances.store` sends, and those with which its library opens a connection. What
is kept is gone when its time is over. It may be started again: with everything, with nothing, or with what it had some
time before, as one that writes to its disk now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from typing import Final

from tests.world.machines import HERE, Machine
from tests.world.network import Address, Network
from tests.world.record import Record
from tests.world.streams import RESET, End

with contextlib.suppress(ImportError):  # the library of Redis does so at its first connection, and it draws numbers
    import opentelemetry.metrics
    import opentelemetry.trace  # noqa: F401

_NOTHING: Final = b"_\r\n"

STORE: Final[Address] = ("10.2.0.1", 6379)


class StoreServer:
    """The store.

    Args:
        network: Of the world.
        chance: What its slowness is drawn from.
        record: Where it is noted what becomes of it.
    """

    def __init__(self, network: Network, chance: random.Random, record: Record) -> None:
        self.machine = Machine("redis")
        self.slow_s = 0.0
        self.record = record
        self._network = network
        self._chance = chance
        self._kept: dict[bytes, tuple[bytes, float]] = {}
        self._on_disk: dict[bytes, tuple[bytes, float]] = {}
        self._open: dict[StoreConnection, None] = {}  # in their order
        self.start()

    def start(self) -> None:
        """Listen."""
        self.machine.call(self._network.listen, STORE, self._take)

    def _take(self, end: End, source: Address) -> None:
        self._open[StoreConnection(self, end)] = None

    def stop(self, keeps: str) -> None:
        """Be away until it is started again; what it has then is `all`, `nothing`, or what it had `before`."""
        self.record.add("redis", "is away", f"keeps {keeps}")
        self._network.stop(STORE)
        for connection in list(self._open):
            connection.end.cut()
        self._open.clear()
        if keeps != "all":
            self._kept = dict(self._on_disk) if keeps == "before" else {}

    def save(self) -> None:
        """Write everything to the disk."""
        self._on_disk = dict(self._kept)

    async def ask(self, *words: object) -> bytes | None:
        """Do a command for a machine that speaks to the store without bytes; its answer may come late, or never."""
        here = HERE.get()
        assert here is not None
        await here.until_it_goes()
        if here.is_gone or not self._network.listens(STORE):
            raise ConnectionError("nobody is there")
        await self.machine.until_it_goes()
        answer = self.serve([str(word).encode() for word in words])
        await asyncio.sleep(self.delay())
        await here.until_it_goes()
        if here.is_gone:
            raise ConnectionError("nobody is there")
        return None if answer == _NOTHING else answer.split(b"\r\n")[1] if answer[:1] == b"$" else answer

    def lose(self, connection: StoreConnection) -> None:
        """A connection has ended."""
        self._open.pop(connection, None)

    def delay(self) -> float:
        """Say how long the next answer takes, in seconds."""
        return self._chance.choice((0.0, 0.3, 0.7, 1.5)) if self.slow_s else 0.0

    def serve(self, words: list[bytes]) -> bytes:
        """Do a command, and give the answer to it."""
        match [words[0].upper(), *words[1:]]:
            case [b"GET", key]:
                return _text(self._find(key))
            case [b"SET", key, value, *options]:
                return self._set(key, value, [option.upper() for option in options])
            case [b"DEL", key]:
                return b":%d\r\n" % (self._kept.pop(key, None) is not None)
            case [b"HELLO", *_]:
                return b"%1\r\n$5\r\nproto\r\n:3\r\n"
        return b"+OK\r\n"

    def _find(self, key: bytes) -> bytes | None:
        value, until = self._kept.get(key, (b"", 0.0))
        return value if until > asyncio.get_running_loop().time() else None

    def _set(self, key: bytes, value: bytes, options: list[bytes]) -> bytes:
        before = self._find(key)
        kept_s = int(options[options.index(b"EX") + 1]) if b"EX" in options else math.inf
        if b"NX" in options and before is not None:
            return _NOTHING
        self._kept[key] = value, asyncio.get_running_loop().time() + kept_s
        return _text(before) if b"GET" in options else b"+OK\r\n"


def _text(value: bytes | None) -> bytes:
    return _NOTHING if value is None else b"$%d\r\n%b\r\n" % (len(value), value)


class StoreClient:
    """What a machine has of the store without the library that speaks to Redis, which takes its time.

    Args:
        store: It.
    """

    def __init__(self, store: StoreServer) -> None:
        self._store = store

    async def get(self, key: str) -> bytes | None:
        return await self._store.ask("GET", key)

    async def set(
        self, key: str, value: str, ex: int | None = None, nx: bool = False, get: bool = False
    ) -> bytes | None:
        options = [*([] if ex is None else ["EX", ex]), *(["NX"] if nx else []), *(["GET"] if get else [])]
        return await self._store.ask("SET", key, value, *options)

    async def delete(self, key: str) -> bytes | None:
        return await self._store.ask("DEL", key)

    async def aclose(self) -> None: ...


class StoreConnection:
    """One connection: commands are done as they come, and answered in their order."""

    def __init__(self, store: StoreServer, end: End) -> None:
        self.end = end
        self._store = store
        self._rest = b""
        self._free_at = 0.0
        end.start(self)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (words := self._take()) is not None:
            answer, loop = self._store.serve(words), asyncio.get_running_loop()
            self._free_at = max(self._free_at, loop.time() + self._store.delay())
            loop.call_at(self._free_at, self.end.write, answer)

    def _take(self) -> list[bytes] | None:
        """Take a command, if it has come as a whole: an array of texts."""
        at = 0

        def number(sign: bytes) -> int | None:
            nonlocal at
            end = self._rest.find(b"\r\n", at)
            if end < 0:
                return None
            assert self._rest[at : at + 1] == sign
            found, at = int(self._rest[at + 1 : end]), end + 2
            return found

        count = number(b"*")
        if count is None:
            return None
        words = []
        for _ in range(count):
            length = number(b"$")
            if length is None or len(self._rest) < at + length + 2:
                return None
            words.append(self._rest[at : at + length])
            at += length + 2
        self._rest = self._rest[at:]
        return words

    def ended(self, reason: str) -> None:
        if reason != RESET:
            self.end.close()
        self._store.lose(self)

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
