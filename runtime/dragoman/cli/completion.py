"""`dragoman completion`: scripts that complete command lines in bash, zsh and fish.

Lives here: writing them from the parsers of all commands, which are the only description of options that there is. Must
not: know a command.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import dragoman_spec
from dragoman.config.clients import CLIENTS, find_client, find_file

_FILES: Final = frozenset({"FILE", "DIR", "PATH", "CLIENT"})

_SERVERS: Final = frozenset({("server", "NAME"), ("servers", "SERVER"), ("words", "NAME")})
_KNOWN: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("client", "CLIENT"): tuple(client.name for client in CLIENTS),
    ("no_rules", "NAME"): tuple(sorted(dragoman_spec.DEFAULT_RULES)),
    ("more_rules", "NAME"): tuple(name for name in dragoman_spec.RULES if name not in dragoman_spec.DEFAULT_RULES),
}
"""The words for options and arguments, by what argparse and people call them, that their parsers do not list."""

_PLAIN: Final = re.compile(r"[\w.@/+-]+")
"""Names that are words in each shell: bash runs what stands in backquotes in a list of words."""

HOW: Final = """how to use it:
  bash   add to ~/.bashrc: eval "$(dragoman completion bash)"
  zsh    add to ~/.zshrc, after compinit: eval "$(dragoman completion zsh)"
  fish   dragoman completion fish > ~/.config/fish/completions/dragoman.fish"""


class Choice(NamedTuple):
    """An option, or what stands without one.

    Attributes:
        names: How it is written; empty for what stands without an option.
        about: What it is for.
        takes_value: Whether a word follows.
        values: The words that may; empty where any may.
        is_file: Whether that is the name of a file.
        is_server: Whether that is the name of a server in the files of clients.
        may_repeat: Whether more may follow, where it stands without an option.
    """

    names: tuple[str, ...]
    about: str
    takes_value: bool
    values: tuple[str, ...]
    is_file: bool
    is_server: bool
    may_repeat: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `completion`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = HOW
    parser.add_argument(
        "shell", choices=(*SHELLS, "servers"), help="for which shell; or `servers`, which lists names for such a script"
    )
    parser.add_argument(
        "where",
        nargs="?",
        metavar="FILE",
        help="of `servers`: the file, or the client, in which they are (default: any)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the script; or the names of servers, as far as no shell would take them for something else."""
    if args.shell == "servers":
        sys.stdout.write("".join(f"{name}\n" for name in _list_servers(args.where or "") if _PLAIN.fullmatch(name)))
        return 0
    sys.stdout.write("".join(f"{line}\n" for line in SHELLS[args.shell](read_commands())))
    return 0


def _list_servers(where: str) -> Iterable[str]:
    from dragoman.cli.named import servers_of_clients
    from dragoman.config import ConfigError, read_config

    if not where:
        return dict.fromkeys(server.name for _, _, server in servers_of_clients())
    client = find_client(where)
    try:
        configuration = read_config(find_file(client, os.environ) if client else where)
    except ConfigError:
        return ()
    return [server.name for server in configuration.servers]


def read_commands() -> dict[str, tuple[str, list[Choice]]]:
    """Return what each command is for, and what may follow it."""
    from dragoman.cli import COMMANDS, make_parser

    return {
        name: (about, [_read(action) for action in make_parser(name)._actions if action.help != argparse.SUPPRESS])
        for name, about in COMMANDS.items()
    }


def _read(action: argparse.Action) -> Choice:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    values = tuple(map(str, action.choices or ()))
    known = action.dest, metavar.partition("|")[0]
    if known in _KNOWN:
        values = _KNOWN[known]
    elif not values:
        words = metavar.split("|")
        values = (*(word for word in words if word.islower()), *(dragoman_spec.REVISIONS if "REV" in words else ()))
    about = " ".join((action.help or "").split()).partition(" (default")[0].replace("%%", "%")
    is_file = not _FILES.isdisjoint(metavar.split("|"))
    return Choice(
        tuple(action.option_strings),
        about,
        action.nargs != 0,
        values,
        is_file,
        known in _SERVERS,
        action.nargs == "*",
    )


def _bash(commands: Mapping[str, tuple[str, list[Choice]]]) -> Iterator[str]:
    yield "_dragoman_servers() {"
    yield "  local at where="
    yield "  for ((at = 2; at < COMP_CWORD; at++)); do"
    yield "    if [[ ${COMP_WORDS[at]} == --config ]]; then where=${COMP_WORDS[at+1]}; fi"
    yield "  done"
    yield "  if [[ ${COMP_WORDS[1]} == *wrap ]]; then ((COMP_CWORD > 2)) || return; where=${COMP_WORDS[2]}; fi"
    yield '  dragoman completion servers ${where:+"$where"} 2>/dev/null'
    yield "}"
    yield "_dragoman() {"
    yield "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} at"
    yield "  COMPREPLY=()"
    yield "  for ((at = 2; at < COMP_CWORD; at++)); do"
    yield "    if [[ ${COMP_WORDS[at]} == -- ]]; then"
    yield "      if declare -F _command_offset >/dev/null; then _command_offset $((at + 1))"
    yield '      else COMPREPLY=($(compgen -c -f -- "$cur")); fi'
    yield "      return"
    yield "    fi"
    yield "  done"
    yield f'  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$cur"))'
    yield "    return; fi"
    yield '  case "$command $prev" in'
    for name, (_, choices) in commands.items():
        for choice in choices:
            if choice.names and choice.takes_value:
                words = "|".join(f'"{name} {one}"' for one in choice.names)
                yield f"    {words}) {_bash_values(choice)}; return ;;"
    yield "  esac"
    yield '  case "$command" in'
    for name, (_, choices) in commands.items():
        words = " ".join(one for choice in choices for one in choice.names or choice.values)
        bare = [choice for choice in choices if not choice.names]
        files = " -f" if any(choice.is_file for choice in bare) else ""
        servers = " $(_dragoman_servers)" if any(choice.is_server for choice in bare) else ""
        yield f'    {name}) COMPREPLY=($(compgen -W "{words}{servers}"{files} -- "$cur")) ;;'
    yield "  esac"
    yield "}"
    yield "complete -o filenames -F _dragoman dragoman"


def _bash_values(choice: Choice) -> str:
    if choice.is_server:
        return 'COMPREPLY=($(compgen -W "$(_dragoman_servers)" -- "$cur"))'
    if choice.values:
        return f'COMPREPLY=($(compgen -W "{" ".join(choice.values)}" -- "$cur"))'
    return 'COMPREPLY=($(compgen -f -- "$cur"))' if choice.is_file else ":"


def _zsh(commands: Mapping[str, tuple[str, list[Choice]]]) -> Iterator[str]:
    yield "#compdef dragoman"
    yield "_dragoman_servers() {"
    yield "  local at=${words[(i)--config]} where="
    yield "  if ((at < CURRENT)); then where=$words[at+1]; elif [[ $words[1] == *wrap ]]; then where=$words[2]; fi"
    yield '  compadd -- "$@" ${(f)"$(dragoman completion servers ${where:+$where} 2>/dev/null)"}'
    yield "}"
    yield "_dragoman() {"
    yield "  local -a commands=("
    yield from (f"    {shlex.quote(f'{name}:{about}')}" for name, (about, _) in commands.items())
    yield "  )"
    yield "  local dashes=${words[(i)--]}"
    yield "  if ((dashes < CURRENT)); then"
    yield "    shift $dashes words; ((CURRENT -= dashes)); _normal; return"
    yield "  fi"
    yield "  if ((CURRENT == 2)); then _describe command commands; return; fi"
    yield "  local command=$words[2]; shift words; ((CURRENT--))"
    yield "  case $command in"
    for name, (_, choices) in commands.items():
        yield f"    {name}) _arguments -S \\"
        for choice in choices:
            for one in choice.names or ("*" if choice.may_repeat else "",):
                yield f"      {shlex.quote(_zsh_argument(one, choice))} \\"
        yield "      ;;"
    yield "  esac"
    yield "}"
    yield 'if [[ $funcstack[1] == _dragoman ]]; then _dragoman "$@"; else compdef _dragoman dragoman; fi'


def _zsh_argument(name: str, choice: Choice) -> str:
    about = choice.about.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", "\\:")
    words = " ".join(choice.values)
    values = f"({words})" if words else "_files" if choice.is_file else " "
    if words and choice.is_file:
        values = f" _alternative 'words:word:{values}' 'files:file:_files'"
    values = f" _dragoman_servers {words}".rstrip() if choice.is_server else values
    if not choice.names:
        return f"{name}:{about[:60]}:{values}"
    return f"*{name}[{about}]" + (f":value:{values}" if choice.takes_value else "")


def _fish(commands: Mapping[str, tuple[str, list[Choice]]]) -> Iterator[str]:
    yield "function __dragoman_in"
    yield "  set -l words (commandline -opc)"
    yield "  test (count $words) -gt 1; and test $words[2] = $argv[1]; and not contains -- -- $words"
    yield "end"
    yield "function __dragoman_servers"
    yield "  set -l words (commandline -opc)"
    yield "  set -l where"
    yield "  if set -l at (contains -i -- --config $words); set where $words[(math $at + 1)]"
    yield "  else if string match -q '*wrap' -- $words[2]; set where $words[3]; end"
    yield "  dragoman completion servers $where 2>/dev/null"
    yield "end"
    yield "complete -c dragoman -f"
    for name, (about, choices) in commands.items():
        yield f"complete -c dragoman -n __fish_use_subcommand -a {name} -d {_fish_quoted(about)}"
        for choice in choices:
            where = f"complete -c dragoman -n '__dragoman_in {name}'"
            flags = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in choice.names)
            takes = (" -r" if choice.is_file else " -x") if choice.names and choice.takes_value else ""
            words = " ".join([*choice.values, *(["(__dragoman_servers)"] if choice.is_server else [])])
            values = f" -a {_fish_quoted(words)}" if words else ""
            files = " -F" if choice.is_file else ""
            if flags or values or files:
                yield f"{where} {flags}{takes}{values}{files} -d {_fish_quoted(choice.about)}"
    yield "complete -c dragoman -n 'contains -- -- (commandline -opc)' -F"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS: Final[Mapping[str, Callable[[Mapping[str, tuple[str, list[Choice]]]], Iterator[str]]]] = MappingProxyType(
    {"bash": _bash, "zsh": _zsh, "fish": _fish}
)
