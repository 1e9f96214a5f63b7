"""What every test may count on: what it starts can be stopped by signals, it has an end itself, and it is the same
every time.

A test that takes longer than any should is interrupted and fails; if even that does not help, the run ends with the
stack of every thread (`faulthandler_timeout` in `pyproject.toml`). Both are for defects: what a test waits for has a
limit of its own, which says what did not come.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import signal
from collections.abc import Iterator
from types import FrameType

import hypothesis
import pytest

from tests.support.profile import THOROUGH
from tests.support.signals import heed_signals

LIMIT_S = 480
"""Far longer than the longest test takes on a busy machine."""

heed_signals()

for name in ("FORCE_COLOR", "NO_COLOR"):  # as some terminals and services set them; what a test wants, it says
    os.environ.pop(name, None)

hypothesis.settings.register_profile("the same every time", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("other seeds each time", deadline=None)
hypothesis.settings.load_profile("other seeds each time" if THOROUGH else "the same every time")


@pytest.fixture(autouse=True)
def remember_nothing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let no test know what servers of another one have turned out to be, nor what the user's have.

    Nor is it remembered what a server said that happened to be slow, on a busy machine: a file stands in the way.
    """
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    cache = tmp_path_factory.getbasetemp() / "cache" / name
    (cache / "dragoman").mkdir(parents=True, exist_ok=True)
    (cache / "dragoman" / "answers").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture(autouse=True)
def leave_the_log() -> Iterator[None]:
    """Let no test change what another one hears of the log: a command that runs in this process sets it up for good."""
    before = {logger: (logger.level, logger.propagate, [*logger.handlers]) for logger in _loggers()}
    yield
    for logger in _loggers():
        level, logger.propagate, logger.handlers = before.get(logger, (logging.NOTSET, True, []))
        if logger.level != level:
            logger.setLevel(level)
        logger.filters.clear()


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict
    ours = [name for name in known if name.partition(".")[0] in {"dragoman", "asyncio"}]
    return [logging.getLogger(name) for name in ours]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among the tests: they stay until the end, and there are many."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Interrupt a test that does not end."""
    if THOROUGH:  # one test may go on for long
        return (yield)
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    pytest.fail(f"the test has not ended after {LIMIT_S} s")
