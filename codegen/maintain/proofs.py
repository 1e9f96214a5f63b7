"""`nox -s pull -- --proofs`: upstream's own files that tests hold against ours, into a folder that is not committed.

The schemas as they were published, the examples, and the states of the draft, each by the commit and the hash that
`schema/pins.toml` and `schema/proofs.toml` pin. A file that is there with its hash is not fetched again, and nothing
with another hash is written. Called by `pull`; the tests find the folder by `tests/support/judge.py`.
"""

from __future__ import annotations

import io
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from codegen.errors import PinMismatch, PullFailed
from codegen.maintain.fetch import ELSEWHERE, RAW_URL, download
from codegen.read.pins import PINS_NAME, SCHEMA_DIR, read_pins, sha256_hex

PROOFS = SCHEMA_DIR.parent / ".proofs"
PROOFS_NAME = "proofs.toml"
DRAFT = "schema/draft/schema.json"
SHORT = 8
"""How much of a commit names a state of the draft."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One file: its place in the folder, its path at upstream at a commit, and the hash of its bytes.

    `date` is that of a state of the draft.
    """

    place: str
    commit: str
    path: str
    sha256: str
    date: str = ""


def read_proofs(schema_dir: Path = SCHEMA_DIR) -> list[Proof]:
    """Every file that is pinned: the schemas, the examples, and the drafts, oldest first."""
    pins = read_pins(schema_dir / PINS_NAME).values()
    schemas = [Proof(f"{pin.revision}/schema.json", pin.commit, pin.upstream, pin.upstream_sha256) for pin in pins]
    file = schema_dir / PROOFS_NAME
    said = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    examples: Mapping[str, str] = said.get("examples", {}).get("files", {})
    commit = str(said.get("examples", {}).get("commit"))
    drafts = [
        Proof(f"drafts/{row['commit'][:SHORT]}.json", row["commit"], DRAFT, row["sha256"], row["date"])
        for row in said.get("draft", [])
    ]
    return [*schemas, *(Proof(place, commit, f"schema/{place}", sha) for place, sha in examples.items()), *drafts]


def pull_proofs(
    origin: str | None = None, *, schema_dir: Path = SCHEMA_DIR, folder: Path = PROOFS, progress: TextIO = sys.stderr
) -> int:
    """Fetch what the folder lacks.

    Args:
        origin: A directory or URL that has the files by their places; None for the official repository.
        schema_dir: The `schema` folder, with the pins.
        folder: Where the files go.
        progress: Where it is said how many there are.

    Returns:
        How many files were fetched.

    Raises:
        PullFailed: One did not come.
        PinMismatch: Other bytes came than those that are pinned.
    """
    lacking = [proof for proof in read_proofs(schema_dir) if not _is_there(folder / proof.place, proof.sha256)]
    for number, proof in enumerate(lacking, 1):
        source, data = _fetch(proof, origin)
        if sha256_hex(data) != proof.sha256:
            remedy = f"Nothing is written to {proof.place}. Find out who altered the file."
            raise PinMismatch(proof.place, source, proof.sha256, sha256_hex(data), remedy)
        target = folder / proof.place
        target.parent.mkdir(parents=True, exist_ok=True)
        staged = target.with_name(f".{target.name}.new")
        staged.write_bytes(data)
        staged.replace(target)
        if number % 50 == 0:
            print(f"pull: {number} of {len(lacking)} files", file=progress)
    return len(lacking)


def _is_there(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_hex(path.read_bytes()) == sha256


def _fetch(proof: Proof, origin: str | None) -> tuple[str, bytes]:
    """The address and the bytes of a file."""
    address = f"{RAW_URL}/{proof.commit}/{proof.path}" if origin is None else f"{origin.rstrip('/')}/{proof.place}"
    try:
        data = download(address, io.StringIO()) if "://" in address else Path(address).read_bytes()
    except OSError as error:
        raise PullFailed(address, str(error.strerror), ELSEWHERE) from error
    if data is None:
        raise PullFailed(address, "there is no such file", ELSEWHERE)
    return address, data
