"""The bindings have a version of their own, and the proxy refuses another one than it was made with."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import dragoman
from dragoman_spec.version import VERSION

ROOT = Path(__file__).parents[1]


def test_another_version_over_ours_is_an_error_that_says_what_to_install() -> None:
    code = "import dragoman_spec.version as v; v.VERSION = '9.9.9'; import dragoman"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "9.9.9 was installed over it" in done.stderr
    assert f"dragoman-spec=={VERSION}" in done.stderr
    assert dragoman.__all__


def test_the_distribution_needs_pydantic_alone_and_no_newer_than_the_proxy_does() -> None:
    def needs(folder: Path) -> list[str]:
        wanted: list[str] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
        return wanted

    (pydantic,) = needs(ROOT / "bindings")
    assert pydantic in needs(ROOT)
