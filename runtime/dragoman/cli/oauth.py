"""The options that say how to sign in to a server.

Lives here: flags, made from the table of `dragoman.signin.settings`. Must not: sign in. Called by `cli.upstream` and
`cli.login`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.cli.checks import readable_file
from dragoman.cli.options import whole_number
from dragoman.signin.settings import DEFAULT, OPTIONS, SettingOption

if TYPE_CHECKING:
    from dragoman.signin.settings import SignInSettings


def add_sign_in_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add `--oauth-…`; give what means nothing without a URL."""
    group = parser.add_argument_group("signing in to that server, where it wants a token")
    group.set_defaults(sign_in=None, no_sign_in=False)
    for option in OPTIONS:
        _add(group, option)
    group.add_argument(
        "--no-oauth-resource",
        action="store_true",
        help="do not say which server the token is for; some identity providers refuse that",
    )
    return list(group._group_actions)


def read_sign_in(args: argparse.Namespace) -> SignInSettings | None:
    """Put the options together; None where nobody is to sign in."""
    from dragoman.signin.settings import SignInSettings

    if args.sign_in is not None:
        settings: SignInSettings = args.sign_in  # of a configuration file
    else:
        given = {option.field: getattr(args, f"oauth_{option.field}") for option in OPTIONS}
        said = {field: value for field, value in given.items() if value not in (None, [])}
        if "authorize_params" in said:
            said["authorize_params"] = tuple(said["authorize_params"])
        settings = SignInSettings(**said, names_resource=not args.no_oauth_resource)
    if fault := settings.find_fault():
        args.usage_error(f"--oauth: {fault}")
    return None if args.no_sign_in else settings


def _add(group: argparse._ArgumentGroup, option: SettingOption) -> None:
    flag = f"--oauth-{option.field.removesuffix('s').replace('_', '-')}"
    dest, about = f"oauth_{option.field}", option.about
    if isinstance(option.kind, tuple):
        group.add_argument(flag, dest=dest, choices=option.kind, default=getattr(DEFAULT, option.field), help=about)
    elif option.kind == "pairs":
        group.add_argument(
            flag,
            dest=dest,
            action="append",
            default=[],
            type=_pair,
            metavar=option.placeholder,
            help=f"{about}; may be repeated",
        )
    else:
        kinds: dict[str, Callable[[str], Any]] = {"text": str, "url": str, "file": readable_file, "port": _port}
        group.add_argument(flag, dest=dest, type=kinds[option.kind], metavar=option.placeholder, help=about)


def _port(text: str) -> int:
    port = whole_number(text)
    if port > 65535:
        raise argparse.ArgumentTypeError(f"expected a port up to 65535, found {text!r}")
    return port


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")
    return name, value
