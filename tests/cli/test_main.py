"""Finding the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import COMMANDS, main
from dragoman_spec import REVISIONS
from tests.support import commands


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    listed = capsys.readouterr().err
    assert all(name in listed for name in COMMANDS)


def test_an_unknown_command_is_named_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["interpret"])
    assert caught.value.code == 2
    assert "no command 'interpret'; there are: proxy, list" in capsys.readouterr().err


def test_help_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "dragoman COMMAND" in capsys.readouterr().out


def test_a_verbose_version_says_what_a_report_should(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version", "--verbose"]) == 0
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines()[2:])
    assert said["revisions without"] == "2026-07-28"
    assert "pydantic 2" in said["needs"]
    assert set(said) == {
        "revisions with a handshake",
        "revisions without",
        "needs",
        "optional",
        "supported",
        "known defects",
    }


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dragoman ")


@pytest.mark.parametrize(("name", "missing"), [("call", "TOOL"), ("config", "check, FILE")])
def test_only_what_has_to_be_there_is_missed(name: str, missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"the following arguments are required: {missing}\n")


def test_every_revision_of_a_server_can_be_chosen_from(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["proxy", "--server-revision", "2023-01-01", "--", "x"])
    assert capsys.readouterr().err.endswith(f"choose from: auto, {', '.join(REVISIONS)}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"dragoman {name}" in capsys.readouterr().out


def test_the_proxy_imports_nothing_heavy() -> None:
    code = (
        "import sys; import dragoman.cli, dragoman.cli.proxy; early = set(sys.modules)\n"
        "import dragoman.proxy, dragoman.transports.stdio, dragoman_spec\n"
        "dragoman_spec.translator('2024-11-05', '2025-11-25').touches('result', 'tools/list')\n"
        "print('asyncio' in early, 'pydantic' in sys.modules)"
    )
    done = commands.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "False"], done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["proxy", "--list", "http://127.0.0.1:0", "--", "cat"], "--list; did you mean --listen?"),
        (["proxy", "--log-levl=debug", "--", "cat"], "--log-levl=debug; did you mean --log-level"),
        (["proxy", "--nothing-like-it", "--", "cat"], "unrecognized arguments: --nothing-like-it\n"),
        (["convert", "--from", "2025-06-18", "--to", "2024-11-05", "--loss", "f"], "did you mean --losses?"),
        (["--vers"], "did you mean --version?"),
        (["prox"], f"no command 'prox'; there are: {', '.join(COMMANDS)}; did you mean proxy?"),
    ],
)
def test_a_name_that_there_is_not_is_answered_with_a_near_one(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


COMMAND_LINES = {
    "revisions": ["revisions"],
    "explain": ["explain", "--client", "2024-11-05", "--server", "2025-11-25"],
    "diff": ["diff", "2024-11-05", "2026-07-28"],
    "convert": ["convert", "--from", "2025-06-18", "--to", "2024-11-05"],
    "demo": ["demo"],
    "version": ["--version"],
    "help": ["proxy", "--help"],
}
BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}  # argparse leaves out what it cannot write, where nothing is buffered


def finish(arguments: list[str], stdout: int | None, **options: Any) -> tuple[int, str]:
    done = commands.run(
        [sys.executable, "-m", "dragoman", *arguments],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=BUFFERED,
        timeout=60,
        **options,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_command_ends_without_a_word_when_nobody_reads_what_it_prints(command: str) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    try:
        assert finish(COMMAND_LINES[command], write_fd) == (141, "")
    finally:
        os.close(write_fd)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_command_says_on_one_line_that_it_cannot_write(command: str) -> None:
    with open("/dev/full", "wb") as full:
        code, said = finish(COMMAND_LINES[command], full.fileno())
    assert code == 1
    assert re.fullmatch(r"dragoman( \w+)?: cannot write: No space left on device\n", said)


@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_command_ends_cleanly_where_stdout_is_closed(command: str) -> None:
    code, said = finish(COMMAND_LINES[command], None, preexec_fn=lambda: os.close(1))
    assert (code, "Traceback" in said) == (0, False)


def test_options_of_a_command_without_dashes_before_it_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["list", "python3", "server.py", "--port", "3"])
    assert "comes after `--`: dragoman list -- python3 server.py --port 3" in capsys.readouterr().err
