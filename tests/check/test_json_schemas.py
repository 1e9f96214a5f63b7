"""Values that are held against the schemas of a server, whatever these are."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.check.json_schemas import find_misfits

DOUBLINGS = 18


class Looks:
    """A constant of a schema that counts how often a value is compared with it."""

    def __init__(self, fits: bool) -> None:
        self.fits = fits
        self.count = 0

    def __ne__(self, other: object) -> bool:
        self.count += 1
        return not self.fits


@pytest.mark.parametrize(("keyword", "fits"), [("allOf", True), ("anyOf", False), ("oneOf", False)])
def test_references_that_double_at_each_step_are_given_up(keyword: str, fits: bool) -> None:
    """Else a server with a schema of a kilobyte could keep a check at work for years."""
    looks = Looks(fits)
    doubled: dict[str, Any] = {
        f"{step}": {keyword: [{"$ref": f"#/$defs/{step + 1}"}, {"$ref": f"#/$defs/{step + 1}"}]}
        for step in range(DOUBLINGS)
    }
    schema = {"$ref": "#/$defs/0", "$defs": {**doubled, f"{DOUBLINGS}": {"const": looks}}}
    find_misfits("a value", schema)
    assert 0 < looks.count < 2**DOUBLINGS // 4


def test_a_misfit_behind_references_that_double_a_little_is_found() -> None:
    twice = [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/leaf"}]
    schema = {"allOf": [{"anyOf": twice}, {"oneOf": twice}], "$defs": {"leaf": {"type": "integer"}}}
    assert [misfit.pointer for misfit in find_misfits("a value", schema)] == ["", ""]
