"""Shell sessions with a server in the background: clients see what the page shows, on a port that is free here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.test_docs import IN_BACKGROUND, PAGES, ROOT, blocks, conversation, matches, name, shell
from tests.support.lines import Lines
from tests.support.ports import free_port

SHOWN_PORT = "8080"
SESSIONS = [(page, block) for page in PAGES for block in blocks(page, "console") if IN_BACKGROUND in block]


@contextmanager
def in_background(command: str, directory: Path) -> Iterator[str]:
    """Run a command until the caller is done; give the first line that it prints."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(["sh", "-c", f"exec {command}"], cwd=directory, env=environment, stderr=subprocess.PIPE)
    lines = Lines(process.stderr)
    try:
        yield lines.read().decode()
    finally:
        process.terminate()
        lines.rest(process)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.parametrize(("page", "block"), SESSIONS, ids=[name(page) for page, _ in SESSIONS])
def test_clients_of_a_server_in_the_background_get_what_the_page_shows(page: Path, block: str, tmp_path: Path) -> None:
    port = str(free_port())
    (start, said), *rest = conversation(block.replace(SHOWN_PORT, port))
    with in_background(start.removesuffix(" &"), tmp_path) as first_line:
        assert first_line == said
        for command, expected in rest:
            assert matches(expected, shell(command, tmp_path)), command
