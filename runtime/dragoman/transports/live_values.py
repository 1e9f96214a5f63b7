"""Values with variables and files in them, which may be others each time they are read.

Lives here: `$NAME`, `${NAME}` and `${file:PATH}`. Must not: know what a value is for, or repeat one: errors name
variables and files alone. Used by `dragoman.middlewares` and `upstream.inject_headers`; what is read once, such as
`--header`, has no files (`surroundings.expand`).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from typing import Final

from dragoman import system

LIMIT_BYTES: Final = 64 * 1024
"""The longest file that is read; tokens are short."""

_FORM: Final = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?:env:)?(?P<braced>[A-Za-z_]\w*)\}|\{file:(?P<file>[^{}]+)\})",
    re.ASCII,
)


def has_other_dollars(template: str) -> bool:
    """Whether a template has a dollar that is none of the forms, and would stay as it is."""
    return "$" in _FORM.sub("", template)


def fill_in(template: str, environment: Mapping[str, str] | None, directory: str = "") -> str:
    """Return a template with what its variables and files hold now; `$$` is a dollar.

    Args:
        template: With `$NAME`, `${NAME}`, `${env:NAME}` for variables, `${file:PATH}` for what is in a file, without
            the white space around it.
        environment: Where variables are looked up; None for that of this process.
        directory: Where relative paths begin; empty for the current directory.

    Raises:
        ValueError: A variable or file is missing, or empty.
    """
    variables = os.environ if environment is None else environment

    def look_up(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        if found["file"]:
            return _read_file(os.path.join(directory, os.path.expanduser(found["file"])))
        name = found["plain"] or found["braced"]
        if name not in variables:
            raise ValueError(f"the environment has no variable {name}")
        if not variables[name]:
            raise ValueError(f"the variable {name} is empty")
        return variables[name]

    return _FORM.sub(look_up, template)


def _read_file(path: str) -> str:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path} is not a file")
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if len(data) > LIMIT_BYTES:
        raise ValueError(f"the file {path} is longer than {LIMIT_BYTES} bytes")
    text = data.decode(errors="surrogateescape").strip()
    if not text:
        raise ValueError(f"the file {path} is empty")
    return text


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for whoever may write into it, if it is a pipe."""
    return os.open(path, flags | system.AT_ONCE)
