"""Names in the runtime: one class for a name, so that a search for it finds what is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

RUNTIME = Path(__file__).parent.parent / "runtime"


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(RUNTIME.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(RUNTIME)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
