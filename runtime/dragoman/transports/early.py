"""Starting a server before anything else is imported, as `transports.spawn` does later with what the library has.

Lives here: what that takes, a server that was started so, and what is said of both ways in one place. Must not: import
anything but what every interpreter has imported (`os`). Called by `dragoman.start`; `cli.child` takes over.
"""

import os
import sys
import time

TYPE_CHECKING = False  # as checkers take it; `typing` itself takes time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import FileIO

OURS = "DRAGOMAN_"
"""What the names of variables begin with that are meant for us: a server has no business with our secrets."""

GRACE_S = 1
"""How long children get after the end of their input, and again after SIGTERM, once we are gone."""

SHELL = "/bin/sh"

SCRIPT = """# ends the servers of dragoman proxy, should it be killed
trap '' HUP INT TERM
cd /
exec 3<&0
{
    groups=' '
    while read -r change group; do
        case $change in
            add) groups="$groups$group " ;;
            drop) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
        esac
    done
    for signal in TERM KILL; do
        case $groups in *[0-9]*) ;; *) exit 0 ;; esac
        sleep "$1"
        left=' '
        for group in $groups; do
            kill -s $signal -- "-$group" && left="$left$group "
        done
        groups=$left
    done
} <&3 >/dev/null 2>&1 &
"""
"""The warden's. The part in braces goes on as a process that is nobody's child; `sh` itself ends at once."""

_DEFAULT_SIGNALS = 13, 25  # SIGPIPE and SIGXFSZ, which Python ignores; `signal` takes time
_SIGTERM, _SIGKILL = 15, 9
_LOOK_S = 0.001


def without_ours(environment: "Mapping[str, str]") -> dict[str, str]:
    """Leave out what is meant for us alone."""
    return {name: value for name, value in environment.items() if not name.startswith(OURS)}


def shell_command(grace_s: float = GRACE_S) -> list[str]:
    """Return the command of the warden."""
    return [SHELL, "-c", SCRIPT, "dragoman-warden", f"{grace_s:g}"]


class Child:
    """A child process, with as much of `subprocess.Popen` as its owners need; it leads a group of its own.

    Args:
        command: The program, found by our PATH, and its arguments.
        environment: What it finds.
        stdin: The descriptor that it reads.
        stdout: The descriptor that it writes to; None is ours.

    Attributes:
        pid: Its number, and that of its group.
        returncode: How it ended, as `Popen` has it.
        stdin: Our end of its input, where we have it.
        stdout: Our end of its output, where we have it.

    Raises:
        OSError: It cannot be started.
        NotImplementedError: It cannot lead a session of its own on this system.
    """

    pid: int

    def __init__(
        self, command: list[str], environment: "Mapping[str, str]", stdin: int, stdout: int | None = None
    ) -> None:
        self.returncode: int | None = None
        self.stdin: FileIO | None = None
        self.stdout: FileIO | None = None
        if sys.platform == "win32":
            raise NotImplementedError
        actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), *([] if stdout is None else [(os.POSIX_SPAWN_DUP2, stdout, 1)])]
        self.pid = os.posix_spawnp(
            command[0], command, environment, file_actions=actions, setsid=True, setsigdef=_DEFAULT_SIGNALS
        )

    def poll(self) -> int | None:
        """Return how it ended, if it has."""
        if sys.platform != "win32" and self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # whoever asked for all ends was told of it
                pid, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Args:
            timeout: For so many seconds at most.

        Raises:
            subprocess.TimeoutExpired: It has not ended.
        """
        began = time.monotonic()
        while (status := self.poll()) is None:
            if timeout is not None and time.monotonic() - began > timeout:
                import subprocess

                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_LOOK_S)
        return status

    def kill(self) -> None:
        """Send it SIGKILL, if it is there."""
        if self.poll() is None:
            os.kill(self.pid, _SIGKILL)


class Early:
    """A server that runs already, with a warden who knows of it.

    Args:
        command: The program and its arguments.
        pipes: Pairs of descriptors: what the warden reads, what the server reads, and what it writes to.

    Attributes:
        shell: The warden.
        warden_fd: Where the warden is told of children.

    Raises:
        OSError: One of them cannot be started.
        NotImplementedError: They cannot on this system.
        ValueError: They cannot have such arguments or such an environment.
    """

    def __init__(self, command: list[str], pipes: list[tuple[int, int]]) -> None:
        (told, self.warden_fd), (asked, stdin), (stdout, said) = pipes
        self._command, self._environment = command, without_ours(os.environ)
        if sys.platform != "win32":
            os.set_blocking(self.warden_fd, False)
        self.shell = Child(shell_command(), {"PATH": os.defpath}, told)
        server = Child(command, self._environment, asked, said)
        tell(self.warden_fd, b"add %d\n" % server.pid)
        server.stdin, server.stdout = open(stdin, "wb", 0), open(stdout, "rb", 0)
        self._server: Child | None = server
        for fd in (told, asked, said):
            os.close(fd)

    def take(self, command: list[str], environment: dict[str, str], directory: str | None) -> Child | None:
        """Return the server to whoever sees to it from here on; None if it was not started like this, which ends it."""
        server = self._server
        if (command, environment, directory) != (self._command, self._environment, None):
            self.end()
            return None
        self._server = None
        return server

    def end(self) -> None:
        """End the server, if nobody has taken it: the warden does, should it stay."""
        if sys.platform != "win32" and self._server is not None:
            try:
                os.killpg(self._server.pid, _SIGTERM)
            except OSError:  # it has gone
                pass
            for stream in (self._server.stdin, self._server.stdout):
                if stream is not None:
                    stream.close()
            os.close(self.warden_fd)
            self._server = None


def begin(command: list[str]) -> Early | None:
    """Start a server.

    Args:
        command: The program and its arguments.

    Returns:
        It; None where it is better started later: where it cannot be, which is said then; where a standard stream is
        missing; and at a terminal, which must not get its words as they are.
    """
    pipes: list[tuple[int, int]] = []
    try:
        for fd in range(3):
            os.fstat(fd)
        if os.isatty(2) or "PATH" not in os.environ:
            return None
        for name in os.listdir("/dev/fd"):
            _keep_to_us(int(name))
        pipes += [os.pipe() for _ in range(3)]
        return Early(command, pipes)
    except (OSError, NotImplementedError, AttributeError, ValueError):
        for pair in pipes:
            os.close(pair[0])
            os.close(pair[1])
        return None


def tell(fd: int, line: bytes) -> None:
    """Tell the warden of a child."""
    try:
        os.write(fd, line)
    except OSError:  # it is gone, or stopped: nothing can be done about that
        pass


def _keep_to_us(fd: int) -> None:
    """Let no child have a descriptor that whoever started us has left open."""
    if fd > 2:
        try:
            os.set_inheritable(fd, False)
        except OSError:  # the one that this list was read from
            pass
