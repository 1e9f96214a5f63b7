"""`schema/pins.toml`: which upstream bytes each committed schema came from.

Lives here: reading, checking and writing the pins. Not here: fetching (`pull`) and what a schema means (`load`).
`pull` writes pins; `pull`, `load` and `regen` read them.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, cast, get_args

from codegen.errors import CodegenError, PinMismatch

Era = Literal["handshake", "per_request"]
ERAS: tuple[Era, ...] = get_args(Era)

SCHEMA_DIR = Path(__file__).resolve().parents[2] / "schema"
PINS_NAME = "pins.toml"

HEADER = """\
# Where each schema/<revision>/schema.json came from. Written by `nox -s pull -- REVISION`; do not edit by hand.
# upstream: path in the official specification repository at `commit`; upstream_sha256: of those bytes; sha256: of ours.
"""


@dataclass(frozen=True, slots=True)
class Pin:
    """One row: a revision and the origin of its schema. Hashes are lower-case hex sha256, empty where not known yet."""

    revision: str
    era: Era
    upstream: str
    commit: str
    upstream_sha256: str
    sha256: str


def sha256_hex(data: bytes) -> str:
    """Return the lower-case hex sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def read_pins(path: Path = SCHEMA_DIR / PINS_NAME) -> dict[str, Pin]:
    """Read the pins, oldest revision first.

    Args:
        path: the `pins.toml`; an absent file is an empty table, so that a first pull can start from nothing.

    Raises:
        CodegenError: the file is not TOML, or a row lacks a key or has an unknown one.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise CodegenError(f"{path} is not TOML: {error}. Restore it from git, then run the command again.") from error
    return {revision: _pin(path, revision, table[revision]) for revision in sorted(table)}


def write_pins(pins: Mapping[str, Pin]) -> str:
    """Return the text of a `pins.toml` with these rows, oldest revision first; the same rows give the same text."""
    return "\n".join([HEADER, *(_row(pins[revision]) for revision in sorted(pins))])


def check_pins(schema_dir: Path = SCHEMA_DIR) -> dict[str, Pin]:
    """Return the pins after checking that every committed schema still has its pinned sha256.

    Raises:
        PinMismatch: a schema file is absent or was changed by hand.
    """
    pins = read_pins(schema_dir / PINS_NAME)
    for pin in pins.values():
        path = schema_dir / pin.revision / "schema.json"
        found = sha256_hex(path.read_bytes()) if path.is_file() else "no file"
        if found != pin.sha256:
            raise PinMismatch(
                pin.revision,
                f"schema/{pin.revision}/schema.json",
                pin.sha256,
                found,
                f"It is never edited by hand: restore it from git or run `nox -s pull -- {pin.revision}`.",
            )
    return pins


def predecessors(pins: Mapping[str, Pin]) -> dict[str, str]:
    """Return the revision from which the step into each leads: the newest before it of its own era, or of any.

    So revisions of one era are neighbours, whatever came between them, and one step joins the eras.
    """
    found = dict[str, str]()
    for revision, pin in sorted(pins.items()):
        past = [one for one in sorted(pins) if one < revision]
        same = [one for one in past if pins[one].era == pin.era]
        found |= {revision: (same or past)[-1]} if past else {}
    return found


def ancestors(revision: str, before: Mapping[str, str]) -> list[str]:
    """Return the revisions from which steps lead to one, the nearest first; `before` as `predecessors` gives it."""
    found = list[str]()
    while (revision := before.get(revision, "")) and revision not in found:
        found.append(revision)
    return found


def _pin(path: Path, revision: str, row: object) -> Pin:
    names = [field.name for field in fields(Pin) if field.name != "revision"]
    if not isinstance(row, dict) or sorted(row) != sorted(names) or row["era"] not in ERAS:
        raise CodegenError(
            f'{path} ["{revision}"]: expected the keys {", ".join(names)} with an era of {" or ".join(ERAS)}, '
            f"found {row!r}. Remove the row and run `nox -s pull -- {revision}`."
        )
    return Pin(revision=revision, **cast("dict[str, str]", row))  # type: ignore[arg-type]  # era is checked above


def _row(pin: Pin) -> str:
    lines = [f'{field.name} = "{getattr(pin, field.name)}"' for field in fields(pin) if field.name != "revision"]
    return "\n".join([f'["{pin.revision}"]', *lines, ""])
