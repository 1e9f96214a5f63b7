"""`--auth-…`: making the guard that takes tokens of an authorization server.

Lives here: which of the options go together, and reading the secret. Must not: look at tokens (`dragoman.guard`), which
is imported only where there is an issuer. Called by `cli.checks` and `cli.listen`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.options import GUARD
from dragoman.signin.settings import is_safe

if TYPE_CHECKING:
    from dragoman.guard.guard import TokenGuard


def find_nonsense_of_guard(args: argparse.Namespace) -> Iterator[str]:
    """Say which of the options do not go together."""
    has_guard = args.auth_issuer is not None or args.auth_introspection is not None
    if not has_guard:
        given = (one for one in GUARD if getattr(args, one.argument) not in (None, [], one.default))
        yield from (f"--{one.name} means nothing without --auth-issuer or --auth-introspection" for one in given)
        return
    if not (args.auth_audience or args.auth_client or args.resource_url):
        yield (
            "expected --auth-audience, or --resource-url, with --auth-issuer: a token that is for somebody else must "
            "not count here; --auth-client names clients where the issuer does not say whom a token is for"
        )
    if args.auth_issuer is None:
        yield "expected --auth-issuer with --auth-introspection: clients are told where they get tokens"
    if args.auth_jwks is not None and args.auth_introspection is not None:
        yield "--auth-jwks means nothing with --auth-introspection, which says of each token whether it counts"
    if args.auth_introspection_secret_file is not None and args.auth_introspection_client is None:
        yield "--auth-introspection-secret-file means nothing without --auth-introspection-client"
    parts = urlsplit(args.resource_url or "http://host")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment or parts.query or parts.username:
        yield f"expected an http or https URL without query and fragment in --resource-url, found {args.resource_url!r}"
    for name, url in (("issuer", args.auth_issuer), ("introspection", args.auth_introspection)):
        if url is not None and not is_safe(url):
            yield f"expected an https URL, or one of this machine, in --auth-{name}, found {url!r}"
    if args.auth_jwks is not None and not (is_safe(args.auth_jwks) or os.path.isfile(args.auth_jwks)):
        yield f"expected an https URL, or a file, in --auth-jwks, found {args.auth_jwks!r}"
    if args.auth_forward and (args.url is None or args.scope == "shared"):
        yield "--auth-forward needs --url, and a --scope in which no two principals share a server"


def make_guard(args: argparse.Namespace) -> TokenGuard | None:
    """Make the guard; None where no issuer is named."""
    if args.auth_issuer is None:
        return None
    from pathlib import Path

    from dragoman.guard.guard import GuardSettings, TokenGuard

    secret_file = args.auth_introspection_secret_file
    return TokenGuard(
        GuardSettings(
            issuer=args.auth_issuer,
            audiences=tuple(args.auth_audience),
            clients=tuple(args.auth_client),
            scopes=tuple(dict.fromkeys(word for text in args.auth_scope for word in text.split())),
            implied=_join(args.auth_implies),
            jwks=args.auth_jwks or "",
            introspection=args.auth_introspection or "",
            client_id=args.auth_introspection_client or "",
            client_secret="" if secret_file is None else Path(secret_file).read_text("utf-8").strip(),
            url=args.resource_url or "",
            is_optional=args.auth_mode == "optional",
            forwards=args.auth_forward,
            ca_file=args.auth_ca_file,
        )
    )


def _join(implied: list[tuple[str, tuple[str, ...]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Put together what is said of one scope."""
    joined: dict[str, tuple[str, ...]] = {}
    for broad, narrow in implied:
        joined[broad] = (*joined.get(broad, ()), *narrow)
    return tuple(joined.items())
