"""What changed from revision to revision, as `changes.py` of each: what `dragoman diff` prints.

Must not live here: what counts as a change (`compare.diff`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pprint import pformat

from codegen.compare.diff import diff_specs, find_senders
from codegen.names import module_name
from codegen.read.model import Spec
from codegen.write.registry import NOTICE


def render_changes(pairs: Sequence[tuple[Spec, Spec]], digests: Mapping[str, str]) -> dict[str, str]:
    """Render `changes.py` of every revision but the first, unformatted, by path below `generated/`."""
    output = {}
    for older, newer in pairs:
        senders = [find_senders(spec) for spec in (older, newer)]
        rows = tuple(
            {
                **asdict(change),
                "senders": " ".join(sorted(set().union(*(found.get(change.definition, ()) for found in senders)))),
            }
            for change in diff_specs(older, newer)
        )
        title = f"What changed from {older.revision} to {newer.revision}, as `dragoman diff` prints it."
        lines = [
            f"# {NOTICE}",
            *(f"# Source: schema/{r}/schema.json, sha256 {digests[r]}" for r in (older.revision, newer.revision)),
            f'"""{title} Imports no pydantic."""\n',
            "from __future__ import annotations\n",
            "from collections.abc import Mapping\n",
            f"CHANGES: tuple[Mapping[str, str], ...] = {pformat(rows, width=110, sort_dicts=False)}",
        ]
        output[f"dragoman_spec/{module_name(newer.revision)}/changes.py"] = "\n".join(lines) + "\n"
    return output
