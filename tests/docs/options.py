"""Write `docs/options.md` and `docs/commands.md` from the parsers of the commands: `python -m tests.docs.options`."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
from functools import cache
from pathlib import Path

from dragoman.cli import COMMANDS
from dragoman.core.settings import Settings
from dragoman.core.switch.shared.desk import SharingSettings
from dragoman.host.shared import PoolConfig
from dragoman.proxy import ProxyConfig
from dragoman.transports.http.config import Admission, FrontConfig, Limits, Paths, Patience
from dragoman.transports.upstream.config import UpstreamConfig
from tests.docs.test_options import parser_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"
COMMANDS_PAGE = PAGE.with_name("commands.md")

# The page that explains an option: that of its group, or else the one that is named below.
OF_GROUP = {
    "clients over HTTP": "transports.md",
    "clients with tokens of an authorization server": "guard.md",
    "servers behind --listen": "sessions.md",
    "a server on the network, in place of COMMAND": "transports.md",
    "signing in to that server, where it wants a token": "sign-in.md",
    "clients without a handshake, with servers that have one": "eras.md",
}
OF_OPTION = {
    "cli.md": ("--status",),
    "inspect.md": ("--inspect", "--open", "--inspect-memory", "--inspect-anywhere"),
    "losses.md": ("--profile", "--on-loss", "--rule", "--no-rule"),
    "middleware.md": ("--middleware", "--notice-middleware"),
    "router.md": ("--config", "--server", "--paths"),
    "run-it.md": ("--workers", "--store", "--instance-listen", "--shutdown-delay"),
    "security.md": (
        *("--allow-host", "--allow-origin", "--auth-token-file", "--tls-cert", "--tls-key"),
        *("--tell-callers", "--trust-callers"),
    ),
    "sign-in.md": ("--no-sign-in",),
    "trace.md": ("--trace",),
    "watching.md": ("--metrics-listen", "--access-log", "--otel", "--log-file", "--log-format"),
}

HEAD = """\
# The options of the proxy

<!-- Written by `python -m tests.docs.options` from `dragoman.options`: do not edit. -->

Every option of `dragoman proxy`, as `dragoman proxy --help-all` lists them, and the page that explains it. Some have a
key in a [configuration file](configuration.md#our-own-keys), too. The other commands have [a page of their
own](commands.md).
"""

PROGRAMS_HEAD = """\
## For programs

Values that no option sets, since almost nobody needs another: [a program that embeds the proxy](embedding.md) gives
them where it makes the object.

| value | usual | says |
|---|---|---|"""

RECORDS = (
    ProxyConfig,
    FrontConfig,
    Paths,
    Limits,
    Patience,
    Admission,
    UpstreamConfig,
    PoolConfig,
    SharingSettings,
    Settings,
)

COMMANDS_HEAD = """\
# The options of the other commands

<!-- Written by `python -m tests.docs.options` from the parsers: do not edit. -->

What [the commands](cli.md) take besides [`dragoman proxy`](options.md), as their `--help-all` lists it. Those that say
where a server is are the same for each command that visits one, and stand once, at the end.
"""


def text() -> str:
    """Give the whole page."""
    groups = [(group.title, group._group_actions) for group in parser_of("proxy")._action_groups]
    lines = [HEAD]
    for title, actions in groups:
        rows = [
            _row(action, page_of(action, title))
            for action in actions
            if action.option_strings and action.dest != "help"
        ]
        if rows:
            heading = "General" if title == "options" else f"{str(title)[0].upper()}{str(title)[1:]}"
            lines += [f"## {heading}", "", "| flag | says | more |", "|---|---|---|", *rows, ""]
    return "\n".join([*lines, PROGRAMS_HEAD, *_rows_for_programs(), ""])


def _rows_for_programs() -> list[str]:
    """Give a row for each value that nothing but a program sets."""
    rows = []
    for record in RECORDS:
        said = re.findall(
            r"^    (?:    )?(\w+): (.*(?:\n {12}.*|\n {8}(?=\S)(?!\w+: ).*)*)", record.__doc__ or "", re.MULTILINE
        )
        says = {name: " ".join(about.split()) for name, about in said}
        for field in dataclasses.fields(record):
            if isinstance(field.default, int | float | str) and field.name not in _set_by_us():
                rows.append(f"| `{record.__name__}.{field.name}` | {field.default!r} | {says[field.name]} |")
    return rows


@cache
def _set_by_us() -> frozenset[str]:
    """Give the names that our own modules give values for, as arguments or in tables of options."""
    runtime = PAGE.parents[1] / "runtime" / "dragoman"
    trees = [ast.parse(path.read_text("utf-8")) for path in runtime.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
    return frozenset(
        named | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    )


def commands_text() -> str:
    """Give the whole page of the other commands."""
    lines, shared, first = [COMMANDS_HEAD], dict[str, list[str]](), list[str]()
    for command in COMMANDS:
        if command == "proxy":
            continue
        rows = []
        for group in parser_of(command)._action_groups:
            actions = [action for action in group._group_actions if action.option_strings and action.dest != "help"]
            described = [_described(action) for action in actions]
            if command == "list" and group.title != "options" and described:
                shared[str(group.title)] = described
            if str(group.title) not in shared:
                rows += described
        first = first or rows
        own = [row for row in rows if row not in first] if rows is not first and set(first) <= set(rows) else rows
        if rows:
            lines += [f"## dragoman {command}", ""]
            lines += ["| option | says |", "|---|---|", *own, ""] if own else []
            lines += ["It takes those of [`dragoman list`](#dragoman-list).", ""] if own is not rows else []
    for title, rows in shared.items():
        lines += [f"## {title[0].upper()}{title[1:]}", "", "| option | says |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _described(action: argparse.Action) -> str:
    shown, says = _shown(action)
    return f"| `{shown}` | {says} |"


def page_of(action: argparse.Action, group: str | None) -> str:
    """Give the page that explains an option, in `docs/`."""
    named = (page for page, options in OF_OPTION.items() if action.option_strings[-1] in options)
    return next(named, OF_GROUP.get(str(group), "proxy.md"))


def _row(action: argparse.Action, page: str) -> str:
    shown, says = _shown(action)
    return f"| `{shown}` | {says} | [{page.removesuffix('.md')}]({page}) |"


def _shown(action: argparse.Action) -> tuple[str, str]:
    """Give how an option is written, and what its help says, for a table."""
    flag = action.option_strings[-1]
    value = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    shown = flag if action.nargs == 0 else f"{flag} {value}".replace("|", "\\|")
    says = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%").replace("|", "\\|")
    return shown, " ".join(says.split()).replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    COMMANDS_PAGE.write_text(commands_text(), encoding="utf-8")
