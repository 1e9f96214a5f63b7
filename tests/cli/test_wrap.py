"""`dragoman wrap` and `unwrap`: files of clients on a disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = str(Path(__file__).parent.parent / "client" / "echo_server.py")
LONGEST_S = 60


def run(*arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({} if home is None else {"HOME": str(home), "XDG_CONFIG_HOME": ""})}
    command = [sys.executable, "-m", "dragoman", *arguments]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LONGEST_S,
        check=False,
        text=True,
        env=environment,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    echo = {"command": sys.executable, "args": [SERVER, "--revision", "2024-11-05"]}
    path.write_text(json.dumps({"mcpServers": {"echo": echo, "other": {"command": "x"}}}, indent=4), encoding="utf-8")
    path.chmod(0o600)
    return path


def test_a_server_answers_behind_the_proxy_that_was_put_before_it(file: Path) -> None:
    done = run("wrap", str(file), "echo", "--yes")
    assert done.returncode == 0, done.stderr
    entry = json.loads(file.read_text("utf-8"))["mcpServers"]["echo"]
    assert entry["args"][-5:] == ["proxy", "--", sys.executable, SERVER, "--revision", "2024-11-05"][-5:]
    listed = run("list", "--config", str(file), "--server", "echo", "--revision", "2026-07-28")
    assert listed.returncode == 0, listed.stderr
    assert "echo" in listed.stdout


def test_it_is_taken_out_to_the_last_byte_with_its_backup(file: Path) -> None:
    before = file.read_bytes()
    assert run("wrap", str(file), "--yes").returncode == 0
    backup = file.with_name("mcp.json.before-dragoman")
    assert backup.read_bytes() == before
    assert backup.stat().st_mode & 0o777 == 0o600
    assert run("unwrap", str(file), "echo", "--yes").returncode == 0
    assert backup.exists(), "the other one still has the proxy"
    assert run("unwrap", str(file), "--yes").returncode == 0
    assert file.read_bytes() == before
    assert file.stat().st_mode & 0o777 == 0o600
    assert [*file.parent.iterdir()] == [file]


def test_a_server_that_came_later_is_as_it_was_too(file: Path) -> None:
    run("wrap", str(file), "--yes")
    text = file.read_text("utf-8").replace('"mcpServers": {', '"mcpServers": {"new": {"command":"y"},')
    file.write_text(text, encoding="utf-8")
    run("wrap", str(file), "--yes")
    run("unwrap", str(file), "--yes")
    assert '"new": {"command":"y"}' in file.read_text("utf-8")


def test_nothing_is_written_where_nobody_agrees(file: Path) -> None:
    before = file.read_bytes()
    done = run("wrap", str(file))
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    looked = run("wrap", str(file), "--dry-run")
    assert looked.returncode == 1
    assert '+            "args": [' in looked.stdout
    assert file.read_bytes() == before
    assert [*file.parent.iterdir()] == [file]


def test_the_file_of_a_client_is_found(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".cursor"
    folder.mkdir(parents=True)
    (folder / "mcp.json").symlink_to(file)
    assert run("wrap", "cursor", "--yes", home=tmp_path / "home").returncode == 0
    assert (folder / "mcp.json").is_symlink()
    assert "dragoman" in file.read_text("utf-8")
    again = run("wrap", "cursor", "--yes", home=tmp_path / "home")
    assert again.returncode == 1
    assert "nothing to change" in again.stderr


def test_only_the_client_is_required() -> None:
    assert run("wrap").stderr.endswith("the following arguments are required: CLIENT\n")


def test_the_file_of_a_project_is_found(file: Path, tmp_path: Path) -> None:
    file.rename(tmp_path / ".mcp.json")
    assert run("wrap", "claude-code", "--project", str(tmp_path), "--yes").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["curser"], "did you mean cursor?"),
        (["nofile.json"], "no file and no client 'nofile.json'"),
        (["cursor"], "if Cursor has its configuration elsewhere, write that path instead"),
        (["windsurf", "--project", "."], "leave out --project"),
        (["{file}", "ecko"], "did you mean echo?"),
        (["{broken}"], "line 1: "),
        (["{bytes}"], "cannot be read"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], said: str, file: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"mcpServers": ', encoding="utf-8")
    (tmp_path / "bytes.json").write_bytes(b'{"mcpServers": {"\xff": {}}}')
    names = {"file": file, "broken": tmp_path / "broken.json", "bytes": tmp_path / "bytes.json"}
    done = run("wrap", *(one.format(**names) for one in arguments), "--yes", home=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
