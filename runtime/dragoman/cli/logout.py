"""`dragoman logout URL`: forget the tokens of a server, and give them back."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.ink import complain
from dragoman.cli.options import add_options, url
from dragoman.cli.screen import shown, tell
from dragoman.cli.upstream import configure_way
from dragoman.options import WAY
from dragoman.signin.settings import OPTIONS

if TYPE_CHECKING:
    from dragoman.signin.grants import SignedIn

_EXIT_NOTHING: Final = 1
_PATIENCE_S: Final = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `logout`."""
    parser.add_argument("url", type=url, metavar="URL", help="the server, as `dragoman tokens` shows it")
    key = next(option for option in OPTIONS if option.setting == "private_key_file")
    add_options(parser, (*WAY, replace(key, about="the key that signed who we are there")))


def run(args: argparse.Namespace) -> int:
    """Remove what is kept of the server, and tell its authorization server."""
    from dragoman.signin.authority import find_folder
    from dragoman.signin.store import find_current, list_files
    from dragoman.transports.upstream.config import describe_url

    meant = {args.url, describe_url(args.url)}
    kept = [(file, written) for file, written in list_files(find_folder())]
    kept = [(file, written) for file, written in kept if meant & {written["url"], describe_url(written["url"])}]
    if not kept:
        complain(f"dragoman: there are no tokens for {describe_url(args.url)}")
        return _EXIT_NOTHING
    try:
        for file, _ in kept:
            file.remove()
    except OSError as error:
        complain(f"dragoman: its tokens are not forgotten: {error}")
        return _EXIT_NOTHING
    print(shown(f"Forgotten: {describe_url(args.url)}."))
    for _, written in kept:
        if (found := find_current(written)) is not None:
            asyncio.run(_give_back(args, written["url"], found))
    return 0


async def _give_back(args: argparse.Namespace, server: str, found: SignedIn) -> None:
    """Revoke tokens if that can be done: here they are forgotten already."""
    from dragoman.errors import TransportError
    from dragoman.signin.driver import Driver
    from dragoman.signin.grants import revoke
    from dragoman.signin.people import AtDesktop
    from dragoman.signin.settings import SignInSettings, as_resource
    from dragoman.signin.wishes import Occasion

    settings = SignInSettings(private_key_file=args.oauth_private_key_file)
    config: Any = configure_way(args)
    occasion = Occasion(as_resource(server), config.peer, settings, {}, frozenset())
    try:
        async with asyncio.timeout(_PATIENCE_S):
            if await Driver(config, settings, AtDesktop()).run(revoke(occasion, found)):
                print(shown(f"Its tokens are revoked at {found.server.issuer}."))
    except TimeoutError:
        _say(f"{found.server.issuer} did not answer within {_PATIENCE_S:g} s")
    except TransportError as error:
        _say(str(error))


def _say(reason: str) -> None:
    tell(f"dragoman: its tokens may still be good elsewhere: {reason}")
