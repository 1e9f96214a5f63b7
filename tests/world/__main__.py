"""Run worlds: `python -m tests.world SEEDS`, or one again: `python -m tests.world CELL SEED`."""

from __future__ import annotations

import sys

from tests.world.simulate import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
