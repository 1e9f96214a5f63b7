"""Finding the command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dragoman.cli import COMMANDS, main


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    listed = capsys.readouterr().err
    assert all(name in listed for name in COMMANDS)


def test_an_unknown_command_is_named_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["interpret"])
    assert caught.value.code == 2
    assert "no command 'interpret'; there are: proxy, convert" in capsys.readouterr().err


def test_help_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "dragoman COMMAND" in capsys.readouterr().out


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dragoman ")


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_options_of_a_command_without_dashes_before_it_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["proxy", "python3", "server.py", "--port", "3"])
    assert "come after `--`" in capsys.readouterr().err
