"""What is written anew in the text that datamodel-code-generator gives, because it has no option for it.

Constants that are numbers or booleans among other arms, of which it would make any number; and names that a module
imports where a definition has the same. Called by `bindings`.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import tokenize

from codegen.read.plain import Schema

TYPES = "dragoman_spec._types"
MARK = "HiddenConstant"


def mark_constant(arm: Schema) -> Schema:
    """A number or boolean among the arms of a union: what the generator makes of it would take others too."""
    if "const" not in arm or isinstance(arm["const"], str):
        return arm
    return {"customTypePath": f"{TYPES}.{MARK}{json.dumps(arm['const']).encode().hex()}"}


def write_constants(text: str) -> str:
    """Write out what `mark_constant` has marked."""

    def spelled(match: re.Match[str]) -> str:
        value = json.loads(bytes.fromhex(match[1]))
        return f"Annotated[{'float' if isinstance(value, float) else f'Literal[{value!r}]'}, Constant({value!r})]"

    lines = [
        re.sub(f"{MARK}[0-9a-f]+", "Constant", line) if line.startswith("from ") else line
        for line in text.splitlines(keepends=True)
    ]
    return re.sub(f"{MARK}([0-9a-f]+)", spelled, "".join(lines))


def name_fully(text: str, name: str, module: str) -> str:
    """Call something imported by its full name, wherever it is used in a module."""
    lines = []
    for line in text.splitlines(keepends=True):
        if line.startswith(f"from {module} import "):
            names = [part for part in line.split(" import ")[1].strip().split(", ") if part != name]
            line = f"import {module}\n" + (f"from {module} import {', '.join(names)}\n" if names else "")
        lines.append(line)
    text = "".join(lines)
    starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]
    places, before = [], ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string == name and before != ".":
            places.append(starts[token.start[0] - 1] + token.start[1])
        before = token.string
    for place in reversed(places):
        text = f"{text[:place]}{module}.{text[place:]}"
    return text
