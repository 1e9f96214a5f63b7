"""What `proxy` measured, as the picture of the documentation: `python -m bench proxy --draw docs/images/bench.svg`."""

from __future__ import annotations

from typing import Any, Final

from website.drawing import Group, Row, bars

NAMES: Final = {"s": "stdio", "h": "HTTP"}
SERIES: Final = {"the least that Python can do": "d", "dragoman proxy": "a"}


def draw(costs: Any) -> str:
    """Draw the costs that `measure_proxy` gives."""
    floor, proxy = SERIES
    groups = [
        Group(
            f"{NAMES[cost.topology[0]]} to {NAMES[cost.topology[1]]}, {cost.words}",
            [Row("floor", {floor: cost.floor_us}, "µs"), Row("proxy", {proxy: cost.proxy_us}, "µs")],
        )
        for cost in costs
    ]
    return bars("Processor time of one call on its way, in microseconds", SERIES, groups)
