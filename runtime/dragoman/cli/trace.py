"""`--trace FILE` and `--log-file FILE`: opening what frames, and the log, are written to.

Lives here: what may be wrong with the file. Must not: write (`dragoman.trace`). Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman import system

if TYPE_CHECKING:
    from dragoman.trace.trace import Trace


def open_trace(args: argparse.Namespace) -> Trace | None:
    """Open the trace, if one is wanted; what is wrong with it is wrong with the command line."""
    if args.trace is None:
        return None
    from dragoman.trace.trace import Trace

    if args.listen is None and is_stdout(args.trace):
        args.usage_error("--trace: stdout carries the protocol; name another file or pipe")
    try:
        args.files.append(trace := Trace(args.trace))
        return trace
    except OSError as error:
        args.usage_error(f"--trace: cannot write to {args.trace}: {system.explain(error)}")
        raise


def open_log(args: argparse.Namespace) -> Callable[[bytes], object] | None:
    """Open the file of `--log-file`, and return what gets its lines; None: they go to stderr."""
    if args.log_file is None:
        return None
    from dragoman.trace.writer import LineWriter, open_target

    if args.listen is None and is_stdout(args.log_file):
        args.usage_error("--log-file: stdout carries the protocol; name another file or pipe")
    try:
        fd = open_target(args.log_file)
    except OSError as error:
        args.usage_error(f"--log-file: cannot write to {args.log_file}: {system.explain(error)}")
        raise
    args.files.append(log := LineWriter(fd, args.log_file, what="the log", drop=_say_missing))
    return log.put


def _say_missing(time_s: float, count: int) -> bytes:
    return b"(%d lines left out)\n" % count


def is_stdout(path: str) -> bool:
    """Whether what is written to this file goes where the protocol goes."""
    try:
        found, ours = os.stat(path), os.fstat(1)
    except OSError:
        return False
    return os.path.samestat(found, ours) and not stat.S_ISCHR(ours.st_mode)
