"""Each pair of revisions performs once; its record serves every test."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest

from dragoman.demo.crossings import Record
from dragoman.demo.stage import perform
from dragoman_spec import HANDSHAKE_REVISIONS, LATEST, REVISIONS

PAIRS = [(client, server) for client in HANDSHAKE_REVISIONS for server in HANDSHAKE_REVISIONS]
ACROSS = [(client, server) for client in REVISIONS for server in REVISIONS if LATEST in (client, server)]


@cache
def performed(client: str, server: str) -> Record:
    return asyncio.run(perform(client, server))


@pytest.fixture(params=PAIRS, ids="-".join)
def record(request: pytest.FixtureRequest) -> Record:
    return performed(*request.param)


@pytest.fixture(params=[*PAIRS, *ACROSS], ids="-".join)
def any_record(request: pytest.FixtureRequest) -> Record:
    return performed(*request.param)


@pytest.fixture
def default_record() -> Record:
    return performed("2024-11-05", "2025-11-25")
