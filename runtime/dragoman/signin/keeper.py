"""The tokens of one server: kept between starts, shared with other processes, and got anew when they are refused.

Theory of operation. One process at a time gets tokens for a server; it has the turn of the file (`store`). Who gets the
turn looks first what the file says by now: somebody may have signed in meanwhile, and then there is nothing to do, or
have tried and failed, and then nobody is asked again. Only then are tokens refreshed, and only then is a person asked.
Within a process all requests that are refused wait for one such attempt. When none of them waits any more, because
their clients have left, nobody is asked any more: the page stays open, and who is next waits for it. A token that is
refused although a sign-in has just given it ends that: a server that always says no does not fill a screen with pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin import store
from dragoman.signin.discovery import read_bearer
from dragoman.signin.driver import PERSON_S, Driver, NobodyWaitsError, login_at
from dragoman.signin.grants import PendingVisit, SignedIn, renew, sign_in
from dragoman.signin.people import People
from dragoman.signin.settings import SignInSettings, as_resource
from dragoman.signin.store import TokenFile, Written
from dragoman.signin.tokens import CLIENT_GONE, GrantRefused, may_pass
from dragoman.signin.wishes import Occasion, Routine
from dragoman.transports.aside import do_aside
from dragoman.transports.upstream.challenge import Challenge
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman_spec import LATEST, REVISIONS, facts

logger = logging.getLogger("dragoman.signin")

_T = TypeVar("_T")

_ATTEMPTS: Final = 3
"""How often one request is sent with another token: once refreshed, once signed in, once for more scopes."""

_STEPS: Final = 5
_STEPS_S: Final = 600.0
"""How often more scopes are asked for in that time, whatever requests want them."""

_UNAUTHORIZED: Final = 401
_KEYRING_S: Final = 45.0
"""How long a keyring may take, which may ask somebody for a password; then there is none, until it is done. Less than
`--init-timeout`: clients are told."""

_MENTIONED_S: Final = 5.0
"""After how long the log says that it is waited for."""

_LOCKED: Final = "the keyring of the system does not answer; it may ask for a password where nobody sees it"

_LAST_S: Final = 2.0
"""How long an authorization server may still answer when the proxy ends: it may have taken a refresh token already."""

_OVER: Final = CLIENT_GONE | {"invalid_grant", "invalid_scope", "invalid_target", "unsupported_grant_type"}
"""What is said of a refresh token that is of no use any more; after anything else it is tried again the next time."""


class TokenKeeper:
    """Keeps the tokens of one server.

    Args:
        url: Of the server.
        settings: What the user decided.
        path: Where they are kept.
        people: Who may be asked.

    Attributes:
        is_kept: Whether what was to be written last has been.
    """

    def __init__(self, url: str, settings: SignInSettings, path: Path, people: People) -> None:
        self._url = url
        self._settings = settings
        self._people = people
        self._in_keyring = settings.store == "keyring"
        self._file = TokenFile(path, self._in_keyring)
        self._current = None if self._in_keyring else store.find_current(self._file.read())
        self._task: asyncio.Task[None] | None = None
        self._loading = asyncio.Lock()
        self._is_loaded = self._is_at_keyring = False
        self._asks = False  # whether that may ask a person
        self._has_turn = False  # whether it waits for nobody else
        self.is_kept = True
        self._steps: deque[float] = deque(maxlen=_STEPS)  # when more scopes were asked for
        self._waiting = 0  # requests because of which a person may be asked
        self._left = asyncio.Event()  # set when there are none of these any more
        self._changed = asyncio.Event()
        self._refreshed = ""  # what a refresh has just given
        self._as_it_is = ""  # a token that is sent although it should have ended
        self._given = ""  # what a sign-in has just given
        self._refused = ""  # the same, once the server has refused it

    @property
    def goes_on(self) -> bool:
        """Whether a sign-in goes on when no connection is left that may need it."""
        return self._people.goes_on

    @property
    def authorization(self) -> str:
        """What requests are to say in `Authorization`; empty where there is no token."""
        return f"Bearer {self._current.tokens.access}" if self._current is not None else ""

    @property
    def has_ended(self) -> bool:
        """Whether the token should have ended by now, and another one can be had for it without anybody."""
        tokens = None if self._current is None else self._current.tokens
        if tokens is None or tokens.expires_at is None or not tokens.refresh or tokens.access == self._as_it_is:
            return False
        return time.time() >= tokens.expires_at

    async def refresh_ended(self, headers: tuple[tuple[str, str], ...], config: UpstreamConfig) -> None:
        """Get another token in place of one that has ended, before the server sees that: some end both of them then."""
        ended = self.authorization
        with contextlib.suppress(TransportError):  # the server will say what it thinks of it
            await self.renew(Challenge(0, _UNAUTHORIZED, "", ended, headers, asks=False, waits=False), config)
        self._as_it_is = ended.removeprefix("Bearer ")

    async def load(self) -> None:
        """Read from the keyring, which may take until somebody has typed a password."""
        async with self._loading:
            if self._in_keyring and not self._is_loaded:
                self._current = store.find_current(await self._read())
                self._is_loaded = True

    async def _read(self) -> Written:
        """Return what is written; what we have ourselves where the keyring does not answer."""
        try:
            return await self._do(self._file.read)
        except OSError as error:
            logger.warning("the sign-in cannot be read: %s", error)
            return {} if self._current is None else store.add({}, self._url, self._current)

    async def _do(self, work: Callable[..., _T], *args: Any) -> _T:
        """Read or write, without holding up others where that may take long.

        Raises:
            OSError: It cannot be done, or a keyring is busy with what it was to do before.
        """
        if not self._in_keyring:
            return work(*args)
        if self._is_at_keyring:
            raise OSError(_LOCKED)

        def do() -> _T:
            try:
                return work(*args)
            finally:
                self._is_at_keyring = False

        self._is_at_keyring = True
        later = asyncio.get_running_loop().call_later
        mention = later(
            _MENTIONED_S, logger.warning, "the keyring of the system is waited for, %g s at most", _KEYRING_S
        )
        try:
            async with asyncio.timeout(_KEYRING_S):
                return await do_aside(do)
        except TimeoutError:
            raise OSError(_LOCKED) from None
        finally:
            mention.cancel()

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
                f"it refuses the token that its authorization server gave for it; {login_at(config)} tries again",
            )
        while self.authorization == challenge.sent:
            if self._task is None:
                self._asks = challenge.asks
                self._task = asyncio.ensure_future(self._renew(challenge, config))
                self._task.add_done_callback(self._note_done)
            may_ask = self._asks
            try:
                await self._wait(self._task, challenge.asks, config.peer)
                return
            except SignInFailed as error:
                if challenge.asks and may_ask and not isinstance(error, NobodyWaitsError):
                    raise
                if not challenge.asks:
                    if not challenge.waits:
                        raise
                    self._changed.clear()
                    await self._changed.wait()

    async def _wait(self, task: asyncio.Task[None], asks: bool, peer: str) -> None:
        """Wait for a sign-in, which goes on for others if we are cancelled."""
        self._waiting += asks
        if asks:
            self._left.clear()
        invited = asyncio.ensure_future(self._people.invite(peer) if asks else asyncio.sleep(0))
        try:
            await asyncio.wait((task, invited), return_when=asyncio.FIRST_COMPLETED)
            if invited.done():
                invited.result()
            await asyncio.shield(task)
        finally:
            invited.cancel()
            self._waiting -= asks
            if not self._waiting:
                self._left.set()

    async def stop(self) -> None:
        """Ask nobody any more; what a server is about to give is still kept."""
        if (task := self._task) is not None:
            self._left.set()
            await asyncio.wait([task], timeout=_LAST_S if self._has_turn else 0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def sign_in(self, config: UpstreamConfig, said: str) -> SignedIn:
        """Sign in, whatever there is.

        Args:
            config: Of the server.
            said: What it says in `WWW-Authenticate`.

        Raises:
            TransportError: It has failed.
        """
        async with self._file.turn(logging.WARNING):
            written = await self._read()
            occasion = self._occasion(Challenge(0, _UNAUTHORIZED, said, "", (), True, False), config.peer)
            signed_in = await self._run(occasion, written, config, is_open=False)
            await self._keep(written, signed_in)
        return signed_in

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._task, self._has_turn = None, False
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
        return Occasion(as_resource(self._url), peer, self._settings, said, demands, self._requested)

    async def _renew(self, challenge: Challenge, config: UpstreamConfig) -> None:
        began_s = time.time()
        async with self._file.turn() as has_waited:
            self._has_turn = True
            written = await self._read()
            found = store.find_current(written)
            if found is not None and f"Bearer {found.tokens.access}" != challenge.sent:
                logger.info("%s: somebody has signed in meanwhile", config.peer)
                self._take(found)
                return
            if failure := store.find_failure(written, began_s, config.peer):
                raise failure
            await self._keep(written, await self._get(found, written, challenge, config, has_waited))

    async def _get(
        self, before: SignedIn | None, written: Written, challenge: Challenge, config: UpstreamConfig, is_open: bool
    ) -> SignedIn:
        occasion = self._occasion(challenge, config.peer)
        # Not twice for one request; but what another process has got may have ended, too.
        is_over = challenge.status == _UNAUTHORIZED and not (challenge.attempt and challenge.sent == self._refreshed)
        if before is not None and before.tokens.refresh and is_over:
            try:
                renewed = await self._drive(renew(occasion, before), written, config)
                self._refreshed = f"Bearer {renewed.tokens.access}"
                return renewed
            except TransportError as error:
                if may_pass(error):
                    error.reason += f"; if that stays so, {login_at(config)} signs in anew"
                    raise
                logger.info("%s: the tokens cannot be refreshed: %s", config.peer, error.reason)
                if isinstance(error, GrantRefused) and error.error in _OVER:
                    gone = ("tokens", "client") if error.error in CLIENT_GONE else ("tokens",)
                    written.update(store.drop(written, *gone))
        if not challenge.asks and self._settings.grant in ("authorization_code", "device_code"):
            raise SignInFailed(config.peer, f"somebody has to sign in, such as by {login_at(config)}")
        if challenge.status != _UNAUTHORIZED:
            self._count_step(config.peer)
        signed_in = await self._run(occasion, written, config, is_open)
        self._given = f"Bearer {signed_in.tokens.access}"
        return signed_in

    def _count_step(self, peer: str) -> None:
        """Count a sign-in for more scopes.

        Raises:
            SignInFailed: There have been too many.
        """
        now = asyncio.get_running_loop().time()
        if len(self._steps) == _STEPS and now - self._steps[0] < _STEPS_S:
            raise SignInFailed(
                peer,
                f"it has asked for more scopes {_STEPS} times in {_STEPS_S / 60:g} minutes; if it needs them, say all "
                "of them with --oauth-scope, and run `dragoman login`",
            )
        self._steps.append(now)

    async def _run(self, occasion: Occasion, written: Written, config: UpstreamConfig, is_open: bool) -> SignedIn:
        has_pages = self._settings.grant == "authorization_code"
        visit = store.find_visit(written, time.time() - PERSON_S) if has_pages else None
        routine = sign_in(occasion, store.find_clients(written), visit, is_open=is_open)
        try:
            return await self._drive(routine, written, config)
        except NobodyWaitsError:
            logger.info("%s: nobody waits for the sign-in any more", config.peer)
            raise
        except TransportError as error:
            await self._write(store.add_failure(written, self._url, error))
            raise

    async def _drive(self, routine: Routine[SignedIn], written: Written, config: UpstreamConfig) -> SignedIn:
        async def keep(value: object) -> None:
            if isinstance(value, PendingVisit):
                await self._write(store.add_visit(written, self._url, value))

        left = None if self._people.goes_on else self._left
        return await Driver(config, self._settings, self._people, left, keep).run(routine)

    async def _keep(self, written: Written, signed_in: SignedIn) -> None:
        await self._write(store.add(written, self._url, signed_in))
        self._take(signed_in)
        if self.has_ended:  # as soon as it was given: that says nothing
            self._as_it_is = signed_in.tokens.access

    def _take(self, signed_in: SignedIn) -> None:
        self._current = signed_in
        self._changed.set()

    async def _write(self, written: Written) -> None:
        try:
            await self._do(self._file.write, written)
            self.is_kept = True
        except OSError as error:
            level, self.is_kept = logging.WARNING if self.is_kept else logging.DEBUG, False
            reason = f"{self._file.path}: {error.strerror}" if error.strerror else error
            logger.log(level, "the sign-in cannot be kept, and ends with us: %s", reason)
