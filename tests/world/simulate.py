"""Running many worlds, in as many processes as there are cores, and telling what was found."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman.proxy import ProxyConfig, make_bridging
from tests.world.known import KNOWN, explain
from tests.world.leftovers import collect
from tests.world.plan import Plan
from tests.world.plans import CELLS, make_plan
from tests.world.rules import Finding
from tests.world.shrink import make_small
from tests.world.situations import ENOUGH, MARKS, UNREACHED, Step, all_steps, show_steps
from tests.world.system import System, installed
from tests.world.worlds import Outcome, run_world

_MINUTE_S: Final = 55.0
_OF_A_MINUTE: Final = range(1, ENOUGH // len(CELLS) + 1)
"""The seeds of a minute: all have been run at this commit, so a quick machine finds no more than a slow one."""


@dataclass(frozen=True)
class Ran:
    """What is told of one world by the process that ran it."""

    cell: str
    seed: int
    digest: str
    findings: tuple[Finding, ...]
    known: tuple[str, ...]
    marks: tuple[str, ...]
    steps: Counter[Step]
    took_s: float
    lasted_s: float
    events: int


def begin() -> None:
    """Get a process ready: what is there now is not looked at when a world is over."""
    with installed(System("process")):
        make_bridging(ProxyConfig()).keeper()  # this process has a name from now on, the same in every process
    for cell in CELLS:
        run_world(make_plan(cell, 0))
    collect()
    gc.freeze()
    gc.disable()


def run_seed(job: tuple[str, int]) -> Ran:
    """Run one world."""
    cell, seed = job
    began = time.process_time()
    try:
        outcome = run_world(make_plan(cell, seed))
    except Exception as error:
        error.add_note(f"nox -s simulate -- {cell} {seed}")
        raise
    took_s = time.process_time() - began
    events = outcome.record.events
    lasted_s = events[-1].at_s - events[0].at_s if events else 0.0
    new, known = sort_out(outcome)
    return Ran(
        cell,
        seed,
        outcome.record.digest(),
        tuple(new),
        tuple(known),
        tuple(outcome.marks),
        outcome.steps,
        took_s,
        lasted_s,
        len(events),
    )


def sort_out(outcome: Outcome) -> tuple[list[Finding], list[str]]:
    """Give what is new of what a world found, and the reasons of what is known."""
    explained = [(finding, explain(finding)) for finding in outcome.findings]
    known = dict.fromkeys(entry.why for _, entry in explained if entry is not None)
    return [finding for finding, entry in explained if entry is None], list(known)


def replay(cell: str, seed: int) -> int:
    """Run one world again, make it small if it fails, and show it."""
    begin()
    path = Path(cell)
    plan = Plan.from_json(path.read_text("utf-8")) if path.suffix == ".json" else make_plan(cell, seed)
    outcome = run_world(plan)
    found = sort_out(outcome)[0] or outcome.findings
    if found and path.suffix != ".json":
        wanted = found[0]
        outcome = run_world(make_small(plan, lambda other: _fails_alike(wanted, other)))
    show(outcome)
    return 1 if sort_out(outcome)[0] else 0


def _fails_alike(wanted: Finding, plan: Plan) -> bool:
    found = run_world(plan).findings
    return any(one.rule == wanted.rule and explain(one) is explain(wanted) for one in found)


def show(outcome: Outcome) -> None:
    """Show a world as a conversation."""
    print(outcome.plan.to_json())
    print(outcome.record.show())
    for level, text in outcome.record.log:
        print(f"log {level}: {text}")
    for finding in {one.rule: one for one in reversed(outcome.findings)}.values():
        print(finding)
    print(f"digest {outcome.record.digest()}")


def jobs_of(seeds: Sequence[int], cells: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Give what is to be run: every cell for each seed."""
    return ((cell, seed) for seed in seeds for cell in cells)


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; give the exit code."""
    match list(arguments):
        case [path] if path.endswith(".json"):
            return replay(path, 0)
        case [cell, seed] if cell in CELLS:
            return replay(cell, int(seed))
        case [seeds, *cells] if set(cells) <= set(CELLS):
            first, _, last = seeds.partition("-")
            return run_all(range(int(first), int(last or first) + 1), cells or list(CELLS), None)
        case [] | ["minute"]:
            return run_all(_OF_A_MINUTE, list(CELLS), _MINUTE_S)
        case ["hour"]:
            return run_all(range(1, 1_000_000), list(CELLS), 3600.0)
    expected = "expected nothing, minute, hour, SEED-SEED [CELL ...], CELL SEED or a file of kept/"
    print(f"{expected}; cells are {', '.join(CELLS)}")
    return 2


def run_all(seeds: Sequence[int], cells: Sequence[str], limit_s: float | None) -> int:
    """Run worlds until all are done, or the time is over; print each that fails on a line that plays it again."""
    begin()  # here too: a pool whose processes cannot begin would try without end
    began = time.monotonic()
    ran: list[Ran] = []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(cores, begin) as pool:
        for one in pool.imap_unordered(run_seed, jobs_of(seeds, cells), chunksize=4):
            ran.append(one)
            for finding in one.findings[:1]:
                print(f"nox -s simulate -- {one.cell} {one.seed}   # {str(finding)[:200]}", flush=True)
            if limit_s is not None and time.monotonic() - began > limit_s:
                pool.terminate()
                break
    tell(ran, time.monotonic() - began)
    missed = missed_of(ran) if set(cells) == set(CELLS) and len(ran) >= ENOUGH else []
    for says in missed:
        print(f"no world came to where {says}", flush=True)
    return 1 if missed or any(one.findings for one in ran) else 0


def missed_of(ran: Sequence[Ran]) -> list[str]:
    """Give the marks, and the steps of the edges, that no world has reached."""
    reached = {mark for one in ran for mark in one.marks}
    steps = {step for one in ran for step in one.steps}
    unseen = [step for step in all_steps() if step not in steps | UNREACHED.keys()]
    return [
        *(says for says in MARKS if says not in reached),
        *(f"the edge of a {edge} is {state!r}, and {event!r} comes" for edge, state, event in unseen),
    ]


def tell(ran: Sequence[Ran], took_s: float) -> None:
    """Say how much was run, how fast, and what was found."""
    cpu_ms = sum(one.took_s for one in ran) / max(1, len(ran)) * 1000
    lasted_h = sum(one.lasted_s for one in ran) / 3600
    failed = [one for one in ran if one.findings]
    print(f"{len(ran)} worlds in {took_s:.0f} s: {len(ran) / took_s * 3600:,.0f} an hour, {cpu_ms:.0f} ms of CPU each")
    print(f"{lasted_h:,.0f} hours of their time, {sum(one.events for one in ran):,} events; {len(failed)} failed")
    for rule, count in Counter(one.findings[0].rule for one in failed).most_common():
        print(f"  {count} x {rule}")
    print(show_steps(sum((one.steps for one in ran), Counter())))
    marks = Counter(mark for one in ran for mark in one.marks)
    print("\n".join(f"  {marks[says]:>6} x {says}" for says in MARKS))
    known = Counter(why for one in ran for why in one.known)
    for entry in KNOWN:
        print(f"  known, {known[entry.why]} x: {entry.why}")


if sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"  # for the processes that are started from here
