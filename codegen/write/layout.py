"""The one way to read templates: strict about names, and with block tags that leave no lines behind.

How values are spelled in Python is here, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from codegen.names import module_name
from codegen.read.facts import Json, Made


def environment(templates: Path) -> jinja2.Environment:
    """An environment over a folder of templates; the filters `py` and `literal` spell a value as Python."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"py": repr, "literal": _literal, "module_name": module_name}
    return made


def _literal(value: Any) -> str:
    """Spell a value of the table of facts in Python; the order of what has none is that of its texts."""
    match value:
        case Made():
            return f"{value.type}({', '.join(f'{name}={_literal(one)}' for name, one in value.fields.items())})"
        case Json():
            return repr(value.value)
        case frozenset():
            return f"frozenset({{{', '.join(map(_literal, sorted(value)))}}})" if value else "frozenset()"
        case Mapping():
            return (
                f"MappingProxyType({{{', '.join(f'{_literal(key)}: {_literal(one)}' for key, one in value.items())}}})"
            )
        case tuple():
            return f"({''.join(f'{_literal(one)}, ' for one in value)})"
        case str():
            return json.dumps(value)
        case _:
            return repr(value)
