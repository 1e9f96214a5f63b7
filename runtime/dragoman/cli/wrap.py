"""`dragoman wrap CLIENT [SERVER …]`: put the proxy before the servers of a desktop client; `unwrap` takes it out.

Lives here: the file on the disk, its backup, and what a person sees and is asked. What changes in the text is decided
by `dragoman.config.wrapping`, and which file belongs to which client is in `dragoman.config.clients`.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dragoman.cli.parsing import suggest
from dragoman.cli.screen import shown
from dragoman.config.clients import CLIENTS, find_client, find_file, is_there
from dragoman.config.document import NotJson, place_of
from dragoman.config.wrapping import Edit, find_all, find_entries, unwrap, wrap

EXIT_NOTHING: Final = 1
BACKUP: Final = ".before-dragoman"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `wrap` and `unwrap`."""
    names = ", ".join(client.name for client in CLIENTS)
    parser.add_argument("client", metavar="CLIENT", help=f"whose configuration: {names}; or the path of a file")
    # Without a default, argparse of Python 3.11 says that it is required.
    parser.add_argument(
        "servers", metavar="SERVER", nargs="*", default=[], help="only these servers (default: all of them)"
    )
    parser.add_argument(
        "--project", metavar="DIR", type=Path, help="the client's file for this project, not the user's"
    )
    parser.add_argument("--yes", action="store_true", help="write the file without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    parser.set_defaults(take_out=False, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Show what changes in the client's file, and write it; 0 if it is so afterwards, 1 if nothing has to change."""
    path = _find(args)
    backup = path.with_name(path.name + BACKUP)
    text = _read(args, path)
    # What cannot be read of it, no entry comes from: those are taken out by what they say themselves.
    kept = backup.read_text("utf-8", "replace") if backup.is_file() else None
    try:
        edit, before = _change(args, text, kept)
    except NotJson as error:
        line, _ = place_of(text, error.offset)
        args.usage_error(f"{path}, line {line}: {error.problem}; {error.remedy}")
        raise
    for name, reason in edit.left.items():
        print(shown(f"{name}: stays as it is: {reason}"), file=sys.stderr)
    if not edit.done:
        print(f"{path}: nothing to change", file=sys.stderr)
        return EXIT_NOTHING
    _show(text, edit.text, path)
    if args.dry_run or not _agrees(args):
        print("nothing was written", file=sys.stderr)
        return EXIT_NOTHING
    _write(args, path, backup, edit, before)
    return 0


def _find(args: argparse.Namespace) -> Path:
    client = find_client(args.client)
    if client is None and os.sep not in args.client and not Path(args.client).is_file():
        names = [one.name for one in CLIENTS]
        args.usage_error(
            f"no file and no client {args.client!r}; clients are: {', '.join(names)}{suggest(args.client, names)}"
        )
    try:
        path = Path(args.client) if client is None else find_file(client, os.environ, args.project)
    except LookupError as error:
        args.usage_error(error.args[0])
    if client is not None and client.project and args.servers and args.project is None:
        path = _most_specific(path, find_file(client, os.environ, Path.cwd()), args.servers)
    path = Path(os.path.realpath(path))  # a link stays one
    if not is_there(path):
        elsewhere = (
            "" if client is None else f"; if {client.title} has its configuration elsewhere, write that path instead"
        )
        args.usage_error(f"there is no file {path} that can be read{elsewhere}")
    return path


def _most_specific(path: Path, beside: Path, servers: Sequence[str]) -> Path:
    """Choose the user's file, or that of the project in the current folder if these servers are taken from there."""
    try:
        own, shared = (find_entries(one.read_text("utf-8")) if is_there(one) else {} for one in (path, beside))
    except (OSError, UnicodeDecodeError, NotJson):  # what is wrong with the user's is said later
        return path
    if any(name not in shared or (name in own and own[name].folder) for name in servers):
        return path
    print(shown(f"{', '.join(servers)}: in this folder, that of {beside} counts"), file=sys.stderr)
    return beside


def _read(args: argparse.Namespace, path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        args.usage_error(f"{path} cannot be read: {error}")
        raise


def _change(args: argparse.Namespace, text: str, kept: str | None) -> tuple[Edit, str]:
    """What the text becomes, and the text without any proxy, which a backup is for."""
    entries = find_entries(text)
    unknown = sorted(set(args.servers) - entries.keys())
    if unknown:
        folders = [folder for folder, name in find_all(text) if name == unknown[0]]
        near = f"; it is for {folders[0]}: say this there" if folders else suggest(unknown[0], entries)
        args.usage_error(f"no server {unknown[0]!r} in the file; there are: {', '.join(entries)}{near}")
    names = set(args.servers) or None
    edit = unwrap(text, kept, names) if args.take_out else wrap(text, _program(), names or set(entries))
    return edit, unwrap(text, kept).text


def _program() -> list[str]:
    """The command that is `dragoman` for a program that does not know our `PATH`."""
    own = Path(sys.argv[0])
    found = str(own) if own.name == "dragoman" and own.is_file() else shutil.which("dragoman")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "dragoman"]


def _show(before: str, after: str, path: Path) -> None:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), "the same, changed", lineterm="", n=1
    )
    for line in lines:
        print(shown(line))


def _agrees(args: argparse.Namespace) -> bool:
    if args.yes:
        return True
    if not (sys.stdin and sys.stdin.isatty()):
        args.usage_error("nobody is at a terminal to agree: add --yes, or --dry-run to look only")
    try:
        return input("Write this? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _write(args: argparse.Namespace, path: Path, backup: Path, edit: Edit, before: str) -> None:
    """Write the backup first, then the file; without a proxy in the file there is no backup to keep."""
    if not args.take_out:
        _replace(backup, before, like=path)
    _replace(path, edit.text, like=path)
    names = ", ".join(edit.done)
    if args.take_out:
        if edit.text == before:
            backup.unlink(missing_ok=True)
        print(shown(f"{path}: the proxy is out again: {names}"))
    else:
        print(shown(f"{path}: the proxy is before {names}. Restart the client. As it was: {backup.name}"))


def _replace(path: Path, text: str, like: Path) -> None:
    """Write a file whole or not at all, readable for whom another one is."""
    mode = like.stat().st_mode & 0o777
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
