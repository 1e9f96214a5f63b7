"""What only Windows has: jobs, which end a child with all that it has started, and what consoles and pipes are told.

Lives here: calls of its libraries, by ctypes. Must not: decide when any of it is done (`system`, `cli`). It can be
imported anywhere; elsewhere a made-up `Library` answers, in tests.

Sources: learn.microsoft.com, "Job Objects", "Process Creation Flags", "FILE_PIPE_LOCAL_INFORMATION", and
"CommandLineToArgvW"; `cmd /?` for what it reads in a command line.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

_CREATE_SUSPENDED: Final = 0x00000004
_CREATE_NO_WINDOW: Final = 0x08000000
_KILL_ON_JOB_CLOSE: Final = 0x00002000
_BASIC_ACCOUNTING: Final = 1
_EXTENDED_LIMITS: Final = 9
_SET_QUOTA_AND_TERMINATE: Final = 0x0100 | 0x0001
_SUSPEND_RESUME: Final = 0x0002
_SNAPSHOT_THREADS: Final = 0x00000004
_PIPE_LOCAL: Final = 24
_CLOSING: Final = 4
_PIPE_NOWAIT: Final = 1
_STD_HANDLES: Final = {0: -10, 1: -11}
_TERMINAL_SEQUENCES: Final = 0x0004

ENDED: Final = 0xC000013A
"""The exit status of what we end, which is also that of what Ctrl-C ends."""

_PLAIN: Final = re.compile(r"[\w./:\\-]*[\w./:-]", re.ASCII)
_POWERSHELL: Final = ("powershell.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-File")


class Handle(ctypes.c_void_p):
    """A handle in its whole size: as an `int` it would be cut."""


class Library(Protocol):
    """kernel32, or ntdll: functions by their names."""

    def __getattr__(self, name: str) -> Any:
        """Return a function."""


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", ctypes.c_uint32),
        ("working_set", ctypes.c_size_t * 2),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("classes", ctypes.c_uint32 * 2),
        ("io", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


class _Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("faults", ctypes.c_uint32),
        ("total", ctypes.c_uint32),
        ("active", ctypes.c_uint32),
        ("terminated", ctypes.c_uint32),
    )


class _Thread(ctypes.Structure):
    """THREADENTRY32."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("usage", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("process", ctypes.c_uint32),
        ("priorities", ctypes.c_int32 * 2),
        ("flags", ctypes.c_uint32),
    )


class ProcessJob:
    """A child, and all that it starts; it ends with this process at the latest."""

    def __init__(self, kernel: Library) -> None:
        self._kernel = kernel
        self._handle = kernel.CreateJobObjectW(None, None)
        limits = _Limits(flags=_KILL_ON_JOB_CLOSE)
        kernel.SetInformationJobObject(self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        weakref.finalize(self, kernel.CloseHandle, self._handle)

    def take(self, pid: int) -> bool:
        """Take in a process that has not begun, and let it begin; false if it is left outside."""
        process = self._kernel.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid)
        try:
            return bool(self._kernel.AssignProcessToJobObject(self._handle, process))
        finally:
            self._kernel.CloseHandle(process)
            self._begin(pid)

    def end(self) -> None:
        """End whatever is in it."""
        self._kernel.TerminateJobObject(self._handle, ENDED)

    def count(self) -> int:
        """Return how many processes are in it."""
        found = _Accounting()
        size = ctypes.sizeof(found)
        self._kernel.QueryInformationJobObject(self._handle, _BASIC_ACCOUNTING, ctypes.byref(found), size, None)
        return int(found.active)

    def _begin(self, pid: int) -> None:
        """Let the threads of a process go on; one that has not begun has one."""
        snapshot = self._kernel.CreateToolhelp32Snapshot(_SNAPSHOT_THREADS, 0)
        entry = _Thread(size=ctypes.sizeof(_Thread))
        found = self._kernel.Thread32First(snapshot, ctypes.byref(entry))
        while found:
            if entry.process == pid:
                thread = self._kernel.OpenThread(_SUSPEND_RESUME, False, entry.id)
                self._kernel.ResumeThread(thread)
                self._kernel.CloseHandle(thread)
            found = self._kernel.Thread32Next(snapshot, ctypes.byref(entry))
        self._kernel.CloseHandle(snapshot)


class ChildInJob(subprocess.Popen[bytes]):
    """A child in a job of its own."""

    job: ProcessJob | None = None


def start(
    command: Sequence[str], directory: str | None, environment: Mapping[str, str], stderr: int | None
) -> ChildInJob:
    """As `system.start`: without a window, and in a job before its first instruction."""
    program, line = command_line(command, find_program(command[0], directory, environment))
    child = ChildInJob(
        line,
        executable=program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        env=environment,
        cwd=directory,
        creationflags=_CREATE_SUSPENDED | _CREATE_NO_WINDOW,
    )
    job = ProcessJob(load_kernel())
    if job.take(child.pid):
        child.job = job
    return child


def end_family(process: Any) -> None:
    """End a child, and what it has started."""
    job = getattr(process, "job", None)
    if job is not None:
        job.end()
    else:
        with contextlib.suppress(OSError):
            process.kill()


def has_family(process: Any) -> bool:
    """Whether anything is left of a child, and what it has started."""
    job = getattr(process, "job", None)
    return process.poll() is None if job is None else job.count() > 0


def find_program(program: str, directory: str | None, environment: Mapping[str, str]) -> str | None:
    """Return where a program is: in the child's own PATH if it has one, with an ending of PATHEXT if it has none.

    None where there is none.
    """
    import shutil

    if directory is not None and os.path.dirname(program):
        program = os.path.join(directory, program)
    paths = [value for name, value in environment.items() if name.upper() == "PATH"]
    found = shutil.which(program, path=paths[0] if paths else None)
    # What is no program for Windows, such as a script of PowerShell, is found where it is named whole.
    return found or (program if os.path.isfile(program) else None)


def command_line(command: Sequence[str], found: str | None) -> tuple[str | None, str]:
    """Return the program that Windows is to start, and the whole line that it is given.

    Args:
        command: As a person wrote it.
        found: Where its program is; None leaves it to Windows to find none.
    """
    ending = os.path.splitext(found or "")[1].lower()
    if found is None:
        return None, subprocess.list2cmdline(command)
    if ending == ".ps1":
        return None, subprocess.list2cmdline([*_POWERSHELL, found, *command[1:]])
    if ending in (".cmd", ".bat"):
        words = " ".join(_quote_for_cmd(word) for word in (found, *command[1:]))
        shell = os.path.join(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "cmd.exe")
        return shell, f'cmd.exe /e:ON /v:OFF /d /s /c "{words}"'
    return found, subprocess.list2cmdline(command)


def _quote_for_cmd(word: str) -> str:
    """Write a word so that `cmd` hands it on as it is: in quotes nothing is special but they and `%`.

    Raises:
        ValueError: It has a character at which the line ends.
    """
    if any(one in word for one in "\0\r\n"):
        raise ValueError("an argument of a .cmd or .bat file cannot have lines")
    if _PLAIN.fullmatch(word):
        return word
    # A program that reads the line halves backslashes before quotes. `%` begins a variable, in quotes too; this one is
    # there, and nothing is taken of it.
    doubled = re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + found[2] * 2, word)
    return '"' + doubled.replace("%", "%%cd:~,%") + '"'


def is_hung_up(fd: int) -> bool:
    """Whether the other end of a pipe was closed; what was written may still wait in it."""
    state, status = (ctypes.c_uint32 * 10)(), (ctypes.c_size_t * 2)()
    found = _load("ntdll").NtQueryInformationFile(
        _handle_of(fd), ctypes.byref(status), ctypes.byref(state), ctypes.sizeof(state), _PIPE_LOCAL
    )
    return found == 0 and state[8] == _CLOSING


def never_block(fd: int) -> None:
    """Let nobody wait who writes to this pipe: what does not fit is refused."""
    mode = ctypes.c_uint32(_PIPE_NOWAIT)
    load_kernel().SetNamedPipeHandleState(_handle_of(fd), ctypes.byref(mode), None, None)


def leave_standard(read_fd: int, write_fd: int) -> None:
    """Keep for us what was our stdin and stdout, whose copies these are, with the ends of lines as they are.

    What else asks for a standard stream, a child above all, finds an empty one, or stderr: it would wait for what we
    wait for, for ever.
    """
    if sys.platform == "win32":
        import msvcrt

        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for fd in (read_fd, write_fd):
            msvcrt.setmode(fd, os.O_BINARY)
        for fd, name in _STD_HANDLES.items():
            load_kernel().SetStdHandle(name, _handle_of(fd))


def show_colours(fd: int) -> None:
    """Let a console read what other terminals do: colours, and where a line is written anew."""
    kernel, mode = load_kernel(), ctypes.c_uint32()
    console = _handle_of(fd)
    if kernel.GetConsoleMode(console, ctypes.byref(mode)):
        kernel.SetConsoleMode(console, mode.value | _TERMINAL_SEQUENCES)


def load_kernel() -> Library:
    """Return kernel32, with handles of their whole size."""
    kernel = _load("kernel32")
    for name in ("CreateJobObjectW", "OpenProcess", "OpenThread", "CreateToolhelp32Snapshot"):
        getattr(kernel, name).restype = Handle
    return kernel


def _load(name: str) -> Library:
    found: Library = getattr(ctypes, "WinDLL", ctypes.CDLL)(name)
    return found


def _handle_of(fd: int) -> Handle:
    if sys.platform == "win32":
        import msvcrt

        return Handle(msvcrt.get_osfhandle(fd))
    return Handle(fd)
