"""The options that say how to sign in to a server.

Lives here: flags, made from the table of `dragoman.signin.settings`. Must not: sign in. Called by `cli.upstream` and
`cli.login`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dragoman.cli.options import add_options
from dragoman.signin.settings import OPTIONS

if TYPE_CHECKING:
    from dragoman.signin.settings import SignInSettings


def add_sign_in_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add `--oauth-…`; give what means nothing without a URL."""
    group = parser.add_argument_group("signing in to that server, where it wants a token")
    group.set_defaults(sign_in=None, no_sign_in=False)
    return add_options(group, OPTIONS)


def read_sign_in(args: argparse.Namespace) -> SignInSettings | None:
    """Put the options together; None where nobody is to sign in."""
    from dragoman.signin.settings import SignInSettings

    if args.sign_in is not None:
        settings: SignInSettings = args.sign_in  # of a configuration file
    else:
        given = {option.setting: getattr(args, option.argument) for option in OPTIONS}
        said: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        said |= {"authorize_params": tuple(args.oauth_authorize_params), "names_resource": not args.no_oauth_resource}
        settings = SignInSettings(**said)
    if fault := settings.find_fault():
        args.usage_error(f"--oauth: {fault}")
    return None if args.no_sign_in else settings
