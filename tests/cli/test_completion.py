"""Completion of command lines, as the shells that are there do it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS
from dragoman.cli.completion import SHELLS, read_commands
from tests.support import commands

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
    "clients": ("dragoman wrap", "cla", {"claude-desktop", "claude-code"}),
    "rules that are on": ("dragoman proxy --no-rule", "echo", {"echoing-server"}),
    "rules that are off": ("dragoman proxy --rule", "schema", {"schema-dialect"}),
    "servers of clients": ("dragoman list", "al", {"alpha"}),
    "servers of a file": ("dragoman call x --config mcp.json --server", "", {"gamma"}),
    "servers of a client": ("dragoman wrap cursor", "be", {"beta"}),
}
SERVERS = {name: {"command": "x"} for name in ("alpha", "beta", "`touch evil`", "$(touch evil)", "a b")}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_the_same_in_each_process(shell: str) -> None:
    """Sets are not."""
    written = set()
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-m", "dragoman", "completion", shell],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        )
        written.add(ran.stdout)
    assert len(written) == 1


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the file of a client, a file beside it, and our command in the path."""
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": SERVERS}), "utf-8")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"gamma": {"command": "x"}}}', "utf-8")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dragoman"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dragoman "$@"\n', "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write_script(shell: str, directory: Path) -> Path:
    command = [sys.executable, "-m", "dragoman", "completion", shell]
    path = directory / f"dragoman.{shell}"
    path.write_bytes(commands.run(command, capture_output=True, check=True, timeout=60).stdout)
    return path


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    done = commands.run([shell, "-n", write_script(shell, tmp_path)], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize("name", CASES)
def test_words_are_completed(name: str, shell: str, home: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    words, last, expected = CASES[name]
    text = ASK[shell].format(script=write_script(shell, home), words=words, last=last)
    command = [shell, "--norc", "-c", text] if shell == "bash" else [shell, "--no-config", "-c", text]
    done = commands.run(command, capture_output=True, timeout=60, check=True, cwd=home, text=True)
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == expected
    assert not (home / "evil").exists()


def test_no_name_of_a_server_is_more_than_a_word_for_a_shell(home: Path) -> None:
    listed = commands.run(["dragoman", "completion", "servers"], capture_output=True, timeout=60, check=True)
    assert listed.stdout.split(b"\n") == [b"alpha", b"beta", b""]


def test_zsh_completes_every_command(home: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh")
    script = write_script("zsh", home)
    typed = [*(f"dragoman {name} " for name in COMMANDS), "dragoman wrap cursor "]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.environ.update(TERM="vt100", COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    seen = {}
    try:
        widget = "look() { zle list-choices; zle -R; print -n lis''ted; }; zle -N look; bindkey '^I' look"
        begun = f"LISTMAX=9999; autoload -U compinit; compinit -u -D; source {script}; {widget}; print be''gun\n"
        ask_terminal(terminal, begun, "begun")
        for words in typed:
            seen[words] = ask_terminal(terminal, f"\x15{words}\t", "listed")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert [words for words, text in seen.items() if "_arguments:" in text] == []
    assert {"claude-code", "codex", "mcp.json"} <= set(seen["dragoman wrap "].split())
    assert {"alpha", "tools"} <= set(re.findall(r"\w+", seen["dragoman list "]))
    assert {"alpha", "beta"} <= set(re.findall(r"\w+", seen["dragoman wrap cursor "]))


def ask_terminal(terminal: int, keys: str, word: str) -> str:
    """Type, and return all that is to be seen until a word is."""
    os.write(terminal, keys.encode())
    seen = b""
    while word.encode() not in seen:
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 65536)
    return seen.decode(errors="replace")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_of_every_command_is_in_every_script(shell: str) -> None:
    script = "\n".join(SHELLS[shell](read_commands()))
    for name, (_, choices) in read_commands().items():
        assert name in COMMANDS
        for option in (one for choice in choices for one in choice.names if one.startswith("--")):
            assert (f"-l {option[2:]}" if shell == "fish" else option) in script
