"""`--env`, `--inherit-env` and `--cwd`: what the server's command finds."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from dragoman.cli import main
from tests.cli.test_listen import INITIALIZE, listening
from tests.support.commands import dragoman

SHOWS = [
    sys.executable,
    "-c",
    "import json, os, sys; print(json.dumps([dict(os.environ), os.getcwd()]), file=sys.stderr)",
]
SECRETS = {"DRAGOMAN_AUTH_TOKEN": "0123456789abcdef", "DRAGOMAN_OTHER": "1", "API_KEY": "theirs"}


def found(*options: str, **environment: str) -> tuple[dict[str, str], str]:
    """Give what a server finds: its variables, and where it is."""
    environment = {**os.environ, **SECRETS, **environment}
    done = dragoman("proxy", "--log-level", "critical", *options, "--", *SHOWS, env=environment)
    variables, directory = json.loads(done.stderr)
    return variables, directory


def test_over_stdio_a_server_finds_everything_but_what_is_ours() -> None:
    """The `env` of an entry in a client's configuration comes to us, and is meant for the server."""
    variables, directory = found()
    assert variables["API_KEY"] == "theirs"
    assert not [name for name in variables if name.startswith("DRAGOMAN_")]
    assert directory == os.getcwd()


def test_safe_is_what_is_no_secret_and_more_can_be_named() -> None:
    variables, _ = found("--inherit-env", "safe", "--env", "SOME", "--env", "OTHER=a=b", SOME="thing", UNSAID="x")
    assert (variables["SOME"], variables["OTHER"], variables["PATH"]) == ("thing", "a=b", os.environ["PATH"])
    assert not {"API_KEY", "UNSAID"} & set(variables)


def test_none_is_nothing_but_what_is_named(tmp_path: Path) -> None:
    variables, directory = found("--inherit-env", "none", "--env", "API_KEY", "--cwd", str(tmp_path))
    assert set(variables) - {"LC_CTYPE"} == {"API_KEY"}  # which Python sets itself
    assert directory == str(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--env", "", "--", "cat"], "expected NAME or NAME=VALUE, found ''"),
        (["--env", "=x", "--", "cat"], "expected NAME or NAME=VALUE, found '=x'"),
        (["--env", "NO_SUCH_VARIABLE", "--", "cat"], "there is no variable NO_SUCH_VARIABLE in our environment"),
        (["--env", "DRAGOMAN_AUTH_TOKEN=x", "--", "cat"], "no server is given what begins with DRAGOMAN_"),
        (["--inherit-env", "some", "--", "cat"], "invalid choice: 'some'"),
        (["--cwd", "/nowhere", "--", "cat"], "there is no directory '/nowhere'"),
        (["--url", "http://h/", "--env", "A=b"], "--env means nothing without COMMAND"),
        (["--url", "http://h/", "--inherit-env", "all"], "--inherit-env means nothing without COMMAND"),
        (["--url", "http://h/", "--cwd", "/"], "--cwd means nothing without COMMAND"),
    ],
)
def test_a_command_line_that_cannot_be_is_explained(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["proxy", *arguments])
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "gets", "warned"),
    [
        ((), False, True),
        (("--env", "API_KEY"), True, False),
        (("--inherit-env", "safe"), False, False),
        (("--inherit-env", "all"), True, False),
    ],
)
def test_behind_a_network_front_a_server_finds_only_what_is_no_secret(
    options: tuple[str, ...], gets: bool, warned: bool, tmp_path: Path
) -> None:
    note = tmp_path / "found"
    server = ["sh", "-c", f'echo "${{API_KEY-nothing}} ${{DRAGOMAN_OTHER-nothing}}" > {note}']
    with listening(*options, server=server, DRAGOMAN_OTHER="1", API_KEY="theirs") as proxy:
        proxy.post(INITIALIZE)
        _, said = proxy.end()
    assert note.read_text() == ("theirs nothing\n" if gets else "nothing nothing\n")
    assert (said.count("the server is not given API_KEY") == 1) == warned
    assert "theirs" not in said


def test_behind_a_network_front_an_http_proxy_with_a_password_is_left_out_and_named(tmp_path: Path) -> None:
    note = tmp_path / "found"
    server = ["sh", "-c", f'echo "${{HTTPS_PROXY-nothing}} ${{HTTP_PROXY-nothing}}" > {note}']
    with listening(server=server, HTTPS_PROXY="http://ada:hush@h:1", HTTP_PROXY="http://h:1") as proxy:
        proxy.post(INITIALIZE)
        _, said = proxy.end()
    assert note.read_text() == "nothing http://h:1\n"
    assert "the server is not given HTTPS_PROXY:" in said
    assert "hush" not in said
