"""How much the tests do, by `DRAGOMAN_PROFILE`.

By default little: random tests are short and always the same, and of what takes long a sample is tried. `whole` tries
all of that, with the same short random tests; `thorough` makes these long as well, and different every time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("DRAGOMAN_PROFILE", "small")
THOROUGH = PROFILE == "thorough"
WHOLE = PROFILE in ("whole", "thorough")

SEED = 0


takes_long = pytest.mark.skipif(not WHOLE, reason="it takes long: run `nox -s thorough`")
"""For a test with a smaller one beside it, which is run every time."""

T = TypeVar("T")


def some(values: Sequence[T], every: int) -> Sequence[T]:
    """Every n-th of the values, or all of them, by the profile."""
    return values if WHOLE else values[::every]


def rounds(default: int, thorough: int) -> int:
    """How often to repeat something, by the profile."""
    return thorough if THOROUGH else default


def hypothesis_settings(default: int, thorough: int) -> settings:
    """Settings for a property test: as many examples as the profile says, the same ones every time by default."""
    return settings(
        max_examples=rounds(default, thorough),
        derandomize=not THOROUGH,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
