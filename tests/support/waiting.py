"""Waiting in tests: an event loop whose clock no busy machine can turn on, waits that end, and peers that are slow.

What one end of a test does and what the other end expects of it run in one event loop, most of them over sockets of
this machine. With the ordinary clock a test fails by chance when the machine stops both for longer than one has
patience with the other. So time passes here only while the loop has nothing to do: a timer that is to fire 0.2 s after
the last byte does so when the loop has *waited* for 0.2 s, however long it took to do what was due before.

Nothing else in `tests/` sleeps (`tests/test_support.py` looks). `until` and `wait_until` wait for something and fail
when it does not come; `pass_time` lets the clock go on where it is time that a test is about, and `put_forward` makes
it later at once; a peer that is slow or
never goes on says so with `linger`, `stall` and `hang`.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""How long to wait for what happens at once, on a busy machine."""

_LOOK_S: Final = 0.005

_TURN_S: Final = 1e-5
"""What a turn of the loop counts for, so that a test that never lets it wait has an end too."""


class _Watch(selectors.DefaultSelector):
    """Counts how long an event loop has waited."""

    def __init__(self) -> None:
        super().__init__()
        self.now = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        found = super().select(timeout)
        waited = time.monotonic() - began
        if timeout is not None and waited >= timeout:
            # Either nothing came in time; or we were stopped meanwhile, and what came is dealt with before what is due.
            waited = timeout / 2 if found else timeout
        self.now += waited + _TURN_S
        return found


class IdleClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock goes on only while the loop has nothing to do."""

    def __init__(self) -> None:
        self._watch = _Watch()
        super().__init__(self._watch)

    def time(self) -> float:
        """Give the time on the loop's clock, in seconds."""
        return self._watch.now

    def skip(self, seconds: float) -> None:
        """Put the clock forward: what is due by then is done next."""
        self._watch.now += seconds


def run(main: Coroutine[Any, Any, T]) -> T:
    """Do what `asyncio.run` does, on an event loop of the kind above."""
    with asyncio.Runner(loop_factory=IdleClockLoop) as runner:
        return runner.run(main)


async def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: It has not come about in time.
    """
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(_LOOK_S)


def wait_until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Do the same where there is no event loop.

    Raises:
        TimeoutError: It has not come about in time.
    """
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() >= end:
            raise TimeoutError(f"it has not come about within {patience_s} s")
        time.sleep(_LOOK_S)


async def pass_time(seconds: float) -> None:
    """Let the loop's clock go on: what is due meanwhile is done, and done by then."""
    await asyncio.sleep(seconds)
    for _ in range(10):  # of what came meanwhile, on a loop with another clock
        await asyncio.sleep(0)


async def put_forward(seconds: float) -> None:
    """Put the clock of the loop forward where its time is long: what is due by then is done, and what comes of it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, IdleClockLoop)
    loop.skip(seconds)
    await pass_time(0.1)


async def linger(seconds: float) -> None:
    """Be a peer that takes its time."""
    await pass_time(seconds)


def stall(seconds: float) -> None:
    """Be a peer that takes its time where there is no event loop."""
    time.sleep(seconds)


async def hang() -> None:
    """Be a peer that never goes on, until it is cancelled."""
    await asyncio.Event().wait()
