"""Options: a page explains every one of them, tables have the defaults, and no page uses one that does not exist."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.cli import COMMANDS
from dragoman.cli.parsing import CommandParser
from dragoman.values import size
from tests.docs.test_docs import CELLS, PAGES, ROOT, name

DOCS = sorted(ROOT.glob("docs/*.md"))
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"--[a-z][a-z-]+")
README_COLUMNS = 120


class Row(NamedTuple):
    """An option in a table, with what its cell for the default says, and where."""

    option: str
    default: str
    page: str


def parser_of(command: str) -> argparse.ArgumentParser:
    parser = CommandParser(prog=f"dragoman {command}")
    importlib.import_module(f"dragoman.cli.{command}").add_arguments(parser)
    return parser


def options_of(command: str) -> dict[str, argparse.Action]:
    """Give the options of a command by their names, without `--help`."""
    actions = [action for action in parser_of(command)._actions if action.dest != "help"]
    return {action.option_strings[-1]: action for action in actions if action.option_strings}


def rows_of(page: Path) -> list[Row]:
    """Give the options in tables that have a column for options and one for defaults."""
    found: list[Row] = []
    titles: list[str] = []
    for line in page.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in CELLS.split(line)[1:-1]]
        if not cells:
            titles = []
        elif not titles:
            titles = cells
        elif titles[0] == "option" and "default" in titles:
            found += [Row(option, cells[titles.index("default")], name(page)) for option in OPTION.findall(cells[0])]
    return found


ROWS = [row for page in DOCS for row in rows_of(page)]
PROXY = options_of("proxy")


def read_default(cell: str, action: argparse.Action) -> object:
    """Read a default as a table has it: nothing, a word, a number of seconds, a size."""
    text = cell.strip("`").removesuffix(" s")
    if not text:
        return [] if isinstance(action.default, list) else False if action.const is True else None
    if isinstance(action.default, str):
        return text
    return size(text) if text[-1] in "kmg" else float(text)


@pytest.mark.parametrize("option", PROXY)
def test_the_page_that_explains_an_option_names_it(option: str) -> None:
    from tests.docs.options import page_of

    groups = parser_of("proxy")._action_groups
    (page,) = (
        page_of(action, group.title)
        for group in groups
        for action in group._group_actions
        if option in action.option_strings
    )
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert option in OPTION.findall(text), (
        f"docs/{page} has to say something of {option}, or tests/docs/options.py another page"
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.option)
def test_a_table_has_the_default_of_an_option(row: Row) -> None:
    assert row.option in PROXY, f"{row.page} has an option that the proxy does not have"
    assert read_default(row.default, PROXY[row.option]) == PROXY[row.option].default


@pytest.mark.parametrize("option", [option for option, action in PROXY.items() if action.default])
def test_help_has_the_default_of_an_option(option: str) -> None:
    action = PROXY[option]
    said = re.search(r"\(default: ([^,)]+)", (action.help or "").replace("%(default)s", str(action.default)))
    assert said is not None
    assert read_default(said[1], action) == action.default


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "proxy"])
def test_every_command_has_a_section_on_the_page_of_the_command_line(command: str) -> None:
    assert f"\n## dragoman {command}\n" in (ROOT / "docs" / "cli.md").read_text("utf-8")


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "proxy"])
def test_every_option_of_the_other_commands_is_on_their_page(command: str) -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    own, _, shared = page.partition("\n## A server of a configuration file\n")
    _, _, section = own.partition(f"\n## dragoman {command}\n")
    own_part = section.split("\n## ")[0]
    of_list = own.split("\n## dragoman list\n")[1].split("\n## ")[0] if "#dragoman-list" in own_part else ""
    listed = set(OPTION.findall(own_part + of_list + shared))
    assert set(options_of(command)) - listed == set(), "run `python -m tests.docs.options`"


def test_pages_of_options_are_up_to_date() -> None:
    from tests.docs import options

    assert options.PAGE.read_text("utf-8") == options.text(), "run `python -m tests.docs.options`"
    assert options.COMMANDS_PAGE.read_text("utf-8") == options.commands_text(), "run `python -m tests.docs.options`"


def proxy_commands() -> list[tuple[str, str]]:
    """Give every `dragoman proxy` that some page shows in a block, with the page."""
    return [
        (name(page), line.removeprefix("$ ").removesuffix(" &"))
        for page in PAGES
        for block in FENCED.findall(page.read_text("utf-8"))
        for line in block.splitlines()
        if line.removeprefix("$ ").startswith("dragoman proxy ") and "[OPTION" not in line
    ]


@pytest.mark.parametrize(("page", "command"), proxy_commands())
def test_a_command_that_a_page_shows_is_understood(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "secret")
    for file in ("tokens.txt", "chain.pem", "key.pem"):
        (tmp_path / file).touch()
    for file in ("state-keys", "callers.key"):
        key = tmp_path / file
        key.write_text("0" * 64)
        key.chmod(0o600)
    args = parser_of("proxy").parse_args(shlex.split(command, comments=True)[2:])
    assert bool(args.command) + bool(args.url) + bool(args.config) == 1


def test_contributing_says_what_every_nox_session_is_for() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    sessions = {
        node.name.replace("_", "-")
        for node in functions
        if any("session" in ast.unparse(d) for d in node.decorator_list)
    }
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("\n## Sessions of nox\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)`", section, re.MULTILINE)) == sessions


def test_lines_of_the_readme_fit_a_screen() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert [line for line in lines if len(line) > README_COLUMNS] == []
