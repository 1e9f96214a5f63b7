"""In whose name frames go to a server, whoever they had to wait for."""

from __future__ import annotations

import asyncio

from dragoman.core.envelope import Frame, classify
from dragoman.core.exact_json import encode_line
from dragoman.core.label import LABEL, log_as
from dragoman.transports.upstream.lanes import Delivery, Lanes
from tests.support.waiting import until
from tests.transports.upstream.stage import on_loop


def ignore(*_: object) -> None:
    """Nobody is told."""


def answer(number: int) -> Frame:
    body = {"jsonrpc": "2.0", "id": number, "result": {}}
    frame = classify(encode_line(body), body)
    assert isinstance(frame, Frame)
    return frame


@on_loop
async def test_an_answer_that_waited_for_others_goes_in_the_name_of_who_gave_it() -> None:
    goes_on, carried = asyncio.Event(), list[str]()

    async def carry(job: Delivery) -> None:
        carried.append(LABEL.get())
        await goes_on.wait()

    lanes = Lanes(carry, lambda job: False, 1, 0, ignore, ignore, ignore, ignore, ignore)
    lanes.note_opened()
    names = [f"session {number}" for number in range(20)]
    for number, name in enumerate(names):
        log_as(name, lanes.put, answer(number))
    goes_on.set()
    await until(lambda: len(carried) == len(names))
    assert carried == names
    await lanes.drain(0)
