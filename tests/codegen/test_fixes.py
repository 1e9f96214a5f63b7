"""A fix replaces what it expects and nothing else; one that no longer fits stops everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.read.fixes import Fix, apply_fixes, read_fixes

SCHEMA: dict[str, Any] = {"$defs": {"A": {"type": ["string", "integer"]}, "b/c": {"anyOf": [{}, {"type": "null"}]}}}


def _overlay(directory: Path, *tables: str) -> Path:
    path = directory / "2099-01-01.toml"
    path.write_text("".join(f"[[fix]]\n{table}\n" for table in tables), encoding="utf-8")
    return path


def _fix(pointer: str, expect: str, replace: str) -> str:
    return f'name = "it"\npointer = "{pointer}"\nexpect = {expect}\nreplace = {replace}\nreason = "Because."'


def test_missing_overlay_has_no_fixes(tmp_path: Path) -> None:
    assert apply_fixes(SCHEMA, tmp_path / "none.toml") == SCHEMA


def test_fix_is_read_with_its_reason() -> None:
    row = {"name": "it", "pointer": "/a", "expect": 1, "replace": "two", "reason": "Because."}
    assert read_fixes("2099-01-01", {"fix": [row]}) == (Fix("it", "/a", 1, "two", "Because."),)


def test_fix_replaces_what_it_expects(tmp_path: Path) -> None:
    overlay = _overlay(tmp_path, _fix("/$defs/A/type", '["string", "integer"]', '["string", "number"]'))
    assert apply_fixes(SCHEMA, overlay)["$defs"]["A"] == {"type": ["string", "number"]}


def test_fix_leaves_its_input_alone(tmp_path: Path) -> None:
    apply_fixes(SCHEMA, _overlay(tmp_path, _fix("/$defs/A/type", '["string", "integer"]', '"null"')))
    assert SCHEMA["$defs"]["A"] == {"type": ["string", "integer"]}


def test_pointer_goes_through_escapes_and_indexes(tmp_path: Path) -> None:
    overlay = _overlay(tmp_path, _fix("/$defs/b~1c/anyOf/1/type", '"null"', '"string"'))
    assert apply_fixes(SCHEMA, overlay)["$defs"]["b/c"]["anyOf"][1] == {"type": "string"}


@pytest.mark.parametrize("pointer", ["/$defs/Z/type", "/$defs/b~1c/anyOf/7/type", "/$defs/A/type/x/y"])
def test_pointer_that_leads_nowhere_is_an_error(tmp_path: Path, pointer: str) -> None:
    with pytest.raises(UnusedDecision, match="the pointer leads nowhere in this schema"):
        apply_fixes(SCHEMA, _overlay(tmp_path, _fix(pointer, '"x"', '"y"')))


def test_other_value_than_expected_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusedDecision, match=r"expected 'string', found \['string', 'integer'\]"):
        apply_fixes(SCHEMA, _overlay(tmp_path, _fix("/$defs/A/type", '"string"', '"null"')))


def test_fix_without_reason_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusedDecision, match="expected the keys expect, name, pointer, reason, replace"):
        read_fixes("2099-01-01", {"fix": [{"pointer": "/a", "expect": 1, "replace": 2}]})


def _two(tmp_path: Path, earlier: str, later: str) -> Path:
    """The overlays of two revisions; the path of the later one."""
    (tmp_path / "2001-01-01.toml").write_text(f"[[fix]]\n{earlier}\n", encoding="utf-8")
    overlay = tmp_path / "2002-02-02.toml"
    overlay.write_text(f"[[fix]]\n{later}\n" if later else "", encoding="utf-8")
    return overlay


NUMBER = _fix("/$defs/A/type", '["string", "integer"]', '["string", "number"]')


def test_fix_of_an_earlier_revision_holds_on(tmp_path: Path) -> None:
    assert apply_fixes(SCHEMA, _two(tmp_path, NUMBER, ""))["$defs"]["A"] == {"type": ["string", "number"]}


def test_fix_of_an_earlier_revision_ends_where_the_defect_does(tmp_path: Path) -> None:
    gone = _fix("/$defs/A/type", '["string", "boolean"]', '"null"')
    assert apply_fixes(SCHEMA, _two(tmp_path, gone, "")) == SCHEMA


def test_fix_of_an_earlier_revision_gives_way_to_one_of_the_revision_itself(tmp_path: Path) -> None:
    own = _fix("/$defs/A/type", '["string", "integer"]', '["string", "integer"]')
    assert apply_fixes(SCHEMA, _two(tmp_path, NUMBER, own)) == SCHEMA


def test_fix_of_another_value_does_not_hide_an_earlier_one_of_the_same_place(tmp_path: Path) -> None:
    """It may be that of a revision of the other era, which the next one does not come from."""
    other = _fix("/$defs/A/type", '["string", "boolean"]', '"null"')
    _two(tmp_path, NUMBER, other)
    assert apply_fixes(SCHEMA, tmp_path / "2003-03-03.toml")["$defs"]["A"] == {"type": ["string", "number"]}


def test_fix_of_a_later_revision_says_nothing_about_an_earlier_one(tmp_path: Path) -> None:
    later = _two(tmp_path, NUMBER, "")
    later.rename(tmp_path / "2000-01-01.toml")
    assert apply_fixes(SCHEMA, tmp_path / "2000-01-01.toml") == SCHEMA
