"""A pattern is read where Python finds the same, in time that grows as the text does."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from codegen.read.patterns import read_pattern

QUICK = [
    "^[a-zA-Z0-9_-]{1,64}$",
    "^[a-z0-9]+(-[a-z0-9]+)*$",
    "^[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^[0-9]{4}[0-9]{2}$",
    "^(http|https)://[^/]+/",
    r"^.+\.json$",
    "^(a|b|cd)+$",
    "^[^@]+@[^@]+$",
    "^$",
    "abc",
    "^[a-z]+$|^[0-9]+$",
    "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$",
]
SLOW = [
    "^(a+)+$",
    "(a+)+$",
    "^[a-zA-Z0-9]+([._-]?[a-zA-Z0-9]+)*$",
    "^(a|a)*$",
    "^(a|ab|b)*$",
    "^(a*)*$",
    "^(a?)*$",
    "^a*a*$",
    "^.*x.*$",
    "a+$",
    "^a|b+$",
    "^(a{1,9}){1,9}$",
    "^([a-z]+){3}$",
    "^(?:[a-z]+|[0-9a]+)+$",
    r"^(\w+\s?)*$".replace(r"\s", " "),
]


@pytest.mark.parametrize("pattern", QUICK)
def test_a_pattern_whose_next_character_says_how_it_goes_on_is_read(pattern: str) -> None:
    found = read_pattern(pattern)
    assert found is not None
    began = time.process_time()
    for unit in ("a", "1", "a-", "http://", ".json", "cd", "@", "ab"):
        re.search(found, unit * 3000 + "\n")
    assert time.process_time() - began < 1


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_could_take_for_ever_is_not(pattern: str) -> None:
    assert read_pattern(pattern) is None


def test_one_that_was_usual_takes_long_in_python() -> None:
    """Why they are refused: forty letters, and no end."""
    code = f"import re; re.search({SLOW[2]!r}, 'a' * 60 + '!')"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], timeout=2, check=False)


def test_a_pattern_of_very_many_parts_is_not_read() -> None:
    assert read_pattern("^" + "a?" * 2000 + "$") is None
    assert read_pattern("^" + "(" * 140 + "a" + ")" * 140 + "$") is not None
