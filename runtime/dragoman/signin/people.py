"""How a person is asked to sign in.

Lives here: opening a page in their browser, as `BROWSER` says, and where there is none. Must not: know OAuth.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.core.label import LABEL
from dragoman.errors import SignInFailed
from dragoman.transports.upstream.visits import VISITOR

if TYPE_CHECKING:
    from dragoman.signin.page import ReturnPage
    from dragoman.signin.settings import SignInSettings

logger = logging.getLogger("dragoman.signin")

_OPENERS: Final = {"darwin": ("open",), "linux": ("wslview", "xdg-open", "gio open", "sensible-browser")}

DECLINED: Final = "the person whom the client asked to sign in did not want to"

_LOOK_S: Final = 0.1
_LOOKS: Final = 30
"""How often to look whether a command has failed; afterwards it counts as a browser."""


class People(Protocol):
    """Who can be asked."""

    goes_on: bool
    """Whether a sign-in goes on while no call waits for it: who was told to call again may be at it."""

    def reach(self) -> bool:
        """Whether anybody can be asked."""

    def make_page(self, settings: SignInSettings) -> ReturnPage | None:
        """Return the page that people come back to; None for one that listens on this machine."""

    async def show(self, peer: str, url: str) -> None:
        """Have somebody open a page."""

    async def show_code(self, peer: str, url: str, code: str) -> None:
        """Have somebody type a code on a page."""

    async def paste(self, fault: str = "") -> str:
        """Wait for the URL that somebody came to afterwards; for ever where it cannot be typed.

        Args:
            fault: What is wrong with the one that they typed before.
        """

    async def invite(self, peer: str) -> None:
        """Invite whoever calls, once there is something to come to.

        Raises:
            SignInFailed: They will not come, or have to call again.
        """


class AtDesktop:
    """Somebody who sits at this machine, and has a browser here."""

    goes_on = False

    def make_page(self, settings: SignInSettings) -> None:
        """They come back to a page on this machine."""

    async def invite(self, peer: str) -> None:
        """They see the page."""

    def reach(self) -> bool:
        """Whether there is a browser."""
        return bool(find_browsers(os.environ))

    async def show(self, peer: str, url: str) -> None:
        """Open a page."""
        logger.warning("%s wants a sign-in; the browser should show this page: %s", peer, url)
        if faults := await open_page(url):
            logger.warning("no browser could be started (%s); open this page by hand: %s", faults, url)

    async def show_code(self, peer: str, url: str, code: str) -> None:
        """Say what to type where: to whoever is behind the client whose call needs it, or else in the log.

        Raises:
            SignInFailed: They do not want to.
        """
        visitor = VISITOR.get()
        reason = f"{ask_for(peer, LABEL.get() or 'your client')} If the page wants a code, it is {code}."
        action = "" if visitor is None else await visitor(url, reason)
        if action in ("decline", "cancel"):
            raise SignInFailed(peer, DECLINED)
        if action == "accept":
            return
        logger.warning("%s wants a sign-in: open %s in a browser anywhere, and type %s", peer, url, code)

    async def paste(self, fault: str = "") -> str:
        """Nobody can type anything into a proxy."""
        return await asyncio.Future[str]()


def ask_for(peer: str, asker: str) -> str:
    """Say to a person what they are asked for, and what comes of it."""
    return f"{peer} wants a sign-in, for a call of {asker}. Everybody who uses this proxy will act as you there."


def find_browsers(environment: Mapping[str, str]) -> list[list[str]]:
    """Return the commands that open pages; none where no person would see them.

    Args:
        environment: With `BROWSER`: commands with colons between, to be tried in turn, in which `%s` is the URL, as
            Python's `webbrowser` reads them.
    """
    if chosen := environment.get("BROWSER"):
        return [command for one in chosen.split(os.pathsep) if (command := _read_command(one.strip()))]
    if sys.platform == "win32":  # what opens the user's browser, and starts no shell
        return [["rundll32.exe", "url.dll,FileProtocolHandler"]]
    has_screen = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("WSL_DISTRO_NAME")
    if sys.platform == "linux" and not has_screen:
        return []
    found = (opener.split() for opener in _OPENERS.get(sys.platform, ()))
    return [command for command in found if shutil.which(command[0])]


def _read_command(text: str) -> list[str]:
    try:
        words = [text] if shutil.which(text) else shlex.split(text)
    except ValueError:  # a quotation mark without its other one: it is no command, and its name says which
        words = [text]
    return words[:-1] if words[-1:] == ["&"] else words  # nobody waits for it in any case


async def open_page(url: str) -> str:
    """Open a page in a browser; say why none could be started, empty if one is.

    Never by a shell, which would read the URL: `%s` does not stand for it in a word with spaces.
    """
    faults = []
    for command in find_browsers(os.environ):
        line = [word if " " in word else word.replace("%s", url) for word in command]
        line = [*line, url] if line == command else line
        nowhere = subprocess.DEVNULL  # our own output is the protocol's
        try:
            child = subprocess.Popen(line, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
        except (OSError, ValueError) as error:
            faults.append(f"{command[0]}: {getattr(error, 'strerror', error)}")
            continue
        looks = 0
        while (code := child.poll()) is None and looks < _LOOKS:
            looks += 1
            await asyncio.sleep(_LOOK_S)
        if not code:
            threading.Thread(target=child.wait, daemon=True).start()  # it may be the browser itself, and stay for days
            return ""
        faults.append(f"{command[0]}: ended with {code}")
    return ", ".join(faults) or "there is none"
