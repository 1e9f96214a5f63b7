"""Where requests wait: each attribute that holds requests, or is keyed by their ids, is on the page once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "runtime" / "dragoman"
PAGE = ROOT / "docs" / "internals" / "lifecycle.md"
SECTION = "## Where requests wait"
MOST = 14

FOLDERS = ("core", "host", "router", "transports", "client", "server")
"""Where frames pass. What only looks at them (`check`, `inspect`, `trace`) answers nobody."""

REQUESTS = {
    *("Call", "PerRequestCall", "Waits", "Loan", "SessionLoan", "PerRequestLoan", "LoanT", "HeldFrame", "HeldRequest"),
    *("OpenQuestion", "_Open", "KeptTask", "Post", "PostedCall", "Delivery", "ParkedRun"),
}
"""What a request, or what is kept of one, is called."""

OTHER_BYTES = {"HttpRequest.headers"}
"""What is keyed by bytes that are no id."""

HOLDER = re.compile(r"(?:dict|deque|list|set|OrderedDict|WeakKeyDictionary)\[(.+)\]")
BY_ID = re.compile(r"(?:dict|OrderedDict)\[(?:bytes|str \| int)\b")


def holds_requests(annotation: str) -> bool:
    """Whether what is annotated so is keyed by ids, or holds requests."""
    holder = HOLDER.fullmatch(annotation)
    named = set(re.findall(r"\w+", holder[1])) if holder is not None else set()
    return BY_ID.match(annotation) is not None or not REQUESTS.isdisjoint(named)


def attributes_of(module: ast.Module) -> Iterator[str]:
    """Give the attributes of the classes of a module that hold requests."""
    for kind in ast.walk(module):
        if not isinstance(kind, ast.ClassDef):
            continue
        for node in ast.walk(kind):
            if not isinstance(node, ast.AnnAssign) or not holds_requests(ast.unparse(node.annotation)):
                continue
            if isinstance(node.target, ast.Attribute):
                yield f"{kind.name}.{node.target.attr}"
            elif isinstance(node.target, ast.Name) and node in kind.body:
                yield f"{kind.name}.{node.target.id}"


def attributes_of_the_runtime() -> dict[str, set[str]]:
    """Give them all, with the modules that they are in."""
    found: dict[str, set[str]] = {}
    for path in (path for folder in FOLDERS for path in sorted((RUNTIME / folder).rglob("*.py"))):
        for name in attributes_of(ast.parse(path.read_text("utf-8"))):
            found.setdefault(name, set()).add(path.relative_to(RUNTIME).with_suffix("").as_posix())
    return found


def parts() -> tuple[list[list[str]], list[str]]:
    """Give the cells of the rows of the page, and the items that say what else there is."""
    section = PAGE.read_text("utf-8").partition(SECTION)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    items = section.partition("\n- ")[2].split("\n- ")
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows], items


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([\w.]+)`", cell)


def test_each_attribute_that_holds_requests_is_on_the_page_once() -> None:
    tables, others = parts()
    named = [name for text in (*(row[0] for row in tables), *others) for name in names_in(text)]
    assert sorted(named) == sorted({*attributes_of_the_runtime()} - OTHER_BYTES)


def test_the_page_says_where_each_is() -> None:
    found = attributes_of_the_runtime()
    tables, _ = parts()
    for table, where, *_ in tables:
        for name in names_in(table):
            assert found[name] <= {*re.findall(r"`([\w/]+)`", where)}, table


def test_there_are_no_more_tables_than_before() -> None:
    tables, _ = parts()
    assert 0 < len(tables) <= MOST, "two of them say the same?"
    assert all(len(names_in(row[0])) == 1 for row in tables)


def test_what_holds_requests() -> None:
    text = """
class Kept:
    rows: dict[bytes, int]
    names: dict[str, int]

    def __init__(self) -> None:
        self._queue: deque[Loan] = deque()
        self._by_client: dict[Client, set[Call]] = {}
        self._sizes: dict[str, bytes] = {}
        self.said: dict[str | int, str] = {}
"""
    assert sorted(attributes_of(ast.parse(text))) == ["Kept._by_client", "Kept._queue", "Kept.rows", "Kept.said"]
