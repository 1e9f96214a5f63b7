"""`nox -s pull -- REVISION`: bring an official schema into `schema/`, in canonical form, pinned.

The order of work is the safety: name checked, bytes fetched, hash compared, schema parsed, both files staged beside
their targets, and only then two renames. Whatever fails before leaves `schema/` as it was.
`python -m codegen pull` calls `add_arguments` and `run`; tests call `pull`.
"""

import argparse
import datetime
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from codegen.errors import CodegenError, PinMismatch, UnknownRevision
from codegen.maintain.fetch import fetch_from, fetch_official, head_commit, upstream_path
from codegen.maintain.proofs import PROOFS, pull_proofs, read_proofs
from codegen.read.canonical import canonical_text, definition_names, documented_defaults, parse_schema
from codegen.read.pins import ERAS, PINS_NAME, SCHEMA_DIR, Era, Pin, read_pins, sha256_hex, write_pins

# Only an era that begins with a handshake has something to initialize.
HANDSHAKE_DEFINITION = "InitializeRequest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pull`."""
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument(
        "revision",
        metavar="REVISION",
        nargs="?",
        help="the revision's name, a date such as 2025-11-25; draft: pin that as it is now, and say what it asks",
    )
    wanted.add_argument(
        "--proofs",
        action="store_true",
        help=f"fetch what tests hold against ours into {PROOFS.name}/: upstream's own schemas, examples and drafts",
    )
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="DIR-or-URL",
        help="a mirror with [schema/]<revision>/schema.json (default: the official repository at the pinned commit)",
    )
    parser.add_argument(
        "--commit",
        type=commit_sha,
        metavar="SHA",
        help="the commit of the official repository (default: the pinned one, or its newest)",
    )
    parser.add_argument("--era", choices=ERAS, help="how a session opens (default: derived from the schema)")
    parser.add_argument(
        "--accept-new-hash", action="store_true", help="upstream changed on purpose: pin the new bytes and replace ours"
    )


def run(args: argparse.Namespace) -> int:
    """Pull as the command line says and print what was written.

    Raises:
        CodegenError: the reason why nothing was.
    """
    if args.revision == "draft":
        from codegen.maintain.draft import pull_draft  # it needs the whole generator

        print(pull_draft(args.origin, args.commit), end="")
        return 0
    if args.proofs:
        print(f"{PROOFS.name}/: {pull_proofs(args.origin)} files fetched, {len(read_proofs())} there")
        return 0
    pin = pull(
        args.revision,
        origin=args.origin,
        commit=args.commit,
        era=args.era,
        accept_new_hash=args.accept_new_hash,
    )
    print(f"schema/{pin.revision}/schema.json: {pin.era}, sha256 {pin.sha256}, pinned in schema/{PINS_NAME}")
    print("next: nox -s regen")
    return 0


def pull(
    revision: str,
    *,
    origin: str | None = None,
    commit: str | None = None,
    era: Era | None = None,
    accept_new_hash: bool = False,
    schema_dir: Path = SCHEMA_DIR,
    progress: TextIO = sys.stderr,
) -> Pin:
    """Fetch a revision's schema, write its canonical form and its pin, and return the pin.

    Args:
        revision: a revision's name, pinned already or new.
        origin: a directory or URL that mirrors the official layout; None for the official repository.
        commit: commit of the official repository; None for the pinned one, or its newest for a new revision.
        era: overrules the era that the pin or the schema says.
        accept_new_hash: pin other bytes than those pinned so far.
        schema_dir: the `schema` folder.
        progress: where the progress line of a download goes.

    Raises:
        UnknownRevision: not a revision's name, or the origin has none of that name.
        PullFailed: the bytes did not come, or not all of them.
        PinMismatch: they are not the pinned bytes.
        NotASchema: they are not the schema of an MCP revision.
    """
    check_name(revision)
    pins = read_pins(schema_dir / PINS_NAME)
    old = pins.get(revision)
    if origin is None:
        commit = commit or (old.commit if old and not accept_new_hash else "") or head_commit()
        source, data = fetch_official(revision, commit, progress)
    else:
        source, data = fetch_from(revision, origin, progress)
    check_hash(old, source, data, accept_new_hash)
    schema = parse_schema(data, source)
    text = canonical_text(schema)
    before = _fields_before(revision, pins, schema_dir)
    for definition, field, line in documented_defaults(schema):
        if (definition, field) not in before:
            print(f"pull: {definition}.{field} is new and says what its absence means: {line}", file=progress)
    pin = Pin(
        revision=revision,
        era=era or (old.era if old else derive_era(definition_names(schema))),
        upstream=upstream_path(revision),
        # A mirror does not say which commit it copies; bytes that did not change are still those of the pinned one.
        commit=commit or (old.commit if old and old.upstream_sha256 in ("", sha256_hex(data)) else ""),
        upstream_sha256=sha256_hex(data),
        sha256=sha256_hex(text.encode()),
    )
    install(schema_dir, {f"{revision}/schema.json": text, PINS_NAME: write_pins({**pins, revision: pin})})
    return pin


def _fields_before(revision: str, pins: Mapping[str, Pin], schema_dir: Path) -> set[tuple[str, str]]:
    """The fields of the revision before, which no step into this one drops."""
    older = max((name for name in pins if name < revision), default="")
    file = schema_dir / older / "schema.json"
    definitions = json.loads(file.read_text("utf-8"))["$defs"] if older and file.is_file() else {}
    return {(name, field) for name, node in definitions.items() for field in node.get("properties", {})}


def check_name(revision: str) -> None:
    """Refuse what cannot be a revision's name, before it becomes part of a path or an address.

    Raises:
        UnknownRevision: not a calendar date written YYYY-MM-DD.
    """
    remedy = "Revisions are named by date, e.g. 2025-11-25; drafts are not pinned."
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", revision):
        raise UnknownRevision(revision, "expected a date written YYYY-MM-DD", remedy)
    try:
        datetime.date.fromisoformat(revision)
    except ValueError as error:
        raise UnknownRevision(revision, str(error), remedy) from error


def check_hash(pin: Pin | None, source: str, data: bytes, accept_new_hash: bool) -> None:
    """Compare fetched bytes with a pin, if there is one with a hash.

    Raises:
        PinMismatch: they differ and a new hash is not accepted.
    """
    if pin is None or not pin.upstream_sha256 or accept_new_hash:
        return
    found = sha256_hex(data)
    if found != pin.upstream_sha256:
        raise PinMismatch(
            pin.revision,
            source,
            pin.upstream_sha256,
            found,
            "schema/ is unchanged. If upstream changed on purpose, add --accept-new-hash and read the difference that "
            "git shows; otherwise find out who altered the file.",
        )


def commit_sha(text: str) -> str:
    """Accept a full commit: a branch or an abbreviation would pin something that can move.

    Raises:
        argparse.ArgumentTypeError: not 40 hex digits.
    """
    if not re.fullmatch(r"[0-9a-f]{40}", text):
        raise argparse.ArgumentTypeError(f"expected the 40 hex digits of a commit, found {text!r}")
    return text


def derive_era(definitions: frozenset[str]) -> Era:
    """Tell the era from what a schema defines: a handshake needs a request that opens it."""
    return "handshake" if HANDSHAKE_DEFINITION in definitions else "per_request"


def install(directory: Path, files: Mapping[str, str]) -> None:
    """Replace files below a directory, each atomically, after all of them have been staged.

    Raises:
        CodegenError: a file could not be written; those not yet renamed are as they were.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=directory) as staging:
            staged = {name: Path(staging) / str(number) for number, name in enumerate(files)}
            for name, path in staged.items():
                path.write_text(files[name], encoding="utf-8", newline="\n")
            for name, path in staged.items():
                target = directory / name
                target.parent.mkdir(exist_ok=True)
                path.replace(target)
    except OSError as error:
        raise CodegenError(f"cannot write {directory}: {error}. Make it writable, then run the pull again.") from error
