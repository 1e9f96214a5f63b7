"""Mistakes made on purpose, to see whether worlds notice them: `python -m tests.world.mistakes [-n COUNT] [-s SEED]`.

Each is one small change of the runtime, drawn from a seed and made in a copy of it: a check left out or turned round, a
statement left out, `and` for `or`, a limit off by one. Worlds run against the copy until a rule is broken, or the time
is over. What is printed names the place, what was changed, and the rule that noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dragoman
from tests.world.plans import CELLS, make_plan
from tests.world.simulate import begin, sort_out
from tests.world.table import DEFECTS, ROWS
from tests.world.worlds import run_world

RUNTIME: Final = Path(dragoman.__file__).parent
ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/internals/noticed.md"

ROOMS: Final = (
    *(
        "core/edges/*.py",
        "core/serving/*.py",
        "core/switch/shared/*.py",
        "core/switch/router/*.py",
        "core/switch/*.py",
        "core/*.py",
    ),
    *("core/switch/to_session/*.py", "core/switch/to_stateless/*.py", "host/*.py", "router/*.py"),
    *("transports/http/*.py", "transports/upstream/*.py", "signin/*.py"),
)
"""Where mistakes are made."""

_APART: Final = frozenset(
    {
        "health.py",
        "readiness.py",
        "pages.py",
        "legacy.py",
        "websocket.py",
        "websocket_asgi.py",
        "board.py",
        "proxies.py",
    }
    | {"tunnel.py", "upgrade.py", "cookies.py", "mounted.py", "headers.py", "serve.py", "door.py"}
)
"""Modules of rooms that are in no world yet."""

_CELLS: Final = {
    "core/edges/recovery": ("http", "shared"),
    "core/edges/front": ("direct", "shared"),
    "core/serving/": ("shared", "router"),
    "core/switch/shared/": ("shared",),
    "core/switch/router/": ("router",),
    "core/switch/to_session/": ("http", "direct"),
    "core/switch/to_stateless/": ("direct", "http"),
    "host/shared": ("shared", "http"),
    "pool": ("shared", "http"),
    "router/": ("router",),
    "signin/": ("signin",),
    "transports/": ("http",),
}
"""Which cells have most to do with a module, by the beginning of its path."""

_OFTEN: Final = 3
"""How many worlds of those cells are run for each of the others."""

_ALONE: Final = ("core/switch/router/", "router/", "transports/", "signin/")
"""Modules that no other cells run."""


@dataclass(frozen=True)
class Mistake:
    """One change.

    Attributes:
        file: Below the runtime.
        line: Where it begins.
        old: What stands there.
        new: What is put in its place.
        start: Where in the file, in bytes.
        what: What goes wrong, where somebody has said it.
    """

    file: str
    line: int
    old: str
    new: str
    start: int
    what: str = ""

    def __str__(self) -> str:
        if self.what:
            return f"{self.file}:{self.line}: {self.what}"
        old, new = (" ".join(text.split())[:70] for text in (self.old, self.new))
        return f"{self.file}:{self.line}: {old} → {new or 'nothing'}"


def mistakes_in(path: Path) -> Iterator[Mistake]:
    """Give every mistake that can be made in a module."""
    data = path.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def make(node: ast.stmt | ast.expr, new: str) -> Mistake:
        start = starts[node.lineno - 1] + node.col_offset
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = starts[node.end_lineno - 1] + node.end_col_offset
        return Mistake(str(path.relative_to(RUNTIME)), node.lineno, data[start:end].decode(), new, start)

    for node in ast.walk(ast.parse(data)):
        match node:
            case ast.Expr(value=ast.Call() as call):
                if not _is_log(call):
                    yield make(node, "pass")
            case ast.If(test=test):
                yield make(test, "False")
                if node.orelse == []:
                    yield make(test, "True")
            case ast.BoolOp(op=ast.And()):
                yield make(node.values[0], "True")
                yield make(node.values[-1], "True")
            case ast.BoolOp(op=ast.Or()):
                yield make(node.values[-1], "False")
            case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                text = ast.unparse(node)
                other = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "}
                sign = next((sign for sign in other if sign in text), None)
                if sign is not None:
                    yield make(node, text.replace(sign, other[sign], 1))
            case ast.Delete() | ast.AugAssign():
                yield make(node, "pass")
            case ast.Assign(targets=[ast.Attribute()]) if isinstance(node.value, ast.Constant):
                yield make(node, "pass")


def _is_log(call: ast.Call) -> bool:
    text = ast.unparse(call.func)
    return text.startswith(("logger.", "waiting.", "LABEL.", "PRINCIPAL.", "super().__init__"))


def draw(count: int, seed: int) -> list[Mistake]:
    """Draw some, as many from each room as it has modules."""
    paths = sorted({path for room in ROOMS for path in RUNTIME.glob(room) if path.name not in _APART})
    every = [mistake for path in paths for mistake in mistakes_in(path)]
    return random.Random(seed).sample(every, count)


def known() -> list[Mistake]:
    """Give those that are written down.

    Raises:
        SystemExit: One has lost its place.
    """
    found = []
    for row in ROWS:
        data = (RUNTIME / row.file).read_bytes()
        if data.count(row.old.encode()) != 1:
            raise SystemExit(f"{row.what}: its place is {data.count(row.old.encode())} times in {row.file}")
        start = data.index(row.old.encode())
        found.append(Mistake(row.file, data[:start].count(b"\n") + 1, row.old, row.new, start, row.what))
    return found


def cells_of(file: str) -> list[str]:
    """Give the cells of worlds that run a module, those first that have most to do with it."""
    first = next((cells for part, cells in _CELLS.items() if file.startswith(part)), ())
    return [*first * _OFTEN, *(cell for cell in CELLS if cell not in first and not file.startswith(_ALONE))]


def _make(mistake: Mistake, copy: Path) -> None:
    path = copy / mistake.file
    data, old = path.read_bytes(), mistake.old.encode()
    assert data[mistake.start :].startswith(old)
    path.write_bytes(data[: mistake.start] + mistake.new.encode() + data[mistake.start + len(old) :])


@dataclass(frozen=True)
class Noticed:
    """How a mistake was noticed.

    Attributes:
        rule: Which was broken.
        text: In which world, and how.
        took_s: After how many seconds of CPU.
    """

    rule: str
    text: str
    took_s: float

    def __str__(self) -> str:
        return f"{self.text[:160]} ({self.took_s:.1f} s)"

    @property
    def world(self) -> str:
        """Cell and seed; empty where that is not known."""
        named = re.match(r"\w+ \d+(?=: |$)", self.text)
        return "" if named is None else named[0]


def hunt(mistake: Mistake | None, limit_s: float, first: str = "") -> Noticed | None:
    """Run worlds against a mistake, or none, this one first; say what noticed it."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "dragoman"
        shutil.copytree(RUNTIME, copy)
        if mistake is not None:
            _make(mistake, copy)
        environment = {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}
        cells = cells_of("" if mistake is None else mistake.file)
        command = [sys.executable, "-m", "tests.world.hunt", str(limit_s), first, *cells]
        done = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {int(limit_s) + 60}; exec "$@"', "sh", *command],  # of CPU: others work, too
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Noticed("ends", "a world has no end", limit_s)
    if done.returncode == 0:
        return None
    said = (done.stdout or done.stderr).strip().splitlines()[-1]
    if done.returncode != 1 or not said[:1].isdigit():
        return Noticed("crash", said, 0.0)
    took_s, _, found = said.partition(" ")
    return Noticed(found.split(": ")[1], found, float(took_s))


Result = tuple[Mistake, "Noticed | None"]


def is_broken_anyway(by: Noticed) -> bool:
    """Whether the world in which a mistake was noticed breaks a rule without it, too."""
    if not by.world:
        return False
    cell, _, seed = by.world.partition(" ")
    return bool(sort_out(run_world(make_plan(cell, int(seed))))[0])


_DRAWN: Final = (
    "Mistakes that somebody thinks of are of the kinds that somebody thinks of. So ten were drawn of the 6,119 that "
    "can be made in `core`, with the seed 28, and tried with the tests in `tests/core` and with worlds. Three were "
    "noticed. One makes no difference: it looks at each string for what only some can hold. For the other six there "
    "are tests in `tests/core` now, each seen to fail with its mistake. Of ten more, with the seed 29, six were "
    "noticed at once by tests in `tests/core`, and one by a conversation with the whole proxy; one looks at results "
    "in vain; two have tests now. Of ten with the seed 30, six were noticed at once by tests in `tests/core`, and the "
    "other four have tests there now."
)
"""What came of mistakes that were drawn: the page says it after those that are written down."""

_ROW: Final = re.compile(r"^\| (.+) \| `.+` \| `([^`]+)`(?: in `([^`]+)`)? \| (.+) \|$", re.M)
"""What a page says of what was noticed."""


def told_by(page: str) -> dict[str, Noticed]:
    """Give what a page says of which mistake, by its words."""
    return {what: Noticed(rule, world, float(took)) for what, rule, world, took in _ROW.findall(page)}


def merged(results: Sequence[Result], page: str) -> list[Result]:
    """Give the results of all that is written down: those of a run of some, and of the others what a page says."""
    told, new = told_by(page), dict(results)
    return [(one, new.get(one, told.get(one.what))) for one in known()]


def page_of(results: Sequence[Result], limit_s: float) -> str:
    """Give the page that says which rule noticed which mistake."""
    mended = {row.what for row in DEFECTS}
    defects = [result for result in results if result[0].what in mended]
    others = [result for result in results if result[0].what not in mended]
    by_rule = Counter(by.rule for _, by in results if by is not None)
    made = (
        "`nox -s mutants -- worlds` makes each mistake of `tests/world/mistakes.toml` in a copy of the runtime, and "
        f"runs [worlds](worlds.md) for at most {limit_s:g} s of CPU, until one breaks a rule: {_count(others)} are "
        "noticed. The list was written by reading the runtime, before rules were held against it. It does the same "
        "with the defects of `tests/world/defects.toml`, which were orders of events: the mend of each is taken out, "
        f"and {_count(defects)} are found again. The world that is named here is run first the next time."
    )
    lines = [
        *("# Mistakes that worlds notice", "", textwrap.fill(made, width=118)),
        *("", "| rule | mistakes that it noticed first |", "|---|---|"),
        *(f"| `{rule}` | {count} |" for rule, count in by_rule.most_common()),
        *("", "| defect, with its mend taken out | file | found by | s |", *_rows(defects)),
        *("", "| mistake | file | noticed by | s |", *_rows(others)),
        *("", "## Drawn at random", "", textwrap.fill(_DRAWN, width=118)),
    ]
    return "\n".join(lines) + "\n"


def _count(results: Sequence[Result]) -> str:
    return f"**{sum(by is not None for _, by in results)} of {len(results)}**"


def _rows(results: Sequence[Result]) -> list[str]:
    told = [f"{_name(by)} | {by.took_s:.1f}" if by is not None else "- |" for _, by in results]
    return [
        "|---|---|---|---|",
        *(f"| {one.what} | `{one.file}` | {by} |" for (one, _), by in zip(results, told, strict=True)),
    ]


def _name(by: Noticed) -> str:
    return f"`{by.rule}` in `{by.world}`" if by.world else f"`{by.rule}`"


def main(given: Sequence[str] | None = None) -> int:
    """Make them, print a line each, and how many were noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.world.mistakes", description=__doc__)
    parser.add_argument("-n", "--number", type=int, default=40, metavar="COUNT")
    parser.add_argument("-s", "--seed", type=int, default=1)
    parser.add_argument("-t", "--time", type=float, default=25.0, help="how long each is hunted, in seconds of CPU")
    parser.add_argument("-k", "--known", action="store_true", help="those of `table`, in place of drawn ones")
    parser.add_argument("-o", "--only", default="", metavar="WORDS", help="of those, the ones with this in their text")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "-p",
        "--page",
        action="store_true",
        help="write docs/internals/noticed.md; what was not run stays as it is there",
    )
    parser.add_argument(
        "-u", "--unnoticed", action="store_true", help="of those, the ones that the page knows no rule for"
    )
    parser.add_argument("-w", "--world", default="", metavar="CELL SEED", help="which to run first")
    arguments = parser.parse_args(given)
    chosen = known() if arguments.known else draw(arguments.number, arguments.seed)
    chosen = [one for one in chosen if arguments.only in f"{one.file} {one.what}"]
    page = PAGE.read_text("utf-8")
    if arguments.unnoticed:
        chosen = [one for one in chosen if one.what not in told_by(page)]
    worlds = {what: by.world for what, by in told_by(page).items()}
    begin()
    results: list[Result] = []
    with ThreadPoolExecutor(arguments.jobs) as workers:
        hunted = workers.map(lambda one: hunt(one, arguments.time, worlds.get(one.what, arguments.world)), chosen)
        for mistake, by in zip(chosen, hunted, strict=True):
            if by is not None and is_broken_anyway(by):
                print(f"a rule is broken where no mistake was made: {by}")
                return 2
            results.append((mistake, by))
            print(f"{mistake}\n    {'NOT NOTICED' if by is None else by}", flush=True)
    print(f"{sum(by is not None for _, by in results)} of {len(results)} noticed")
    if arguments.page:
        PAGE.write_text(page_of(merged(results, page), arguments.time), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
