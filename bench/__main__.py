"""`python -m bench`: measure all that has figures, from one conversion to the proxy; nothing here passes or fails."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from bench.client import measure_client
from bench.conversions import measure_conversions
from bench.drawing import draw
from bench.eras import measure_eras
from bench.growth import measure_growth
from bench.imports import measure_imports
from bench.looking import measure_looking
from bench.models import measure_models
from bench.page import measure_page
from bench.proxy import measure_proxy
from bench.router import measure_router
from bench.sharing import measure_sharing
from bench.starts import measure_starts

PARTS: dict[str, Callable[[int], object]] = {
    "conversions": measure_conversions,
    "imports": measure_imports,
    "models": measure_models,
    "starts": measure_starts,
    "proxy": measure_proxy,
    "router": measure_router,
    "eras": measure_eras,
    "sharing": measure_sharing,
    "growth": measure_growth,
    "client": measure_client,
    "page": measure_page,
    "looking": measure_looking,
}


def main() -> None:
    """Measure what the command line names, or everything."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw what `proxy` measured, as SVG")
    args = parser.parse_args()
    unknown = [part for part in args.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    for part in args.parts or PARTS:
        measured = PARTS[part](args.rounds)
        if args.draw and part == "proxy":
            args.draw.write_text(draw(measured), "utf-8")


if __name__ == "__main__":
    main()
