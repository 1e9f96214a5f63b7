"""Running many worlds, in as many processes as there are cores, and telling what was found."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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

_OF_A_MINUTE: Final = range(1, 151)
"""The seeds of a minute: always all of them, however long that takes, so a quick machine finds what a slow one does."""


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


@dataclass
class Sum:
    """What is told of all worlds of a run: as much memory for an hour as for a minute.

    Attributes:
        worlds: How many.
        took_s: How long they took, in seconds of CPU.
        lasted_s: How long they lasted, in seconds of their time.
        events: How much happened in them.
        failed: How many failed, by the rule that was broken first.
    """

    worlds: int = 0
    took_s: float = 0.0
    lasted_s: float = 0.0
    events: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    steps: Counter[Step] = field(default_factory=Counter)

    def add(self, one: Ran) -> None:
        """Count one more."""
        self.worlds += 1
        self.took_s += one.took_s
        self.lasted_s += one.lasted_s
        self.events += one.events
        self.failed.update(finding.rule for finding in one.findings[:1])
        self.marks.update(one.marks)
        self.known.update(one.known)
        self.steps.update(one.steps)


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
            return run_all(_OF_A_MINUTE, list(CELLS), None)
        case ["hour"]:
            return run_all(range(1, 1_000_000), list(CELLS), 3600.0)
    expected = "expected nothing, minute, hour, SEED-SEED [CELL ...], CELL SEED or a file of kept/"
    print(f"{expected}; cells are {', '.join(CELLS)}")
    return 2


def run_all(seeds: Sequence[int], cells: Sequence[str], limit_s: float | None) -> int:
    """Run worlds until all are done, or the time is over; print each that fails on a line that plays it again."""
    begin()  # here too: a pool whose processes cannot begin would try without end
    began = time.monotonic()
    ran = Sum()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(cores, begin) as pool:
        for one in pool.imap_unordered(run_seed, jobs_of(seeds, cells), chunksize=4):
            ran.add(one)
            for finding in one.findings[:1]:
                print(f"nox -s simulate -- {one.cell} {one.seed}   # {str(finding)[:200]}", flush=True)
            if limit_s is not None and time.monotonic() - began > limit_s:
                pool.terminate()
                break
    tell(ran, time.monotonic() - began)
    missed = missed_of(ran) if set(cells) == set(CELLS) and ran.worlds >= ENOUGH else []
    for says in missed:
        print(f"no world came to where {says}", flush=True)
    return 1 if missed or ran.failed else 0


def missed_of(ran: Sum) -> list[str]:
    """Give the marks, and the steps of the edges, that no world has reached."""
    unseen = [step for step in all_steps() if step not in ran.steps.keys() | UNREACHED.keys()]
    return [
        *(says for says in MARKS if says not in ran.marks),
        *(f"a {edge} is {state!r}, and {event!r} comes" for edge, state, event in unseen),
    ]


def tell(ran: Sum, took_s: float) -> None:
    """Say how much was run, how fast, and what was found."""
    worlds, cpu_ms = ran.worlds, ran.took_s / max(1, ran.worlds) * 1000
    print(f"{worlds} worlds in {took_s:.0f} s: {worlds / took_s * 3600:,.0f} an hour, {cpu_ms:.0f} ms of CPU each")
    print(f"{ran.lasted_s / 3600:,.0f} hours of their time, {ran.events:,} events; {ran.failed.total()} failed")
    for rule, count in ran.failed.most_common():
        print(f"  {count} x {rule}")
    print(show_steps(ran.steps))
    print("\n".join(f"  {ran.marks[says]:>6} x {says}" for says in MARKS))
    for entry in KNOWN:
        print(f"  known, {ran.known[entry.why]} x: {entry.why}")


if sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"  # for the processes that are started from here
