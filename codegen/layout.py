"""The one way to read templates: strict about names, and with block tags that leave no lines behind.

Called by whatever renders: `steps`, `nulls`, `docs`.
"""

from __future__ import annotations

from pathlib import Path

import jinja2


def environment(templates: Path) -> jinja2.Environment:
    """An environment over a folder of templates; the filter `py` spells a value as Python."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["py"] = repr
    return made
