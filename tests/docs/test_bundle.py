"""The bundle for desktop clients has what they read, and starts the proxy before the server of its settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bundle.__main__ import write_bundle

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SERVER = ROOT / "tests" / "client" / "echo_server.py"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    with zipfile.ZipFile(write_bundle(folder)) as archive:
        archive.extractall(folder / "opened")
    return folder / "opened"


def test_it_is_that_of_this_version(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    assert manifest["version"] == PROJECT["version"]
    assert (bundle / manifest["server"]["entry_point"]).is_file()
    needs = tomllib.loads((bundle / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert needs == [f"dragoman=={PROJECT['version']}"]


def test_every_setting_is_used_and_secrets_are_said_to_be_some(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    used = set(manifest["server"]["mcp_config"]["env"].values())
    assert used == {f"${{user_config.{name}}}" for name in manifest["user_config"]}
    assert manifest["user_config"]["authorization"]["sensitive"]


def test_the_same_sources_give_the_same_bundle(tmp_path: Path) -> None:
    first = write_bundle(tmp_path).read_bytes()
    assert write_bundle(tmp_path).read_bytes() == first


@pytest.mark.parametrize("authorization", ["Bearer x", "${user_config.authorization}"])
def test_it_reaches_the_server_of_its_settings(bundle: Path, authorization: str) -> None:
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    with subprocess.Popen([sys.executable, str(SERVER), "--http"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        settings = {**os.environ, "BUNDLE_URL": url, "BUNDLE_AUTHORIZATION": authorization}
        command = [sys.executable, str(bundle / "server.py")]
        said = json.dumps(frame) + "\n"
        done = subprocess.run(command, input=said, env=settings, capture_output=True, text=True, timeout=60)
        server.kill()
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-06-18", done.stderr
