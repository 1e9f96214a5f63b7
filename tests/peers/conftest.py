"""What pytest is told about the visits of this folder."""

from __future__ import annotations

import pytest

from tests.peers.ahead import begin_all, forget_rest
from tests.peers.forked import end_all


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "visits(make, known): the visit that a test asks for, begun ahead")


def pytest_collection_finish(session: pytest.Session) -> None:
    if not session.config.option.collectonly:
        begin_all(session.items)


def pytest_sessionfinish() -> None:
    forget_rest()
    end_all()
