"""Flags, made of the tables of `dragoman.options`, and how the value of each kind is read.

Only what argparse needs: no command's logic.
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import dragoman_spec
from dragoman.options import TRANSLATION, Option
from dragoman.transports.surroundings import OURS

Reader = Callable[[str], Any]

_NAME: Final = r"(\[[0-9a-f:.]+\]|[^/?#\s@:*\[\]]+)"
_KEY_DIGITS: Final = 64
_MOST_KEYS: Final = 8
_HOW_TO: Final = "openssl rand -hex 32"
_OF_OTHERS: Final = stat.S_IRWXO | stat.S_IWGRP
_UNITS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3}


class HelpFormatter(argparse.HelpFormatter):
    """Lays help out without breaking names at their hyphens, so that they can be copied."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> list[argparse.Action]:
    """Make flags of options."""
    return [_add(parser, option) for option in options]


def _add(parser: argparse._ActionsContainer, option: Option) -> argparse.Action:
    flag, about, default = f"--{option.name}", option.about, option.default
    if option.kind == "switch":
        return parser.add_argument(flag, action="store_true", dest=option.argument, help=about)
    if isinstance(option.kind, tuple):
        said: dict[str, Any] = {"choices": option.kind, "metavar": option.placeholder or None}
    else:
        read, metavar = READERS[option.kind]
        said = {"type": read, "metavar": option.placeholder or metavar}
        default = read(default) if isinstance(default, str) else default
    if default == ():
        return parser.add_argument(
            flag, action="append", dest=option.argument, default=[], help=f"{about}; may be repeated", **said
        )
    if default is not None:
        note = f", {option.note}" if option.note else ""
        about = f"{about} (default: {option.default}{note})"
    return parser.add_argument(flag, dest=option.argument, default=default, help=about, **said)


def add_group(
    parser: argparse.ArgumentParser, title: str, options: Iterable[Option], first: str = ""
) -> list[argparse.Action]:
    """Make flags of options that belong together; return those that mean nothing without the first, if there is one."""
    return [action for action in add_options(parser.add_argument_group(title), options) if action.dest != first]


def add_seconds(parser: argparse._ActionsContainer, option: str, default_s: float, says: str) -> None:
    """Add an option of one command that takes a duration.

    Args:
        parser: Or a group of options in it.
        option: Such as `--timeout`.
        default_s: What counts without it, in seconds.
        says: For the help.
    """
    _add(parser, Option(option.removeprefix("--"), "seconds", says, default_s))


def add_translation_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--profile`, `--no-rule` and `--rule`, which say how to translate."""
    for action in add_options(parser, TRANSLATION):
        if action.type is rule_name:
            is_on = action.dest == "no_rules"
            names = [name for name in dragoman_spec.RULES if (name in dragoman_spec.DEFAULT_RULES) is is_on]
            action.help = f"{action.help} ({', '.join(names)})"


def chosen_rules(args: argparse.Namespace) -> frozenset[str]:
    """Return the repair rules that are on: those on by default, without `--no-rule`, with `--rule`."""
    return frozenset(dragoman_spec.DEFAULT_RULES).difference(args.no_rules).union(args.more_rules)


# How values are read. What raises a ValueError says what is wrong.


def matching(pattern: str, expected: str, read: Reader = str) -> Reader:
    """Return what reads a value of this form."""

    def check(text: str) -> Any:
        if re.fullmatch(pattern, text, re.IGNORECASE) is None:
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return read(text)

    return check


whole_number = matching(r"\d+", "a whole number", int)
count = matching(r"0*[1-9]\d*", "a number above 0", int)
size = matching(
    r"0*[1-9]\d*[kmg]?",
    "a number of bytes such as 500k or 16m",
    lambda text: int(text.rstrip("kmgKMG")) * _UNITS.get(text[-1].lower(), 1),
)
path = matching(r"/[^?#%]*", "a path that begins with /")
host = matching(rf"\*|{_NAME}(:\d+)?", "NAME, NAME:PORT or *")
origin = matching(rf"\*|null|[a-z][a-z0-9+.-]*://{_NAME}(:(\d+|\*))?/?", "SCHEME://HOST, SCHEME://HOST:PORT, null or *")
pair = matching(r"(?s)[^=]+=.*", "NAME=VALUE", lambda text: tuple(text.split("=", 1)))


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
        raise argparse.ArgumentTypeError(f"{why}; choose from: {', '.join(allowed)}")

    return check


revision = revision_among(*dragoman_spec.REVISIONS)
"""Where any revision will do."""


def rule_name(text: str) -> str:
    """Read the name of a repair rule."""
    if text not in dragoman_spec.RULES:
        raise argparse.ArgumentTypeError(f"there is no rule {text!r}; the rules are: {', '.join(dragoman_spec.RULES)}")
    return text


def seconds(text: str) -> float:
    """Read a duration."""
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = 0.0
    if not 0 < duration_s < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found {text!r}")
    return duration_s


def port(text: str) -> int:
    """Read a port."""
    number: int = whole_number(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"expected a port up to 65535, found {text!r}")
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
        raise argparse.ArgumentTypeError(f"expected http://HOST:PORT or https://HOST:PORT, found {text!r}")
    return url.hostname, port, url.scheme


def readable_file(text: str) -> str:
    """Check that there is a file that we may read, without reading it: it may be a pipe."""
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"expected a file, found the directory {text!r}")
    if not os.access(text, os.R_OK):
        raise argparse.ArgumentTypeError(f"{text!r} may not be read by this user")
    return text


def directory(text: str) -> str:
    """Check that there is a directory."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no directory {text!r}")
    return text


def certificates(text: str) -> str:
    """Check that a file holds certificates to trust."""
    import ssl

    readable_file(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(text)
    except OSError:
        raise argparse.ArgumentTypeError(f"expected certificates in PEM, found none in {text!r}") from None
    return text


def variable(text: str) -> tuple[str, str | None]:
    """Read a variable for the server, with its value or without."""
    name, has_value, value = text.partition("=")
    if not name or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected NAME or NAME=VALUE, found {text!r}")
    if name.startswith(OURS):
        raise argparse.ArgumentTypeError(f"{name} is meant for the proxy: no server is given what begins with {OURS}")
    return name, value if has_value else None


def _explaining(read: Reader) -> Reader:
    """Return what reads as this does, and says what its ValueErrors say."""

    def check(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return check


def _read_url(text: str) -> str:
    from dragoman.transports.surroundings import expand
    from dragoman.transports.upstream.config import check_url

    return check_url(expand(text, os.environ) if text.startswith("$") else text)


def _read_header(text: str) -> tuple[str, str]:
    from dragoman.transports.upstream.config import parse_header

    return parse_header(text, os.environ)


def _read_proxy(text: str) -> str:
    from dragoman.transports.upstream.proxies import DIRECT, parse_proxy

    if text != DIRECT:
        parse_proxy(text, "a proxy")
    return text


class StateKeys(NamedTuple):
    """What is in the file of the keys."""

    file: str
    keys: tuple[bytes, ...]


def state_key_file(text: str) -> StateKeys:
    """Read the keys of a file, for argparse; no message shows what is in it.

    Raises:
        argparse.ArgumentTypeError: It has none, or others can read or change it.
    """
    readable_file(text)
    with open(text, "rb") as file:
        found = os.fstat(file.fileno())
        raw = file.read((_MOST_KEYS + 1) * (_KEY_DIGITS + 2))
    if stat.S_ISREG(found.st_mode) and found.st_mode & _OF_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise argparse.ArgumentTypeError(f"{text} can be used by others (mode {mode:03o}): chmod 600 {text}")
    lines = raw.decode("latin-1").split()
    wrong = [line for line in lines or [""] if len(line) != _KEY_DIGITS]
    if wrong or len(lines) > _MOST_KEYS:
        found_so = f"{len(wrong[0])} characters" if wrong else f"more than {_MOST_KEYS} keys"
        raise argparse.ArgumentTypeError(
            f"expected {_KEY_DIGITS} hexadecimal digits in {text}, found {found_so}; make a key with: {_HOW_TO}"
        )
    try:
        return StateKeys(text, tuple(map(bytes.fromhex, lines)))
    except ValueError:
        reason = f"expected hexadecimal digits alone in {text}; make a key with: {_HOW_TO}"
        raise argparse.ArgumentTypeError(reason) from None


url, header, proxy_url = _explaining(_read_url), _explaining(_read_header), _explaining(_read_proxy)

READERS: Final[dict[str, tuple[Reader, str]]] = {
    "text": (str, "TEXT"),
    "seconds": (seconds, "S"),
    "number": (whole_number, "N"),
    "count": (count, "N"),
    "size": (size, "BYTES"),
    "port": (port, "PORT"),
    "pairs": (pair, "NAME=VALUE"),
    "revision": (revision_among("auto", *dragoman_spec.REVISIONS), "auto|REV"),
    "handshake-revision": (revision_among("auto", *dragoman_spec.HANDSHAKE_REVISIONS), "auto|REV"),
    "rule": (rule_name, "NAME"),
    "address": (address, "URL"),
    "path": (path, "PATH"),
    "path-or-none": (lambda text: path(text) if text else text, "PATH"),
    "host": (host, "HOST"),
    "origin": (origin, "ORIGIN"),
    "file": (readable_file, "FILE"),
    "directory": (directory, "DIR"),
    "certificates": (certificates, "FILE"),
    "state-keys": (state_key_file, "FILE"),
    "variable": (variable, "NAME[=VALUE]"),
    "url": (url, "URL"),
    "header": (header, "NAME=VALUE"),
    "proxy": (proxy_url, "URL"),
}
"""How a value of each kind is read, and what stands for it in the help."""
