"""The page as one file: its modules are joined in an order that holds, and its policy lets run only what it has."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from dragoman.inspect.bundle import DATA, MODULES, PAGE_FILES, bundle

PAGE = files("dragoman.inspect") / "page"
TEXTS = {name: (PAGE / name).read_text("utf-8") for name in PAGE_FILES}
WHOLE = bundle({name: text.encode() for name, text in TEXTS.items()}).decode()


def test_every_file_of_the_page_is_listed() -> None:
    assert {entry.name for entry in PAGE.iterdir() if entry.name != "__pycache__"} == set(PAGE_FILES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_needs_only_those_before_it_and_says_so_on_one_line_each(name: str) -> None:
    text = TEXTS[name]
    wanted = re.findall(r'^import .*from "\./(.*)";$', text, re.MULTILINE)
    before = MODULES[: MODULES.index(name)]
    assert set(wanted) <= set(before)
    assert len(re.findall(r"^import", text, re.MULTILINE)) == len(wanted)
    assert not re.search(r"^export (default|\{|\*)", text, re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_holds_nothing_that_ends_the_script_of_the_file(name: str) -> None:
    assert not re.search(r"</script|<!--", TEXTS[name], re.IGNORECASE)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_makes_no_markup_and_runs_no_text(name: str) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setTimeout\(\s*[\"'`]"
    assert not re.search(forbidden, TEXTS[name])


def test_the_file_needs_nothing_from_elsewhere() -> None:
    assert not re.search(r'<[^>]* (src|href)="(?!data:)', WHOLE)
    assert not re.search(r"^(import|export) ", WHOLE, re.MULTILINE)
    assert WHOLE.count(DATA.decode()) == 1


@pytest.mark.parametrize("element", ["script", "style"])
def test_the_policy_names_what_the_file_has(element: str) -> None:
    (text,) = re.findall(rf"<{element}>(.*)</{element}>", WHOLE, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert f"{element}-src 'sha256-{digest}'" in WHOLE
    assert "unsafe" not in WHOLE.partition("<style>")[0]
