"""How old requests are: counted in ticks, so that no request is given up before its time."""

from __future__ import annotations

import pytest

from dragoman.core.timeouts import Ages


def ages(timeout_s: float, ceiling_s: float | None = None) -> Ages[str]:
    made: Ages[str] = Ages(lambda after_s, then: None, lambda: None, timeout_s, ceiling_s)
    made.start("a")
    return made


def ticks_until_old(old: Ages[str]) -> int:
    """Count the ticks; the first may come right after the start, so that it stands for no time at all."""
    return next(number for number in range(1, 100) if old.tick(lambda _: True))


@pytest.mark.parametrize("timeout_s", [0.5, 10.0, 12.5, 29.9])
def test_no_request_is_too_old_before_its_time(timeout_s: float) -> None:
    made = ages(timeout_s)
    passed_s = (ticks_until_old(made) - 1) * made.tick_s
    assert timeout_s <= passed_s < timeout_s + made.tick_s


def test_a_sign_begins_the_time_anew_and_not_the_ceiling() -> None:
    made = ages(2.0, 5.0)
    for _ in range(25):
        made.renew("a")
        assert made.tick(lambda _: True) == []
    made.renew("a")
    assert made.tick(lambda _: True) == [("a", 5.0)]


def test_time_may_stand_still() -> None:
    made = ages(1.0)
    assert not any(made.tick(lambda _: True, runs=False) for _ in range(50))
    assert ticks_until_old(made) == 11


def test_what_is_answered_is_forgotten() -> None:
    made = ages(1.0)
    made.tick(lambda _: False)
    assert not any(made.tick(lambda _: True) for _ in range(50))
