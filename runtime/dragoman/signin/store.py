"""What is kept of a sign-in, in a file of its own for each server, that several processes share.

Lives here: reading, writing as a whole, and taking turns. Must not: decide. Others may not read the file. What a later
version writes into it, and this one does not know, stays there.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from dragoman.signin.discovery import AuthorizationServer
from dragoman.signin.registration import OAuthClient
from dragoman.signin.routine import SignedIn
from dragoman.signin.tokens import Tokens

_LOOK_S: Final = 0.1
"""How often to look whether it is our turn."""

_Part = TypeVar("_Part")
Written = dict[str, Any]


class TokenFile:
    """The file of one server.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unwritten: tuple[Written, Written] = {}, {}  # what could not be written, and what was there instead

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until nobody else signs in to this server, and keep others from it; a process that dies gives it up.

        Where nothing can be written, nobody takes turns.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            while not _take(lock):
                await asyncio.sleep(_LOOK_S)
            yield
        finally:
            os.close(lock)

    def read(self) -> Written:
        """Give what is written; nothing where there is no file, or something else in it.

        What could not be written counts until somebody else writes: what is in the file is older.
        """
        found = self._load()
        return self._unwritten[0] if found == self._unwritten[1] else found

    def _load(self) -> Written:
        try:
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, written: Written) -> None:
        """Write everything anew.

        Raises:
            OSError: It cannot be written; what was there is there still, and `read` gives the new.
        """
        self._unwritten = written, self._load()
        spare = self.path.with_suffix(f".{os.getpid()}")
        try:
            with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
                json.dump(written, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            spare.replace(self.path)
            self._unwritten = {}, {}
        except BaseException:
            spare.unlink(missing_ok=True)
            raise

    def remove(self) -> None:
        """Forget the server."""
        self.path.unlink(missing_ok=True)


def find_current(written: Mapping[str, Any]) -> SignedIn | None:
    """Give the tokens that are to be used, with who gave them to whom."""
    entry = _entries(written).get(str(written.get("issuer")), {})
    server, client = _build(AuthorizationServer, entry.get("server")), _build(OAuthClient, entry.get("client"))
    tokens = _build(Tokens, entry.get("tokens"))
    return None if server is None or client is None or tokens is None else SignedIn(server, client, tokens)


def find_clients(written: Mapping[str, Any]) -> dict[str, OAuthClient]:
    """Give who we are to each authorization server."""
    found = {issuer: _build(OAuthClient, entry.get("client")) for issuer, entry in _entries(written).items()}
    return {issuer: client for issuer, client in found.items() if client is not None}


def add(written: Mapping[str, Any], url: str, signed_in: SignedIn) -> Written:
    """Give what is to be written after a sign-in."""
    issuer, entries = signed_in.server.issuer, _entries(written)
    entry = {**entries.get(issuer, {}), **asdict(signed_in)}
    kept = {key: value for key, value in written.items() if key != "failed"}
    return {**kept, "format": 1, "url": url, "issuer": issuer, "issuers": {**entries, issuer: entry}}


def drop(written: Mapping[str, Any], *names: str) -> Written:
    """Give what is to be written once parts of the current entry are of no use any more."""
    issuer, entries = str(written.get("issuer")), _entries(written)
    entry = {name: value for name, value in entries.get(issuer, {}).items() if name not in names}
    return {**written, "issuers": {**entries, issuer: entry}}


def add_failure(written: Mapping[str, Any], url: str, reason: str) -> Written:
    """Give what is to be written after a sign-in that has failed."""
    return {**written, "format": 1, "url": url, "failed": {"at": time.time(), "reason": reason}}


def find_failure(written: Mapping[str, Any], since_s: float) -> str:
    """Say why a sign-in failed that others have tried since; empty if none did, or the clock was wrong then."""
    failed = written.get("failed")
    if isinstance(failed, dict) and isinstance(failed.get("at"), float) and since_s <= failed["at"] <= time.time():
        return str(failed.get("reason"))
    return ""


def list_files(folder: Path) -> Iterator[tuple[TokenFile, Written]]:
    """Give every file in a directory, with what is written in it."""
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        file = TokenFile(path)
        if isinstance((written := file.read()).get("url"), str):
            yield file, written


def _entries(written: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = written.get("issuers")
    return {key: value for key, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}


def _build(kind: type[_Part], value: object) -> _Part | None:
    """Make an object of what is written; what is not known is left out, arrays are tuples."""
    if not isinstance(value, dict):
        return None
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    found = {key: tuple(one) if isinstance(one, list) else one for key, one in value.items() if key in known}
    try:
        return kind(**found)
    except TypeError:
        return None


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # some file systems of networks have no locks
        return not isinstance(error, BlockingIOError)
    return True
