"""Real peers of the documentation: old and new clients and servers do what it shows, without the proxy and with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.test_docs import REAL_PEERS, ROOT, blocks, conversation, shell

ENVIRONMENTS = os.environ.get("DRAGOMAN_PEERS")
SESSIONS = [part for block in blocks(ROOT / "docs" / "real-peers.md", "console") for part in conversation(block)]


@pytest.mark.skipif(ENVIRONMENTS is None, reason="no peer environments: run `nox -s peers`")
@pytest.mark.parametrize(("command", "output"), [part for part in SESSIONS if part[0].startswith(REAL_PEERS)])
def test_real_peers_print_what_the_page_shows(command: str, output: str, tmp_path: Path) -> None:
    assert ENVIRONMENTS is not None
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "old").symlink_to(Path(ENVIRONMENTS) / "2024-11-05")
    (tmp_path / "new").symlink_to(Path(ENVIRONMENTS) / "2025-11-25")
    (tmp_path / "current").symlink_to(Path(ENVIRONMENTS) / "current")
    shown = shell(f"{command} 2>&1", tmp_path)
    # Tracebacks are drawn into a frame: a line of the page is a part of a line shown.
    assert [line for line in output.splitlines() if line != "..." and line not in shown] == []
