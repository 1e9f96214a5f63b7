"""Worlds count objects, and look for cycles until there are none: what earlier tests hold is left out of both."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def leave_out_what_is_there() -> None:
    gc.collect()
    gc.freeze()
