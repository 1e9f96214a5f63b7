"""The README: what it shows is what happens. Its links and Python examples are checked with those of all pages."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from dragoman.cli import proxy
from dragoman.cli.parsing import CommandParser
from tests.docs.test_docs import ROOT, blocks, conversation, describe, matches, shell

README = ROOT / "README.md"
SESSIONS = [
    part for block in blocks(README, "console") for part in conversation(block) if part[0].startswith("dragoman ")
]


@pytest.mark.parametrize(("command", "output"), SESSIONS)
def test_commands_of_the_readme_print_what_it_shows(command: str, output: str, tmp_path: Path) -> None:
    shown = shell(command, tmp_path)
    assert matches(output, shown), describe(command, output, shown)


def test_readme_begins_with_two_commands() -> None:
    commands = [line.split("#")[0].strip() for line in blocks(README, "console")[0].splitlines()]
    assert commands == ["pip install . && dragoman demo", "pip install nox && nox"]


def test_second_command_is_what_ci_runs() -> None:
    assert "\npip install nox && nox\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def parse_configuration(block: str, monkeypatch: pytest.MonkeyPatch) -> argparse.Namespace:
    """Read a client's configuration as the client and we do."""
    (server,) = json.loads(block)["mcpServers"].values()
    for name, value in server.get("env", {}).items():
        monkeypatch.setenv(name, value)
    assert (server["command"], server["args"][0]) == ("dragoman", "proxy")
    parser = CommandParser()
    proxy.add_arguments(parser)
    return parser.parse_args(server["args"][1:])


def test_configurations_of_the_readme_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    local, remote = (parse_configuration(block, monkeypatch) for block in blocks(README, "json"))
    assert local.command[0] == "npx"
    assert (remote.url, remote.headers) == ("https://example.com/mcp", [("Authorization", "Bearer the-secret")])
