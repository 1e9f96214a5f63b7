"""The names that clients may use for the machine that `--listen` serves on.

Lives here: the names that are always accepted, and listing them. Must not: check a request
(`transports.http.security`), or ask the network: a name server is not an authority on who we are. Called by
`cli.listen`.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Final

_ELSEWHERE: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Unused addresses (RFC 5737, RFC 3849): asking which own address would be used towards them sends nothing."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_wildcard(host: str) -> bool:
    """Whether it stands for every address that this machine has."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def own_names(host: str) -> tuple[str, ...]:
    """Return what a `Host` header may name without being asked for: where we listen, and what the machine is called.

    Addresses of the machine are not listed: a connection says itself which one it came to.

    Args:
        host: What `--listen` says.
    """
    own = () if is_wildcard(host) else (f"[{host}]" if ":" in host else host,)
    return own if is_loopback(host) else tuple(dict.fromkeys((*own, *_machine_names())))


def reachable_name(host: str) -> str:
    """Return what a browser can be sent to: nobody can go to every address that this machine has.

    Args:
        host: Where we listen; not in brackets.
    """
    if not is_wildcard(host):
        return host
    is_ipv6 = ":" in host
    own = [address for address in _addresses() if (":" in address) == is_ipv6]
    return next(iter((*own, *_machine_names())), "::1" if is_ipv6 else "127.0.0.1")


def describe_names(host: str, hosts: tuple[str, ...]) -> str:
    """Say for the log by what clients may know us, and what to do about others.

    Args:
        host: What `--listen` says.
        hosts: The names that are let in beside loopback names.
    """
    names = ", ".join(hosts)
    if is_wildcard(host):
        found = [address for address in _addresses() if address]
        such_as = f", such as {' and '.join(found)}" if found else ""
        names = f"any address of this machine{such_as}" + (f", or as {names}" if names else "")
    return f"clients may reach this server as {names}, or by loopback names; for another name add --allow-host NAME"


def _machine_names() -> Iterator[str]:
    name = socket.gethostname().lower()
    if name and name != "localhost":
        yield name
        yield name.partition(".")[0]


def _addresses() -> Iterator[str]:
    for family, elsewhere in _ELSEWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))
            yield str(probe.getsockname()[0])
