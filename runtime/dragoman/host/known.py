"""What servers turned out to be, remembered from one start to the next: with a handshake alone, or without any.

Lives here: a small file for each server in the user's cache directory. Must not: decide what follows (`core.edges`).

A server is known by its URL, or by its command and size and time of each file that the command names, so another
release of it is another server. The name of the file is a hash: it shows neither command nor URL, nor what is secret in
them. A file is replaced as a whole, so processes do not disturb each other; one that says anything else says nothing.
Where there can be no file, this process alone remembers.

It expires after a day: a server that speaks both eras by now would be bridged for ever, and nobody would notice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_WORDS: Final = {True: "handshake", False: "no handshake"}
"""A server of both eras has no word. It once had that of the era in which it was asked: `per-request`."""

_MOST: Final = 500
"""How many servers are remembered; beyond that the oldest are forgotten."""

ERA_S: Final = 24 * 3600.0
"""For how many seconds it is remembered that a server has one era alone."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """What is remembered of one server.

    Attributes:
        path: Its file.
        is_up: Whether it runs before we do, as one at a URL.
    """

    path: str
    is_up: bool = False
    _noted: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def recall(self) -> bool | None:
        """Whether it has a handshake, if that is all that it has or lacks; None where that is not known, or no more."""
        try:
            with open(self.path, encoding="utf-8") as file:
                noted = {file.read(): os.fstat(file.fileno()).st_mtime}
        except ValueError:
            return None
        except OSError:
            noted = self._noted
        known = (has for has, word in _WORDS.items() if 0 <= time.time() - noted.get(word, -ERA_S) < ERA_S)
        return next(known, None)

    def note(self, has_handshake: bool) -> None:
        """Remember it."""
        self._noted.clear()
        self._noted[_WORDS[has_handshake]] = time.time()
        folder = os.path.dirname(self.path)
        spare = f"{self.path}.{os.getpid()}"
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(spare, "w", encoding="utf-8") as file:
                file.write(_WORDS[has_handshake])
            try:
                os.replace(spare, self.path)
            except OSError:
                os.unlink(spare)
            _forget_oldest(folder)


def know(command: Sequence[str], directory: str | None = None) -> KnownServer:
    """Return what is remembered of the server that a command starts.

    Args:
        command: With its arguments.
        directory: Where it is started; None for where we are.
    """
    home = directory or _find_here()
    found = (os.path.join(folder, command[0]) for folder in os.get_exec_path())
    program = next((path for path in found if os.access(path, os.X_OK)), command[0])
    return _know([home, *command, *(_describe(os.path.join(home, word)) for word in (program, *command[1:]))])


def know_url(url: str) -> KnownServer:
    """Return what is remembered of a server at a URL."""
    return _know([url], is_up=url.startswith("http"))


def _know(facts: list[str], is_up: bool = False) -> KnownServer:
    name = hashlib.sha256(json.dumps(facts).encode(errors="surrogateescape")).hexdigest()[:32]
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = cache if os.path.isabs(cache) else os.path.join(os.path.expanduser("~"), ".cache")
    return KnownServer(os.path.join(folder, "dragoman", "eras", name), is_up)


def _find_here() -> str:
    """Say where we are; nothing where that directory has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _describe(path: str) -> str:
    """Say which version of a file it is; nothing for a folder, which changes with what is put there, or for no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISDIR(found.st_mode) else f"{found.st_size} {found.st_mtime_ns}"


def _forget_oldest(folder: str) -> None:
    files = list(os.scandir(folder))
    if len(files) > _MOST:
        for file in sorted(files, key=lambda file: file.stat().st_mtime)[:-_MOST]:
            os.unlink(file)
