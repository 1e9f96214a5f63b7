"""The keyring of the system as the place of tokens.

`keyring` is imported only where somebody has chosen it, now or before. It may ask a person for a password, so whoever
must not wait calls from a thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Final

_SERVICE: Final = "dragoman"


def load(name: str) -> str:
    """Return what is kept by a name; empty if nothing is.

    Raises:
        OSError: The keyring cannot be used.
    """
    with _opened() as keyring:
        return keyring.get_password(_SERVICE, name) or ""


def save(name: str, text: str) -> None:
    """Keep a text by a name.

    Raises:
        OSError: The keyring cannot be used.
    """
    with _opened() as keyring:
        keyring.set_password(_SERVICE, name, text)


def remove(name: str) -> None:
    """Forget what is kept by a name.

    Raises:
        OSError: The keyring cannot be used.
    """
    with _opened() as keyring:
        if keyring.get_password(_SERVICE, name) is not None:
            keyring.delete_password(_SERVICE, name)


@contextlib.contextmanager
def _opened() -> Iterator[ModuleType]:
    try:
        import keyring

        yield keyring
    except Exception as error:  # each backend has errors of its own
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise OSError(f"the keyring of the system cannot be used: {reason}") from None
