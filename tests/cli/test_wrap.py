"""`dragoman wrap` and `unwrap`: files of clients on a disk."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.cli.options import url
from tests.support.commands import dragoman

SERVER = str(Path(__file__).parent.parent / "client" / "echo_server.py")
LONGEST_S = 60


def run(*arguments: str, home: Path | None = None, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **({} if home is None else {"HOME": str(home), "XDG_CONFIG_HOME": "", "CLAUDE_CONFIG_DIR": ""}),
    }
    return dragoman(*arguments, env=environment, cwd=folder)


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
    assert "Traceback" not in listed.stderr
    assert "echo" in listed.stdout


def test_it_is_taken_out_without_a_backup_that_can_be_read(file: Path) -> None:
    before = json.loads(file.read_text("utf-8"))["mcpServers"]["echo"]
    assert run("wrap", str(file), "echo", "--yes").returncode == 0
    file.with_name("mcp.json.before-dragoman").write_bytes(b"\xff\xfe{")
    done = run("unwrap", str(file), "echo", "--yes")
    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text("utf-8"))["mcpServers"]["echo"] == before


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


def test_claude_code_may_have_its_file_elsewhere(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.rename(tmp_path / ".claude.json")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert run("wrap", "claude-code", "echo", "--yes").returncode == 0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder in a repository, with Claude Code's file in a home: `echo` is there for all, and for the repository."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "below").mkdir()
    echo = {"command": sys.executable, "args": [SERVER, "--few"]}
    folders = {str(tmp_path): {"mcpServers": {}}, str(project): {"mcpServers": {"echo": echo, "mine": echo}}}
    said = {"mcpServers": {"echo": {"command": "x"}, "all": {"command": "y"}}, "projects": folders}
    (tmp_path / ".claude.json").write_text(json.dumps(said, indent=2), encoding="utf-8")
    return project


def servers_of(home: Path, folder: Path | None = None) -> dict[str, bool]:
    said = json.loads((home / ".claude.json").read_text("utf-8"))
    servers = (said if folder is None else said["projects"][str(folder)])["mcpServers"]
    return {name: "proxy" in entry.get("args", ()) for name, entry in servers.items()}


def test_the_servers_of_the_current_folder_are_found(project: Path) -> None:
    home = project.parent
    done = run("wrap", "claude-code", "--yes", home=home, folder=project / "below")
    assert done.returncode == 0, done.stderr
    assert f"echo: stays as it is: in this folder, echo of {project} counts" in done.stderr
    assert f"the proxy is before all, echo of {project}, mine of {project}." in done.stdout
    assert servers_of(home) == {"echo": False, "all": True}
    assert servers_of(home, project) == {"echo": True, "mine": True}


def test_a_server_is_that_of_the_current_folder(project: Path) -> None:
    home = project.parent
    (project / ".mcp.json").write_text('{"mcpServers": {"echo": {"command": "z"}}}', encoding="utf-8")
    assert run("wrap", "claude-code", "echo", "--yes", home=home, folder=project).returncode == 0
    assert servers_of(home, project) == {"echo": True, "mine": False}
    assert run("wrap", "claude-code", "echo", "--yes", home=home, folder=home).returncode == 0
    assert servers_of(home) == {"echo": True, "all": False}


def test_a_server_of_the_project_counts_before_that_of_the_user(project: Path) -> None:
    shared = project / ".mcp.json"
    shared.write_text('{"mcpServers": {"all": {"command": "z"}}}', encoding="utf-8")
    done = run("wrap", "claude-code", "all", "--yes", home=project.parent, folder=project)
    assert done.returncode == 0, done.stderr
    assert f"all: in this folder, that of {shared} counts" in done.stderr
    assert "proxy" in shared.read_text("utf-8")
    assert servers_of(project.parent) == {"echo": False, "all": False}


def test_a_server_of_another_folder_is_said_with_that_folder(project: Path) -> None:
    done = run("wrap", "claude-code", "mine", "--yes", home=project.parent, folder=project.parent)
    assert done.returncode == 2
    assert f"no server 'mine' in the file; there are: echo, all; it is for {project}: say this there" in done.stderr


def test_all_folders_are_as_they_were_to_the_last_byte(project: Path) -> None:
    home = project.parent
    file, backup = home / ".claude.json", home / ".claude.json.before-dragoman"
    before = file.read_bytes()
    for folder in (project, home):  # with one of each name in each, the copy is of what was before both
        assert run("wrap", "claude-code", "echo", "--yes", home=home, folder=folder).returncode == 0
        assert backup.read_bytes() == before
    assert run("unwrap", "claude-code", "echo", "--yes", home=home, folder=home).returncode == 0
    assert backup.exists(), "the proxy is still before that of the other folder"
    assert run("unwrap", "claude-code", "--yes", home=home, folder=home).returncode == 0
    assert file.read_bytes() == before
    assert not backup.exists()


def test_a_url_with_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRAPPED_URL", "https://example.com/mcp?key=$secret")
    assert url("$WRAPPED_URL") == "https://example.com/mcp?key=$secret"
    assert url("https://example.com/$x") == "https://example.com/$x"


def answering(monkeypatch: pytest.MonkeyPatch, *meanwhile: Callable[[], object]) -> None:
    """Somebody at a terminal, who says yes to each question, after this has happened."""
    todo = list(meanwhile)

    def answer(question: str) -> str:
        todo.pop(0)()
        return "y"

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)


def replace(file: Path, old: str, new: str) -> None:
    """Do what a client does: write the file with something changed in it."""
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new, 1).encode())


def test_what_a_client_writes_while_a_person_thinks_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda: replace(file, '{\n    "mcp', '{\n    "state": 5,\n    "mcp'))
    assert main(["wrap", str(file), "echo"]) == 0
    said = json.loads(file.read_text("utf-8"))
    assert said["state"] == 5
    assert "proxy" in said["mcpServers"]["echo"]["args"]
    assert json.loads(file.with_name("mcp.json.before-dragoman").read_text("utf-8"))["state"] == 5


def test_what_a_client_writes_into_the_same_line_is_not_another_change(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
    answering(monkeypatch, lambda: replace(file, '{"mcp', '{"state": 5, "mcp'))
    assert main(["wrap", str(file)]) == 0
    assert json.loads(file.read_text("utf-8"))["state"] == 5


def test_who_is_shown_something_else_meanwhile_is_asked_again(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, lambda: replace(file, '"x"', '"y"'), lambda: None)
    assert main(["wrap", str(file), "other"]) == 0
    said = capsys.readouterr()
    assert "somebody else has changed these servers meanwhile" in said.err
    assert said.out.count('"proxy"') == 2
    assert json.loads(file.read_text("utf-8"))["mcpServers"]["other"]["args"][-3:] == ["proxy", "--", "y"]


def test_what_a_client_writes_at_the_last_moment_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def write_once(descriptor: int) -> None:
        fsync(descriptor)
        if "state" not in file.read_text("utf-8"):
            replace(file, '{\n    "mcp', '{\n    "state": 5,\n    "mcp')

    monkeypatch.setattr(os, "fsync", write_once)
    assert main(["wrap", str(file), "--yes"]) == 0
    assert json.loads(file.read_text("utf-8"))["state"] == 5
    assert sorted(one.name for one in file.parent.iterdir()) == ["mcp.json", "mcp.json.before-dragoman"]


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    names = [f"server-{number}" for number in range(5)]
    file.write_text(json.dumps({"mcpServers": {name: {"command": "x"} for name in names}}, indent=2), "utf-8")
    with ThreadPoolExecutor(len(names)) as pool:
        done = list(pool.map(lambda name: run("wrap", str(file), name, "--yes").returncode, names))
    assert done == [0] * len(names)
    entries = json.loads(file.read_text("utf-8"))["mcpServers"]
    assert [name for name in names if entries[name].get("args", [])[-3:] != ["proxy", "--", "x"]] == []


def test_the_ends_of_lines_and_the_mode_stay(file: Path) -> None:
    text = file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(text)
    file.chmod(0o640)
    assert run("wrap", str(file), "--yes").returncode == 0
    assert b"\n" not in file.read_bytes().replace(b"\r\n", b"")
    assert file.with_name("mcp.json.before-dragoman").read_bytes() == text
    assert run("unwrap", str(file), "--yes").returncode == 0
    assert file.read_bytes() == text
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(file: Path) -> None:
    os.chown(file, 1234, 4321)
    assert run("wrap", str(file), "--yes").returncode == 0
    for one in file.parent.iterdir():
        assert (one.stat().st_uid, one.stat().st_gid) == (1234, 4321), one


def test_a_read_only_file_stays(file: Path) -> None:
    file.chmod(0o444)
    before = file.read_bytes()
    done = run("wrap", str(file), "--yes")
    assert done.returncode == 2
    assert "is read-only, and stays as it is; if you want it changed: chmod u+w" in done.stderr
    assert file.read_bytes() == before
    assert run("wrap", str(file), "--dry-run").returncode == 1


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    before = file.read_bytes()
    with pytest.raises(SystemExit, match="2"):
        main(["wrap", str(file), "--yes"])
    assert "cannot be written, and stays as it is: Permission denied" in capsys.readouterr().err
    assert file.read_bytes() == before


@pytest.mark.parametrize("had_backup", [False, True])
def test_a_file_that_cannot_be_replaced_leaves_no_new_backup(
    had_backup: bool, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with a file that is mounted alone, or a disk that the second of two copies fills."""
    if had_backup:
        assert main(["wrap", str(file), "other", "--yes"]) == 0
    before = {one.name: one.read_bytes() for one in file.parent.iterdir()}
    really = os.replace

    def refuse(source: str, target: Path) -> None:
        if target == file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(SystemExit, match="2"):
        main(["wrap", str(file), "echo", "--yes"])
    assert "cannot be written, and stays as it is: No space left on device" in capsys.readouterr().err
    assert {one.name: one.read_bytes() for one in file.parent.iterdir()} == before


def test_who_agrees_no_more_keeps_no_backup(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file changes at the last moment, and the change is not wanted as it is then."""
    fsync, asked = os.fsync, 0

    def write_once(descriptor: int) -> None:
        fsync(descriptor)
        if '"y"' not in file.read_text("utf-8"):
            replace(file, '"x"', '"y"')

    def answer(question: str) -> str:
        nonlocal asked
        asked += 1
        return "y" if asked == 1 else "n"

    monkeypatch.setattr(os, "fsync", write_once)
    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["wrap", str(file), "other"]) == 1
    assert asked == 2
    assert [*file.parent.iterdir()] == [file]


CODEX = '[mcp_servers.a]\ncommand = "x"\nargs = ["é"]\n'
CONTINUE = "mcpServers:\n  - name: a\n    command: x\n"


@pytest.mark.parametrize(
    ("client", "place", "text", "said"),
    [
        ("codex", ".codex/config.toml", CODEX, r'"proxy", "--", "x", "\u00e9"] in the place of command "x"'),
        ("codex", ".codex/config.toml", "[mcp_servers.a]\ncommand = \n", "is TOML, and only JSON is changed here"),
        ("continue", ".continue/config.yaml", CONTINUE, '"proxy", "--", "x"] in the place of command "x"'),
    ],
)
def test_other_notations_are_told_what_to_write(client: str, place: str, text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / place
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    done = run("wrap", client, "--yes", home=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert file.read_text("utf-8") == text
    assert "take the proxy out there yourself" in run("unwrap", client, "--yes", home=tmp_path).stderr


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
