"""Run worlds until one finds something new, or the time is over: `python -m tests.world.hunt SECONDS CELL...`.

The last line says after how many seconds of CPU what was found; the exit code is 1 then. Used by `mistakes`.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.world.plans import CELLS, make_plan
from tests.world.simulate import begin, sort_out
from tests.world.worlds import run_world


def main(limit_s: float, cells: Sequence[str]) -> int:
    """Hunt."""
    began = time.process_time()
    begin()
    seeds = Counter[str]()
    for cell in itertools.cycle(cells or CELLS):  # one that is named twice goes through its seeds twice as fast
        seeds[cell] += 1
        found = sort_out(run_world(make_plan(cell, seeds[cell])))[0]
        took_s = time.process_time() - began
        if found:
            print(f"{took_s:.1f} {cell} {seeds[cell]}: {found[0]}".replace("\n", " "))
            return 1
        if took_s > limit_s:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
