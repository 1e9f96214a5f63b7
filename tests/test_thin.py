"""How much there is of `runtime/`: bounds that follow it closely. Whoever needs more takes something else out; where a
feature needs more all the same, which has happened often, a commit of its own raises the bound, and says what for.

Counted are statements without docstrings and imports, and the circles of modules that import each other, with imports
for types alone: a reader follows those, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[1] / "runtime"
PACKAGE = RUNTIME / "dragoman"
STATEMENTS = {"": 34_330, "core": 10_570, "transports": 8_030}
LARGEST_CIRCLE = 3

Graph = Mapping[str, set[str]]


def parse(folder: Path) -> dict[str, ast.Module]:
    """The modules below a folder, by name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(RUNTIME).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text("utf-8"))
    return found


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def count_statements(trees: Iterable[ast.AST]) -> int:
    return sum(
        isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom) and not is_docstring(node)
        for tree in trees
        for node in ast.walk(tree)
    )


def find_imports(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Which of these modules each of them imports."""
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        wanted: set[str] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names):
                    wanted.update(alias.name for alias in names)
                case ast.ImportFrom(module=str(module), names=names):
                    # A name of a package may be a module in it; if it is, the package itself is only on the way.
                    modules = {f"{module}.{alias.name}" for alias in names} & trees.keys()
                    wanted.update(modules)
                    if len(modules) < len(names):
                        wanted.add(module)
        graph[name] = wanted & trees.keys() - {name}
    return graph


def reach(graph: Graph, start: str) -> set[str]:
    """What can be reached from a module, itself only by a circle."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def find_circles(graph: Graph) -> list[set[str]]:
    """Groups of modules each of which reaches every other, the largest first."""
    reached = {name: reach(graph, name) for name in graph}
    circles = {
        frozenset({other for other in reached[name] if name in reached[other]})
        for name in graph
        if name in reached[name]
    }
    return sorted(map(set, circles), key=len, reverse=True)


@pytest.mark.parametrize("folder", STATEMENTS)
def test_statements_only_fall(folder: str) -> None:
    count = count_statements(parse(PACKAGE / folder).values())
    print(f"statements in {folder or 'runtime'}: {count:,}")
    bound = STATEMENTS[folder]
    assert count <= bound, (
        f"{count - bound} too many: an idea has one home, so take out as much; or see CONTRIBUTING.md"
    )
    assert count > bound - 100, f"it has become smaller: lower the bound in this file to {count:,}"


def test_circles_of_imports_only_fall() -> None:
    circles = find_circles(find_imports(parse(PACKAGE)))
    print("circles of imports:", *(f"{len(circle)}: {' '.join(sorted(circle))}" for circle in circles), sep="\n  ")
    assert len(circles[0]) <= LARGEST_CIRCLE
    assert len(circles[0]) == LARGEST_CIRCLE, "it has become smaller: lower the bound in this file"


def test_what_is_counted() -> None:
    text = '"""Doc."""\nimport os\nfrom a import b\ndef f() -> None:\n    """Doc."""\n    return None\n'
    assert count_statements([ast.parse(text)]) == 2


def test_what_is_a_circle() -> None:
    texts = {
        "p": "",
        "p.a": "from p import b",
        "p.b": "if x:\n    from p.c import y",
        "p.c": "import p.a",
        "p.d": "import p.a",
    }
    graph = find_imports({name: ast.parse(text) for name, text in texts.items()})
    assert find_circles(graph) == [{"p.a", "p.b", "p.c"}]
