"""The table of mutants, as far as it can be checked without trying them, which takes half an hour."""

from __future__ import annotations

import pytest

from tests.mutants.slips import SLIPS
from tests.mutants.table import MUTANTS, Mutant
from tests.support.judge import ROOT


@pytest.mark.parametrize("mutant", [*MUTANTS, *SLIPS], ids=lambda mutant: mutant.name)
def test_a_mutant_has_its_place(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old
