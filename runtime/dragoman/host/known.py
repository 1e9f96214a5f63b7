"""What servers turned out to be, remembered from one start to the next: with a handshake alone, or without any.

Lives here: small files for each server in the user's cache directory: what it is, and, of one that is slow to start,
what it said. Must not: decide what follows (`core.edges`, `core.edges.greeter`).

A server is known by its URL, or by its command and size and time of each file that the command names, so another
release of it is another server. The name of the file is a hash: it shows neither command nor URL, nor what is secret in
them. A file is replaced as a whole, so processes do not disturb each other; one that says anything else says nothing.
Where there can be no file, this process alone remembers.

It expires after a day: a server that speaks both eras by now would be bridged for ever, and nobody would notice.

What it said is kept for each question by which it was opened, and only of commands: a URL does not say which version is
there. It also depends on the variables that say who somebody is to a server. Somebody else may have put anything into
the directory: only a regular file of our own, of a bounded size, is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Final

from dragoman import system
from dragoman.core.edges.greeter import MOST_BYTES, Answers, read_answers
from dragoman.core.exact_json import decode
from dragoman.core.unchecked import find_object
from dragoman.transports.small_files import read_small
from dragoman.transports.surroundings import secretive_names
from dragoman_spec.record import record

_WORDS: Final = {True: "handshake", False: "no handshake"}
"""A server of both eras has no word. It once had that of the era in which it was asked: `per-request`."""

_MOST: Final = 500
"""How many servers are remembered; beyond that the oldest are forgotten."""

ERA_S: Final = 24 * 3600.0
"""For how many seconds it is remembered that a server has one era alone."""

_MOST_SAID: Final = 100
"""Of how many servers and questions it is remembered what was said."""

SAID_S: Final = 7 * 24 * 3600.0
"""For how many seconds a server is answered for, until a client waits for it again: so it is asked at last which
revision it speaks by now."""


@record
class Said:
    """What a server said when it was opened with a question, and after that.

    Attributes:
        answers: Its results.
        took_s: How many seconds it took to start.
        since: When it was opened so that somebody waited for it.
    """

    answers: Answers
    took_s: float
    since: float


@record
class KnownAnswers:
    """What is remembered of the answers of one server.

    Attributes:
        folder: Where its files are.
        name: How their names begin.
    """

    folder: str
    name: str

    def recall(self, asked: bytes) -> Said | None:
        """Return what it said to this question; None where that is not known, or not any more."""
        try:
            kept = decode(read_small(self._path(asked), 2 * MOST_BYTES))
            said = Said(read_answers(find_object(kept, "answers")), float(kept["took_s"]), float(kept["since"]))
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
        return said if 0 <= time.time() - said.since < SAID_S else None

    def keep(self, asked: bytes, said: Said | None) -> None:
        """Remember what it said to this question, in place of what is remembered; None: forget it."""
        path = self._path(asked)
        if said is None or sum(map(len, said.answers.values())) > MOST_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(path)
            return
        answers = b",".join(b"%b:%b" % (json.dumps(name).encode(), answer) for name, answer in said.answers.items())
        _write(path, b'{"took_s":%f,"since":%f,"answers":{%b}}' % (said.took_s, said.since, answers), _MOST_SAID)

    def _path(self, asked: bytes) -> str:
        return os.path.join(self.folder, hashlib.sha256(self.name.encode() + asked).hexdigest()[:32])


@record
class KnownServer:
    """What is remembered of one server.

    Attributes:
        path: Its file.
        is_up: Whether it runs before we do, as one at a URL.
        answers: What it said; None where that is not remembered.
    """

    path: str
    is_up: bool = False
    answers: KnownAnswers | None = None
    _noted: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def recall(self) -> bool | None:
        """Whether it has a handshake, if that is all that it has or lacks; None where that is not known, or no more."""
        try:
            noted = {read_small(self.path, 64).decode(): os.lstat(self.path).st_mtime}
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
        _write(self.path, _WORDS[has_handshake].encode(), _MOST)


def know(
    command: Sequence[str], directory: str | None = None, variables: Sequence[tuple[str, str | None]] = ()
) -> KnownServer:
    """Return what is remembered of the server that a command starts.

    Args:
        command: With its arguments.
        directory: Where it is started; None for where we are.
        variables: What it is given beside our own environment; None: the value that we have.
    """
    home = directory or _find_here()
    found = (os.path.join(folder, command[0]) for folder in os.get_exec_path())
    program = next((path for path in found if os.access(path, os.X_OK)), command[0])
    facts = [home, *command, *(_describe(os.path.join(home, word)) for word in (program, *command[1:]))]
    given = [(name, os.environ.get(name, "") if value is None else value) for name, value in variables]
    told = sorted([*given, *((name, os.environ[name]) for name in secretive_names(os.environ))])
    return replace(_know(facts), answers=KnownAnswers(_find_folder("answers"), _hash([facts, told])))


def know_url(url: str) -> KnownServer:
    """Return what is remembered of a server at a URL."""
    return _know([url], is_up=url.startswith("http"))


def _know(facts: list[str], is_up: bool = False) -> KnownServer:
    return KnownServer(os.path.join(_find_folder("eras"), _hash(facts)), is_up)


def _hash(facts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode(errors="surrogateescape")).hexdigest()[:32]


def _find_folder(name: str) -> str:
    return os.path.join(system.user_folder("XDG_CACHE_HOME", ".cache"), "dragoman", name)


def _write(path: str, data: bytes, most: int) -> None:
    """Replace a file as a whole, and forget the oldest of its folder beyond so many; say nothing if that fails."""
    folder, spare = os.path.dirname(path), f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare)  # of a process that was killed, or somebody's link
        with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.AT_ONCE, 0o600), "wb") as file:
            file.write(data)
        try:
            system.when_free(lambda: os.replace(spare, path))
        except OSError:
            os.unlink(spare)
        _forget_oldest(folder, most)


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


def _forget_oldest(folder: str, most: int) -> None:
    files = list(os.scandir(folder))
    if len(files) > most:
        for file in sorted(files, key=lambda file: file.stat(follow_symlinks=False).st_mtime)[:-most]:
            os.unlink(file)
