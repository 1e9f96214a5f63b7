"""How a command line is read: whole names only, and a near one suggested for a name that does not exist.

Lives here: the parser that every command has. Must not: know any command. Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from dragoman.cli.ink import Style, write_painted
from dragoman.cli.screen import columns, fit

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class _HelpAll(argparse.Action):
    """What `--help-all` does."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about, nargs=0, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the whole help, and end."""
        assert isinstance(parser, CommandParser)
        parser._print_message(parser.format_help(shows_all=True), sys.stdout)
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no option by half its name: `--list` is not `--listen`, and may come to mean something else.

    Args:
        about: What `argparse.ArgumentParser` takes.
    """

    def __init__(self, **about: Any) -> None:
        super().__init__(allow_abbrev=False, **about)
        self._words: list[str] = []
        self._rarely: list[argparse.Action] = []

    def hide(self, rarely: Iterable[argparse.Action]) -> None:
        """Leave options that few people need out of `--help`, and add `--help-all`, which shows them, too."""
        self._rarely = list(rarely)
        self.add_argument("--help-all", dest="help", action=_HelpAll, help="show all options and exit")

    def format_help(self, *, shows_all: bool = False) -> str:
        """Return the help; without what few people need, unless it is to be there."""
        hidden = {} if shows_all else {action: action.help for action in self._rarely}
        for action in hidden:
            action.help = argparse.SUPPRESS
        try:
            text = super().format_help()
        finally:
            for action, said in hidden.items():
                action.help = said
        return f"{text}\n{len(hidden)} more options: --help-all\n" if hidden else text

    def error(self, message: str) -> NoReturn:
        """End with a usage error, which says what to write where a server's command stands without its `--`."""
        names_server = "-- COMMAND" not in message and any(action.dest == "server" for action in self._actions)
        super().error(f"{message}{self._show_command(message) if names_server else ''}")

    def _show_command(self, message: str) -> str:
        import shlex

        words = self._words
        at = next((at for at, word in enumerate(words) if _is_program(word)), None)
        if {"--", "--url", "--config"} & {word.partition("=")[0] for word in words}:
            return ""
        if at is None and "unrecognized" not in message:
            return ""
        shown = ["COMMAND ..."] if at is None else [shlex.join(words[at:])]
        before = [] if at is None else words[:at]
        return f"; a server's command comes after `--`: {' '.join([self.prog, *before, '--', *shown])}"

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; whoever called is told if it cannot be written, which argparse keeps to itself."""
        self._print_message(self.format_help(), file or sys.stdout)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Read the arguments; what nobody knows is an error that names what is near.

        Where a default says `splits_command`, what follows the first `--` is the server's command, whatever comes
        before it: argparse would give the words before it to the command, or the other way round.
        """
        self._words = list(sys.argv[1:] if args is None else args)
        command: Sequence[str] = []
        if self.get_default("splits_command"):
            args = self._words
            if "--" in args:
                at = args.index("--")
                args, command = args[:at], args[at + 1 :]
            options, unknown = self.parse_known_intermixed_args(args, namespace)
            options.command = list(command)
        else:
            options, unknown = self.parse_known_args(self._mark_command(self._words), namespace)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            near = [suggest(text.partition("=")[0], known) for text in unknown if text.startswith("-")]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(dict.fromkeys(near))}")
        return options

    def _mark_command(self, words: list[str]) -> list[str]:
        """Put the `--` before a server's command where it was lost on the way, and nothing else can be meant.

        Python's `mcp-proxy` takes every `--` out of the command that it starts. A command that has words of ours in it
        may be half of one, and stays as it is.
        """
        if "--" in words:
            return words
        ours = {name: action for action in self._actions for name in action.option_strings}
        at = 0
        while at < len(words) and (action := ours.get(words[at].partition("=")[0])) is not None:
            may_stand_alone = action.nargs == "?" and not any("://" in word for word in words[at + 1 : at + 2])
            at += 1 if "=" in words[at] or action.nargs == 0 or may_stand_alone else 2
        takes_command = any(action.dest == "command" for action in self._actions)
        if any(word.partition("=")[0] in ours for word in words[at:]) or not any(map(_is_program, words[at : at + 1])):
            return words
        return [*words[:at], "--", *words[at:]] if takes_command else words

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print; that nobody reads it, or that it cannot be written, is for `dragoman.cli` to deal with."""
        out = file or sys.stderr
        width = columns(out)
        told = "\n".join(fit(line, 10, width) for line in message.split("\n"))
        write_painted(told, {rf"^{re.escape(self.prog)}: error:": Style.ERROR}, out)


def _is_program(word: str) -> bool:
    """Whether a word is likely to begin a server's command."""
    if word.startswith("-") or "=" in word:
        return False
    import shutil

    return shutil.which(word) is not None


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for a name that is not known, or nothing if none is near."""
    import difflib

    names = list(known)
    begun = [one for one in names if len(name) > 3 and one.startswith(name)]
    near = begun or difflib.get_close_matches(name, names, n=2, cutoff=0.7 if len(name) > 4 else 0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""
