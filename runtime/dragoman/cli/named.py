"""A server that is named by a configuration file: `--config FILE --server NAME`, for the commands that have one server.

Lives here: finding the file among those of clients, and setting the options of a command as it has them. Must not: read
the file (`dragoman.config`). Called by `cli.session` and `cli.proxy`, only where the option is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.parsing import suggest
from dragoman.cli.screen import shown
from dragoman.config import CommandTarget, ConfigError, ServerConfig, read_config
from dragoman.config.clients import CLIENTS, KnownClient, find_file

if TYPE_CHECKING:
    from dragoman.middlewares.lists import Allow, Deny


def find_in_clients(args: argparse.Namespace) -> None:
    """Set `--config` to the file of a client that has the server `--server`; which one it is, is said on stderr.

    Two files that say something else of it are an error, and so is none.
    """
    found = list(servers_of_clients())
    having = [(client, path, server) for client, path, server in found if server.name == args.server]
    if not having:
        names = dict.fromkeys(server.name for _, _, server in found)
        there = f"there are: {', '.join(names)}" if names else "no file of a client has any"
        args.usage_error(shown(f"no client has a server {args.server!r}; {there}{_near(args, names)}"))
    client, path, server = having[0]
    others = [f"{other.title} ({where})" for other, where, one in having if one != server]
    if others:
        said = f"{args.server!r} is not the same in all files: {client.title} ({path}), {', '.join(others)}"
        args.usage_error(shown(f"{said}; say --config FILE"))
    print(shown(f"dragoman: {args.server} is that of {client.title}, {path}"), file=sys.stderr)
    args.config = str(path)


def _near(args: argparse.Namespace, names: Iterable[str]) -> str:
    """Return `; did you mean …?`, of these servers and of the words that the command takes beside their names."""
    known = [*names, *vars(args).get("known_words", ())]
    return "" if args.server is None or args.server in known else suggest(args.server, known)


def servers_of_clients() -> Iterator[tuple[KnownClient, Path, ServerConfig]]:
    """Return the servers in the files of the user's clients that can be read."""
    for client in CLIENTS:
        path = find_file(client, os.environ)
        try:
            configuration = read_config(path)
        except ConfigError:  # there is none, or `dragoman config check` says what is wrong with it
            continue
        yield from ((client, path, server) for server in configuration.servers)


def take_from_config(args: argparse.Namespace, takes_several: bool = False) -> None:
    """Set the options that say where a server is as a server of a configuration file has them.

    What is wrong with the file, or with the choice, is wrong with the command line.

    Args:
        args: With `--config` and `--server`.
        takes_several: Whether, where none is named, all servers of the file will do: `configuration` is set then.
    """
    try:
        configuration = read_config(args.config)
        for remark in configuration.remarks if args.server is None else ():
            print(f"dragoman: {args.config}: {remark}", file=sys.stderr)
        if takes_several and args.server is None and len(configuration.enabled) > 1:
            args.configuration = configuration
            return
        server = configuration.choose(args.server)
    except ConfigError as error:
        args.usage_error(f"--config: {error}")
        raise
    except LookupError as error:
        near = _near(args, [server.name for server in configuration.servers])
        args.usage_error(f"--server: {error.args[0]}{near}")
        raise
    target, options = server.target, server.options
    args.server, args.access = server.name, configuration.options.rules
    args.tool_filters = _filter_tools(server)
    if isinstance(target, CommandTarget):
        args.command, args.cwd = list(target.command), target.cwd
        args.variables = [*target.env]
        args.inherit_env = options.inherit_env or args.inherit_env
    else:
        args.url, args.headers, args.upstream = target.url, list(target.headers), target.kind.value
        for name in ("ca_file", "client_cert", "client_key", "proxy", "insecure", "tell_callers"):
            setattr(args, name, getattr(options, name))
        args.injected = options.headers
        args.sign_in, args.no_sign_in = options.sign_in, options.sign_in is None


def _filter_tools(server: ServerConfig) -> list[Allow | Deny]:
    """Return what hides the tools that a file takes away, by its names as they are."""
    if server.only_tools is None and not server.without_tools:
        return []
    from dragoman.middlewares.lists import Allow, Deny

    only = None if server.only_tools is None else [escape(name) for name in server.only_tools]
    return [Allow(tools=only), Deny(tools=[escape(name) for name in server.without_tools])]
