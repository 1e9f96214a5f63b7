"""The loop of a world: time passes where it would wait, and a world that cannot go on is told of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.world.loop import Stuck, WorldLoop
from tests.world.system import System, installed


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with installed(System("test")) as system, asyncio.Runner(loop_factory=lambda: WorldLoop(system)) as runner:
        return runner.run(main)


def test_a_day_takes_no_time() -> None:
    async def main() -> tuple[float, float]:
        began = asyncio.get_running_loop().time(), time.monotonic()
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time() - began[0], time.monotonic() - began[1]

    began = time.monotonic()
    assert [round(took) for took in run(main())] == [86_400, 86_400]
    assert time.monotonic() - began < 60


def test_timers_fire_in_their_order_at_their_time() -> None:
    async def main() -> list[tuple[str, float]]:
        loop, heard = asyncio.get_running_loop(), []
        began = loop.time()
        for name, after_s in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
            loop.call_later(after_s, lambda name=name: heard.append((name, round(loop.time() - began, 3))))  # type: ignore[misc]
        await asyncio.sleep(4)
        return heard

    assert run(main()) == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_waiting_for_nothing_is_told() -> None:
    with pytest.raises(Stuck, match="nobody has anything to do"):
        run(asyncio.Event().wait())


def test_going_on_without_end_is_told() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="no end"):
        run(main())
