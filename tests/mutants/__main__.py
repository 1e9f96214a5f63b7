"""Try every mutant: `python -m tests.mutants [-j JOBS] [WORD …]`; with words, those whose name has one of them.

Each is made in a copy of the tree, with a process of its own for its tests, the quickest tests first. What no test
notices survives, and is named; the exit status is 1 unless the table says why it may.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.slips import SLIPS
from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
MADE = (".git", ".nox", ".*_cache", ".hypothesis", ".venv*", "__pycache__", "dist", "build", "node_modules")
LEFT = shutil.ignore_patterns(*MADE)
"""What a copy of the tree does without; other files with a dot are read by tests."""
MOST_S = 900


def main() -> int:
    """Try them, print a line each, and the survivors at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("-j", "--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("words", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    every = (*MUTANTS, *SLIPS)
    chosen = [m for m in every if not arguments.words or any(word in m.name for word in arguments.words)]
    check_places(chosen)
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(arguments.jobs) as workers:
        check_whole(Path(place) / "whole", chosen)
        noticed = list(workers.map(lambda job: tried(Path(place) / str(job[0]), job[1]), enumerate(chosen)))
    survivors = [mutant for mutant, by in zip(chosen, noticed, strict=True) if by is None]
    print(f"{len(chosen)} mutants, {len(survivors)} survived")
    for mutant in survivors:
        print(f"survived: {mutant.name}: {mutant.reason or 'NO REASON'}")
    return 1 if any(not mutant.reason for mutant in survivors) else 0


def check_places(mutants: list[Mutant]) -> None:
    """Make sure that every mutant still has its place: what is not made would seem to be noticed, or nothing at all."""
    counts = [(mutant, (ROOT / mutant.file).read_text("utf-8").count(mutant.old)) for mutant in mutants]
    lost = [f"{mutant.name}: {mutant.old!r} is {n} times in {mutant.file}" for mutant, n in counts if n != 1]
    if lost or not mutants:
        raise SystemExit("\n".join(lost) or "no mutant has such a name")


def check_whole(place: Path, mutants: list[Mutant]) -> None:
    """Make sure that the tests pass in a copy without a mutant: else every mutant would seem to be noticed."""
    shutil.copytree(ROOT, place, ignore=LEFT)
    for tests in sorted({tests for mutant in mutants for tests in mutant.tests}):
        done = _pytest(place, tests)
        if done.returncode:
            raise SystemExit(f"{tests} fails without any mutant:\n{done.stdout.decode()}")


def tried(place: Path, mutant: Mutant) -> str | None:
    """What noticed a mutant: `regen --check`, or the first of its tests that fails; `None` if nothing did."""
    shutil.copytree(ROOT, place, ignore=LEFT)
    text = (place / mutant.file).read_text("utf-8")
    (place / mutant.file).write_text(text.replace(mutant.old, mutant.new), "utf-8")
    by = _noticed(place, mutant)
    shutil.rmtree(place)
    print(f"{'noticed by ' + by if by else 'SURVIVED':44} {mutant.name}", flush=True)
    return by


def _noticed(place: Path, mutant: Mutant) -> str | None:
    generated = place / "generated" / "dragoman_spec" / Path(mutant.file).name
    if "/support/" in mutant.file:  # as regen would copy it, after its first line
        notice = generated.read_text("utf-8").partition("\n")[0]
        generated.write_text(f"{notice}\n{(place / mutant.file).read_text('utf-8')}", "utf-8")
        return next((tests for tests in mutant.tests if _fails(place, tests)), None)
    own, *others = mutant.tests
    if _fails(place, own):
        return own
    command = [sys.executable, "-m", "codegen", "regen"]
    regen = subprocess.run(command, cwd=place, env=_environment(place), capture_output=True, check=False)
    return "regen" if regen.returncode else next((tests for tests in others if _fails(place, tests)), None)


def _fails(place: Path, tests: str) -> bool:
    try:
        return _pytest(place, tests).returncode != 0
    except subprocess.TimeoutExpired:
        return True  # such as a mutant that never ends


def _pytest(place: Path, tests: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    environment = _environment(place)
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=MOST_S, check=False)


def _environment(place: Path) -> dict[str, str]:
    path = os.pathsep.join(str(place / part) for part in ("generated", "runtime", ""))
    return {"DRAGOMAN_PROFILE": "whole", **os.environ, "PYTHONPATH": path}


if __name__ == "__main__":
    sys.exit(main())
