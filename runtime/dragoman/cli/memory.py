"""Taking no memory that is not used, and giving it back to the system, for a process that runs for months.

Lives here: what is not loaded, when objects are looked at for cycles, and what is done once sessions have ended. Must
not: be needed: what a session holds is let go of at its end without any of this. Called by `cli.proxy` and
`cli.listen`.

Theory of operation. Python looks for cycles after so many new objects, however large they are, and looks at all of them
only once they have grown by a quarter: a process that goes quiet after a busy hour never does. And what is free again
stays with the C library, in the gaps between what is not. So a moment after sessions have ended both are asked.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

COLLECT_AFTER: Final = (10_000, 3, 3)
"""When to look for cycles. A list of 100 tools is thousands of objects, none of them in a cycle; by default (700, 10,
10) collections run in the midst of each. All objects are looked at once in 90 000 new ones, as often as by default."""


_OPENSSL: Final = ("ssl", "_hashlib")


def load_without_tls() -> None:
    """Load asyncio and hashlib without OpenSSL, for a process that has no connection to anywhere: half of its memory.

    A module that is None cannot be imported, and both do without. An interpreter may have no hashes of its own; then
    hashlib is loaded again.
    """
    import logging

    hidden = dict.fromkeys(name for name in _OPENSSL if name not in sys.modules)
    sys.modules.update(hidden)  # type: ignore[arg-type]
    logging.disable()  # hashlib would tell of each hash that it misses
    try:
        import asyncio  # noqa: F401
        import hashlib
    finally:
        logging.disable(logging.NOTSET)
        for name in hidden:
            del sys.modules[name]
    if not hasattr(hashlib, "sha256"):
        del sys.modules["hashlib"]


def set_apart() -> None:
    """Look no more at what is there once everything is imported: it stays for good, and is most of what is.

    What the start has left in cycles, as the options and classes that were made twice, is freed before: half a
    megabyte, in whose place a session has what it needs. From here on it is looked for cycles less often than by
    default; nothing large is ever in one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def give_back() -> None:
    """Free what is in cycles, and hand what is free to the system, where the C library can."""
    gc.collect()
    if sys.platform == "linux":
        try:
            import ctypes
        except OSError:  # no descriptor is left to read it by: another time
            return
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none, and keeps little
        if trim is not None:
            trim(0)
