"""Whose requests and listens are counted together, where clients open no sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.transports.http.config import Admission, FrontConfig, Limits
from tests.proxy.test_per_request import asks
from tests.transports.http.stage import Stage, content, on_loop, text_of, within
from tests.transports.http.test_known_requests import Caller
from tests.transports.http.test_per_request import ANN, BEN, TOKENS, begin, call, playing, posts
from tests.transports.http.wire import Reply, connect


async def opened(stage: Stage, headers: dict[str, str]) -> None:
    """Have the server of these opened, by a call that is answered."""
    servers = len(stage.servers)
    calling = await begin(stage, **headers) if not servers else posts(stage, call(), **headers)
    stage.server.answer((await stage.server.hear())["id"], **content("first"))
    (await within(calling)).leave()


def listens(stage: Stage, key: str, headers: dict[str, str]) -> asyncio.Task[Reply]:
    return posts(stage, asks(key, "subscriptions/listen", notifications={"toolsListChanged": True}), **headers)


async def is_served(stage: Stage, text: str, headers: dict[str, str]) -> None:
    calling = posts(stage, call(text), **headers)
    stage.server.answer((await stage.server.hear())["id"], **content(text))
    assert text_of(await (await within(calling)).frame()) == text


@pytest.mark.parametrize("headers", [{}, ANN])
@on_loop
async def test_listens_count_apart_from_requests(headers: dict[str, str]) -> None:
    admission = Admission(tokens=TOKENS if headers else {})
    async with playing(FrontConfig(limits=Limits(streams=2), admission=admission, shares_requests=True)) as stage:
        await opened(stage, headers)
        open_ones = [await within(listens(stage, key, headers)) for key in ("one", "two")]
        assert [reply.status for reply in open_ones] == [200, 200]
        await is_served(stage, "beside them", headers)
        if headers:
            assert (await within(listens(stage, "three", headers))).status == 429
            other = await within(listens(stage, "of somebody else", BEN))
            assert other.status == 200
            other.leave()
        for reply in open_ones:
            reply.leave()


@on_loop
async def test_requests_count_by_connection_where_nobody_has_a_name() -> None:
    async with playing(FrontConfig(limits=Limits(streams=1))) as stage:
        await opened(stage, {})
        callers = [Caller(stage, *await connect(stage.port)) for _ in range(3)]
        heard: list[Any] = [await caller.begin(key) for key, caller in enumerate(callers)]
        for caller, one in zip(callers, heard, strict=True):
            stage.server.answer(one["id"], **content("served"))
            assert text_of(await caller.frame()) == "served"
