"""Timing side by side: every candidate in every round, so that whatever disturbs the machine disturbs them all.

Knows nothing of what it measures. Called by the other modules here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns

ROUND_NS = 4_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """One candidate's medians: microseconds a call, and how many times the baseline's of the same round that is."""

    us: float
    ratio: float


def compare(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time candidates in interleaved rounds; the first one is the baseline."""
    loops = {name: _calibrate(candidate) for name, candidate in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            samples[name].append(_time(candidate, loops[name]) / loops[name] / 1000)
    baseline = samples[next(iter(candidates))]
    return {
        name: Timing(median(times), median(time / base for time, base in zip(times, baseline, strict=True)))
        for name, times in samples.items()
    }


def print_timings(title: str, timings: Mapping[str, Timing], notes: Mapping[str, str] | None = None) -> None:
    """Print a block: a title, then a line for each candidate."""
    print(f"\n{title}")
    width = max(len(name) for name in timings)
    for name, timing in timings.items():
        note = (notes or {}).get(name, "")
        print(f"  {name:<{width}}  {timing.us:>9.2f} µs  {timing.ratio:>6.2f} x  {note}".rstrip())


def _calibrate(candidate: Callable[[], object]) -> int:
    loops = 1
    while (elapsed := _time(candidate, loops)) < ROUND_NS // 4:
        loops *= 4
    return max(1, loops * ROUND_NS // elapsed)


def _time(candidate: Callable[[], object], loops: int) -> int:
    started = perf_counter_ns()
    for _ in range(loops):
        candidate()
    return perf_counter_ns() - started
