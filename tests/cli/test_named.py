"""A server that is named as the files of the user's clients name it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import main

SERVER = str(Path(__file__).parents[1] / "client" / "echo_server.py")
CURSOR, GEMINI = ".cursor/mcp.json", ".gemini/settings.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def write(home: Path, file: str, **servers: Any) -> None:
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))


def echo(*options: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, *options]}


def said_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_list_finds_a_server_in_the_file_of_a_client(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(home, CURSOR, here=echo("--few"))
    assert main(["list", "here", "tools"]) == 0
    said = capfd.readouterr()
    assert "echo(" in said.out
    assert "resources" not in said.out
    assert f"dragoman: here is that of Cursor, {home / CURSOR}" in said.err


def test_list_finds_a_server_that_claude_code_has_for_the_current_folder(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"mcpServers": {"here": {"command": "nothing-of-this-name"}}}
    local = {"projects": {home.as_posix(): {"mcpServers": {"here": echo("--few")}}}}
    (home / ".claude.json").write_text(json.dumps({**said, **local}))
    monkeypatch.chdir(home)
    assert main(["list", "here", "tools"]) == 0
    assert "echo(" in capfd.readouterr().out


def test_other_commands_find_it_by_an_option(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(home, GEMINI, here=echo(), there={"command": "nothing-of-this-name"})
    write(home, CURSOR, here=echo())
    assert main(["call", "echo", "text=hello", "--server", "here"]) == 0
    assert "hello" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("lists", "has_echo", "has_others"),
    [
        ({}, True, True),
        ({"excludeTools": ["echo"]}, False, True),
        ({"includeTools": ["echo"]}, True, False),
        ({"includeTools": ["echo"], "excludeTools": ["echo"]}, False, False),
        ({"excludeTools": ["ech?", "*"]}, True, True),
    ],
)
def test_what_a_file_hides_of_the_server_that_is_named_is_hidden(
    lists: dict[str, Any], has_echo: bool, has_others: bool, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(home, CURSOR, here={**echo(), **lists}, there=echo())
    proxy = ["--", sys.executable, "-m", "dragoman", "proxy", "--config", str(home / CURSOR), "--server", "here"]
    assert main(["list", "tools", "--json", *proxy]) == 0
    names = {tool["name"] for tool in json.loads(capfd.readouterr().out)["tools"]}
    assert ("echo" in names, bool(names - {"echo"})) == (has_echo, has_others)
    assert (main(["call", "echo", "text=hello", *proxy]) == 0) == has_echo
    assert ("no tool 'echo'" in capfd.readouterr().err) == (not has_echo)


def test_a_name_that_nobody_has_is_said_with_those_that_there_are(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, CURSOR, filesystem=echo(), github=echo())
    said = said_of(capsys, "list", "filesystm")
    assert "no client has a server 'filesystm'; there are: filesystem, github; did you mean filesystem?" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["toosl"], "no client has a server 'toosl'; there are: adder; did you mean tools?"),
        (["adder", "toosl"], "found 'adder', 'toosl'; did you mean tools?"),
        (["tol", "--config", "{file}"], "there is no server 'tol' in {file}; there are: adder; did you mean tools?"),
        (["addr", "tools", "--config", "{file}"], "there is no server 'addr' in {file}; there are: adder; did you"),
    ],
)
def test_a_word_that_is_nearly_one_of_what_can_be_listed_is_said_to_be(
    words: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, CURSOR, adder=echo())
    file = str(home / CURSOR)
    shown = said_of(capsys, "list", *(word.format(file=file) for word in words))
    assert said.format(file=file) in shown


def test_two_files_that_differ_have_to_be_told_apart(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, CURSOR, here=echo())
    write(home, GEMINI, here=echo("--few"))
    said = said_of(capsys, "list", "here")
    assert f"'here' is not the same in all files: Cursor ({home / CURSOR}), Gemini CLI ({home / GEMINI})" in said


def test_a_file_that_is_broken_hides_no_other(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(home, GEMINI, here=echo())
    write(home, CURSOR)
    (home / CURSOR).write_text("{")
    assert main(["list", "here", "tools"]) == 0
    assert "Gemini CLI" in capfd.readouterr().err


def test_no_file_at_all_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no file of a client has any" in said_of(capsys, "list", "here")


def test_two_names_are_one_too_many(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected one name of a server beside tools" in said_of(capsys, "list", "here", "there")
