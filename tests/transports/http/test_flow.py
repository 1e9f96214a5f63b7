"""Holding up clients and their servers."""

from __future__ import annotations

import asyncio

from dragoman.transports.http.flow import Gate
from tests.support.waiting import run


def test_a_gate_is_open_from_the_start() -> None:
    async def main() -> None:
        gate = Gate()
        assert gate.is_set()
        await asyncio.wait_for(gate.wait(), 1)

    run(main())


def test_whoever_waits_at_a_gate_passes_once_it_is_opened() -> None:
    async def main() -> None:
        gate = Gate()
        gate.clear()
        gate.clear()
        waiting = [asyncio.create_task(gate.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        gate.set()
        await asyncio.wait_for(asyncio.gather(*waiting), 1)
        assert gate.is_set()

    run(main())


def test_who_was_let_through_a_gate_passes_even_if_it_shuts_at_once() -> None:
    async def main() -> None:
        gate = Gate()
        gate.clear()
        waiting = asyncio.create_task(gate.wait())
        await asyncio.sleep(0)
        gate.set()
        gate.clear()
        await asyncio.wait_for(waiting, 1)
        assert not gate.is_set()

    run(main())
