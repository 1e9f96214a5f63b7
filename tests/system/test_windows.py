"""What Windows is asked for, by a made-up library that writes it down; and how its command lines are written."""

from __future__ import annotations

import ctypes
import gc
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.clients import CLIENTS, find_client, find_file
from dragoman.windows import ENDED, ProcessJob, command_line, find_program

CMD = 'cmd.exe /e:ON /v:OFF /d /s /c "{}"'


class Kernel:
    """kernel32, with three threads in the system, of which the process 7 has one."""

    def __init__(self, refuses: bool = False) -> None:
        self.said: list[str] = []
        self._refuses = refuses
        self._threads = [(1, 100), (2, 7), (3, 8)]

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> Any:
            self.said.append(name)
            if name == "CreateJobObjectW":
                return "job"
            if name == "CloseHandle":
                self.said[-1] += f" {arguments[0]}"
            if name in ("OpenProcess", "OpenThread"):
                self.said[-1] += f" {arguments[2]}"
                return name[4:].lower()
            if name == "TerminateJobObject":
                self.said[-1] += f" {arguments[1] == ENDED}"
            if name == "SetInformationJobObject":
                self.said[-1] += f" {arguments[2]._obj.flags:#x}"
            if name == "QueryInformationJobObject":
                arguments[2]._obj.active = 2
            if name in ("Thread32First", "Thread32Next"):
                if not self._threads:
                    return 0
                arguments[1]._obj.id, arguments[1]._obj.process = self._threads.pop(0)
            return name != "AssignProcessToJobObject" or not self._refuses

        return answer


def test_a_child_goes_into_its_job_before_it_begins() -> None:
    kernel = Kernel()
    job = ProcessJob(kernel)
    assert job.take(7)
    steps = [one for one in kernel.said if not one.startswith(("CloseHandle", "Thread32", "CreateToolhelp32"))]
    assert steps == [
        "CreateJobObjectW",
        "SetInformationJobObject 0x2000",  # it ends when nobody has it any more
        "OpenProcess 7",
        "AssignProcessToJobObject",
        "OpenThread 2",
        "ResumeThread",
    ]


def test_a_child_that_no_job_takes_begins_all_the_same() -> None:
    kernel = Kernel(refuses=True)
    assert not ProcessJob(kernel).take(7)
    assert "ResumeThread" in kernel.said


def test_a_job_is_counted_ended_and_let_go() -> None:
    kernel = Kernel()
    job = ProcessJob(kernel)
    assert job.count() == 2
    job.end()
    del job
    gc.collect()
    assert kernel.said[-2:] == ["TerminateJobObject True", "CloseHandle job"]


def test_what_the_system_fills_in_has_its_size() -> None:
    """On 64 bits, as its headers have them."""
    from dragoman import windows

    sizes = [ctypes.sizeof(one) for one in (windows._Limits, windows._Accounting, windows._Thread)]
    assert sizes == [144, 48, 28]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["a"], r"C:\x\run.cmd a"),
        (["a b"], r'C:\x\run.cmd "a b"'),
        (["a&b", "^"], r'C:\x\run.cmd "a&b" "^"'),
        (['say "hi"'], r'C:\x\run.cmd "say ""hi"""'),
        (['a\\"b'], r'C:\x\run.cmd "a\\""b"'),
        (["C:\\dir\\"], r'C:\x\run.cmd "C:\dir\\"'),
        (["100%PATH%"], r'C:\x\run.cmd "100%%cd:~,%PATH%%cd:~,%"'),
        ([""], r'C:\x\run.cmd ""'),
    ],
)
def test_a_batch_file_gets_its_words_as_they_are(words: list[str], line: str) -> None:
    program, found = command_line(["run", *words], r"C:\x\run.cmd")
    assert (program or "").endswith("cmd.exe")
    assert found == CMD.format(line)


@pytest.mark.parametrize("word", ["a\nb", "a\rb", "a\0b"])
def test_a_batch_file_cannot_have_lines(word: str) -> None:
    with pytest.raises(ValueError, match="cannot have lines"):
        command_line(["run", word], r"C:\x\run.bat")


def test_a_script_of_powershell_is_given_to_it() -> None:
    line = "powershell.exe -NoLogo -NoProfile -NonInteractive -File C:\\x\\run.ps1 a"
    assert command_line(["run.ps1", "a"], r"C:\x\run.ps1") == (None, line)


def test_a_program_is_started_itself() -> None:
    assert command_line(["run", "a b"], r"C:\x\run.exe") == (r"C:\x\run.exe", 'run "a b"')
    assert command_line(["nosuch", "a"], None) == (None, "nosuch a")
    assert subprocess.list2cmdline(["a b"]) == '"a b"'


def test_programs_are_found_where_the_child_looks(tmp_path: Path) -> None:
    program = tmp_path / "run"
    program.touch(mode=0o755)
    assert find_program("run", None, {"Path": str(tmp_path)}) == str(program)
    assert find_program("./run", str(tmp_path), {}) == f"{tmp_path}/./run"
    assert find_program("run", None, {"PATH": str(tmp_path / "elsewhere")}) is None


def test_each_client_has_its_place_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    there = {"USERPROFILE": "/home", "APPDATA": "/home/AppData/Roaming", "XDG_CONFIG_HOME": "/not/here"}
    places = {client.name: find_file(client, there).as_posix() for client in CLIENTS}
    assert places["claude-desktop"] == "/home/AppData/Roaming/Claude/claude_desktop_config.json"
    assert places["vscode"] == "/home/AppData/Roaming/Code/User/mcp.json"
    assert places["zed"] == "/home/AppData/Roaming/Zed/settings.json"
    assert places["cursor"] == "/home/.cursor/mcp.json"
    cursor = find_client("claude-desktop")
    assert cursor is not None
    assert find_file(cursor, {"USERPROFILE": "/home"}).as_posix().startswith("/home/AppData/Roaming/Claude/")
