"""Which lists a check reads: those that the revision has."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from dragoman.check.lists import read_lists


def test_a_list_that_the_revision_does_not_have_is_not_asked_for() -> None:
    talk: Any = SimpleNamespace(methods={}, capabilities={"tools": {}})
    assert asyncio.run(read_lists(talk, lambda item, member: None)) == frozenset()
