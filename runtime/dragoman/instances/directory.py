"""Where the instances of a proxy are: a folder with a socket of each, for those of one machine.

Lives here: what a directory can do, and the folder. Must not: connect. Used by `relay`; `store` is another directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import socket
import stat
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

from dragoman.errors import TransportClosed
from dragoman.system import is_of_this_user
from dragoman.transports.http.exchange import RETRY_AFTER, RequestRefused

LOCAL: Final = "unix:"
"""What an address begins with that is a path; others are HOST:PORT."""

_SUFFIX: Final = ".sock"
_NEWS: Final = ".news"
_LONGEST_NEWS: Final = 256 * 1024
_TRIES: Final = 10
_TRY_AGAIN_S: Final = 0.1
_KEPT: Final = re.compile(
    r"session:[0-9a-f]{64}|heir:[0-9a-f]{64}:\w+|event:[0-9a-f]{64}:\w+:[0-9]+|[0-9a-f]{16}\.[0-9]+\.new"
)
"""Files of ours, but for sockets; whatever else is in the folder is somebody's who had it before, or has it, too."""

_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_TIDY_S: Final = 600.0
_LONGEST_PATH: Final = 107
"""How long the path of a socket may be, in bytes."""


class Directory(Protocol):
    """Says where the instances are.

    Attributes:
        on_return: Called when nobody could find this instance for a while, and everybody can again; also in the
            beginning.
        on_news: Called with what another instance has told all.
        on_missed: Called when something of that may not have come here.
        fresh_s: How long it is believed that an instance is there, after it has withdrawn.
    """

    on_return: Callable[[], Awaitable[None]]
    on_news: Callable[[bytes | str], None]
    on_missed: Callable[[], None]
    fresh_s: float

    def listen(self) -> socket.socket:
        """Open the socket at which this instance takes what is handed on to it.

        Raises:
            TransportClosed: It cannot be had.
        """

    async def announce(self) -> None:
        """Let the others find this instance from now on.

        Raises:
            TransportClosed: What that needs cannot be had.
        """

    async def withdraw(self) -> None:
        """Let nobody find it any more."""

    async def find(self, name: str) -> str | None:
        """Return the address of an instance; None where there is none of this name.

        Raises:
            RequestRefused: Nobody can tell just now.
        """

    def forget(self, name: str) -> None:
        """Take note that nobody is at the address of an instance."""

    async def keep(self, key: str, text: str, kept_s: float) -> bool:
        """Keep a text for so many seconds; false where nobody can tell whether it is kept."""

    async def read(self, key: str) -> str | None:
        """Return a text that is kept.

        Raises:
            RequestRefused: Nobody can tell just now.
        """

    async def claim(self, key: str, text: str, kept_s: float) -> bool:
        """Keep a text where nothing is kept; false where something is.

        Raises:
            RequestRefused: Nobody can tell just now.
        """

    async def drop(self, key: str) -> None:
        """Keep something no longer."""

    async def tell(self, text: str) -> None:
        """Tell every other instance something, if that can be done now."""


class Folder:
    """Instances of one machine, of one user.

    Args:
        path: The folder; it is made if it is not there. Nobody else may be let in by its mode.
        name: This instance.
    """

    on_return: Callable[[], Awaitable[None]]
    on_news: Callable[[bytes | str], None]
    on_missed: Callable[[], None]
    fresh_s = 0.0

    def __init__(self, path: str, name: str) -> None:
        self._folder = Path(path)
        self._name = name
        self._numbers = itertools.count()
        self._tidy_at = 0.0
        self._told: socket.socket | None = None

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
        """Hear what is told, at a socket of its own; the other one is there.

        Raises:
            TransportClosed: There is none to be had.
        """
        if sys.platform == "win32":
            return
        where = self._path(self._name).with_suffix(_NEWS)
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._told.setblocking(False)
        try:
            self._told.bind(str(where))
        except OSError as error:
            raise TransportClosed(str(where), f"cannot make a socket there: {error.strerror}") from None
        asyncio.get_running_loop().add_reader(self._told, self._take_news, self._told)

    async def withdraw(self) -> None:
        """Remove the sockets."""
        if self._told is not None:
            asyncio.get_running_loop().remove_reader(self._told)
            self._told.close()
            self._told = None
        self.forget(self._name)

    async def find(self, name: str) -> str | None:
        """Return the path of an instance's socket, if there is one."""
        where = self._path(name)
        return f"{LOCAL}{where}" if where.is_socket() else None

    def forget(self, name: str) -> None:
        """Remove the sockets of an instance that was killed."""
        for where in (self._path(name), self._path(name).with_suffix(_NEWS)):
            with contextlib.suppress(OSError):
                where.unlink()

    async def keep(self, key: str, text: str, kept_s: float) -> bool:
        """Write a file, in one step, and remove those whose time is over."""
        try:
            os.replace(self._write(text, kept_s), self._folder / key)
        except OSError:
            return False
        return True

    async def read(self, key: str) -> str | None:
        """Read a file whose time is not over."""
        with contextlib.suppress(OSError, ValueError):
            file = self._folder / key
            found = file.stat()
            if stat.S_ISREG(found.st_mode) and found.st_mtime > time.time():
                return file.read_text("utf-8")
        return None

    async def claim(self, key: str, text: str, kept_s: float) -> bool:
        """Make a file that is not there."""
        try:
            written = self._write(text, kept_s)
            try:
                os.link(written, self._folder / key)
            finally:
                os.unlink(written)
        except FileExistsError:
            return False
        except OSError:  # the disk is full, say
            raise RequestRefused(503, "nothing can be kept in the folder of --store just now", RETRY_AFTER) from None
        return True

    async def drop(self, key: str) -> None:
        """Remove a file."""
        with contextlib.suppress(OSError):
            (self._folder / key).unlink()

    async def tell(self, text: str) -> None:
        """Send it to the sockets of all others; who does not take it for a while does not get it."""
        others = {file for file in self._folder.glob(f"*{_NEWS}") if file.stem != self._name}
        for _ in range(_TRIES):
            for other in list(others):
                if self._told is None:
                    return
                try:
                    self._told.sendto(text.encode(), str(other))
                except BlockingIOError:  # it has not read what was told before
                    continue
                except ConnectionRefusedError:
                    self.forget(other.stem)
                except OSError:
                    pass  # it has just gone
                others.discard(other)
            if not others:
                return
            await asyncio.sleep(_TRY_AGAIN_S)

    def _take_news(self, told: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.on_news(told.recv(_LONGEST_NEWS))

    def _write(self, text: str, kept_s: float) -> Path:
        """Write a text to a file that nobody looks for yet; the time until which it is good is that of the file."""
        self._tidy()
        until = time.time() + kept_s
        written = self._folder / f"{self._name}.{next(self._numbers)}.new"
        written.write_text(text, "utf-8")
        os.utime(written, (until, until))
        return written

    def _tidy(self) -> None:
        """Remove what nobody needs any more, now and then."""
        now = time.time()
        if now < self._tidy_at:
            return
        self._tidy_at = now + _TIDY_S
        for file in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if _KEPT.fullmatch(file.name) and file.stat().st_mtime < now - _TIDY_S:
                    file.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"
