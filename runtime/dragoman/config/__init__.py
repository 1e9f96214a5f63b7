"""Configuration files: the JSON in which desktop clients name their servers, and what of it is meant for us.

Lives here: reading such a file (`document`), what may stand in it (`keys`), what that means (`reading`), variables
(`expansion`), the values that come of it (`model`), and opening a connection to what they name (`opening`). Must not:
start anything by itself, or know the protocol. Importing it loads nothing heavy.

    from dragoman.config import read_config

    for server in read_config("mcp.json").servers:
        print(server.name, server.where)
"""

from dragoman.config.model import CommandTarget, Configuration, RouterOptions, ServerConfig, ServerOptions, UrlTarget
from dragoman.config.reading import parse_config, read_config
from dragoman.errors import ConfigError, ConfigProblem

__all__ = [
    "CommandTarget",
    "ConfigError",
    "ConfigProblem",
    "Configuration",
    "RouterOptions",
    "ServerConfig",
    "ServerOptions",
    "UrlTarget",
    "parse_config",
    "read_config",
]
