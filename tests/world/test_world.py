"""Worlds: a few of each cell hold to every rule, and the same seed is the same world, in whatever process it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.world.loop import WorldLoop
from tests.world.mistakes import known
from tests.world.plan import Plan
from tests.world.plans import CELLS, make_plan
from tests.world.shrink import make_small
from tests.world.simulate import sort_out
from tests.world.system import System, installed
from tests.world.table import ROWS
from tests.world.worlds import World, run_world

ROOT = Path(__file__).parents[2]
KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))
SAMPLE = range(1, 13)
DIGESTS = """
from tests.world.plans import CELLS, make_plan
from tests.world.simulate import begin
from tests.world.worlds import run_world
begin()
print({(cell, seed): run_world(make_plan(cell, seed)).record.digest() for cell in CELLS for seed in ORDER})
"""


@pytest.mark.parametrize("cell", CELLS)
def test_worlds_hold_to_the_rules(cell: str) -> None:
    for seed in SAMPLE:
        outcome = run_world(make_plan(cell, seed))
        assert sort_out(outcome)[0] == [], f"nox -s simulate -- {cell} {seed}"


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_what_a_world_found_stays_mended(path: Path) -> None:
    outcome = run_world(Plan.from_json(path.read_text("utf-8")))
    assert sort_out(outcome)[0] == [], outcome.record.show()


def test_one_seed_is_one_world_in_every_process() -> None:
    def digests(hash_seed: str, order: str) -> dict[tuple[str, int], str]:
        command = [sys.executable, "-c", DIGESTS.replace("ORDER", order)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=True
        )
        return dict(eval(done.stdout))

    with ThreadPoolExecutor() as both:
        one, other = both.map(digests, ("1", "2"), ("range(1, 9)", "range(8, 0, -1)"))
    assert one == other
    assert len(one) == 8 * len(CELLS)


@pytest.mark.parametrize(("cell", "seed"), [("ways", 115), ("replicas", 204)])
def test_a_world_that_comes_again_in_one_process_is_the_same(cell: str, seed: int) -> None:
    """A question across the eras is sealed in the first, with a key of its own; the second has Redis."""
    assert run_world(make_plan(cell, seed)).record.digest() == run_world(make_plan(cell, seed)).record.digest()


@pytest.mark.parametrize("cell", CELLS)
def test_a_plan_is_the_same_when_it_was_written_down(cell: str) -> None:
    plan = make_plan(cell, 5)
    assert Plan.from_json(plan.to_json()) == plan
    assert make_plan(cell, 5) == plan != make_plan(cell, 6)


def test_every_mistake_that_is_written_down_has_its_place() -> None:
    assert len(known()) == len(ROWS)


def test_a_failing_plan_is_made_small() -> None:
    """What fails has a cancellation in it: nothing but that is left."""

    def fails(plan: Plan) -> bool:
        return any(act["do"] == "cancel" for client in plan.clients for act in client.acts)

    plan = next(plan for plan in (make_plan("router", seed) for seed in range(1000)) if fails(plan))
    small = make_small(plan, fails)
    assert [[act["do"] for act in client.acts] for client in small.clients] == [["cancel"]]
    assert (small.faults, small.options) == ([], {})


def test_two_proxies_in_a_row_remember_different_servers() -> None:
    with installed(System("row")) as system:
        loop = WorldLoop(system)
        world = World(make_plan("row", 1), system, loop)
        before_the_server, before_a_proxy = world.make_config(1).known, world.make_config().known
        assert before_a_proxy is world.make_config().known
        assert before_a_proxy is not before_the_server
        loop.close()
