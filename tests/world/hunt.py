"""Run worlds until one finds something new, or the time is over: `python -m tests.world.hunt SECONDS FIRST CELL...`.

The last line says after how many seconds of CPU what was found; the exit code is 1 then. Used by `mistakes`.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.world.plans import CELLS, make_plan
from tests.world.simulate import begin, sort_out
from tests.world.worlds import run_world


def main(limit_s: float, first: str, cells: Sequence[str]) -> int:
    """Hunt, in the world that is named first, and then in all."""
    began = time.process_time()
    begin()
    for cell, seed in worlds(first, cells or list(CELLS)):
        found = sort_out(run_world(make_plan(cell, seed)))[0]
        took_s = time.process_time() - began
        if found:
            print(f"{took_s:.1f} {cell} {seed}: {found[0]}".replace("\n", " "))
            return 1
        if took_s > limit_s:
            return 0
    return 0


def worlds(first: str, cells: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Give cells and seeds without end."""
    if first:
        cell, _, seed = first.partition(" ")
        yield cell, int(seed)
    seeds = Counter[str]()
    for cell in itertools.cycle(cells):  # one that is named twice goes through its seeds twice as fast
        seeds[cell] += 1
        yield cell, seeds[cell]


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], sys.argv[3:]))
