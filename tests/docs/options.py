"""Write `docs/options.md` and `docs/commands.md` from the parsers of the commands: `python -m tests.docs.options`."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli import COMMANDS
from tests.docs.test_options import ROWS, parser_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"
COMMANDS_PAGE = PAGE.with_name("commands.md")

HEAD = """\
# The options of the proxy

<!-- Written by `python -m tests.docs.options` from `dragoman.options`: do not edit. -->

Every option of `dragoman proxy`, as `dragoman proxy --help-all` lists them, and the page that says more about it. Those
that have a key in a [configuration file](configuration.md#our-own-keys) are listed there, too; those of the other
commands are [on a page of their own](commands.md).
"""

COMMANDS_HEAD = """\
# The options of the other commands

<!-- Written by `python -m tests.docs.options` from the parsers: do not edit. -->

What [the commands](cli.md) take besides [`dragoman proxy`](options.md), as their `--help-all` lists it. Those that say
where a server is are the same for each command that visits one, and stand once, at the end.
"""


def text() -> str:
    """Give the whole page."""
    pages = {row.option: Path(row.page).name for row in ROWS}
    groups = [(group.title, group._group_actions) for group in parser_of("proxy")._action_groups]
    lines = [HEAD]
    for title, actions in groups:
        rows = [_row(action, pages) for action in actions if action.option_strings and action.dest != "help"]
        if rows:
            heading = "General" if title == "options" else f"{str(title)[0].upper()}{str(title)[1:]}"
            lines += [f"## {heading}", "", "| flag | says | more |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


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


def _row(action: argparse.Action, pages: dict[str, str]) -> str:
    shown, says = _shown(action)
    page = pages[action.option_strings[-1]]
    return f"| `{shown}` | {says} | [{page.removesuffix('.md')}]({page}) |"


def _shown(action: argparse.Action) -> tuple[str, str]:
    """Give how an option is written, and what its help says, for a table."""
    flag = action.option_strings[-1]
    value = action.metavar or ("\\|".join(map(str, action.choices)) if action.choices else "")
    shown = (
        flag
        if action.nargs == 0
        else f"{flag} {value or action.dest.upper()}".replace("auto|", "auto\\|").replace("any|", "any\\|")
    )
    says = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%").replace("|", "\\|")
    return shown, " ".join(says.split()).replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    COMMANDS_PAGE.write_text(commands_text(), encoding="utf-8")
