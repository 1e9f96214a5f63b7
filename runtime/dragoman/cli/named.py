"""A server that is named by a configuration file: `--config FILE --server NAME`, for the commands that have one server.

Lives here: setting the options of a command as the file has them. Must not: read the file (`dragoman.config`). Called
by `cli.session` and `cli.proxy`, only where the option is given.
"""

from __future__ import annotations

import argparse
import sys

from dragoman.config import CommandTarget, ConfigError, read_config


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
        args.usage_error(f"--server: {error.args[0]}")
        raise
    target, options = server.target, server.options
    args.server = server.name
    if isinstance(target, CommandTarget):
        args.command, args.cwd = list(target.command), target.cwd
        args.variables = [*target.env]
        args.inherit_env = options.inherit_env or args.inherit_env
    else:
        args.url, args.headers, args.upstream = target.url, list(target.headers), target.kind.value
        for name in ("ca_file", "client_cert", "client_key", "proxy", "insecure"):
            setattr(args, name, getattr(options, name))
        args.injected = options.headers
        args.sign_in, args.no_sign_in = options.sign_in, options.sign_in is None
