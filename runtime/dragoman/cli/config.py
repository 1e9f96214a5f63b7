"""`dragoman config check FILE`: is a configuration file right, and do its servers answer?

Lives here: reading the file, asking every server in it what it is, and saying so. Must not: know what a file may say
(`dragoman.config`). The client library, and asyncio with it, is imported only when a server is asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.ink import REVISIONS, Style, complain, write_painted
from dragoman.cli.known import know_target
from dragoman.cli.options import add_seconds
from dragoman.cli.screen import columns, fit, print_json, shown
from dragoman.cli.signals import raise_on_interrupt
from dragoman.config import ConfigError, Configuration, ServerConfig, read_config
from dragoman.errors import ConfigProblem, Error

if TYPE_CHECKING:
    from dragoman.client.client import Client

EXIT_SERVER: Final = 1
"""The file can be used, and one of its servers cannot."""

EXIT_FILE: Final = 2
"""The file cannot be used."""

KINDS: Final = ("tools", "prompts", "resources", "templates")

_MARKS: Final = {r"(?<=: )(?:LEFT OUT|FAILED)(?=:)": Style.ERROR, "(?<=: )ok(?=:)": Style.GOOD, **REVISIONS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `config`."""
    parser.add_argument("action", metavar="check", choices=("check",), help="say what is wrong with it")
    parser.add_argument("file", metavar="FILE", help="the configuration file")
    parser.add_argument("--no-connect", action="store_true", help="do not start or reach any server")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_seconds(parser, "--timeout", 30, "how long a server may take to open, and for each answer")


def run(args: argparse.Namespace) -> int:
    """Check a file, and give the exit code."""
    try:
        configuration = read_config(args.file)
    except ConfigError as error:
        return _explain(args, error)
    for warning in configuration.warnings:
        print(f"{args.file}: {warning}", file=sys.stderr)
    found = {} if args.no_connect else _try_all(configuration, args.timeout)
    if args.json:
        problems = [problem for server in configuration.servers for problem in server.problems]
        print_json(_report(args, problems, _describe(configuration, found)))
    else:
        _print(configuration, found)
    return EXIT_SERVER if configuration.left_out or any("error" in one for one in found.values()) else 0


def _report(
    args: argparse.Namespace, problems: Sequence[ConfigProblem], servers: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {"file": args.file, "problems": [asdict(one) for one in problems], "servers": servers}


def _explain(args: argparse.Namespace, error: ConfigError) -> int:
    if args.json:
        print_json(_report(args, error.problems, []))
    else:
        for problem in error.problems:
            complain(f"{error.path}: {problem}")
    return EXIT_FILE


def _describe(configuration: Configuration, found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "name": server.name,
            "line": server.line,
            "disabled": server.disabled,
            **({"error": configuration.left_out[server.name]} if server.problems else found.get(server.name, {})),
        }
        for server in configuration.servers
    ]


def _print(configuration: Configuration, found: dict[str, dict[str, Any]]) -> None:
    if not configuration.servers:
        print("no servers")
    for server in configuration.servers:
        one = found.get(server.name)
        if server.disabled:
            said = "disabled"
        elif server.problems:
            said = f"LEFT OUT: {'; '.join(map(str, server.problems))}"
        elif one is None:
            said = f"not tried: {server.where}"
        elif "error" in one:
            said = f"FAILED: {one['error']}"
        else:
            counts = ", ".join(_counted(one[kind], kind) for kind in KINDS if one[kind]) or "nothing to list"
            said = f"ok: {one['server']}, revision {one['revision']}, {counts}"
        write_painted(fit(shown(f"{server.name}: {said}"), 4, columns()) + "\n", _MARKS)


def _counted(number: int, kind: str) -> str:
    return f"{number} {kind if number > 1 else kind.removesuffix('s')}"


# Asking servers


def _try_all(configuration: Configuration, timeout_s: float) -> dict[str, dict[str, Any]]:
    import asyncio
    import logging

    from dragoman.cli.logs import set_up_logging

    set_up_logging("error")
    for name in ("proxy", "translate"):  # how sessions fail: we say so ourselves, once; and nobody uses what is lost
        logging.getLogger(f"dragoman.{name}").setLevel("CRITICAL")
    logging.getLogger("dragoman.waiting").setLevel("WARNING")
    raise_on_interrupt()

    async def try_all() -> dict[str, dict[str, Any]]:
        found = await asyncio.gather(*(_try(server, timeout_s) for server in configuration.enabled))
        return {server.name: one for server, one in zip(configuration.enabled, found, strict=True)}

    return asyncio.run(try_all())


async def _try(server: ServerConfig, timeout_s: float) -> dict[str, Any]:
    """Ask a server what it is and has."""
    import asyncio

    from dragoman.client.connect import connect

    try:
        async with (
            asyncio.timeout(4 * timeout_s),
            connect(
                server,
                timeout_s=timeout_s,
                init_timeout_s=timeout_s,
                know=lambda _: know_target(server.target),
            ) as client,
        ):
            info = client.server_info
            named = "a server without a name" if info is None else f"{info.name} {info.version}".rstrip()
            counts = {kind: await _count(client, kind) for kind in KINDS}
            return {"server": named, "revision": client.server_revision, **counts}
    except (Error, TimeoutError) as error:
        return {"error": str(error) or f"it did not answer within {4 * timeout_s:g} s"}


async def _count(client: Client, kind: str) -> int:
    """Count what a server lists; nothing where it has no such list."""
    from dragoman.errors import CapabilityNotSupported, McpError

    number = 0
    try:
        async for _ in getattr(client, kind)():
            number += 1
    except (CapabilityNotSupported, McpError):
        return 0
    return number
