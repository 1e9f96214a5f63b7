"""Visits beside each other: most of a visit is waiting, and a run knows beforehand which ones its tests ask for.

A visit is a function under `ahead`; a test that asks for it says so with the mark `visits`. Once the tests are
collected, `conftest.py` begins what they ask for, in their order.
"""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest

from tests.peers.forked import FORKED

_TOGETHER: Final = (6 if FORKED else 3) * max(2, os.cpu_count() or 1)
"""More than there are processors: a visit waits for two thirds of its time, and for more where peers are forked."""

_LIMIT_S: Final = 400
"""How long to wait for a report: longer than a visit may take, and those that were begun before it."""

_POOL: Final = ThreadPoolExecutor(_TOGETHER)

Report = dict[str, Any]


class Visit:
    """Makes each visit once, whether a test waits for it yet or not."""

    def __init__(self, make: Callable[..., Report]) -> None:
        self._make = make
        self._names = tuple(inspect.signature(make).parameters)
        self._begun: dict[tuple[str, ...], Future[Report]] = {}

    def __call__(self, *about: str) -> Report:
        """Return the report of a visit, waiting for its end.

        One that was not begun is made here and now: it would wait for all those that were.
        """
        if about not in self._begun:
            made = self._begun[about] = Future()
            try:
                made.set_result(self._make_it(*about))
            except BaseException as error:
                made.set_exception(error)
        return self._begun[about].result(_LIMIT_S)

    def begin(self, known: dict[str, Any]) -> None:
        """Begin a visit, its arguments taken from what is known of a test."""
        self._begin(tuple(known[name] for name in self._names))

    def _begin(self, about: tuple[str, ...]) -> None:
        if about not in self._begun:
            self._begun[about] = _POOL.submit(self._make_it, *about)

    def _make_it(self, *about: str) -> Report:
        """Make a visit; again where the system refused to start a process of it for no fault of the process.

        Some kernels answer an exec with "Bad address" now and then, while another thread starts a process as well.
        """
        try:
            return self._make(*about)
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise
            return self._make(*about)


def ahead(make: Callable[..., Report]) -> Visit:
    """Let a function that makes a visit be begun before its report is wanted."""
    return Visit(make)


def visits(make: Visit, **known: str) -> pytest.MarkDecorator:
    """Mark a test with the visit that it asks for; what `known` does not tell are the test's own parameters."""
    return pytest.mark.visits(make, known)


def begin_all(items: list[pytest.Item]) -> None:
    """Begin every visit that one of the tests asks for, but for tests that will be skipped."""
    for item in items:
        skipped = any(mark.args[0] for mark in item.iter_markers("skipif"))
        for mark in () if skipped else item.iter_markers("visits"):
            assert isinstance(item, pytest.Function)
            make, known = mark.args
            make.begin({**item.callspec.params, **known})


def forget_rest() -> None:
    """Begin nothing more: the run is over."""
    _POOL.shutdown(cancel_futures=True)
