"""Completion of command lines, as the shells that are there do it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS
from dragoman.cli.completion import SHELLS, read_commands

ASK = {
    "bash": """
source {script}
COMP_WORDS=({words} '{last}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _dragoman; printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "fish": "source {script}; complete -C '{words} {last}'",
}

CASES = {
    "commands": ("dragoman", "pro", {"proxy", "prompt"}),
    "options": ("dragoman list", "--rev", {"--revision"}),
    "revisions": ("dragoman list --revision", "2025-0", {"2025-03-26", "2025-06-18"}),
    "choices": ("dragoman proxy --on-loss", "ref", {"refuse", "refuse-all"}),
    "kinds": ("dragoman list", "t", {"tools", "templates"}),
    "shells": ("dragoman completion", "f", {"fish"}),
    "files": ("dragoman list --config", "mcp", {"mcp.json"}),
    "command": ("dragoman list --", "mcp", {"mcp.json"}),
}


def write_script(shell: str, directory: Path) -> Path:
    command = [sys.executable, "-m", "dragoman", "completion", shell]
    path = directory / f"dragoman.{shell}"
    path.write_bytes(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    return path


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    done = subprocess.run([shell, "-n", write_script(shell, tmp_path)], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize("name", CASES)
def test_words_are_completed(name: str, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    words, last, expected = CASES[name]
    (tmp_path / "mcp.json").touch()
    text = ASK[shell].format(script=write_script(shell, tmp_path), words=words, last=last)
    command = [shell, "--norc", "-c", text] if shell == "bash" else [shell, "--no-config", "-c", text]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, cwd=tmp_path, text=True)
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_of_every_command_is_in_every_script(shell: str) -> None:
    script = "\n".join(SHELLS[shell](read_commands()))
    for name, (_, choices) in read_commands().items():
        assert name in COMMANDS
        for option in (one for choice in choices for one in choice.names if one.startswith("--")):
            assert (f"-l {option[2:]}" if shell == "fish" else option) in script
