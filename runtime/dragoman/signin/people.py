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
from typing import Final, Protocol

logger = logging.getLogger("dragoman.signin")

_OPENERS: Final = {"darwin": ("open",), "linux": ("wslview", "xdg-open", "gio open", "sensible-browser")}


class People(Protocol):
    """Who can be asked."""

    def reach(self) -> bool:
        """Whether anybody can be asked."""

    async def show(self, peer: str, url: str) -> None:
        """Have somebody open a page."""

    async def show_code(self, peer: str, url: str, code: str) -> None:
        """Have somebody type a code on a page."""

    async def paste(self) -> str:
        """Wait for the URL that somebody came to afterwards; for ever where it cannot be typed."""


class AtDesktop:
    """Somebody who sits at this machine, and has a browser here."""

    def reach(self) -> bool:
        """Whether there is a browser."""
        return bool(find_browsers(os.environ))

    async def show(self, peer: str, url: str) -> None:
        """Open a page."""
        logger.warning("%s wants a sign-in; the browser should show this page: %s", peer, url)
        if not open_page(url):
            logger.warning("no browser could be started; open that page in one")

    async def show_code(self, peer: str, url: str, code: str) -> None:
        """Say in the log what to type where."""
        logger.warning("%s wants a sign-in: open %s in a browser anywhere, and type %s", peer, url, code)

    async def paste(self) -> str:
        """Nobody can type anything into a proxy."""
        return await asyncio.Future[str]()


def find_browsers(environment: Mapping[str, str]) -> list[list[str]]:
    """Give the commands that open pages; none where no person would see them.

    Args:
        environment: With `BROWSER`: commands with colons between, in which `%s` is the URL.
    """
    if chosen := environment.get("BROWSER"):
        return [shlex.split(one) for one in chosen.split(os.pathsep) if one.strip()]
    has_screen = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("WSL_DISTRO_NAME")
    if sys.platform == "linux" and not has_screen:
        return []
    found = (opener.split() for opener in _OPENERS.get(sys.platform, ()))
    return [command for command in found if shutil.which(command[0])]


def open_page(url: str) -> bool:
    """Open a page in a browser; whether one could be started. Never by a shell, which would read the URL."""
    for command in find_browsers(os.environ):
        line = [url if word == "%s" else word for word in command]
        line = line if "%s" in command else [*line, url]
        nowhere = subprocess.DEVNULL  # our own output is the protocol's
        try:
            child = subprocess.Popen(line, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
        except OSError as error:
            logger.warning("%s cannot be started: %s", command[0], error.strerror)
            continue
        threading.Thread(target=child.wait, daemon=True).start()  # it may be the browser itself, and stay for days
        return True
    return False
