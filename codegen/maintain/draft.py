"""`nox -s pull -- draft`: whether upstream's draft has changed, and what it would ask if it were the next release.

The state is added to those that `schema/proofs.toml` pins, and nothing else is written: drafts are not supported, and
nothing is generated from them. Called by `pull`; `.github/workflows/draft.yml` opens a change with what is printed.
"""

from __future__ import annotations

import datetime
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from codegen.compare.diff import diff_specs
from codegen.errors import CodegenError
from codegen.maintain.fetch import fetch_from, fetch_official, head_commit
from codegen.maintain.proofs import DRAFT, PROOFS_NAME, read_proofs
from codegen.maintain.pull import derive_era
from codegen.maintain.regen import render
from codegen.read.canonical import canonical_text, definition_names, parse_schema
from codegen.read.load import load_spec
from codegen.read.overlay import overlay_path
from codegen.read.pins import PINS_NAME, SCHEMA_DIR, Pin, read_pins, sha256_hex, write_pins

NAME = "draft"
_NEXT = "9999-12-31"


def pull_draft(
    origin: str | None = None,
    commit: str | None = None,
    *,
    root: Path = SCHEMA_DIR.parent,
    today: datetime.date | None = None,
    progress: TextIO = sys.stderr,
) -> str:
    """Pin the draft as it is now, and say what it would ask.

    Args:
        origin: A directory or URL that mirrors the official layout; None for the official repository.
        commit: Of the official repository; None for its newest.
        root: The repository.
        today: Is noted as the date of the state.
        progress: Where the progress line of a download goes.

    Returns:
        A text for people: Markdown.

    Raises:
        PullFailed: It did not come.
        NotASchema: It is not the schema of an MCP revision.
    """
    schema_dir = root / "schema"
    commit = commit or (head_commit() if origin is None else "")
    source, data = fetch_official(NAME, commit, progress) if origin is None else fetch_from(NAME, origin, progress)
    known = [proof.sha256 for proof in read_proofs(schema_dir) if proof.path == DRAFT]
    if sha256_hex(data) in known[-1:]:
        return "The draft is as it was.\n"
    text = canonical_text(parse_schema(data, source))
    said = _ask(root, text, commit)
    if commit:  # a mirror does not say which commit it copies, and only what can be fetched again is pinned
        date = (today or datetime.date.today()).isoformat()
        with (schema_dir / PROOFS_NAME).open("a", encoding="utf-8") as file:
            file.write(f'\n[[draft]]\ncommit = "{commit}"\ndate = "{date}"\nsha256 = "{sha256_hex(data)}"\n')
    return said


def _ask(root: Path, text: str, commit: str) -> str:
    """Take the draft for the next release, in a tree of its own; return what it asks, and what has changed."""
    pins = read_pins(root / "schema" / PINS_NAME)
    latest = max(pins)
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory)
        shutil.copytree(root / "schema", made / "schema")
        shutil.copytree(root / Path(overlay_path(latest)).parent, made / Path(overlay_path(latest)).parent)
        (made / "schema" / _NEXT).mkdir()
        (made / "schema" / _NEXT / "schema.json").write_text(text, encoding="utf-8")
        pin = Pin(
            _NEXT,
            derive_era(definition_names(parse_schema(text.encode(), NAME))),
            DRAFT,
            commit,
            "",
            sha256_hex(text.encode()),
        )
        (made / "schema" / PINS_NAME).write_text(write_pins({**pins, _NEXT: pin}), encoding="utf-8")
        try:
            render(made)
            asked = "The generator has no questions."
        except CodegenError as error:
            asked = str(error).partition("\nRule on each")[0].replace(_NEXT, "the draft")
        changes = [
            f"{one.definition}{one.pointer}: {one.change}: {one.detail}"
            for one in diff_specs(load_spec(made, latest), load_spec(made, _NEXT))
        ]
    return "\n".join(
        [
            "The draft has changed. Taken for the next release, it would ask:",
            *("", "```text", asked, "```", ""),
            f"What has changed since {latest}, {len(changes)} places:",
            *("", "```text", *changes, "```", ""),
            "Next: `nox -s pull -- --proofs`, and `python -m tests.docs.drafts` for the page of the drafts.",
            "",
        ]
    )
