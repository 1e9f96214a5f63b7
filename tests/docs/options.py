"""Write `docs/options.md` from the options that `dragoman proxy` has: `python -m tests.docs.options`."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.docs.test_options import ROWS, parser_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"

HEAD = """\
# The options of the proxy

<!-- Written by `python -m tests.docs.options` from `dragoman.options`: do not edit. -->

Every option of `dragoman proxy`, as `dragoman proxy --help-all` lists them, and the page that says more about it. Those
that have a key in a [configuration file](configuration.md#our-own-keys) are listed there, too; those of the other
commands are on the page of [the command line](cli.md).
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


def _row(action: argparse.Action, pages: dict[str, str]) -> str:
    flag = action.option_strings[-1]
    value = action.metavar or ("\\|".join(map(str, action.choices)) if action.choices else "")
    shown = flag if action.nargs == 0 else f"{flag} {value or action.dest.upper()}".replace("auto|", "auto\\|")
    says = " ".join(
        (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%").replace("|", "\\|").split()
    )
    page = pages[flag]
    return f"| `{shown}` | {says.replace('<', '&lt;')} | [{page.removesuffix('.md')}]({page}) |"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
