"""What is different from system to system: Windows on one side, Linux, macOS and the like on the other.

Lives here: descriptors, locks, files that somebody else holds open, children and what they start. What only Windows
has, `windows` asks it for. Must not: import what is slow.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

if sys.platform != "win32":
    import fcntl

T = TypeVar("T")


class Process(Protocol):
    """A child, from `start` or `transports.early`."""

    pid: int

    @property
    def returncode(self) -> int | None:
        """How it ended, if it has."""

    def poll(self) -> int | None:
        """Return the same, having looked."""

    def kill(self) -> None:
        """End it."""


AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""With which files of others are opened: without waiting for anybody, and as they are."""

OURS: Final[int] = AT_ONCE | getattr(os, "O_NOFOLLOW", 0)
"""With which our own are: they are no symbolic links either, which could lead to what others can read."""

_HELD_S: Final = 2.0
"""How long to try again where somebody reads or replaces a file, which on Windows keeps everybody else from it."""

_TRY_S: Final = 0.02

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 32 * 1024 * 1024
"""Of mallopt(3): from which size on free memory at the end is given back, and blocks are the system's own; as many
bytes as it comes to by itself where blocks of half this size are freed."""


@functools.cache
def keep_freed_memory() -> None:
    """Have the C library keep up to 32 MB that is free, where it has a word for this: glibc.

    It gives large blocks back to the system, which clears each page before we get it again: of a message of 1 MB over
    HTTP, that took a third of the time. Called with the first large one: of small ones, nothing is given back.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes  # as slow to import as 100 calls

            library = ctypes.CDLL(None)
            for name in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
                library.mallopt(name, _KEPT_BYTES)


def needs_threads() -> bool:
    """Whether pipes are read and written by threads: on Windows, and where `DRAGOMAN_STDIO` is `threads`."""
    return sys.platform == "win32" or os.environ.get("DRAGOMAN_STDIO") == "threads"


def is_hung_up(fd: int) -> bool:
    """Whether nobody writes to this pipe or socket any more; what they wrote may still wait in it."""
    if sys.platform == "win32":
        from dragoman import windows

        return windows.is_hung_up(fd)
    hung_up = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
    return bool(_poll(fd, hung_up, 0) & hung_up)


def has_more(fd: int) -> bool:
    """Whether something waits in this pipe or socket, or its end; Windows says so of sockets alone."""
    if sys.platform == "win32":
        try:
            return bool(select.select([fd], [], [], 0)[0])
        except OSError:  # a pipe
            return False
    return bool(_poll(fd, select.POLLIN, 0) & select.POLLIN)


def wait_for(fd: int, reads: bool) -> bool:
    """Wait until a descriptor can be read, or written to; false on Windows, which waits while it reads or writes."""
    return sys.platform != "win32" and _poll(fd, select.POLLIN if reads else select.POLLOUT, None) != 0


def never_block(fd: int) -> None:
    """Let nobody wait who writes to this pipe."""
    if sys.platform == "win32":
        from dragoman import windows

        windows.never_block(fd)
    else:
        os.set_blocking(fd, False)


def is_of_this_user(found: os.stat_result) -> bool:
    """Whether a file is this user's own; on Windows files are kept by where they are, below the user's own folder."""
    return sys.platform == "win32" or found.st_uid == os.geteuid()


def rights_of_others(found: os.stat_result) -> int:
    """Return the bits that say what others may do with a file; those that Windows shows say nothing of that."""
    return 0 if sys.platform == "win32" or not stat.S_ISREG(found.st_mode) else found.st_mode & 0o077


def try_lock(fd: int) -> bool:
    """Lock a file for this process, until it is closed; false if somebody else has it locked.

    A file system without locks locks nothing, and says that it does.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, PermissionError if sys.platform == "win32" else BlockingIOError)
    return True


def lock(fd: int) -> None:
    """Do the same, and wait until nobody else has it locked."""
    while not try_lock(fd):
        time.sleep(_TRY_S)


def when_free(action: Callable[[], T]) -> T:
    """Do something with a file; again and again for a while, where Windows says that somebody else uses it just now.

    Raises:
        OSError: It cannot be done.
    """
    end = time.monotonic() + _HELD_S
    while True:
        try:
            return action()
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() >= end:
                raise
            time.sleep(_TRY_S)


def explain(error: OSError) -> str:
    """Say why a file is refused; Windows uses the same words for one that another program keeps for itself."""
    reason = error.strerror or str(error)
    is_held = sys.platform == "win32" and isinstance(error, PermissionError)
    return f"{reason}, or another program has it open" if is_held else reason


def user_folder(variable: str, *usual: str) -> str:
    """Return where something of this user's is kept.

    Args:
        variable: Says it, if it has an absolute path; on Windows `LOCALAPPDATA` does.
        usual: Where it is below the home directory if not.
    """
    said = os.environ.get(variable) or (os.environ.get("LOCALAPPDATA", "") if sys.platform == "win32" else "")
    return said if os.path.isabs(said) else os.path.join(os.path.expanduser("~"), *usual)


def start(
    command: Sequence[str], directory: str | None, environment: Mapping[str, str], stderr: int | None
) -> subprocess.Popen[bytes]:
    """Start a child at the head of a family: Ctrl-C at a terminal reaches only us, and what it starts ends with it.

    Args:
        command: The program and its arguments.
        directory: Where it runs; None is where we do.
        environment: All that it gets.
        stderr: The descriptor that it writes to; None is ours.
    """
    if sys.platform == "win32":
        from dragoman import windows

        return windows.start(command, directory, environment, stderr)
    return subprocess.Popen(
        list(command),
        executable=_find(command[0], environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        start_new_session=True,
        env=environment,
        cwd=directory,
    )


def tell_family(process: Process, is_last_word: bool) -> None:
    """Ask a child, and all that it has started, to go; or make it go. Windows cannot ask.

    Args:
        process: The child, from `start`.
        is_last_word: Whether it is not asked any more.
    """
    if sys.platform == "win32":
        from dragoman import windows

        windows.end_family(process)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if is_last_word else signal.SIGTERM)


def has_family(process: Process) -> bool:
    """Whether anything is left of a child and what it started, as far as it stayed in the family."""
    if sys.platform == "win32":
        from dragoman import windows

        return windows.has_family(process)
    if process.returncode is not None:
        # Where we are the first process of a container, what has lost its parent is our child, and stays in its group
        # after its end until we ask.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-process.pid, os.WNOHANG) != (0, 0):
                pass
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _find(program: str, environment: Mapping[str, str]) -> str | None:
    """Return where a program is that the child's own PATH, for it has none, does not say."""
    if "PATH" in environment or os.path.dirname(program):
        return None
    import shutil

    return shutil.which(program)


def _poll(fd: int, events: int, patience_ms: int | None) -> int:
    if sys.platform == "win32":
        return 0
    poll = select.poll()
    poll.register(fd, events)
    return next((found for _, found in poll.poll(patience_ms)), 0)
