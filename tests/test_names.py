"""Names in the runtime: one class for a name, so that a search for it finds what is meant, and one word for an idea."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "runtime"
PAGE = ROOT / "docs" / "internals" / "vocabulary.md"
WORD = re.compile(r"[A-Z][a-z]+")


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(RUNTIME.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(RUNTIME)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def words_of(name: str) -> set[str]:
    """The words of a class's name, each as one thing of the kind."""
    return {word.lower().removesuffix("s") for word in WORD.findall(name)}


@functools.cache
def classes_of_the_core() -> set[str]:
    trees = (ast.parse(path.read_text("utf-8")) for path in (RUNTIME / "dragoman" / "core").rglob("*.py"))
    names = {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def rows() -> list[tuple[str, set[str], set[str]]]:
    """The words of the page: each with the classes that are named for it, and with what is not said."""
    lines = [line.split("|")[2:-1] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [
        (word.strip(), set(re.findall(r"`(\w+)`", classes)), {one.strip() for one in others.split(",")} - {""})
        for word, classes, others in lines[1:]
    ]


def test_each_class_of_the_vocabulary_is_there() -> None:
    assert set().union(*(classes for _, classes, _ in rows())) <= classes_of_the_core()


def test_a_class_with_a_word_of_the_vocabulary_stands_in_its_row() -> None:
    """Whoever names a class with such a word has thought of the idea: the page says what else there is of it."""
    placed = {word: classes for word, classes, _ in rows() if word.isalpha()}
    assert "call" in placed
    missing = {
        word: found
        for word in placed
        if (found := {one for one in classes_of_the_core() if word in words_of(one)} - placed[word])
    }
    assert missing == {}


def test_no_class_has_a_word_for_which_there_is_another() -> None:
    others = {other: word for word, _, others in rows() for other in others}
    assert others["lent"] == "loan"
    wrong = {one: others[word] for one in classes_of_the_core() for word in words_of(one) if word in others}
    assert wrong == {}
