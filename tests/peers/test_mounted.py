"""A server of a released SDK inside the process of its client, as the example shows it."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = os.environ.get("DRAGOMAN_PEERS")
LONGEST_S = 60


@pytest.mark.skipif(ENVIRONMENTS is None, reason="no peer environments: run `nox -s peers`")
def test_a_server_of_the_sdk_is_mounted_without_a_port() -> None:
    assert ENVIRONMENTS is not None
    python = Path(ENVIRONMENTS) / "current" / "bin" / "python"
    ours = [str(ROOT / "runtime"), str(ROOT / "generated"), sysconfig.get_paths()["purelib"]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ours)}
    command = [str(python), str(ROOT / "examples" / "mounted_server.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.stdout == "the server speaks 2025-11-25, the client 2024-11-05: 3\n", done.stderr
