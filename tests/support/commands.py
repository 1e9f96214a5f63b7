"""`dragoman` as a process: started as people start it, or, where only what it does counts, from what is imported here.

Four fifths of what a short command takes is importing. So in the ordinary run the process is forked from the one that
runs the tests: a child with streams, group, signals and exit code of its own, in which `dragoman.start` runs with
everything imported. `nox -s thorough`, and systems that do not fork as Linux does, start an interpreter each time; so
do, by `subprocess` itself, the tests of starting, of what is imported, and of memory.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, Final

from dragoman.start import main
from tests.support.profile import WHOLE

COLD: Final = (sys.executable, "-m", "dragoman")
"""The command of an interpreter of its own."""

LONGEST_S: Final = 60
"""How long a command may take, on a busy machine."""

_FORKS: Final = sys.platform == "linux" and not WHOLE
_MAIN: Final = str(Path(main.__code__.co_filename).with_name("__main__.py"))
_IMPORTED: Final = ("dragoman.proxy", "dragoman.cli.proxy", "dragoman.transports.http.serve")
_OF_INTERPRETERS: Final = re.compile(r"PYTHON|LC_|LANG")
_STREAMS: Final = (
    (0, "stdin", "r", "strict"),
    *((1, "stdout", "w", "strict"), (2, "stderr", "w", "backslashreplace")),
)
_DEFAULT: Final = (signal.SIGALRM, *(signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM))


def start(command: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
    """Do what `subprocess.Popen` does; where the command is `COLD` and words, start what is imported here."""
    with _quietly():
        return subprocess.Popen(command, **_warm(command, how))


def run(command: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
    """Do the same for `subprocess.run`."""
    with _quietly():
        return subprocess.run(command, **_warm(command, how))


def dragoman(*words: str, text: bool = True, **how: Any) -> subprocess.CompletedProcess[Any]:
    """Run a command of ours to its end; its input is empty unless it is given, its output is captured.

    Raises:
        subprocess.TimeoutExpired: It has no end.
    """
    streams = {} if "input" in how else {"stdin": subprocess.DEVNULL}
    return run([*COLD, *words], **(streams | {"capture_output": True, "text": text, "timeout": LONGEST_S} | how))


def _quietly() -> warnings.catch_warnings[None]:
    return warnings.catch_warnings(action="ignore", category=DeprecationWarning)  # we may have threads; it has none


def _warm(command: Sequence[str], how: dict[str, Any]) -> dict[str, Any]:
    """Give what `Popen` is told for a process that is forked from this one, if this one may be."""
    words, environment = [*command[len(COLD) :]], dict(how.get("env") or os.environ)
    changed = {name for name, _ in environment.items() ^ os.environ.items()}
    if not _FORKS or (*command[: len(COLD)],) != COLD or any(map(_OF_INTERPRETERS.match, changed)):
        return how
    for name in _IMPORTED:
        import_module(name)
    kept = how.get("pass_fds", ())
    return how | {"env": None, "preexec_fn": lambda: _become(words, environment, kept)}


def _become(words: Sequence[str], environment: Mapping[str, str], kept: Iterable[int]) -> None:
    """Be a process that was started with these words; never come back."""
    code = 1
    try:
        gc.freeze()  # what is ours and is dropped now would close files of the same numbers
        _leave_files(kept)
        _forget_tests()
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [_MAIN, *words]
        sys.path.insert(0, os.getcwd())
        invalidate_caches()
        for fd, name, mode, errors in _STREAMS:
            stream = open(fd, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
            if fd:
                stream.reconfigure(line_buffering=fd == 2 or stream.isatty())
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        code = main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _leave_files(kept: Iterable[int]) -> None:
    """Close every file but the standard streams and these: by that `Popen` sees, too, that the process is there."""
    last = 2
    for fd in sorted(kept):
        os.closerange(last + 1, fd)
        last = fd
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))


def _forget_tests() -> None:
    """Let nothing be as tests, or those who run them, have left it."""
    import asyncio

    asyncio._set_running_loop(None)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    for number in _DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in ("dragoman", "dragoman_spec"):
            for value in [*vars(module).values()]:
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
