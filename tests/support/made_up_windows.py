"""A made-up Windows, for a process of its own: nothing is there that only other systems have.

What the library and other packages have chosen when they were imported stays; `dragoman` finds what Windows would show
it, and in place of `dragoman.windows` children that are started and ended as elsewhere. `python -m
tests.support.made_up_windows ARG ...` is `dragoman ARG ...` there.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import types
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

_CHOSEN_BEFORE: Final = (
    *(
        "ctypes",
        "ssl",
        "tempfile",
        "shutil",
        "webbrowser",
        "selectors",
        "multiprocessing",
        "logging.handlers",
        "getpass",
    ),
    *("pydantic", "orjson", "httptools", "websockets", "cryptography.fernet", "joserfc", "truststore", "yaml"),
)
_MISSING_MODULES: Final = ("fcntl", "termios", "resource", "pwd", "grp", "pty", "tty", "uvloop")
_MISSING: Final[Mapping[Any, tuple[str, ...]]] = {
    os: (
        *("fork", "setsid", "killpg", "getpgid", "geteuid", "getuid", "getgid", "fchown", "chown", "mkfifo", "readv"),
        *("writev", "WNOHANG", "pidfd_open", "posix_spawn", "posix_spawnp", "set_blocking", "get_blocking", "sysconf"),
        *("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "sched_getaffinity", "getrandom", "statvfs"),
    ),
    socket: ("AF_UNIX", "SOCK_NONBLOCK", "SOCK_CLOEXEC"),
    asyncio: ("start_unix_server", "open_unix_connection"),
    select: ("poll", "epoll", "POLLIN", "POLLOUT", "POLLHUP", "POLLERR", "POLLRDHUP"),
    signal: ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "pause", "pthread_sigmask", "alarm"),
}


def enter() -> None:
    """Make this process one on Windows, as far as `dragoman` can see."""
    for name in _CHOSEN_BEFORE:
        importlib.import_module(name)
    sysconfig.get_config_vars()  # they are looked up by the platform, and kept
    getattr(asyncio.events, "_get_event_loop_policy", asyncio.get_event_loop_policy)()  # so is this
    shutil._winapi = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda name: False)
    sys.modules["dragoman.windows"] = _make_module()
    sys.modules.update(dict.fromkeys(_MISSING_MODULES))  # type: ignore[arg-type]  # None forbids an import
    sys.modules["msvcrt"] = types.ModuleType("msvcrt")
    # Windows' Python makes such a pair of a connection to itself.
    socket.socketpair = functools.partial(socket.socketpair, socket.AF_UNIX)  # type: ignore[assignment]
    for place, names in _MISSING.items():
        for name in names:
            if hasattr(place, name):
                delattr(place, name)
    for name in ("add_reader", "add_writer", "add_signal_handler"):  # those of sockets have other names
        setattr(asyncio.SelectorEventLoop, name, _refuse)
    signal.SIGBREAK = signal.SIGALRM  # type: ignore[attr-defined]  # one that nobody else uses
    sys.platform = "win32"


def _refuse(*_: object) -> NoReturn:
    raise NotImplementedError


def _make_module() -> types.ModuleType:
    kill, kill_group = signal.SIGKILL, os.killpg
    set_blocking = os.set_blocking

    def start(
        command: Sequence[str], directory: str | None, environment: Mapping[str, str], stderr: int | None
    ) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            list(command), 0, None, pipe, pipe, stderr, cwd=directory, env=environment, start_new_session=True
        )

    def end_family(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            kill_group(process.pid, kill)

    def has_family(process: subprocess.Popen[bytes]) -> bool:
        try:
            kill_group(process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    made_up = types.ModuleType("dragoman.windows")
    made_up.__dict__.update(
        start=start,
        end_family=end_family,
        has_family=has_family,
        is_hung_up=lambda fd: False,
        never_block=lambda fd: set_blocking(fd, False),
        leave_standard=lambda read_fd, write_fd: None,
        show_colours=lambda fd: None,
    )
    return made_up


if __name__ == "__main__":
    enter()
    from dragoman.cli import main

    sys.exit(main())
