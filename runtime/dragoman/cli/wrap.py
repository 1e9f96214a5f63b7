"""`dragoman wrap CLIENT [SERVER …]`: put the proxy before the servers of a desktop client; `unwrap` takes it out.

Lives here: the file on the disk, its backup, and what a person sees and is asked. What changes in the text is decided
by `dragoman.config.wrapping`, and which file belongs to which client is in `dragoman.config.clients`.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman import system
from dragoman.cli.parsing import suggest
from dragoman.cli.screen import shown
from dragoman.config.clients import CLIENTS, find_client, find_file, is_there
from dragoman.config.document import NotJson, place_of
from dragoman.config.formats import notation_of, parse_text
from dragoman.config.wrapping import Edit, find_all, find_entries, show_wrapped, unwrap, wrap

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


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to become of the file, made from what is in it at a moment.

    Attributes:
        data: The file, as it was read.
        edit: What becomes of its text.
        before: The text without any proxy, which a copy is kept of.
    """

    data: bytes
    edit: Edit
    before: str

    def show(self, path: Path) -> None:
        """Show what changes."""
        before, after = (text.splitlines() for text in (self.data.decode(), self.edit.text))
        lines = difflib.unified_diff(before, after, str(path), "the same, changed", lineterm="", n=1)
        print(shown("\n".join(lines)))

    def changes(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Return what each entry that changes is, and what becomes of it."""
        before, after = (find_all(text) for text in (self.data.decode(), self.edit.text))
        pairs = {key: (entry.text, after[key].text) for key, entry in before.items()}
        return {key: (was, becomes) for key, (was, becomes) in pairs.items() if was != becomes}


def run(args: argparse.Namespace) -> int:
    """Show what changes in the client's file, and write it; 0 if it is so afterwards, 1 if nothing has to change.

    The client may write its file while a person thinks. So it is read again under a lock, and what is in it then is
    changed; where that is another change than the one that was agreed to, it is shown, and asked for, again.
    """
    path = _find(args)
    backup = path.with_name(path.name + BACKUP)
    agreed: dict[tuple[str, str], tuple[str, str]] = {}
    try:
        while True:
            with _locked(path) if agreed else contextlib.nullcontext():
                plan = _plan(args, path, backup)
                changes = plan.changes()
                for name, reason in () if agreed else plan.edit.left.items():
                    print(shown(f"{name}: stays as it is: {reason}"), file=sys.stderr)
                if not plan.edit.done:
                    print(f"{path}: nothing to change", file=sys.stderr)
                    return EXIT_NOTHING
                if changes == agreed:
                    if _write(args, path, backup, plan):
                        return 0
                    continue
            if agreed:
                print(f"{path}: somebody else has changed these servers meanwhile", file=sys.stderr)
            plan.show(path)
            if args.dry_run or not _agrees(args, path):
                print("nothing was written", file=sys.stderr)
                return EXIT_NOTHING
            agreed = changes
    except OSError as error:
        args.usage_error(f"{path} cannot be written, and stays as it is: {system.explain(error)}")
        raise


def _plan(args: argparse.Namespace, path: Path, backup: Path) -> _Plan:
    data, text = _read(args, path)
    # What cannot be read of it, no entry comes from: those are taken out by what they say themselves.
    kept = backup.read_bytes().decode("utf-8", "replace") if backup.is_file() else None
    try:
        edit, before = _change(args, text, kept)
    except NotJson as error:
        line, _ = place_of(text, error.offset)
        args.usage_error(f"{path}, line {line}: {error.problem}; {error.remedy}")
        raise
    return _Plan(data, edit, before)


def _find(args: argparse.Namespace) -> Path:
    client = find_client(args.client)
    if client is None and not os.path.dirname(args.client) and not Path(args.client).is_file():
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


def _read(args: argparse.Namespace, path: Path) -> tuple[bytes, str]:
    """Return what is in the file, also as text, with the ends of its lines as they are."""
    try:
        data = system.when_free(path.read_bytes)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = system.explain(error) if isinstance(error, OSError) else error
        args.usage_error(f"{path} cannot be read: {reason}")
        raise
    notation = notation_of(text, path.name)
    if notation != "JSON":
        what = "take the proxy out" if args.take_out else "put the proxy before servers"
        example = ""
        with contextlib.suppress(NotJson):
            example = "" if args.take_out else show_wrapped(parse_text(text, path.name), _program())
        args.usage_error(f"{path} is {notation}, and only JSON is changed here: {what} there yourself{example}")
    return data, text


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
    found = str(own) if own.stem == "dragoman" and own.is_file() else shutil.which("dragoman")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "dragoman"]


def _agrees(args: argparse.Namespace, path: Path) -> bool:
    if not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):  # root may write it, and is not meant to either
        args.usage_error(f"{path} is read-only, and stays as it is; if you want it changed: chmod u+w")
    if args.yes:
        return True
    if not (sys.stdin and sys.stdin.isatty()):
        args.usage_error("nobody is at a terminal to agree: add --yes, or --dry-run to look only")
    try:
        return input("Write this? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep others who do this out, as long as it lasts; who had to wait may find another file there, and locks that."""
    while True:
        # Windows replaces no file that is open: what is locked there lies beside it, and goes when it is closed.
        beside, goes = path.with_name(f".{path.name}.lock"), getattr(os, "O_TEMPORARY", 0)
        lock = os.open(beside, os.O_RDWR | os.O_CREAT | goes) if goes else os.open(path, os.O_RDONLY)
        try:
            system.lock(lock)
            if goes or os.path.samestat(os.fstat(lock), path.stat()):
                yield
                return
        finally:
            os.close(lock)


def _write(args: argparse.Namespace, path: Path, backup: Path, plan: _Plan) -> bool:
    """Write the backup first, then the file; without a proxy in the file there is no backup to keep.

    Returns:
        Whether the file was still the one that was read, and is the new one now.
    """
    edit, before = plan.edit, plan.before
    is_new, is_written = not args.take_out and not backup.exists(), False
    if not args.take_out:
        _replace(backup, before, like=path)
    try:
        is_written = _replace(path, edit.text, like=path, data=plan.data)
    finally:
        if is_new and not is_written:  # a backup of what never changed
            backup.unlink(missing_ok=True)
    if not is_written:
        return False
    names = ", ".join(edit.done)
    if args.take_out:
        if edit.text == before:
            backup.unlink(missing_ok=True)
        print(shown(f"{path}: the proxy is out again: {names}"))
    else:
        print(shown(f"{path}: the proxy is before {names}. Restart the client. As it was: {backup.name}"))
    return True


def _replace(path: Path, text: str, like: Path, data: bytes | None = None) -> bool:
    """Write a file whole or not at all, with the mode and the owner of another one; not if it is not *data* any more.

    Raises:
        OSError: It cannot be.
    """
    kept = like.stat()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            if sys.platform != "win32":  # where it has the rights of its folder
                made = os.fstat(file.fileno())
                if (made.st_uid, made.st_gid) != (kept.st_uid, kept.st_gid):
                    os.fchown(file.fileno(), kept.st_uid, kept.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(kept.st_mode))
            os.fsync(file.fileno())
        is_same = data is None or path.read_bytes() == data
        if is_same:
            system.when_free(lambda: os.replace(name, path))
        return is_same
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
