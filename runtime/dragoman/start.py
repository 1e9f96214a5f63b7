"""Where the script `dragoman` and `python -m dragoman` begin: a server that is to be started, is started first.

Lives here: telling from the words alone which command that is. Must not: import anything, but what starts it
(`transports.early`); all else is imported while the server starts, and takes it over. What is not recognised here is
started later, and `cli.child` takes only a server that is started as the options say.
"""

import gc
import sys

TAKING_VALUES = frozenset(
    {
        *("client-revision", "server-revision", "profile", "rule", "no-rule", "on-loss", "server-name", "restarts"),
        *("init-timeout", "drain-timeout", "request-timeout", "request-ceiling", "health-interval", "answer-timeout"),
        *("status", "log-level", "log-file", "log-format", "trace", "access-log", "metrics-listen"),
        *("middleware", "notice-middleware", "questions", "repeatable", "max-parked", "task-ttl", "roots-ttl"),
        "state-key-file",
    }
)
SWITCHES = frozenset({"otel", "no-era-cache", "no-greeting", "no-retry-older"})
"""The options of `dragoman proxy` (`dragoman.options`) that change nothing about how a server's command is started."""


NEVER = 1_000_000
"""After how many new objects it is looked for cycles while we start: ten times as many as there are then."""


def find_command(words: list[str]) -> list[str]:
    """Return the command that the words of a command line start; an empty one if that takes more to be told."""
    left = iter(words)
    if next(left, "") != "proxy":
        return []
    for word in left:
        name, has_value, _ = word.removeprefix("--").partition("=")
        if word == "--":
            return list(left)
        is_whole = name in (TAKING_VALUES if has_value else SWITCHES)
        has_more = not has_value and name in TAKING_VALUES and not next(left, "-").startswith("-")
        if not word.startswith("--") or not (is_whole or has_more):
            return []
    return []


INTERRUPTED = 130


def main() -> int:
    """Run the command that the arguments of this process name; return the exit code."""
    try:
        return _begin()
    except KeyboardInterrupt:  # while all is imported; after that it ends us at once (`cli.signals`)
        return INTERRUPTED


def _begin() -> int:
    early = None
    if sys.argv[1:2] == ["proxy"]:
        gc.set_threshold(NEVER)  # as long as everything that is made stays: `cli.memory.set_apart`
    if command := find_command(sys.argv[1:]):
        from dragoman.transports.early import begin

        early = begin(command)
    try:
        from dragoman.cli import main

        return main(early=early)
    finally:
        if early is not None:
            early.end()
