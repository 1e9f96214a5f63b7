"""Headers with values from the environment or from files, read anew for each request.

Lives here: `InjectHeaders`, which `dragoman.middlewares` has for its users, and a configuration file by the key
`headers` of ours. Must not: send (`heads`), or repeat a value: errors name variables and files alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.transports.live_values import fill_in, has_other_dollars
from dragoman.transports.upstream.config import check_header_name, check_header_value


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
            if has_other_dollars(template):
                raise ValueError(
                    f"expected $NAME, ${{NAME}}, ${{file:PATH}} or $$ after each dollar of the header {name}"
                )
        self.headers_to_server()

    def headers_to_server(self) -> dict[str, str]:
        """Return the headers as they are to be sent now.

        Raises:
            ValueError: A variable or file is missing, or holds what no header can.
        """
        return {name: self._fill_in(name, template) for name, template in self.headers.items()}

    def _fill_in(self, name: str, template: str) -> str:
        value = fill_in(template, self.environment, self.directory).strip()
        check_header_value(name, value)
        return value
