"""The tokens of one server: kept between starts, shared with other processes, and got anew when they are refused.

Theory of operation. One process at a time gets tokens for a server; it has the turn of the file (`store`). Who gets the
turn looks first what the file says by now: somebody may have signed in meanwhile, and then there is nothing to do, or
have tried and failed, and then nobody is asked again. Only then are tokens refreshed, and only then is a person asked.
Within a process all requests that are refused wait for one such attempt. A token that is refused although a sign-in has
just given it ends that: a server that always says no does not fill a screen with pages.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from dragoman.errors import SignInFailed
from dragoman.signin import store
from dragoman.signin.challenges import read_bearer
from dragoman.signin.driver import Driver
from dragoman.signin.people import People
from dragoman.signin.routine import CLIENT_GONE, SignedIn, renew, sign_in
from dragoman.signin.settings import SignInSettings
from dragoman.signin.store import TokenFile, Written
from dragoman.signin.tokens import GrantRefused
from dragoman.signin.wishes import Occasion
from dragoman.transports.upstream.challenge import Challenge
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman_spec import LATEST, REVISIONS, facts

logger = logging.getLogger("dragoman.signin")

_ATTEMPTS: Final = 3
"""How often one request is sent with another token: once refreshed, once signed in, once for more scopes."""

_UNAUTHORIZED: Final = 401
_OVER: Final = CLIENT_GONE | {"invalid_grant", "invalid_scope", "invalid_target", "unsupported_grant_type"}
"""What is said of a refresh token that is of no use any more. Anything else may pass."""


class TokenKeeper:
    """Keeps the tokens of one server.

    Args:
        url: Of the server.
        settings: What the user decided.
        path: Where they are kept.
        people: Who may be asked.
    """

    def __init__(self, url: str, settings: SignInSettings, path: Path, people: People) -> None:
        self._url = url
        self._settings = settings
        self._people = people
        self._file = TokenFile(path)
        self._current = store.find_current(self._file.read())
        self._task: asyncio.Task[None] | None = None
        self._asks = False  # whether that may ask a person
        self._changed = asyncio.Event()
        self._refreshed = ""  # what a refresh has just given
        self._given = ""  # what a sign-in has just given
        self._refused = ""  # the same, once the server has refused it

    @property
    def authorization(self) -> str:
        """What requests are to say in `Authorization`; empty where there is no token."""
        return f"Bearer {self._current.tokens.access}" if self._current is not None else ""

    def takes(self, challenge: Challenge) -> bool:
        """Whether a token may help against this.

        More scopes are asked for only if they have not been asked for yet: else the server says no for another reason.
        """
        said = read_bearer(challenge.header)
        if said is None or challenge.attempt >= _ATTEMPTS:
            return False
        if challenge.status == _UNAUTHORIZED:
            return True
        wanted = set(said.get("scope", "").split())
        return said.get("error") == "insufficient_scope" and bool(wanted - set(self._requested))

    async def renew(self, challenge: Challenge, config: UpstreamConfig) -> None:
        """Get another token than the one that was refused.

        Raises:
            TransportError: There is none.
        """
        if challenge.status == _UNAUTHORIZED and challenge.attempt and challenge.sent == self._given:
            self._refused = challenge.sent
        if challenge.sent and challenge.sent == self._refused:
            raise SignInFailed(
                config.peer,
                "it refuses the token that its authorization server gave for it; `dragoman login` tries again",
            )
        while self.authorization == challenge.sent:
            if self._task is None:
                self._asks = challenge.asks
                self._task = asyncio.ensure_future(self._renew(challenge, config))
                self._task.add_done_callback(self._note_done)
            may_ask = self._asks
            try:
                await asyncio.shield(self._task)
                return
            except SignInFailed:
                if challenge.asks and may_ask:
                    raise
                if not challenge.asks:
                    if not challenge.waits:
                        raise
                    self._changed.clear()
                    await self._changed.wait()

    async def stop(self) -> None:
        """Ask nobody any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sign_in(self, config: UpstreamConfig, said: str) -> SignedIn:
        """Sign in, whatever there is.

        Args:
            config: Of the server.
            said: What it says in `WWW-Authenticate`.

        Raises:
            TransportError: It has failed.
        """
        async with self._file.turn():
            written = self._file.read()
            occasion = self._occasion(Challenge(0, _UNAUTHORIZED, said, "", (), True, False), config.peer)
            signed_in = await self._run(occasion, written, config)
            self._keep(written, signed_in)
        return signed_in

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # whoever waits is told; it is no defect if nobody does

    @property
    def _requested(self) -> tuple[str, ...]:
        return self._current.tokens.requested if self._current is not None else ()

    def _occasion(self, challenge: Challenge, peer: str) -> Occasion:
        headers = {name.lower(): value for name, value in challenge.headers}
        revision = next((value for value in headers.values() if value in REVISIONS), LATEST)
        demands = facts(revision).authorization
        said = read_bearer(challenge.header) or {}
        return Occasion(self._url, peer, self._settings, said, demands, self._requested)

    async def _renew(self, challenge: Challenge, config: UpstreamConfig) -> None:
        began_s = time.time()
        async with self._file.turn():
            written = self._file.read()
            found = store.find_current(written)
            if found is not None and f"Bearer {found.tokens.access}" != challenge.sent:
                logger.info("%s: somebody has signed in meanwhile", config.peer)
                self._take(found)
                return
            if reason := store.find_failure(written, began_s):
                raise SignInFailed(config.peer, reason)
            self._keep(written, await self._get(found, written, challenge, config))

    async def _get(
        self, before: SignedIn | None, written: Written, challenge: Challenge, config: UpstreamConfig
    ) -> SignedIn:
        occasion = self._occasion(challenge, config.peer)
        # Not twice for one request; but what another process has got may have ended, too.
        is_over = challenge.status == _UNAUTHORIZED and not (challenge.attempt and challenge.sent == self._refreshed)
        if before is not None and before.tokens.refresh and is_over:
            try:
                renewed = await Driver(config, self._settings, self._people).run(renew(occasion, before))
                self._refreshed = f"Bearer {renewed.tokens.access}"
                return renewed
            except GrantRefused as error:
                if error.error not in _OVER:
                    raise
                logger.info("%s: the tokens cannot be refreshed: %s", config.peer, error.reason)
                gone = ("tokens", "client") if error.error in CLIENT_GONE else ("tokens",)
                written.update(store.drop(written, *gone))
        if not challenge.asks and self._settings.grant in ("authorization_code", "device_code"):
            raise SignInFailed(config.peer, "somebody has to sign in")
        signed_in = await self._run(occasion, written, config)
        self._given = f"Bearer {signed_in.tokens.access}"
        return signed_in

    async def _run(self, occasion: Occasion, written: Written, config: UpstreamConfig) -> SignedIn:
        routine = sign_in(occasion, store.find_clients(written))
        try:
            return await Driver(config, self._settings, self._people).run(routine)
        except SignInFailed as error:
            self._write(store.add_failure(store.drop(written, "tokens"), self._url, error.reason))
            raise

    def _keep(self, written: Written, signed_in: SignedIn) -> None:
        self._write(store.add(written, self._url, signed_in))
        self._take(signed_in)

    def _take(self, signed_in: SignedIn) -> None:
        self._current = signed_in
        self._changed.set()

    def _write(self, written: Written) -> None:
        try:
            self._file.write(written)
        except OSError as error:
            logger.warning("the sign-in cannot be kept in %s: %s", self._file.path, error.strerror or error)
