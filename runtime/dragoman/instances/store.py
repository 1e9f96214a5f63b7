"""Where the instances of several machines are: Redis or Valkey, in which each says so every few seconds.

Lives here: commands of Redis 7.0 and Valkey 7.2, and what holds while the store is away. Must not: be on the way of a
call of one's own: only a request for what another instance has looks here. Needs the extra `redis`.

A command that has been sent is waited for, whatever becomes of the request that wanted it: one that was given up would
leave its answer on the connection, for the next command to take for its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dragoman.transports.http.exchange import RETRY_AFTER, RequestRefused
from dragoman.transports.http.serve import Address, bind

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")

logger = logging.getLogger("dragoman.http")

_PREFIX: Final = "dragoman:"
_KEY: Final = "dragoman:instance:"
_TOLD: Final = "dragoman:news"
_BEGAN: Final = "dragoman:began"
_YOUNG: Final = "dragoman:young"
"""There for as long as not everybody may have said that it is present, in a store that knows nothing from before."""

_PRESENT_S: Final = 10
"""How long an instance counts as present after it said so."""

_GONE: Final = ""
"""What an instance leaves that has ended: it is not to be waited for."""

_BEAT_S: Final = 3.0
_LOOKS: Final = 2
"""How many beats in a row look for heirs, after one at which nobody could find this instance: while it came back,
somebody may have taken it for gone."""

_PATIENCE_S: Final = 0.5
"""How long a request waits for the store."""

_LOOKS_A_COMMAND: Final = 10
"""In how many parts: a process that was kept from running for that long has the answer, and has not read it yet."""

_GLITCH_S: Final = _PRESENT_S - 2 * _BEAT_S - _PATIENCE_S
"""How long nothing may be heard of the store before somebody who is present may be missing in it: who said so a beat
before that says so again a beat, and a try, after it."""

_FRESH_S: Final = 1.0
_KEPT_S: Final = 60.0
"""How long what was found is good enough while the store is away."""

_MOST_KEPT: Final = 1024
_CONNECTIONS: Final = 16
"""How many there are to the store: many sessions that begin at once would each open one."""


class Store:
    """Instances that say in Redis where they are.

    Args:
        url: `redis://…`, `rediss://…` or `unix://…`; what is behind it belongs to the instances alone, or has no keys
            that begin with `dragoman:`.
        name: This instance.
        host: Where the others reach this one: a name or an address.
        port: And its port; 0 picks a free one.
        make: Makes the client of the store.

    Attributes:
        on_return: Called when nobody could find this instance for a while, and everybody can again.
    """

    fresh_s = _FRESH_S

    def __init__(self, url: str, name: str, host: str, port: int, make: Any = None) -> None:
        self._url = url
        self._name = name
        self._host, self._port = host, port
        self._make = make or _connect
        self._redis: Redis
        self._beats: asyncio.Task[None] | None = None
        self._commands: set[asyncio.Future[Any]] = set()
        self._found: dict[str, tuple[float, str | None]] = {}
        self._is_away = self._is_withdrawn = False
        self._back_at = self._said_at = self._heard_at = -_PRESENT_S * 1.0
        self._looks = 0
        self._looking: asyncio.Future[None] | None = None
        self._has_missed = False
        self._news: asyncio.Task[None] | None = None
        self.on_return: Callable[[], Awaitable[None]] = _nothing
        self.on_news: Callable[[bytes | str], None] = _ignore
        self.on_missed: Callable[[], None] = lambda: None

    def listen(self) -> socket.socket:
        """Open the port of this instance.

        Raises:
            TransportClosed: It is taken, or not ours.
        """
        listener = bind(Address(self._host, self._port))
        self._port = listener.getsockname()[1]
        return listener

    async def announce(self) -> None:
        """Say where this instance is, now and every few seconds."""
        self._redis = self._make(self._url)
        await self._say_present()
        if self._is_withdrawn:  # meanwhile
            return
        self._beats = asyncio.create_task(self._beat())
        if self.on_news is not _ignore:
            self._news = asyncio.create_task(self._listen())

    async def withdraw(self) -> None:
        """Say that this instance is gone."""
        self._is_withdrawn = True
        if self._news is not None:
            self._news.cancel()  # its connection is its own, and is closed
            await asyncio.wait([self._news])
        if self._beats is not None:
            self._beats.cancel()
            if self._looking is not None:
                self._looking.cancel()
            with contextlib.suppress(Exception):
                await self._command(self._redis.set(_KEY + self._name, _GONE, ex=_PRESENT_S))
            if self._commands:
                await asyncio.wait(self._commands, timeout=_PATIENCE_S)
            with contextlib.suppress(Exception):
                await self._redis.aclose()

    async def find(self, name: str) -> str | None:
        """Return where an instance is.

        Raises:
            RequestRefused: 503, where the store does not answer, or may not have heard of everybody yet, and did not
                say so before.
        """
        now = time.monotonic()
        at, found = self._found.get(name, (-_KEPT_S, None))
        if now - at < _FRESH_S:
            return found
        try:
            said = _text(await self._ask(self._redis.get(_KEY + name)))
            if said is None:
                await self._be_sure()
            found = said or None
        except RequestRefused:
            if found is not None and now - at < _KEPT_S:
                return found
            raise
        self._found.pop(name, None)
        self._found[name] = now, found
        if len(self._found) > _MOST_KEPT:
            del self._found[next(iter(self._found))]
        return found

    def forget(self, name: str) -> None:
        """Take note that nobody is where an instance was; if it comes back, it says so."""
        self._found[name] = time.monotonic(), None

    async def keep(self, key: str, text: str, kept_s: float) -> bool:
        """Keep a text, if the store answers."""
        try:
            await self._ask(self._redis.set(_PREFIX + key, text, ex=math.ceil(kept_s)))
        except RequestRefused:
            return False
        return True

    async def read(self, key: str) -> str | None:
        """Return a text that is kept."""
        return _text(await self._ask(self._redis.get(_PREFIX + key)))

    async def claim(self, key: str, text: str, kept_s: float) -> bool:
        """Keep a text where nothing is kept."""
        return bool(await self._ask(self._redis.set(_PREFIX + key, text, ex=math.ceil(kept_s), nx=True)))

    async def drop(self, key: str) -> None:
        """Keep something no longer."""
        with contextlib.suppress(RequestRefused):
            await self._ask(self._redis.delete(_PREFIX + key))

    async def tell(self, text: str) -> None:
        """Tell those that listen now."""
        with contextlib.suppress(Exception):
            await self._command(self._redis.publish(_TOLD, f"{self._name} {text}"))

    async def _listen(self) -> None:
        """Hear what others tell, over a connection that is opened again when it breaks."""
        while True:
            with contextlib.suppress(Exception):  # that the store is away is said by others
                async with self._redis.pubsub() as heard:
                    await heard.subscribe(_TOLD)
                    await self._hear(heard)
            await asyncio.sleep(_BEAT_S)
            self._has_missed = True

    async def _hear(self, heard: Any) -> None:
        heard_at = time.monotonic()
        while time.monotonic() - heard_at < _PRESENT_S:
            message = await heard.get_message(timeout=_BEAT_S)
            if message is None:
                await heard.ping()
                continue
            heard_at = time.monotonic()
            if self._has_missed:  # and from now on misses nothing
                self._has_missed = False
                self.on_missed()
            said = _text(message["data"]) if message["type"] == "message" else None
            teller, _, text = (said or "").partition(" ")
            if text and teller != self._name:
                self.on_news(text)

    async def _ask(self, command: Awaitable[T]) -> T:
        """Wait for the answer to a command of a request.

        Raises:
            RequestRefused: 503: there is none.
        """
        try:
            answer = await self._command(command)
        except Exception as error:  # whatever its client calls it
            self._tell_away(error)
            raise _unknown() from None
        self._tell_back()
        return answer

    async def _be_sure(self) -> None:
        """See that whoever is not in the store is gone, and has not only had no time yet to say that it is there.

        Raises:
            RequestRefused: 503: the store has lost what it knew, or could not be reached, a moment ago.
        """
        began = await self._ask(self._redis.get(_BEGAN))  # the other one is written before this one
        is_young = began is None or await self._ask(self._redis.get(_YOUNG)) is not None
        if is_young or time.monotonic() - self._back_at < 2 * _BEAT_S:
            raise _unknown()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            await self._say_present()

    async def _say_present(self) -> None:
        where = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        said_at = time.monotonic()
        try:
            said = await self._command(self._redis.set(_KEY + self._name, where, ex=_PRESENT_S, get=True))
            if await self._command(self._redis.get(_BEGAN)) is None:
                await self._command(self._redis.set(_YOUNG, self._name, ex=_PRESENT_S))
                await self._command(self._redis.set(_BEGAN, self._name))
            self._tell_back()
            # A command that was given up may be done in the end, and then its answer, and not this one, says it.
            was_gone = said is None or time.monotonic() - self._said_at > _PRESENT_S
            self._said_at = said_at
            self._looks = _LOOKS if was_gone else self._looks - 1
            if self._looks > 0 and (self._looking is None or self._looking.done()):
                self._looking = asyncio.ensure_future(self.on_return())
        except Exception as error:  # whatever its client calls it
            self._tell_away(error)

    async def _command(self, command: Awaitable[T]) -> T:
        """Wait for the answer to a command, for some time; it is read in any case."""
        task = asyncio.ensure_future(command)
        self._commands.add(task)
        task.add_done_callback(self._end_command)
        for _ in range(_LOOKS_A_COMMAND):
            await asyncio.wait([task], timeout=_PATIENCE_S / _LOOKS_A_COMMAND)
            if task.done():
                return task.result()
        raise TimeoutError

    def _end_command(self, task: asyncio.Future[Any]) -> None:
        self._commands.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more

    def _tell_away(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            reason = str(error) or type(error).__name__
            logger.warning("the store of --store does not answer (%s): sessions of other instances get 503", reason)

    def _tell_back(self) -> None:
        before, self._heard_at = self._heard_at, time.monotonic()
        if self._is_away:
            self._is_away = False
            if self._heard_at - before > _GLITCH_S:
                self._back_at = self._heard_at
            logger.warning("the store of --store answers again")


def _text(said: bytes | str | None) -> str | None:
    return said.decode(errors="replace") if isinstance(said, bytes) else said


def _unknown() -> RequestRefused:
    return RequestRefused(503, "where this is cannot be found out just now", RETRY_AFTER)


def _ignore(_: bytes | str) -> None:
    """Take what others tell where nobody wants to know."""


async def _nothing() -> None:
    """What follows where nobody wants to know."""


def _connect(url: str) -> Redis:
    from redis.asyncio import BlockingConnectionPool, Redis

    patience_s = 2 * _PATIENCE_S
    limits = {"socket_timeout": patience_s, "socket_connect_timeout": patience_s, "timeout": patience_s}
    return Redis.from_pool(BlockingConnectionPool.from_url(url, max_connections=_CONNECTIONS, **limits))
