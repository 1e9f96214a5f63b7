from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what belongs to the user is kept: never where it really is."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path
