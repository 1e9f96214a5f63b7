"""What a world has of an operating system: its clocks, its random numbers, and its descriptors and processes.

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
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

import dragoman.proxy
from dragoman.core.rules.state import INSTANCE_BYTES, KEY_BYTES
from tests.world.machines import HERE

if sys.platform != "win32":
    import fcntl

BEGINS_AT_S: Final = 1_000.0
"""What the clock shows when a world begins."""

FIRST_NUMBER: Final = 1 << 20
"""Descriptors and processes of a world begin here: no real one is so high."""

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
        kernel: Has the descriptors and processes, where a world has any.
    """

    def __init__(self, seed: str) -> None:
        self.now_s = BEGINS_AT_S
        self.wall_s = _WALL_S
        self.make_poll: Callable[[], Any] = _REAL_POLL
        self.kernel: Any = None
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
        self.make_poll, self.kernel = _REAL_POLL, None

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


def _of_kernel(module: Any, name: str) -> tuple[Any, str, Callable[..., Any]]:
    """Give what asks the kernel of the world where that is about what is its own, and the system otherwise."""
    real = getattr(module, name)

    def ask(*args: Any, **more: Any) -> Any:
        kernel = _running[-1].kernel if _running else None
        if kernel is None or not (args and abs(args[0]) >= FIRST_NUMBER):
            return real(*args, **more)
        return getattr(kernel, name)(*args)

    return module, name, ask


def _of_children(module: Any, name: str, ours: str) -> tuple[Any, str, Callable[..., Any]]:
    """Give what makes a descriptor or a child: of the world, where it has a kernel."""
    real = getattr(module, name)

    def make(*args: Any, **more: Any) -> Any:
        kernel = _running[-1].kernel if _running else None
        return real(*args, **more) if kernel is None else getattr(kernel, ours)(*args, **more)

    return module, name, make


def _kernel_places() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Give the places of descriptors and processes, as far as this system has them."""
    for name in ("dup", "close", "read", "write", "writev", "fstat", "isatty", "set_blocking", "pidfd_open"):
        if hasattr(os, name):
            yield _of_kernel(os, name)
    for name in ("killpg", "waitpid"):
        if hasattr(os, name):
            yield _of_kernel(os, name)
    if sys.platform != "win32":
        yield _of_kernel(fcntl, "fcntl")
        yield _of_kernel(fcntl, "ioctl")
    yield _of_children(os, "pipe", "pipe")
    yield _of_children(subprocess, "Popen", "popen")


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
) + tuple(_kernel_places())


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
