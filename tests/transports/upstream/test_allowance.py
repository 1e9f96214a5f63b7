"""Who reads on when much is held: the eldest, and somebody else where that one is stuck."""

from __future__ import annotations

import asyncio

from dragoman.transports.upstream.allowance import FREE_BYTES, Allowance, Lease
from tests.support.waiting import pass_time
from tests.transports.upstream.stage import on_loop

MUCH = 10 * FREE_BYTES


async def is_let_through(lease: Lease, size: int, within_s: float = 0.02) -> bool:
    try:
        await asyncio.wait_for(lease.hold(size), within_s)
    except TimeoutError:
        return False
    return True


@on_loop
async def test_answers_that_together_are_small_enough_are_read_side_by_side() -> None:
    allowance = Allowance(3 * MUCH)
    leases = [allowance.lease() for _ in range(3)]
    for lease in leases:
        assert await is_let_through(lease, MUCH)
    assert allowance.held == 3 * MUCH


@on_loop
async def test_beyond_that_only_the_eldest_is_read() -> None:
    allowance = Allowance(MUCH, stall_s=5)
    with allowance.lease() as first, allowance.lease() as second:
        assert await is_let_through(first, MUCH)
        assert not await is_let_through(second, FREE_BYTES + 1)
        assert await is_let_through(first, 2 * MUCH)
    assert allowance.held == 0


@on_loop
async def test_what_is_short_is_never_held_up() -> None:
    allowance = Allowance(0, stall_s=5)
    with allowance.lease() as first, allowance.lease() as second:
        assert await is_let_through(first, MUCH)
        assert await is_let_through(second, FREE_BYTES)


@on_loop
async def test_the_next_one_goes_on_as_soon_as_the_eldest_is_done() -> None:
    allowance = Allowance(MUCH, stall_s=60)
    first, second = allowance.lease(), allowance.lease()
    await first.hold(2 * MUCH)
    waiting = asyncio.create_task(second.hold(2 * MUCH))
    await asyncio.sleep(0)
    first.release()
    await asyncio.wait_for(waiting, 1)
    assert allowance.held == 2 * MUCH


@on_loop
async def test_an_event_that_was_handed_on_makes_room() -> None:
    allowance = Allowance(MUCH, stall_s=60)
    stream, other = allowance.lease(), allowance.lease()
    await stream.hold(2 * MUCH)
    await stream.hold(0)  # the event has ended
    assert await is_let_through(other, 2 * MUCH)
    assert not await is_let_through(stream, MUCH)


@on_loop
async def test_an_event_that_is_followed_by_a_shorter_one_makes_room_at_once() -> None:
    allowance = Allowance(2 * MUCH, stall_s=60)
    stream, other = allowance.lease(), allowance.lease()
    await stream.hold(2 * MUCH)
    waiting = asyncio.create_task(other.hold(MUCH))
    await asyncio.sleep(0)
    await stream.hold(MUCH)
    await asyncio.wait_for(waiting, 1)


@on_loop
async def test_an_eldest_that_is_stuck_is_passed_over_but_no_more_than_three_are() -> None:
    allowance = Allowance(0, stall_s=0.01)
    leases = [allowance.lease() for _ in range(5)]
    for lease in leases[:4]:
        assert await is_let_through(lease, MUCH, 5)
        await pass_time(0.02)
    assert not await is_let_through(leases[4], MUCH, 0.1)


@on_loop
async def test_who_waits_is_not_stuck() -> None:
    allowance = Allowance(0, stall_s=0.05)
    first, second, third = (allowance.lease() for _ in range(3))
    await first.hold(MUCH)
    waiting = asyncio.create_task(second.hold(MUCH))
    for size in range(1, 11):  # the eldest goes on, slowly
        assert not await is_let_through(third, MUCH)
        await first.hold(MUCH + size)
    assert not waiting.done()
    first.release()
    await asyncio.wait_for(waiting, 1)
