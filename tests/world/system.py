"""What a world has of an operating system: its clocks and its random numbers.

The one place where they are handed in. Whatever runs in a world, libraries that we use included, reaches for them by
these modules of Python (`time.monotonic`, `os.urandom`, …), which ask here whether a world is running, and the system
itself if none is. `tests/world/test_system.py` holds the runtime to that: nothing there keeps such a function by its
bare name. Bytes and connections are handed in by the loop (`loop`), which is the network of the world.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import select
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

import dragoman.proxy
from dragoman.core.rules.state import INSTANCE_BYTES, KEY_BYTES
from tests.world.machines import HERE

BEGINS_AT_S: Final = 1_000.0
"""What the clock shows when a world begins."""

_REAL_POLL: Final[Callable[[], Any]] = select.poll

_WALL_S: Final = 1_800_000_000.0
"""What is added for the time of day."""


class System:
    """The system of one world.

    Args:
        seed: What all of its random numbers come from.

    Attributes:
        now_s: What the clock shows, in seconds; the loop moves it.
        make_poll: Makes what stands in for `select.poll`: the network of the world knows.
        wall_s: What the clock on the wall is ahead of that; a fault may change it.
    """

    def __init__(self, seed: str) -> None:
        self.now_s = BEGINS_AT_S
        self.wall_s = _WALL_S
        self.make_poll: Callable[[], Any] = _REAL_POLL
        self._random = random.Random(f"system of {seed}")
        self._process: Any = None

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return int(self.now_s * 1e9)

    def hex(self, count: int | None = None) -> str:
        return self.bytes(count or 32).hex()

    def time(self) -> float:
        return self.now_s + self.wall_s

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()

    def token(self, count: int | None = None) -> str:
        return urlsafe_b64encode(self.bytes(count or 32)).rstrip(b"=").decode()

    def forget(self) -> None:
        """Hold on to nothing of the world, which is over."""
        self.make_poll = _REAL_POLL

    def poll(self) -> Any:
        return self.make_poll()

    def process(self) -> Any:
        """Give the key and the name of this process; of several in one world, each has a name of its own."""
        if self._process is None:
            self._process = self.bytes(KEY_BYTES), self.bytes(INSTANCE_BYTES)
        here = HERE.get()
        return self._process if here is None else (self._process[0], here.identity)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.bytes(16), version=4)


_running: list[System] = []


def _either(real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that asks the world that is running, or the system; whoever has kept it may go on calling it."""

    def ask(*args: Any) -> Any:
        return ours(_running[-1], *args) if _running else real(*args)

    return ask


_PLACES: Final[tuple[tuple[Any, str, Callable[..., Any]], ...]] = tuple(
    (module, name, _either(getattr(module, name), ours))
    for module, name, ours in (
        (time, "monotonic", System.monotonic),
        (time, "time", System.time),
        (time, "monotonic_ns", System.monotonic_ns),
        (os, "urandom", System.bytes),
        (random, "random", System.fraction),
        (secrets, "token_bytes", System.bytes),
        (secrets, "token_urlsafe", System.token),
        (secrets, "token_hex", System.hex),
        (uuid, "uuid4", System.uuid),
        (select, "poll", System.poll),
        (dragoman.proxy, "_random_key", System.process),
    )
)


@contextlib.contextmanager
def installed(system: System) -> Iterator[System]:
    """Let everything in this process have this system, until the world is over."""
    before = [(module, name, getattr(module, name)) for module, name, _ in _PLACES]
    for module, name, asks in _PLACES:
        setattr(module, name, asks)
    _running.append(system)
    try:
        yield system
    finally:
        _running.pop()
        for module, name, had in before:
            setattr(module, name, had)
