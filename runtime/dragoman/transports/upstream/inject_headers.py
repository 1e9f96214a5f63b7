"""Headers with values from the environment or from files, read anew for each request.

Lives here: `InjectHeaders`, which `dragoman.middlewares` has for its users, and a configuration file by the key
`headers` of ours. Must not: send (`heads`), or repeat a value: errors name variables and files alone.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dragoman.transports.upstream.config import check_header_name, check_header_value

LIMIT_BYTES: Final = 64 * 1024
"""The longest file that is read; no server takes a header as long."""

_FORM: Final = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?:env:)?(?P<braced>[A-Za-z_]\w*)\}|\{file:(?P<file>[^{}]+)\})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class InjectHeaders:
    """Sends headers with every request to a server at a URL, from `initialize` to the end of the session.

    `$NAME` and `${NAME}` in a value are variables of the environment, `${file:PATH}` is what is in a file, without the
    white space around it, `$$` a dollar. Variables and files are read for each request over HTTP, so the next request
    after a token has been replaced has the new one. A WebSocket has its headers from when it was opened.

    Attributes:
        headers: The value of each header.
        environment: Where variables are looked up; None for that of this process.
        directory: Where relative paths of files begin; empty for the current directory.

    Raises:
        ValueError: A header cannot be sent like this, or there is no such variable or file.
    """

    headers: Mapping[str, str] = field(hash=False, repr=False)
    environment: Mapping[str, str] | None = field(default=None, hash=False, repr=False)
    directory: str = ""

    def __post_init__(self) -> None:
        """Look everything up once, so that what is wrong is said before there is a request."""
        if not isinstance(self.headers, Mapping):
            raise ValueError('expected headers as {"NAME": "VALUE"}')
        for name, template in self.headers.items():
            if not isinstance(name, str) or not isinstance(template, str):
                raise ValueError(f"expected name and value of the header {name} to be strings")
            check_header_name(name)
            if "$" in _FORM.sub("", template):
                raise ValueError(
                    f"expected $NAME, ${{NAME}}, ${{file:PATH}} or $$ after each dollar of the header {name}"
                )
        self.headers_to_server()

    def headers_to_server(self) -> dict[str, str]:
        """Give the headers as they are to be sent now.

        Raises:
            ValueError: A variable or file is missing, or holds what no header can.
        """
        return {name: self._fill_in(name, template) for name, template in self.headers.items()}

    def _fill_in(self, name: str, template: str) -> str:
        value = _FORM.sub(self._look_up, template).strip()
        check_header_value(name, value)
        return value

    def _look_up(self, found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        if found["file"]:
            return _read_secret(os.path.join(self.directory, os.path.expanduser(found["file"])))
        name = found["plain"] or found["braced"]
        environment = os.environ if self.environment is None else self.environment
        value = environment.get(name, "")
        if not value:
            what = "is empty" if name in environment else "is not set"
            raise ValueError(f"the variable {name} {what}")
        return value


def _read_secret(path: str) -> str:
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
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
