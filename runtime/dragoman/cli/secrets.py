"""Checks of the secrets that clients of `--listen` send.

Lives here: warnings that say what to do. Must not: read secrets (`cli.listen`), or repeat one. Called by `cli.listen`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman import system
from dragoman.transports.http.security import list_secrets

SHORT: Final = 16
"""Secrets shorter than this can be guessed, or come from a person's head."""

_OTHERS: Final = {stat.S_IWOTH: "written", stat.S_IROTH: "read"}


def caution_secrets(file: str | None, tokens: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    """Say what should be otherwise, a line each.

    Args:
        file: Where the secrets are from, if from a file.
        tokens: The secrets by the names of those who have them.
    """
    mode = system.rights_of_others(os.stat(file)) if file is not None and os.path.isfile(file) else 0
    done = [verb for bit, verb in _OTHERS.items() if mode & bit]
    if done:
        yield f"{file} can be {' and '.join(done)} by every user of this machine: chmod 600 {file}"
    short = list(dict.fromkeys(name for name, secret in list_secrets(tokens) if len(secret) < SHORT))
    if short:
        what = "the secret of" if len(short) == 1 else "the secrets of"
        yield f"{what} {', '.join(short)} can be guessed, with fewer than {SHORT} characters: try openssl rand -hex 32"
