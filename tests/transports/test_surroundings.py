"""Which variables a server that is our child is given."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.errors import TransportClosed
from dragoman.transports.spawn import spawn
from dragoman.transports.surroundings import make_environment, secretive_names

OURS = {
    "DRAGOMAN_AUTH_TOKEN": "ours",
    "PATH": "/bin",
    "HOME": "/home/ada",
    "LC_ALL": "C.UTF-8",
    "TERM": "() { echo a function; }",
    "AWS_SECRET_ACCESS_KEY": "theirs",
    "EDITOR": "ed",
}


@pytest.mark.parametrize(
    ("mode", "given"),
    [
        ("all", {name: OURS[name] for name in OURS if name != "DRAGOMAN_AUTH_TOKEN"}),
        ("safe", {name: OURS[name] for name in ("PATH", "HOME", "LC_ALL")}),
        ("none", {}),
    ],
)
def test_a_mode_says_what_is_handed_on(mode: str, given: dict[str, str]) -> None:
    assert make_environment(mode, OURS) == given
    assert make_environment(mode, OURS, {"EXTRA": "1", "HOME": "/"}) == {**given, "EXTRA": "1", "HOME": "/"}


@pytest.mark.parametrize(
    ("name", "value", "safe"),
    [
        ("HTTPS_PROXY", "http://proxy.example:3128", True),
        ("https_proxy", "http://ada:secret@proxy.example:3128", False),
        ("no_proxy", "localhost,.example", True),
        ("NODE_EXTRA_CA_CERTS", "/etc/ssl/company.pem", True),
        ("UV_CACHE_DIR", "/var/cache/uv", True),
        ("PYENV_ROOT", "/opt/pyenv", True),
        ("UV_INDEX_URL", "https://ada:secret@packages.example/simple", False),
    ],
)
def test_what_wrappers_need_to_fetch_a_server_is_safe_without_password(name: str, value: str, safe: bool) -> None:
    assert (name in make_environment("safe", {name: value})) == safe
    assert secretive_names([name]) == ([name] if "proxy" in name.lower() else [])


def test_names_that_look_like_secrets_are_told_from_others() -> None:
    names = ("OPENAI_API_KEY", "GITHUB_TOKEN", "token", "DRAGOMAN_AUTH_TOKEN", "KEYBOARD", "PATH", "PGPASSWORD", "TZ")
    assert secretive_names(names) == ["GITHUB_TOKEN", "OPENAI_API_KEY", "token"]


def run(code: str, **given: object) -> str:
    process = spawn([sys.executable, "-c", code], **given)  # type: ignore[arg-type]
    return process.communicate(timeout=60)[0].decode().strip()


def test_what_is_meant_for_us_is_handed_on_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_AUTH_TOKEN", "very-secret")
    monkeypatch.setenv("API_KEY", "theirs")
    code = "import os; print(os.environ.get('DRAGOMAN_AUTH_TOKEN'), os.environ.get('API_KEY'))"
    assert run(code) == "None theirs"


def test_a_server_runs_where_it_is_told(tmp_path: Path) -> None:
    assert run("import os; print(os.getcwd())", directory=str(tmp_path)) == str(tmp_path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TransportClosed, match=r" in .*/gone: its directory does not exist$"):
        spawn([sys.executable], directory=str(tmp_path / "gone"))


def test_a_command_is_found_by_our_own_path_where_the_child_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "some-server"
    program.write_text('#!/bin/sh\necho "found, PATH is ${HOME-not there}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    process = spawn(["some-server"], environment={})
    assert process.communicate(timeout=60)[0] == b"found, PATH is not there\n"
