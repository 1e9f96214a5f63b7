"""Files of the user's that we keep something in: read without waiting, and never without end."""

from __future__ import annotations

import os
import stat

from dragoman import system


def read_small(path: str | os.PathLike[str], most_bytes: int, *, of_others: bool = False) -> bytes:
    """Read a file that we have made ourselves; never wait for it.

    Args:
        path: The file.
        most_bytes: How long it may be.
        of_others: Whether it may belong to another user.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not a regular file, somebody else's, or too long.
    """
    descriptor = os.open(path, os.O_RDONLY | system.OURS)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        is_ours = of_others or system.is_of_this_user(found)
        if not stat.S_ISREG(found.st_mode) or not is_ours or found.st_size > most_bytes:
            raise ValueError("not a small file of ours")
        return file.read(most_bytes + 1)[:most_bytes]
