"""`--trace FILE`: opening what frames are written to.

Lives here: what may be wrong with the file. Must not: write (`dragoman.trace`). Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.trace.trace import Trace


def open_trace(args: argparse.Namespace) -> Trace | None:
    """Open the trace, if one is wanted; what is wrong with it is wrong with the command line."""
    if args.trace is None:
        return None
    from dragoman.trace.trace import Trace

    if args.listen is None and _is_stdout(args.trace):
        args.usage_error("--trace: stdout carries the protocol; name another file or pipe")
    try:
        return Trace(args.trace)
    except OSError as error:
        args.usage_error(f"--trace: cannot write to {args.trace}: {error.strerror}")
        raise


def _is_stdout(path: str) -> bool:
    try:
        found, ours = os.stat(path), os.fstat(1)
    except OSError:
        return False
    return os.path.samestat(found, ours) and not stat.S_ISCHR(ours.st_mode)
