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

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("codegen", "generated", "schema", "tests", "runtime", "docs/steps", "pyproject.toml")
MOST_S = 900


def main() -> int:
    """Try them, print a line each, and the survivors at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("-j", "--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("words", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if not arguments.words or any(word in m.name for word in arguments.words)]
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(arguments.jobs) as workers:
        noticed = list(workers.map(lambda job: tried(Path(place) / str(job[0]), job[1]), enumerate(chosen)))
    survivors = [mutant for mutant, by in zip(chosen, noticed, strict=True) if by is None]
    print(f"{len(chosen)} mutants, {len(survivors)} survived")
    for mutant in survivors:
        print(f"survived: {mutant.name}: {mutant.reason or 'NO REASON'}")
    return 1 if any(not mutant.reason for mutant in survivors) else 0


def tried(place: Path, mutant: Mutant) -> str | None:
    """What noticed a mutant: `regen --check`, or the first of its tests that fails; `None` if nothing did."""
    for name in COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source, place / name, **({"ignore": shutil.ignore_patterns("__pycache__")} if source.is_dir() else {}))
    text = (place / mutant.file).read_text("utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} is {text.count(mutant.old)} times in {mutant.file}")
    (place / mutant.file).write_text(text.replace(mutant.old, mutant.new), "utf-8")
    by = _noticed(place, mutant)
    shutil.rmtree(place)
    print(f"{'noticed by ' + by if by else 'SURVIVED':44} {mutant.name}", flush=True)
    return by


def _noticed(place: Path, mutant: Mutant) -> str | None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(place / part) for part in ("generated", "runtime", "")),
    }
    # Most change what is generated, and the tests of the laws are told of it by generating it.
    regen = subprocess.run(
        [sys.executable, "-m", "codegen", "regen"],
        cwd=place,
        env=environment,
        capture_output=True,
        timeout=MOST_S,
        check=False,
    )
    if regen.returncode:
        return "regen"
    for tests in mutant.tests:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=MOST_S, check=False)
        if done.returncode == 1:
            return tests
        if done.returncode:
            raise SystemExit(f"{mutant.name}: pytest ended with {done.returncode}:\n{done.stdout.decode()}")
    return None


if __name__ == "__main__":
    sys.exit(main())
