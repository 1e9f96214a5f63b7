"""How values of options are written."""

from __future__ import annotations

import pytest

from dragoman.values import size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("500", 500), ("500k", 512_000), ("16M", 16 << 20), ("1g", 1 << 30)),
        *(("256MB", 256 << 20), ("256MiB", 256 << 20), ("8kb", 8192), ("007", 7)),
    ],
)
def test_a_size_may_have_a_unit_as_people_write_it(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0MB", "-1", "1.5m", "16b", "16 MB", "16mm", "16mi", "many", "k"])
def test_what_is_no_size_is_told_how_one_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number of bytes such as 500k or 16MB, found"):
        size(text)
