"""Where the instances of a proxy are: a folder with a socket of each, for those of one machine.

Lives here: what a directory can do, and the folder. Must not: connect. Used by `relay`; `store` is another directory.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Final, Protocol

from dragoman.errors import TransportClosed
from dragoman.system import is_of_this_user

LOCAL: Final = "unix:"
"""What an address begins with that is a path; others are HOST:PORT."""

_SUFFIX: Final = ".sock"
_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_LONGEST_PATH: Final = 107
"""How long the path of a socket may be, in bytes."""


class Directory(Protocol):
    """Says where the instances are."""

    def listen(self) -> socket.socket:
        """Open the socket at which this instance takes what is handed on to it.

        Raises:
            TransportClosed: It cannot be had.
        """

    async def announce(self) -> None:
        """Let the others find this instance from now on."""

    async def withdraw(self) -> None:
        """Let nobody find it any more."""

    async def find(self, name: str) -> str | None:
        """Return the address of an instance; None where there is none of this name.

        Raises:
            RequestRefused: Nobody can tell just now.
        """

    def forget(self, name: str) -> None:
        """Take note that nobody is at the address of an instance."""


class Folder:
    """Instances of one machine, of one user.

    Args:
        path: The folder; it is made if it is not there. Nobody else may be let in by its mode.
        name: This instance.
    """

    def __init__(self, path: str, name: str) -> None:
        self._folder = Path(path)
        self._name = name

    def listen(self) -> socket.socket:
        """Open the socket of this instance in the folder.

        Raises:
            TransportClosed: The folder is somebody else's, open to others, or its path too long.
        """
        where = self._path(self._name)
        if sys.platform == "win32":
            raise TransportClosed(str(self._folder), "this system has no sockets in folders; use redis:// in --store")
        if len(os.fsencode(where)) > _LONGEST_PATH:
            raise TransportClosed(str(self._folder), "the path is too long for a socket; choose a shorter one")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            found = self._folder.stat()
            if not is_of_this_user(found) or found.st_mode & _OF_OTHERS:
                raise TransportClosed(str(self._folder), "expected a folder that is ours alone; chmod 700 makes it one")
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(str(where))
                listener.listen()
            except OSError:
                listener.close()
                raise
        except OSError as error:
            raise TransportClosed(str(where), f"cannot make a socket there: {error.strerror}") from None
        return listener

    async def announce(self) -> None:
        """Nothing to do: the socket is there."""

    async def withdraw(self) -> None:
        """Remove the socket."""
        self.forget(self._name)

    async def find(self, name: str) -> str | None:
        """Return the path of an instance's socket, if there is one."""
        where = self._path(name)
        return f"{LOCAL}{where}" if where.is_socket() else None

    def forget(self, name: str) -> None:
        """Remove the socket of an instance that was killed."""
        with contextlib.suppress(OSError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"
