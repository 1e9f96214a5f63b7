"""`dragoman login URL`: sign in to a server now, so that a proxy need not ask later.

Lives here: its arguments, and how a person at a terminal is asked. Must not: know OAuth (`dragoman.signin`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.ink import complain
from dragoman.cli.oauth import add_sign_in_arguments, read_sign_in
from dragoman.cli.options import add_options, url
from dragoman.cli.screen import shown, tell
from dragoman.cli.upstream import configure_way
from dragoman.options import LOG_LEVEL, WAY
from dragoman_spec import LATEST

if TYPE_CHECKING:
    from dragoman.signin.authority import SignIn
    from dragoman.signin.grants import SignedIn
    from dragoman.signin.people import CallbackPage
    from dragoman.signin.settings import SignInSettings
    from dragoman.transports.upstream.config import UpstreamConfig

_EXIT_FAILED: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `login`."""
    parser.add_argument("url", type=url, metavar="URL", help="the server, exactly as a proxy is told it")
    parser.add_argument("--no-browser", action="store_true", help="open no page here; show what to open elsewhere")
    add_options(parser, (*WAY, LOG_LEVEL))
    add_sign_in_arguments(parser)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Sign in."""
    from dragoman.cli.logs import set_up_logging
    from dragoman.errors import TransportError
    from dragoman.signin.authority import sign_in_for

    set_up_logging(args.log_level)
    sign_in = sign_in_for(args.url, (), read_sign_in(args), AtTerminal(args.no_browser))
    if sign_in is None:
        args.usage_error("expected a URL without credentials in it")
        return _EXIT_FAILED
    config = configure_way(args)
    try:
        done = asyncio.run(_sign_in(sign_in, config))
    except TransportError as error:
        complain(f"dragoman: {error}")
        return _EXIT_FAILED
    scope = f", for {done.tokens.scope}" if done.tokens.scope else ""
    print(shown(f"Signed in to {config.peer} at {done.server.issuer}{scope}."))
    return 0 if sign_in.keeper.is_kept else _EXIT_FAILED  # the log says why, and there is nothing to show for it


async def _sign_in(sign_in: SignIn, config: UpstreamConfig) -> SignedIn:
    """Ask the server for anything, and sign in as it says."""
    from http import HTTPStatus

    from dragoman.core.exact_json import encode_line
    from dragoman.errors import TransportError
    from dragoman.signin.settings import as_resource
    from dragoman.transports.upstream.connection_pool import ConnectionPool

    about = {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "dragoman", "version": "0"}}
    opening = encode_line({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
    pool = ConnectionPool(config)
    try:
        wanted = {"Accept": "application/json, text/event-stream"}
        answer = await pool.send("POST", as_resource(config.url), wanted, opening)
    finally:
        await pool.close()
    challenge = answer.header("WWW-Authenticate")
    try:
        return await sign_in.keeper.sign_in(config, challenge)
    except TransportError as error:
        if answer.status < HTTPStatus.BAD_REQUEST and not challenge:
            reason = f"it answers without a token, and asks nobody to sign in ({error.reason})"
            raise TransportError(config.peer, reason) from error
        raise


class AtTerminal:
    """Somebody at a terminal, who may have a browser here or elsewhere.

    Args:
        is_elsewhere: Whether no page is to be opened here.
    """

    def __init__(self, is_elsewhere: bool) -> None:
        self._is_elsewhere = is_elsewhere

    goes_on = False

    def reach(self) -> bool:
        """Whether anybody can be asked."""
        return True

    def make_page(self, settings: SignInSettings) -> CallbackPage | None:
        """Return a page that shows itself elsewhere, if that is where people come back to: its address is pasted."""
        if settings.redirect_url is None or settings.redirect_port:
            return None
        from dragoman.signin.people import CallbackPage

        page = CallbackPage()
        page.url = settings.redirect_url
        return page

    async def invite(self, peer: str) -> None:
        """They see the page."""

    async def show(self, peer: str, url: str) -> None:
        """Show a page, here if that can be."""
        from dragoman.signin.people import open_page

        is_open = not self._is_elsewhere and not await open_page(url)
        tell("Your browser should show the page to sign in. If it does not, open:" if is_open else "Open this page:")
        print(f"\n  {url}\n", file=sys.stderr, flush=True)  # as it is: it has to be copied
        tell("If the browser is on another machine, the last page will not be found. Paste its address here:")

    async def show_code(self, peer: str, url: str, code: str) -> None:
        """Show a code."""
        tell(f"Open {url} in a browser anywhere, and type {code}")

    async def paste(self, fault: str = "") -> str:
        """Read the address of the last page."""
        from dragoman.cli.terminal import read_line

        if fault:
            tell(f"That is not it: {fault} Paste the address of the last page:")
        with contextlib.suppress(OSError):  # a file cannot be waited for
            while (line := await read_line()) is not None:
                if "code=" in line or "error=" in line:
                    return line
                tell("That is not it: expected an address with `code=` in it.")
        return await asyncio.Future[str]()
