"""How the value of each kind of option is read, whether a flag says it or a configuration file.

Lives here: one reader for each kind of `dragoman.options`, from text. What raises a ValueError says what is wrong. Must
not: know where the text stands; `cli.options` and `config.reading` say that.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import dragoman_spec
from dragoman import system
from dragoman.transports.early import OURS

Reader = Callable[[str], Any]

_NAME: Final = r"(\[[0-9a-f:.]+\]|[^/?#\s@:*\[\]]+)"
_KEY_DIGITS: Final = 64
_MOST_KEYS: Final = 8
_HOW_TO: Final = "openssl rand -hex 32"
_OF_OTHERS: Final = stat.S_IRWXO | stat.S_IWGRP
_UNITS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3}


def matching(pattern: str, expected: str, read: Reader = str) -> Reader:
    """Return what reads a value of this form."""

    def check(text: str) -> Any:
        if re.fullmatch(pattern, text, re.IGNORECASE) is None:
            raise ValueError(f"expected {expected}, found {text!r}")
        return read(text)

    return check


whole_number = matching(r"\d+", "a whole number", int)
count = matching(r"0*[1-9]\d*", "a whole number above 0", int)
size = matching(
    r"0*[1-9]\d*([kmg](i?b)?)?",
    "a number of bytes such as 500k or 16MB",
    lambda text: int(text.rstrip("kmgibKMGIB")) * _UNITS.get(text.lstrip("0123456789")[:1].lower(), 1),
)
path = matching(r"/[^?#%]*", "a path that begins with /")
host = matching(rf"\*|{_NAME}(:\d+)?", "NAME, NAME:PORT or *")
origin = matching(rf"\*|null|[a-z][a-z0-9+.-]*://{_NAME}(:(\d+|\*))?/?", "SCHEME://HOST, SCHEME://HOST:PORT, null or *")
pair = matching(r"(?s)[^=]+=.*", "NAME=VALUE", lambda text: tuple(text.split("=", 1)))


def word_among(allowed: tuple[str, ...]) -> Reader:
    """Return what reads one of these words."""

    def check(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}, found {text[:40]!r}")
        return text

    return check


def revision_among(*allowed: str) -> Reader:
    """Return what reads a revision.

    Args:
        allowed: Revisions, and words such as `auto`.
    """

    def check(text: str) -> str:
        if text in allowed:
            return text
        why = f"there is no revision {text!r}"
        if text in dragoman_spec.REVISIONS:
            why = f"{text} has no handshake: a client of it says so with each request"
        raise ValueError(f"{why}; choose from: {', '.join(allowed)}")

    return check


revision = revision_among(*dragoman_spec.REVISIONS)
"""Where any revision will do."""


def rule_name(text: str) -> str:
    """Read the name of a repair rule."""
    if text not in dragoman_spec.RULES:
        raise ValueError(f"there is no rule {text!r}; the rules are: {', '.join(dragoman_spec.RULES)}")
    return text


def seconds(text: str) -> float:
    """Read a duration."""
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = 0.0
    if not 0 < duration_s < float("inf"):
        raise ValueError(f"expected a number of seconds above 0, found {text!r}")
    return duration_s


def port(text: str) -> int:
    """Read a port."""
    number: int = whole_number(text)
    if number > 65535:
        raise ValueError(f"expected a port up to 65535, found {text!r}")
    return number


def address(text: str) -> tuple[str, int, str]:
    """Read where to listen: host, port and scheme."""
    from urllib.parse import urlsplit

    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        port = None
    if (
        port is None
        or url.scheme not in ("http", "https")
        or not url.hostname
        or url.path not in ("", "/")
        or url.username is not None
        or url.query
        or url.fragment
    ):
        raise ValueError(f"expected http://HOST:PORT or https://HOST:PORT, with a port up to 65535, found {text!r}")
    return url.hostname, port, url.scheme


def readable_file(text: str) -> str:
    """Check that there is a file that we may read, without reading it: it may be a pipe."""
    if not os.path.exists(text):
        raise ValueError(f"there is no file {text!r}")
    if os.path.isdir(text):
        raise ValueError(f"expected a file, found the directory {text!r}")
    if not os.access(text, os.R_OK):
        raise ValueError(f"{text!r} may not be read by this user")
    return text


def directory(text: str) -> str:
    """Check that there is a directory."""
    if not os.path.isdir(text):
        raise ValueError(f"there is no directory {text!r}")
    return text


def certificates(text: str) -> str:
    """Check that a file holds certificates to trust."""
    import ssl

    readable_file(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(text)
    except OSError:
        raise ValueError(f"expected certificates in PEM, found none in {text!r}") from None
    return text


def variable(text: str) -> tuple[str, str | None]:
    """Read a variable for the server, with its value or without."""
    name, has_value, value = text.partition("=")
    if not name or "\0" in text:
        raise ValueError(f"expected NAME or NAME=VALUE, found {text!r}")
    if name.startswith(OURS):
        raise ValueError(f"{name} is meant for the proxy: no server is given what begins with {OURS}")
    return name, value if has_value else None


def url(text: str) -> str:
    """Read where a server is."""
    from dragoman.transports.surroundings import expand
    from dragoman.transports.upstream.config import check_url

    return check_url(expand(text, os.environ) if text.startswith("$") else text)


def header(text: str) -> tuple[str, str]:
    """Read a header that goes with each request."""
    from dragoman.transports.upstream.config import parse_header

    return parse_header(text, os.environ)


def proxy_url(text: str) -> str:
    """Read which HTTP proxy is on the way."""
    from dragoman.transports.upstream.proxies import DIRECT, parse_proxy

    if text != DIRECT:
        parse_proxy(text, "a proxy")
    return text


class StateKeys(NamedTuple):
    """What is in the file of the keys."""

    file: str
    keys: tuple[bytes, ...]


def state_key_file(text: str) -> StateKeys:
    """Read the keys of a file, in which no message shows what is in it.

    Raises:
        ValueError: It has none, or others can read or change it.
    """
    readable_file(text)
    with open(text, "rb") as file:
        found = os.fstat(file.fileno())
        raw = file.read((_MOST_KEYS + 1) * (_KEY_DIGITS + 2))
    if system.rights_of_others(found) & _OF_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise ValueError(f"{text} can be used by others (mode {mode:03o}): chmod 600 {text}")
    lines = raw.decode("latin-1").split()
    wrong = [line for line in lines or [""] if len(line) != _KEY_DIGITS]
    if wrong or len(lines) > _MOST_KEYS:
        found_so = f"{len(wrong[0])} characters" if wrong else f"more than {_MOST_KEYS} keys"
        raise ValueError(
            f"expected {_KEY_DIGITS} hexadecimal digits in {text}, found {found_so}; make a key with: {_HOW_TO}"
        )
    try:
        return StateKeys(text, tuple(map(bytes.fromhex, lines)))
    except ValueError:
        reason = f"expected hexadecimal digits alone in {text}; make a key with: {_HOW_TO}"
        raise ValueError(reason) from None


def implied_scopes(text: str) -> tuple[str, tuple[str, ...]]:
    """Read which scopes another one implies."""
    broad, _, narrow = text.partition("=")
    if not broad or not all(narrow.split(",")):
        raise ValueError(f"expected BROAD=NARROW or BROAD=NARROW,NARROW, found {text!r}")
    return broad, tuple(narrow.split(","))


READERS: Final[dict[str, Reader]] = {
    "text": str,
    "seconds": seconds,
    "number": whole_number,
    "count": count,
    "size": size,
    "port": port,
    "pairs": pair,
    "revision": revision_among("auto", *dragoman_spec.REVISIONS),
    "handshake-revision": revision_among("auto", *dragoman_spec.HANDSHAKE_REVISIONS),
    "rule": rule_name,
    "address": address,
    "page": address,
    "path": path,
    "path-or-none": lambda text: path(text) if text else text,
    "host": host,
    "origin": origin,
    "file": readable_file,
    "directory": directory,
    "certificates": certificates,
    "state-keys": state_key_file,
    "variable": variable,
    "url": url,
    "header": header,
    "proxy": proxy_url,
    "implied": implied_scopes,
}
