"""Run worlds until one finds something new, or the time is over: `python -m tests.world.hunt SECONDS CELL...`.

The last line says what was found; the exit code is 1 then. Used by `mistakes`.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence

from tests.world.plans import CELLS, make_plan
from tests.world.simulate import begin, sort_out
from tests.world.worlds import run_world


def main(limit_s: float, cells: Sequence[str]) -> int:
    """Hunt."""
    began = time.process_time()
    begin()
    for seed in itertools.count(1):
        for cell in cells or CELLS:
            found = sort_out(run_world(make_plan(cell, seed)))[0]
            if found:
                print(f"{cell} {seed}: {found[0]}".replace("\n", " "))
                return 1
            if time.process_time() - began > limit_s:
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
