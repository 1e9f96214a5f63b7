"""The certificate of `--tls-cert`: `--listen` and the pages of `--inspect` and `dragoman inspect` have one, those of
them that have https://.

Lives here: who uses it, and what is wrong with it. Must not: listen. Called by what does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

_USERS: Final = ("listen", "inspect", "at")
"""The options whose value says by its scheme whether it is used."""


def certificate_of(wanted: tuple[str, int, str], args: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the files with the certificate and its key with which an address is served; twice None without TLS.

    Args:
        wanted: Host, port and scheme.
        args: With `--tls-cert` and `--tls-key`.
    """
    return (args.tls_cert, args.tls_key) if wanted[2] == "https" else (None, None)


def check_certificate(certificate: str, key: str | None) -> None:
    """Check that it can be used.

    Raises:
        ValueError: It cannot; the text says why.
    """
    from dragoman.transports.http.serve import Address, read_certificate

    try:
        read_certificate(Address(certificate=certificate, key=key))
    except OSError as error:
        raise ValueError(describe_failure(certificate, error)) from None


def describe_failure(certificate: str | None, error: OSError) -> str:
    """Say that a certificate cannot be used."""
    return f"cannot use {certificate}: expected a chain and its key, in PEM; OpenSSL says {error}"


def find_nonsense_of_certificate(args: argparse.Namespace) -> Iterator[str]:
    """Say where one is missing, or is not used."""
    users = [name for name in _USERS if hasattr(args, name)]
    secure = [name for name in users if (wanted := getattr(args, name)) is not None and wanted[2] == "https"]
    if secure and args.tls_cert is None:
        yield f"expected --tls-cert with https:// in --{secure[0]}"
    if args.tls_cert is not None and not secure:
        yield f"expected --tls-cert with https:// in {' or '.join(f'--{name}' for name in users)}, and only then"
    if args.tls_key is not None and args.tls_cert is None:
        yield "--tls-key means nothing without --tls-cert"
