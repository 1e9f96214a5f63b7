"""What is kept of a sign-in, in a file of its own for each server, that several processes share.

Lives here: reading, writing as a whole, and taking turns. Must not: decide. Others may not read the file. What a later
version writes into it, and this one does not know, stays there. Where somebody has chosen the keyring of the system,
the file says so, and `keyring` is imported then alone. It may ask a person for a password, so whoever must not wait
calls from a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from dragoman import system
from dragoman.errors import SignInFailed, TransportError
from dragoman.signin.discovery import AuthorizationServer, OAuthClient
from dragoman.signin.grants import PendingVisit, SignedIn
from dragoman.signin.tokens import VISIBLE, Tokens
from dragoman.transports.small_files import read_small

_LOOK_S: Final = 0.1
"""How often to look whether it is our turn."""

_MENTIONED_S: Final = 5.0
_TURN_S: Final = 660.0
"""After how long the log says that a turn is waited for, and when it is not: nobody takes longer to sign in, and who
has it may have been stopped."""

logger = logging.getLogger("dragoman.signin")

_WAITING: Final = "another process is signing in to this server; waiting for it, for minutes if need be"
_KEYRING: Final = "keyring"
_MOST_BYTES: Final = 4 * 2**20
_MOST_S: Final = 1e11
"""No time of ours is later: a number that no clock shows does not come from us."""

_Part = TypeVar("_Part")
Written = dict[str, Any]


class TokenFile:
    """The file of one server.

    Args:
        path: Where it is.
        in_keyring: Whether the system's keyring keeps what is written; then the file says only that.
    """

    def __init__(self, path: Path, in_keyring: bool = False) -> None:
        self.path = path
        self._in_keyring = in_keyring
        self._unwritten: tuple[Written, Written] = {}, {}  # what could not be written, and what was there instead

    @contextlib.asynccontextmanager
    async def turn(self, level: int = logging.DEBUG) -> AsyncIterator[bool]:
        """Wait until nobody else signs in to this server, and keep others from it; a process that dies gives it up.

        Where nothing can be written, nobody takes turns; and nobody's is longer than a sign-in may take.

        Args:
            level: How important it is to the log that we wait, before that takes long.

        Returns:
            Whether somebody else had the turn.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | system.OURS, 0o600)
        except OSError:
            yield False
            return
        try:
            waited_s, began_s = 0.0, asyncio.get_running_loop().time()
            while not (is_ours := system.try_lock(lock)) and waited_s < _TURN_S:
                if not waited_s:
                    logger.log(level, _WAITING)
                before_s = waited_s
                await asyncio.sleep(_LOOK_S)
                waited_s = asyncio.get_running_loop().time() - began_s
                if before_s < _MENTIONED_S <= waited_s and level < logging.WARNING:
                    logger.warning(_WAITING)
            if is_ours:
                self._clean()
            else:
                logger.warning("another process keeps this server's tokens for itself, and is not waited for any more")
            yield waited_s > 0
        finally:
            os.close(lock)

    def read(self) -> Written:
        """Return what is written; nothing where there is no file, or something else in it.

        What could not be written counts until somebody else writes: what is in the file is older.
        """
        found = self._load()
        return self._unwritten[0] if found == self._unwritten[1] else found

    def _load(self) -> Written:
        found = self._load_file()
        if found.get("store") == _KEYRING:
            try:
                return _read_object(_load_key(self.path.stem)) or found
            except OSError as error:
                logger.warning("the sign-in cannot be read: %s", error)
        return found

    def _load_file(self) -> Written:
        try:
            return _read_object(read_small(self.path, _MOST_BYTES, of_others=True).decode())
        except (OSError, ValueError):
            return {}

    def write(self, written: Written) -> None:
        """Write everything anew.

        Raises:
            OSError: It cannot be written; what was there is there still, and `read` gives the new.
        """
        self._unwritten = written, self._load()
        written = {key: value for key, value in written.items() if key != "store"}
        was_in_keyring = self._load_file().get("store") == _KEYRING
        if self._in_keyring:
            _save_key(self.path.stem, json.dumps(written))
        if not (self._in_keyring and was_in_keyring):
            said = {"format": 1, "url": written.get("url"), "store": _KEYRING}
            self._replace(said if self._in_keyring else written)
        if was_in_keyring and not self._in_keyring:
            _remove_key(self.path.stem)
        self._unwritten = {}, {}

    def _replace(self, written: Written) -> None:
        spare = self.path.with_suffix(f".{os.getpid()}")
        try:
            with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.OURS, 0o600), "w") as file:
                json.dump(written, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            system.when_free(lambda: spare.replace(self.path))
        except BaseException:
            spare.unlink(missing_ok=True)
            raise

    def remove(self) -> None:
        """Forget the server.

        Raises:
            OSError: It is still known.
        """
        self._clean()
        if self._load_file().get("store") == _KEYRING:
            _remove_key(self.path.stem)
        self.path.unlink(missing_ok=True)

    def _clean(self) -> None:
        """Remove what a process has left that was killed while it wrote."""
        for spare in self.path.parent.glob(f"{self.path.stem}.[0-9]*"):
            with contextlib.suppress(OSError):
                spare.unlink()


def find_current(written: Mapping[str, Any]) -> SignedIn | None:
    """Return the tokens that are to be used, with who gave them to whom."""
    entry = _entries(written).get(str(written.get("issuer")), {})
    server, client = _build(AuthorizationServer, entry.get("server")), _build(OAuthClient, entry.get("client"))
    tokens = _build(Tokens, entry.get("tokens"))
    if server is None or client is None or tokens is None or not VISIBLE.match(tokens.access):
        return None
    return SignedIn(server, client, tokens)


def find_clients(written: Mapping[str, Any]) -> dict[str, OAuthClient]:
    """Return who we are to each authorization server."""
    found = {issuer: _build(OAuthClient, entry.get("client")) for issuer, entry in _entries(written).items()}
    return {issuer: client for issuer, client in found.items() if client is not None}


def add(written: Mapping[str, Any], url: str, signed_in: SignedIn) -> Written:
    """Return what is to be written after a sign-in."""
    issuer, entries = signed_in.server.issuer, _entries(written)
    entry = {**entries.get(issuer, {}), **asdict(signed_in)}
    kept = {key: value for key, value in written.items() if key not in ("failed", "visit")}
    return {**kept, "format": 1, "url": url, "issuer": issuer, "issuers": {**entries, issuer: entry}}


def drop(written: Mapping[str, Any], *names: str) -> Written:
    """Return what is to be written once parts of the current entry are of no use any more."""
    issuer, entries = str(written.get("issuer")), _entries(written)
    entry = {name: value for name, value in entries.get(issuer, {}).items() if name not in names}
    return {**written, "issuers": {**entries, issuer: entry}}


def add_failure(written: Mapping[str, Any], url: str, error: TransportError) -> Written:
    """Return what is to be written after a sign-in that has failed."""
    kept = {key: value for key, value in written.items() if key != "visit"}
    failed = {"at": time.time(), "reason": error.reason, "asked": error.was_asked}
    return {**kept, "format": 1, "url": url, "failed": failed}


def find_failure(written: Mapping[str, Any], since_s: float, peer: str) -> SignInFailed | None:
    """Return why a sign-in failed that others have tried since; None if none did, or the clock was wrong then."""
    failed = written.get("failed")
    if isinstance(failed, dict) and isinstance(failed.get("at"), float) and since_s <= failed["at"] <= time.time():
        error = SignInFailed(peer, str(failed.get("reason")))
        error.was_asked = failed.get("asked") is True
        return error
    return None


def add_visit(written: Mapping[str, Any], url: str, visit: PendingVisit) -> Written:
    """Return what is to be written while a person is asked to sign in."""
    return {**written, "format": 1, "url": url, "visit": asdict(visit)}


def find_visit(written: Mapping[str, Any], since_s: float) -> PendingVisit | None:
    """Return whom somebody else has sent to sign in since, and does not wait for any more."""
    found = written.get("visit")
    if not isinstance(found, dict) or not isinstance(at := found.get("at"), float) or not since_s <= at <= time.time():
        return None
    server, client = _build(AuthorizationServer, found.get("server")), _build(OAuthClient, found.get("client"))
    return (
        None
        if server is None or client is None
        else _build(PendingVisit, {**found, "server": server, "client": client})
    )


def list_files(folder: Path) -> Iterator[tuple[TokenFile, Written]]:
    """Return every file in a directory, with what is written in it."""
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        file = TokenFile(path)
        if _is_url((written := file.read()).get("url")):
            yield file, written


def _is_url(value: object) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(value, str) and bool(urlsplit(value).hostname)
    return False


def _entries(written: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = written.get("issuers")
    return {key: value for key, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}


def _read_object(text: str) -> Written:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _build(kind: type[_Part], value: object) -> _Part | None:
    """Make an object of what is written: arrays are tuples, what is not known is left out; wrong types make none."""
    if not isinstance(value, dict):
        return None
    known = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    found = {key: tuple(one) if isinstance(one, list) else one for key, one in value.items() if key in known}
    if not all(_fits(one, known[key]) for key, one in found.items()):
        return None
    try:
        return kind(**found)
    except TypeError:
        return None


def _fits(value: object, kind: str) -> bool:
    """Whether a value of JSON is what a field wants, by the name of its type; a part of ours fits already."""
    wanted, _, optional = kind.partition(" | ")
    match value:
        case bool():
            return wanted == "bool"
        case str():
            return wanted == "str"
        case int() | float():
            return wanted == "float" and 0 <= value < _MOST_S
        case tuple():
            return wanted == "tuple[str, ...]" and all(isinstance(one, str) for one in value)
        case None:
            return optional == "None"
    return not isinstance(value, dict)


_SERVICE: Final = "dragoman"


def _load_key(name: str) -> str:
    """Return what the keyring keeps by a name; empty if nothing is.

    Raises:
        OSError: The keyring cannot be used.
    """
    with _opened() as keyring:
        return keyring.get_password(_SERVICE, name) or ""


def _save_key(name: str, text: str) -> None:
    """Keep a text by a name.

    Raises:
        OSError: The keyring cannot be used.
    """
    with _opened() as keyring:
        keyring.set_password(_SERVICE, name, text)


def _remove_key(name: str) -> None:
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
