"""What a transport asks for tokens; brings the rest of this package only when there is a token, or one is wanted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman import system
from dragoman.signin.settings import DEFAULT, SignInSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.signin.invitations import Invitations
    from dragoman.signin.keeper import TokenKeeper
    from dragoman.signin.people import People
    from dragoman.transports.upstream.challenge import Challenge
    from dragoman.transports.upstream.config import UpstreamConfig

_FOLDER: Final = "dragoman/tokens"


class SignIn:
    """Has tokens for one server, and gets others when they are refused.

    Args:
        url: Of the server.
        settings: How to sign in.
        people: Who may be asked; None for who sits at this machine.
    """

    def __init__(self, url: str, settings: SignInSettings = DEFAULT, people: People | None = None) -> None:
        self.url = url
        self.settings = settings
        self.path = find_folder() / f"{_name(url, settings)}.json"
        self._file = str(self.path)
        self._people = people
        self._keeper: TokenKeeper | None = None
        self._users = 0

    @property
    def keeper(self) -> TokenKeeper:
        """Who does the work."""
        if self._keeper is None:
            from dragoman.signin.keeper import TokenKeeper
            from dragoman.signin.people import AtDesktop

            self._keeper = TokenKeeper(self.url, self.settings, self.path, self._people or AtDesktop())
        return self._keeper

    async def load(self) -> None:
        """Read what is kept, where that may take long; before the first request, and at once afterwards."""
        if self.settings.store == "keyring" and os.path.exists(self.path):
            await self.keeper.load()

    def authorization(self) -> str:
        """Return what requests are to say in `Authorization`; empty where there is no token."""
        if self._keeper is None and not os.access(self._file, os.F_OK):  # for each request: nothing costs less
            return ""
        return self.keeper.authorization

    def has_ended(self) -> bool:
        """Whether the token should have ended by now, and another one can be had for it without anybody."""
        return self._keeper is not None and self._keeper.has_ended

    async def refresh_ended(self, headers: tuple[tuple[str, str], ...], config: UpstreamConfig) -> None:
        """Get another token in place of one that has ended, if there is one."""
        await self.keeper.refresh_ended(headers, config)

    def takes(self, challenge: Challenge) -> bool:
        """Whether a token may help against this."""
        return self.keeper.takes(challenge)

    async def renew(self, challenge: Challenge, config: UpstreamConfig) -> None:
        """Get another token, for as long as that takes.

        Raises:
            TransportError: There is none.
        """
        await self.keeper.renew(challenge, config)

    def join(self) -> None:
        """Record a connection that may need tokens."""
        self._users += 1

    async def leave(self) -> None:
        """Record that one does not any more: with the last one, nobody is asked for tokens."""
        self._users -= 1
        if self._users == 0 and self._keeper is not None and not self._keeper.goes_on:
            await self._keeper.stop()


def sign_in_for(
    url: str,
    named: Iterable[str],
    settings: SignInSettings | None = DEFAULT,
    people: People | None = None,
    invitations: Invitations | None = None,
) -> SignIn | None:
    """Return what gets tokens for a server; None where nobody is to sign in.

    Args:
        url: Of the server.
        named: The headers that are sent along; with `Authorization`, the user has tokens of their own.
        settings: How to sign in; None for not at all.
        people: Who may be asked; None for who sits at this machine.
        invitations: Where people far away are invited to; None where they cannot come.
    """
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    has_credentials = parts.username is not None or any(name.lower() == "authorization" for name in named)
    if settings is None or has_credentials:
        return None
    if settings.redirect_url is not None and invitations is not None:
        from dragoman.signin.invitations import ByInvitation

        found = invitations.sign_ins.get((url, settings))
        if found is None:
            found = SignIn(url, settings, ByInvitation(invitations, settings, url))
            invitations.sign_ins[url, settings] = found
        return found
    return SignIn(url, settings, people)


def find_folder() -> Path:
    """Return where tokens are kept."""
    return Path(system.user_folder("XDG_DATA_HOME", ".local", "share")) / _FOLDER


def _name(url: str, settings: SignInSettings) -> str:
    """Name the file of a server; what is secret in its URL does not show."""
    return hashlib.sha256("\n".join((url, *settings.profile)).encode()).hexdigest()[:32]
