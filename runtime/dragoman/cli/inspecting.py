"""`--inspect`: starting the viewer beside a proxy, and saying where its page is.

Lives here: the address, the key, and the viewer's process. Must not: serve anything (`dragoman.inspect`), which is
imported only once a page is wanted. Called by `cli.proxy` and `cli.inspect`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.certificate import certificate_of, check_certificate
from dragoman.cli.names import own_names, reachable_name
from dragoman.cli.options import DEFAULT_PAGE

if TYPE_CHECKING:
    from dragoman.inspect.feed import Feed
    from dragoman.trace.trace import Watcher

_KEY_BYTES: Final = 24
_BACKLOG: Final = 64


class CannotShow(Exception):
    """The page cannot be served: why."""


def open_feed(args: argparse.Namespace, beside: Watcher | None, about: dict[str, Any]) -> Feed:
    """Start a viewer, say where its page is, and return what tells it what crosses.

    Args:
        args: With the flags of `--inspect`, and the stderr that children get.
        beside: What else is told of it.
        about: What the page says of what it shows.

    Raises:
        CannotShow: The address is taken, the certificate cannot be used, or the viewer cannot be started.
    """
    from dragoman.inspect.feed import Feed

    listener, url, certificate = bind_page(args.inspect, args)
    key = make_key()
    ours, theirs = socket.socketpair()
    told = {
        "certificate": certificate,
        "key": key,
        "hosts": own_names(args.inspect[0]),
        "bytes": args.inspect_memory,
        "about": about,
        "process": os.getpid(),
    }
    try:
        _start_viewer((theirs, listener), args.stderr)
    except OSError as error:
        raise CannotShow(f"--inspect: its viewer cannot be started: {error.strerror}") from None
    finally:
        theirs.close()
    ours.sendall(json.dumps(told).encode() + b"\n")
    listener.close()
    tell_where(url, key, opens=args.open)
    return Feed(ours, beside)


def _start_viewer(sockets: tuple[socket.socket, socket.socket], stderr: int | None) -> None:
    """Start it with its sockets, whose numbers it finds as arguments; or on Windows what makes them, in its stdin.

    Raises:
        OSError: It cannot be started.
    """
    command, nowhere = [sys.executable, "-P", "-m", "dragoman.inspect"], subprocess.DEVNULL
    if sys.platform == "win32":
        # Of a group of its own: Ctrl-C is the proxy's. Without a window, of which it has no use.
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        flags |= subprocess.BELOW_NORMAL_PRIORITY_CLASS  # a call does not wait for it
        viewer = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=nowhere, stderr=stderr, creationflags=flags, bufsize=0
        )
        assert viewer.stdin is not None
        viewer.stdin.write(" ".join(one.share(viewer.pid).hex() for one in sockets).encode() + b"\n")
        viewer.stdin.close()
        return
    fds = tuple(one.fileno() for one in sockets)
    command += map(str, fds)
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=stderr, pass_fds=fds, start_new_session=True)


def bind_page(
    wanted: tuple[str, int, str], args: argparse.Namespace
) -> tuple[socket.socket, str, tuple[str | None, str | None]]:
    """Open the socket of a page: where it is wanted; if that is nowhere in particular, at another port at need.

    Args:
        wanted: Host, port and scheme.
        args: With the flags that name a certificate.

    Returns:
        It, its URL without a path, and the files of its certificate.

    Raises:
        CannotShow: Nothing can listen there, or not with this certificate.
    """
    certificate, key = certificate_of(wanted, args)
    if certificate is not None:
        try:
            check_certificate(certificate, key)
        except ValueError as error:
            raise CannotShow(str(error)) from None
    host, port, scheme = wanted
    ports = (port, 0) if wanted == DEFAULT_PAGE else (port,)
    for one in ports:
        try:
            family = socket.getaddrinfo(host, one, type=socket.SOCK_STREAM)[0][0]
            listener = socket.create_server((host, one), family=family, backlog=_BACKLOG)
        except OSError as error:
            reason = error.strerror
            continue
        name = reachable_name(host)
        name = f"[{name}]" if ":" in name else name
        return listener, f"{scheme}://{name}:{listener.getsockname()[1]}", (certificate, key)
    raise CannotShow(f"--inspect: cannot listen at {host}:{port}: {reason}")


def make_key() -> str:
    """Make what a browser needs to be shown anything."""
    import secrets

    return secrets.token_urlsafe(_KEY_BYTES)


def tell_where(url: str, key: str, opens: bool) -> None:
    """Print the address of the page, and open it in a browser if that is wanted."""
    url = f"{url}/?key={key}"
    print(f"inspect at {url}", file=sys.stderr, flush=True)
    if opens:
        threading.Thread(target=open_browser, args=(url,), daemon=True).start()  # a browser may take its time


def open_browser(url: str) -> bool:
    """Open a page in a browser; false if there is none."""
    import webbrowser

    try:
        return webbrowser.open(url)
    except Exception:  # a desktop has many ways not to have a browser
        return False
