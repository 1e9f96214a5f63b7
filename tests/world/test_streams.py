"""Connections of a world: whatever their manner, all bytes come, in order; or the end does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.world.loop import WorldLoop
from tests.world.streams import HIGH_WATER_BYTES, End, Manner, Turns, connect
from tests.world.system import System, installed

ROUGH = Manner(split=0.7, join=0.4, late=0.6, late_s=5.0)


class Heard:
    """Reads one end."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.told: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)

    def ended(self, reason: str) -> None:
        self.told.append("ended")

    def broken(self, reason: str) -> None:
        self.told.append("broken")

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with installed(System("test")) as system, asyncio.Runner(loop_factory=lambda: WorldLoop(system)) as runner:
        return runner.run(main)


def joined(manner: Manner, seed: int = 1) -> tuple[End, End, Heard, Heard]:
    one, other = connect(("one", "other"), manner, random.Random(seed), Turns())
    ears = Heard(), Heard()
    one.start(ears[0])
    other.start(ears[1])
    return one, other, *ears


@pytest.mark.parametrize("manner", [Manner(), ROUGH])
@pytest.mark.parametrize("seed", range(10))
def test_all_bytes_come_in_order_and_then_the_end(manner: Manner, seed: int) -> None:
    async def main() -> None:
        one, _, _, heard = joined(manner, seed)
        said = [bytes([n]) * (n % 7 + 1) for n in range(50)]
        for data in said:
            one.write(data)
        one.end()
        await asyncio.sleep(1000)
        assert b"".join(heard.pieces) == b"".join(said)
        assert heard.told == ["ended"]

    run(main())


def test_a_rough_connection_splits_joins_and_delays() -> None:
    async def main() -> None:
        one, _, _, heard = joined(ROUGH)
        began = asyncio.get_running_loop().time()
        for _ in range(40):
            one.write(b"0123456789")
        await asyncio.sleep(0)
        assert asyncio.get_running_loop().time() - began < 0.001
        assert b"".join(heard.pieces) != b"0123456789" * 40
        await asyncio.sleep(1000)
        lengths = {len(piece) for piece in heard.pieces}
        assert min(lengths) < 10 < max(lengths)

    run(main())


def test_a_reader_that_pauses_gets_the_rest_when_it_goes_on() -> None:
    async def main() -> None:
        one, other, _, heard = joined(Manner())
        other.hears.pause(True)
        one.write(b"x")
        await asyncio.sleep(10)
        assert heard.pieces == []
        other.hears.pause(False)
        await asyncio.sleep(1)
        assert heard.pieces == [b"x"]

    run(main())


def test_a_writer_is_asked_to_pause_and_to_go_on() -> None:
    async def main() -> None:
        one, other, writer, _ = joined(Manner())
        other.hears.stall(True)
        one.write(b"x" * (HIGH_WATER_BYTES + 1))
        assert writer.told == ["pause"]
        other.hears.stall(False)
        await asyncio.sleep(1)
        assert writer.told == ["pause", "resume"]

    run(main())


def test_a_cut_loses_what_is_on_its_way_and_both_ends_hear_of_it() -> None:
    async def main() -> None:
        one, _, here, there = joined(Manner(late=1.0, late_s=5.0))
        one.write(b"x")
        one.cut()
        await asyncio.sleep(10)
        assert (there.pieces, here.told, there.told) == ([], ["ended"], ["ended"])

    run(main())


def test_who_writes_to_a_closed_end_is_told() -> None:
    async def main() -> None:
        one, other, here, _ = joined(Manner())
        other.close()
        one.write(b"x")
        await asyncio.sleep(1)
        assert "broken" in here.told

    run(main())
