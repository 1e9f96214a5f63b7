"""`dragoman status`: how a running proxy is, and its servers.

Lives here: asking it, and showing what it says. Must not: know more than it says (`dragoman.status`). Called by
`dragoman.cli`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from dragoman.cli.ink import Style, complain, write_painted
from dragoman.cli.options import add_seconds
from dragoman.cli.screen import columns, fit

EXIT_NOT_READY: Final = 1
EXIT_NO_ANSWER: Final = 3

_PATH: Final = "/readyz"
_NOT_OURS: Final = "what answers there is not a proxy of ours"
_NOT_A_PROXY: Final = f"{_NOT_OURS}: say where `dragoman proxy --listen` serves, or the socket of its `--status`"
_MOST: Final = 16 * 1024 * 1024
_COLUMNS: Final = ("server", "state", "revision", "clients", "restarts", "trouble")


class NoAnswer(Exception):
    """The proxy did not say how it is: why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `status`."""
    parser.epilog = "exit status: 0 if the proxy serves, 1 if it does not, 3 if it does not answer"
    parser.add_argument("where", metavar="URL|PATH", help="where the proxy listens; or the socket of its `--status`")
    parser.add_argument(
        "--token",
        default=os.environ.get("DRAGOMAN_AUTH_TOKEN"),
        metavar="TOKEN",
        help="the bearer token, where the proxy wants one to show its servers (default: $DRAGOMAN_AUTH_TOKEN)",
    )
    add_seconds(parser, "--timeout", 5, "how long to wait for an answer")
    parser.add_argument("--json", action="store_true", help="print what the proxy says as it is")


def run(args: argparse.Namespace) -> int:
    """Ask, and show the answer."""
    try:
        said = _wait(args.timeout, partial(_ask, args))
        lines = [json.dumps(said)] if args.json else describe(said)
    except NoAnswer as error:
        complain(f"dragoman status: {args.where}: {error}")
        return EXIT_NO_ANSWER
    for line in lines:
        write_painted(f"{line}\n", {} if args.json else {"^ready$": Style.GOOD, "^not ready$": Style.ERROR})
    return 0 if said["ready"] else EXIT_NOT_READY


def describe(said: dict[str, Any]) -> list[str]:
    """Return it in lines for a person.

    Raises:
        NoAnswer: It is not what a proxy says.
    """
    try:
        return [*_describe_itself(said), *_describe_servers(said.get("servers"))]
    except (AttributeError, KeyError, TypeError):
        raise NoAnswer(_NOT_A_PROXY) from None


def _describe_itself(said: dict[str, Any]) -> Iterator[str]:
    yield "ready" if said["ready"] else "not ready"
    for name, problem in said.get("problems", {}).items():
        yield fit(f"{name or 'the server'}: {problem}", 4, columns())
    for option, count in said.get("turned_away", {}).items():
        yield f"turned away by {option}: {count}"


def _describe_servers(servers: list[dict[str, Any]] | None) -> Iterator[str]:
    if servers is None:
        yield "to see its servers, give its secret: --token"
        return
    rows = [_COLUMNS, *dict.fromkeys(_row(server) for server in servers)]
    if len(rows) == 1:
        yield "no servers run at present; they are started when clients connect"
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        yield fit("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), 4, columns())


def _row(server: dict[str, Any]) -> tuple[str, ...]:
    revision = server["revision"] or "-"
    return (
        server["name"] or "-",
        server["state"],
        revision,
        str(server["clients"]),
        str(server["restarts"]),
        server["trouble"],
    )


def _ask(args: argparse.Namespace) -> dict[str, Any]:
    return _ask_url(args) if "://" in args.where else _ask_socket(args.where, args.timeout)


def _wait(timeout_s: float, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Ask, and wait for the whole answer for no longer than this: what answers may send a byte now and then."""
    found: SimpleQueue[dict[str, Any] | NoAnswer] = SimpleQueue()

    def work() -> None:
        try:
            found.put(ask())
        except NoAnswer as error:
            found.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        said = found.get(timeout=timeout_s)
    except Empty:
        raise NoAnswer("timed out") from None
    if isinstance(said, NoAnswer):
        raise said
    return said


def _ask_url(args: argparse.Namespace) -> dict[str, Any]:
    try:
        parts = urllib.parse.urlsplit(args.where)
        _ = parts.port
    except ValueError as error:
        raise NoAnswer(f"no such URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise NoAnswer("expected http(s)://HOST:PORT, or the path of a socket")
    url = urllib.parse.urlunsplit((parts.scheme, parts.netloc, _PATH, "", ""))
    request = urllib.request.Request(url)
    if args.token:
        request.add_unredirected_header("Authorization", f"Bearer {args.token}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=args.timeout) as answer:
            return _read(answer.read(_MOST))
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise NoAnswer(f"{_NOT_OURS}: it answered {error.code} {error.reason} to {url}") from None
        with error:
            return _read(error.read(_MOST))
    except (OSError, ValueError) as error:
        raise NoAnswer(_say(getattr(error, "reason", error))) from None


def _ask_socket(path: str, timeout_s: float) -> dict[str, Any]:
    told = b""
    try:
        with _connect(path, timeout_s) as connection:
            while len(told) < _MOST and (part := connection.recv(65536)):
                told += part
    except OSError as error:
        raise NoAnswer(_say(error)) from None
    return _read(told)


def _connect(path: str, timeout_s: float) -> socket.socket:
    if sys.platform != "win32" and not os.path.isfile(path):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout_s)
        connection.connect(path)
        return connection
    from dragoman.host.board import HERE, read_door

    door = read_door(path)
    if door is None:
        raise NoAnswer(_NOT_A_PROXY)
    connection = socket.create_connection((HERE, door[0]), timeout_s)
    connection.sendall(door[1] + b"\n")
    return connection


def _say(error: object) -> str:
    """Say why nothing answers, and what to look at."""
    if isinstance(error, (ConnectionRefusedError, FileNotFoundError)):
        return f"{error.strerror}: no proxy listens there; is it running, with `--listen` or `--status`?"
    return getattr(error, "strerror", None) or str(error)


def _read(told: bytes) -> dict[str, Any]:
    try:
        said = json.loads(told)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or not isinstance(said.get("ready"), bool):
        raise NoAnswer(_NOT_A_PROXY)
    return said
