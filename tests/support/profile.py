"""How much the random tests do: little by default and always the same, much with `DRAGOMAN_PROFILE=thorough`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("DRAGOMAN_PROFILE") == "thorough"

SEED = 0


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
