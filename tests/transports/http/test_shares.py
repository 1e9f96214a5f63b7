"""Sessions that several principals share."""

from __future__ import annotations

from dragoman.transports.http.config import Admission, FrontConfig, Limits
from tests.transports.http.stage import Stage, initialize, on_loop, serving

ADA, BOB, EVE = "secret-of-ada-1", "secret-of-bob-1", "secret-of-eve-1"
LOOKS = 200
CONFIG = FrontConfig(admission=Admission(tokens={"ada": ADA, "bob": BOB, "eve": EVE}), limits=Limits(sessions=4))


async def opens(stage: Stage, secret: str) -> str:
    stage.session = ""
    stage.servers.clear()
    await stage.open(authorization=f"Bearer {secret}")
    return stage.session


async def is_refused(stage: Stage, secret: str) -> bool:
    stage.session = ""
    reply = await stage.post(initialize(), authorization=f"Bearer {secret}")
    reply.leave()
    assert reply.headers.get("retry-after"), reply.status
    return reply.status == 503


async def is_open(stage: Stage, session: str, secret: str) -> bool:
    stage.session = session
    reply = await stage.post({"jsonrpc": "2.0", "method": "notifications/cancelled"}, authorization=f"Bearer {secret}")
    reply.leave()
    return reply.status == 202


@on_loop
async def test_a_principal_that_is_alone_has_all_sessions_and_gives_one_to_the_next() -> None:
    async with serving(CONFIG) as stage:
        hers = [await opens(stage, ADA) for _ in range(4)]
        assert await is_refused(stage, ADA)
        assert all([await is_open(stage, one, ADA) for one in hers])
        assert await is_refused(stage, BOB)
        for _ in range(LOOKS):
            if not await is_open(stage, hers[0], ADA):
                break
        assert [await is_open(stage, one, ADA) for one in hers] == [False, True, True, True]
        assert await is_refused(stage, ADA), "the place is for somebody else"
        assert await opens(stage, BOB)


@on_loop
async def test_of_two_principals_none_has_more_than_half_of_the_sessions() -> None:
    async with serving(CONFIG) as stage:
        his = await opens(stage, BOB)
        for _ in range(2):
            await opens(stage, ADA)
        assert await is_refused(stage, ADA)
        assert await opens(stage, EVE), "one is left for whoever comes next"
        assert await is_open(stage, his, BOB)
