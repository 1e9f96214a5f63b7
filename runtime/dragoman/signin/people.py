"""How a person is asked to sign in, and the page on this machine that they come back to.

Lives here: opening a page in their browser, as `BROWSER` says, and where there is none; the page, which listens on
loopback only, and only while somebody is signing in (RFC 8252, 7.3). Must not: know OAuth.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from dragoman.core.label import LABEL
from dragoman.errors import SignInFailed
from dragoman.signin.settings import SignInSettings
from dragoman.transports.upstream.visits import VISITOR

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


PATH: Final = "/callback"
_HEAD_BYTES: Final = 32 * 1024
_HEAD_S: Final = 10.0
HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"same-origin"),  # `no-referrer` would hide from us which page sends a form
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)
"""What every page goes with: nothing of it is kept, loaded from elsewhere, or shown inside of another page."""

_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{margin:0;min-height:100vh;display:grid;place-items:center;font:1.1rem/1.5 system-ui,sans-serif;"
    "background:light-dark(#f3f4f6,#16181d);color:light-dark(#1f2328,#e6e8eb)}"
    "main{box-sizing:border-box;width:min(34rem,92vw);padding:2.5rem;border-radius:.75rem;overflow-wrap:anywhere;"
    "background:light-dark(#fff,#22262d);border-top:.35rem solid #2f6f5e;box-shadow:0 .3rem 1.5rem #0002}"
    "h1{margin:0 0 .75rem;font-size:1.6rem;line-height:1.25}p{margin:0}"
    "form{margin-top:1.5rem}input,button{box-sizing:border-box;width:100%;margin:.3rem 0;padding:.6rem;font:inherit}"
    "small{display:block;margin-top:2rem;color:light-dark(#656d76,#9aa2ad)}"
)
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{0} · Dragoman</title>'
    '<meta name="viewport" content="width=device-width"><style>{2}</style>'
    "<main><h1>{0}</h1><p>{1}</p>{4}<small>{3}</small></main>"
)


def write_page(title: str, text: str, place: str, forms: str = "") -> bytes:
    """Write a page.

    Args:
        title: What it is.
        text: What to read.
        place: Who writes it, and where.
        forms: What to fill in, as HTML.
    """
    return _PAGE.format(html.escape(title), html.escape(text), _STYLE, html.escape(place), forms).encode()


class ReturnPage(Protocol):
    """Waits for a person.

    Attributes:
        url: Where they come back to.
    """

    url: str

    async def wait(self, state: str) -> dict[str, str]:
        """Wait for the person who brings this state; give all that they bring."""

    async def close(self, title: str, text: str) -> None:
        """Take no one else, and tell whoever came back."""


class CallbackPage:
    """Waits for a person. Start it; close it with what they are to read.

    Args:
        path: Where they come back to.
    """

    def __init__(self, path: str = PATH) -> None:
        self.url = ""
        self._path = path
        self._servers: list[asyncio.Server] = []
        self._state = ""
        self._found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._waiting: list[asyncio.StreamWriter] = []

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Args:
            host: `localhost` or `127.0.0.1`: how the page is called.
            port: 0 for any.

        Raises:
            OSError: The port is taken.
        """
        first = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD_BYTES)
        self._servers.append(first)
        port = first.sockets[0].getsockname()[1]
        if host == "localhost":  # which some browsers look up in IPv6 alone
            with contextlib.suppress(OSError):
                self._servers.append(await asyncio.start_server(self._serve, "::1", port, family=socket.AF_INET6))
        self.url = f"http://{host}:{port}{self._path}"

    def move(self, path: str) -> None:
        """Have people come back to another path, if it is a page on this machine."""
        if self._servers:
            self.url = self.url.removesuffix(self._path) + path
        self._path = path

    async def wait(self, state: str) -> dict[str, str]:
        """Wait for the person who brings this state; give all that they bring."""
        self._state = state
        return await self._found

    async def close(self, title: str, text: str) -> None:
        """Stop listening, and tell whoever came back."""
        for server in self._servers:
            server.close()
        for writer in self._waiting:
            await _answer(writer, "200 OK", title, text)
        self._found.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            parts = urlsplit(target)
            brought = dict(parse_qsl(parts.query, keep_blank_values=True))
        except (ValueError, TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            return
        is_ours = method == "GET" and parts.path == self._path and self._state and brought.get("state") == self._state
        if is_ours and not self._found.done():
            self._waiting.append(writer)
            self._found.set_result(brought)
        else:
            await _answer(writer, "404 Not Found", "Nothing here", "Nobody waits for this answer.")


async def _answer(writer: asyncio.StreamWriter, status: str, title: str, text: str) -> None:
    body = write_page(title, text, "Dragoman, on this machine")
    listed = (*HEADERS, (b"content-length", b"%d" % len(body)), (b"connection", b"close"))
    with contextlib.suppress(OSError):
        writer.write(
            f"HTTP/1.1 {status}\r\n".encode() + b"".join(b"%b: %b\r\n" % one for one in listed) + b"\r\n" + body
        )
        await writer.drain()
    writer.close()
