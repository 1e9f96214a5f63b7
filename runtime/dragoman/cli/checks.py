"""What the network options of `dragoman proxy` may say, each by itself and together.

Lives here: values for argparse, and combinations that would be ignored without a word. Must not: open or connect
anything. Called by `cli.proxy`, `cli.listen` and `cli.upstream`.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable
from typing import Final

MESSAGES_PATH: Final = "/message"
"""Where HTTP+SSE clients post; `transports.http.config.Paths` has it, too."""

_NAME: Final = r"(\[[0-9a-f:.]+\]|[^/?#\s@:*\[\]]+)"
_HOST: Final = rf"\*|{_NAME}(:\d+)?"
_ORIGIN: Final = rf"\*|null|[a-z][a-z0-9+.-]*://{_NAME}(:(\d+|\*))?/?"


def address(text: str) -> tuple[str, int, str]:
    """Read where to listen, for argparse.

    Returns:
        Host, port and scheme.

    Raises:
        argparse.ArgumentTypeError: It names no address, or more than that.
    """
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


def check_named(args: argparse.Namespace) -> str | None:
    """Say what is wrong with how a server is named; None if nothing is."""
    named = sum((bool(args.command), args.url is not None, args.config is not None))
    if named != 1:
        found = ("", "", "; found both", "; found all three")[named]
        return f"expected a server: either `-- COMMAND`, `--url URL` or `--config FILE`{found}"
    return "--server means nothing without --config" if args.server is not None and args.config is None else None


def path(text: str) -> str:
    """Read a path of a URL, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    if not text.startswith("/") or any(character in text for character in "?#%"):
        raise argparse.ArgumentTypeError(f"expected a path that begins with /, found {text!r}")
    return text


def path_or_none(text: str) -> str:
    """Read a path of a URL, or nothing, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is something else.
    """
    return path(text) if text else text


def host(text: str) -> str:
    """Read what a `Host` header may say, for argparse.

    Raises:
        argparse.ArgumentTypeError: No such header can say that.
    """
    if not re.fullmatch(_HOST, text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"expected NAME, NAME:PORT or *, found {text!r}")
    return text


def origin(text: str) -> str:
    """Read what an `Origin` header may say, for argparse.

    Raises:
        argparse.ArgumentTypeError: No such header can say that.
    """
    if not re.fullmatch(_ORIGIN, text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"expected SCHEME://HOST, SCHEME://HOST:PORT, null or *, found {text!r}")
    return text


def readable_file(text: str) -> str:
    """Check that there is a file that we may read, without reading it: it may be a pipe.

    Raises:
        argparse.ArgumentTypeError: There is none.
    """
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"expected a file, found the directory {text!r}")
    if not os.access(text, os.R_OK):
        raise argparse.ArgumentTypeError(f"{text!r} may not be read by this user")
    return text


def directory(text: str) -> str:
    """Check that there is a directory, for argparse.

    Raises:
        argparse.ArgumentTypeError: There is none.
    """
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no directory {text!r}")
    return text


def certificates(text: str) -> str:
    """Check that a file holds certificates to trust, for argparse.

    Raises:
        argparse.ArgumentTypeError: It does not.
    """
    import ssl

    readable_file(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(text)
    except OSError:
        raise argparse.ArgumentTypeError(f"expected certificates in PEM, found none in {text!r}") from None
    return text


def check_company(args: argparse.Namespace, needed: str, options: Iterable[argparse.Action]) -> str | None:
    """Say which option was given without the one that gives it a meaning, if any was.

    Args:
        args: What was given.
        needed: The other option, such as `--listen`, or `COMMAND`.
        options: Those that need it.
    """
    if getattr(args, needed.removeprefix("--").lower()) not in (None, []):
        return None
    for option in options:
        if getattr(args, option.dest) != option.default:
            return f"{option.option_strings[0]} means nothing without {needed}"
    return None


def check_listen(args: argparse.Namespace) -> str | None:
    """Say which options of `--listen` do not go together, if any do not."""
    if args.listen is None:
        return None
    if (args.listen[2] == "https") != (args.tls_cert is not None):
        return "expected --tls-cert with https:// in --listen, and only then"
    if args.tls_key is not None and args.tls_cert is None:
        return "--tls-key means nothing without --tls-cert"
    taken = [args.mcp_path, *((args.sse_path, MESSAGES_PATH) if args.sse_path else ())]
    if len(set(taken)) < len(taken):
        return f"expected different paths for Streamable HTTP and HTTP+SSE, found {', '.join(taken)}"
    return None


def check_upstream(args: argparse.Namespace) -> str | None:
    """Say which options of `--url` do not go together, if any do not."""
    if args.upstream != "auto" and str(args.url).lower().startswith(("ws:", "wss:")):
        return "--upstream chooses between the HTTP transports, and means nothing with a WebSocket URL"
    if args.client_key is not None and args.client_cert is None:
        return "--client-key means nothing without --client-cert"
    return None
