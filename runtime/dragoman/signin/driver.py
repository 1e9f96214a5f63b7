"""Carries out what routines of a sign-in want: requests, and asking a person.

What is fetched for a server on the public network comes from the public network, or a server could have us ask the
router next to us (2026-07-28/basic/security_best_practices, Server-Side Request Forgery). No answer is long, and none
takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from dragoman.errors import FrameTooLarge, SignInFailed, TransportError
from dragoman.signin.people import PATH, CallbackPage, People, ReturnPage
from dragoman.signin.settings import SignInSettings, is_loopback
from dragoman.signin.tokens import PASSING, UNREVOKED
from dragoman.signin.wishes import Fetch, Fetched, Keep, Listen, OpenPage, Routine, ShowCode, Sleep, Wish
from dragoman.transports.secrecy import Secrets, secrets_in_path
from dragoman.transports.upstream.bodies import read_body
from dragoman.transports.upstream.config import Kind, UpstreamConfig, describe_url, origin_of
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.connector import Address, dial, resolve
from dragoman.transports.upstream.heads import host_of
from dragoman.transports.upstream.proxies import proxy_of

logger = logging.getLogger("dragoman.signin")

_ANSWER_BYTES: Final = 512 * 1024
_ANSWER_S: Final = 30.0
PERSON_S: Final = 600.0
"""How long a person may take: a page that was closed is not waited for for ever."""

_USUAL: Final = PASSING | {UNREVOKED}
"""Errors that nobody has to know about."""

_BROUGHT: Final = frozenset({"code", "error"})
_WRONG: Final = "it is not the whole address, or that of another sign-in."

_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""Leads to the IPv4 address at its end (RFC 6052): that of a public server, too, where a network has no other way."""

_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All public IPv6 addresses there are (RFC 4291 and its registry): not the site's own (RFC 3879), nor those that are
translated to IPv4 or lead there, but for `_TRANSLATED`."""

_TUNNELS: Final = ipaddress.IPv6Network("2002::/16")
"""Leads to an IPv4 address within, and no public server is there today: 6to4 (RFC 7526)."""

_T = TypeVar("_T")


class NobodyWaitsError(SignInFailed):
    """Who wanted the sign-in has left before a person has come back."""


class Driver:
    """Carries out one routine.

    Args:
        config: Of the server that it is for.
        settings: What the user decided.
        people: Who may be asked.
        left: Set while nobody waits for what comes of it: then nobody is asked.
        keep: Keeps what another process can go on with.
    """

    def __init__(
        self,
        config: UpstreamConfig,
        settings: SignInSettings,
        people: People,
        left: asyncio.Event | None = None,
        keep: Callable[[object], Awaitable[None]] | None = None,
    ) -> None:
        self._config = config
        # Metadata are asked for, and named, by the server's path: who is told of it by name is not told its URL.
        self._hidden = Secrets(() if config.name is None else secrets_in_path(config.url))
        self._settings = settings
        self._people = people
        self._left = left or asyncio.Event()
        self._keep = keep
        self._has_asked = False
        self._page: ReturnPage | None = None

    async def run(self, routine: Routine[_T]) -> _T:
        """Carry a routine out; what it raises comes out of here.

        Raises:
            TransportError: It has failed, or something that it wants.
        """
        told = "Sign-in failed", "It was given up. The log of the proxy says more."
        try:
            result = await self._step(routine)
            told = "You are signed in", f"{self._config.peer} can be used now. You may close this page."
            return result
        except TransportError as error:
            error.peer, error.reason = self._hidden.take_out(error.peer), self._hidden.take_out(error.reason)
            told = told[0], str(error)
            error.was_asked = self._has_asked
            raise
        except ValueError as error:  # such as a URL that is none
            raise SignInFailed(self._config.peer, f"what it is told of the sign-in is of no use: {error}") from None
        finally:
            routine.close()
            if self._page is not None:
                await self._page.close(*told)

    async def _step(self, routine: Routine[_T]) -> _T:
        given: Any = None
        failure: TransportError | None = None
        while True:
            try:
                wish = routine.send(given) if failure is None else routine.throw(failure)
            except StopIteration as over:
                result: _T = over.value
                return result
            try:
                given, failure = await self._grant(wish), None
            except TransportError as error:
                failure = error

    async def _grant(self, wish: Wish) -> Any:
        match wish:
            case Fetch():
                return await self._fetch(wish)
            case Listen(before, own):
                return await self._listen(before, own)
            case OpenPage():
                return await self._ask(wish)
            case Keep(value) if self._keep is not None:
                await self._keep(value)
            case ShowCode(url, code, complete_url):
                self._has_asked = True
                await self._people.show_code(self._config.peer, complete_url or url, code)
            case Sleep(seconds):
                await self._until_one_of(seconds)
        return None

    async def _fetch(self, wish: Fetch) -> Fetched:
        ours = self._config
        config = UpstreamConfig(
            wish.url,
            kind=Kind.STREAMABLE_HTTP,
            ca_file=ours.ca_file,
            proxy=ours.proxy,
            verify=ours.verify,
            connect_timeout_s=ours.connect_timeout_s,
        )
        if proxy_of(config) is None:  # a proxy looks the name up itself, and goes where it may
            config = replace(config, dial=lambda: self._dial(wish.url))
        try:
            async with asyncio.timeout(_ANSWER_S):
                pool = ConnectionPool(config)
                try:
                    answer = await pool.send_once(wish.method, wish.url, wish.headers, wish.body)
                    body, leads_to = await read_body(answer, _ANSWER_BYTES), answer.header("Location")
                finally:
                    await pool.close()
        except FrameTooLarge as error:
            raise SignInFailed(describe_url(wish.url), error.reason) from None
        except TimeoutError:
            raise TransportError(describe_url(wish.url), f"it did not answer within {_ANSWER_S:g} s") from None
        except OSError as error:
            raise SignInFailed(describe_url(wish.url), f"TLS cannot be set up: {error.strerror or error}") from None
        fetched = Fetched(answer.status, body, leads_to, wish.secrets)
        if fetched.about and fetched.why not in _USUAL:
            where = self._hidden.take_out(f"{describe_url(wish.url)} answers {fetched.why}: {fetched.about}")
            logger.warning("%s: %s", ours.peer, where)
        return fetched

    async def _dial(self, url: str) -> socket.socket:
        """Connect, but not from a public server to a private address.

        Raises:
            SignInFailed: It would be one.
        """
        return await dial(await self._resolve(url))

    async def _resolve(self, url: str) -> Sequence[Address]:
        found = await resolve(host_of(url), origin_of(url)[2] or 0)
        if not all(map(_is_public, found)) and await self._has_public_server():
            raise SignInFailed(
                self._config.peer, f"it leads to {describe_url(url)} to sign in, which is in a private network"
            )
        return found

    async def _has_public_server(self) -> bool:
        url = self._config.url
        if is_loopback(url):
            return False
        with contextlib.suppress(OSError):
            return all(map(_is_public, await resolve(host_of(url), origin_of(url)[2] or 0)))
        return True

    async def _listen(self, before: str, own: str | None) -> str:
        if not self._people.reach():
            raise SignInFailed(
                self._config.peer,
                f"it wants somebody to sign in, and there is no browser here: run {login_at(self._config)} in a "
                "terminal of this machine, with the same --oauth options, or send credentials of another kind with "
                "--header",
            )
        self._page = self._page or self._people.make_page(self._settings)
        parts = urlsplit(before)
        path = parts.path or PATH if own is None else PATH + own
        if isinstance(self._page, CallbackPage):
            self._page.move(path)
        if self._page is not None:
            return self._page.url
        host, port = self._settings.redirect_host, self._settings.redirect_port
        ports = [port] if port else [*([parts.port] if parts.port and parts.hostname == host else []), 0]
        page = CallbackPage(path)
        for chosen in ports:
            try:
                await page.start(host, chosen)
            except OSError as error:
                if chosen == ports[-1]:
                    reason = f"the page to come back to cannot be opened at port {chosen}: {error.strerror}"
                    raise SignInFailed(self._config.peer, reason) from None
            else:
                break
        self._page = page
        return page.url

    async def _ask(self, wish: OpenPage) -> dict[str, str]:
        assert self._page is not None
        with contextlib.suppress(OSError):  # what has no address here may have one where the browser is
            await self._resolve(wish.url)
        self._has_asked = True
        came = asyncio.ensure_future(self._page.wait(wish.state))
        pasted = asyncio.ensure_future(self._people.paste())
        shown = asyncio.ensure_future(self._show(wish))
        now = asyncio.get_running_loop().time
        until_s = now() + PERSON_S
        try:
            while await self._until_one_of(until_s - now(), came, pasted):
                brought = came.result() if came.done() else _read_address(pasted.result())
                if came.done() or (brought.get("state") == wish.state and not _BROUGHT.isdisjoint(brought)):
                    return brought
                pasted = asyncio.ensure_future(self._people.paste(_WRONG))
            raise SignInFailed(self._config.peer, f"nobody has signed in within {PERSON_S / 60:g} minutes")
        finally:
            for task in (came, pasted, shown):
                task.cancel()
            await asyncio.gather(came, pasted, shown, return_exceptions=True)

    async def _show(self, wish: OpenPage) -> None:
        if wish.is_open and isinstance(self._page, CallbackPage):
            logger.warning("%s wants a sign-in; this page should be open already: %s", self._config.peer, wish.url)
        else:
            await self._people.show(self._config.peer, wish.url)

    async def _until_one_of(self, patience_s: float, *tasks: asyncio.Future[Any]) -> bool:
        """Wait for a person; whether one of these is done.

        Raises:
            NobodyWaitsError: Nobody waits for them any more.
        """
        left = asyncio.ensure_future(self._left.wait())
        try:
            done, _ = await asyncio.wait((*tasks, left), timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
        if self._left.is_set() and done <= {left}:
            raise NobodyWaitsError(self._config.peer, "nobody waits for the sign-in any more")
        return bool(done - {left})


def login_at(config: UpstreamConfig) -> str:
    """Return the command that signs in to a server, for whoever may know its URL."""
    return f"`dragoman login {describe_url(config.url) if config.name is None else 'URL'}`"


def _read_address(pasted: str) -> dict[str, str]:
    """Read what is in the address of a last page, or in what somebody has copied of it."""
    with contextlib.suppress(ValueError):
        return dict(parse_qsl(urlsplit(pasted.strip()).query or pasted.strip()))
    return {}


def _is_public(address: Address) -> bool:
    found = ipaddress.ip_address(address[1][0].partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found in _TRANSLATED or found.ipv4_mapped is not None:
            found = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        elif found not in _UNICAST or found in _TUNNELS:
            return False
    return found.is_global and not found.is_multicast
