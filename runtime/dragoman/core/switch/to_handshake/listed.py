"""What is known of the tools of a server with a handshake: from its own lists, asked for where a call needs to know.

Lives here: what the lists said, in the server's revision, and listing. Must not: decide what follows from it. Called by
`open_session`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.envelope import Frame, decoded
from dragoman.core.methods import LIST_TOOLS
from dragoman.core.paging import Listing, Remind, TakePage
from dragoman.core.switch.to_handshake.works import Works
from dragoman.core.unchecked import find, find_list, find_object

_MOST_TOOLS: Final = 10_000


class ListedTools:
    """The tools that one server has listed.

    Args:
        works: The way to ask it.
        remind: Reads the clock.
    """

    __slots__ = ("_listing", "_tools", "_works")

    def __init__(self, works: Works, remind: Remind) -> None:
        self._works = works
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._listing = Listing(remind)

    def find(self, name: object) -> Mapping[str, Any] | None:
        """Give a tool as the server listed it; None where it did not."""
        return self._tools.get(name) if isinstance(name, str) else None

    def is_known(self, name: object) -> bool:
        """Whether everything is known of a tool that the server has said."""
        return self._listing.is_done or self.find(name) is not None

    def note(self, answer: Frame) -> Mapping[str, Any]:
        """Take note of a page that the server has sent, whoever asked for it; give it."""
        try:
            result = find_object(decoded(answer).body, "result")
        except ValueError:  # whoever it is given to will say so
            return {}
        known = self._tools
        for tool in find_list(result, "tools"):
            name = find(tool, "name")
            if isinstance(name, str) and len(known) < _MOST_TOOLS:
                known[name] = tool
        return result

    def read(self, answer: Frame) -> Frame:
        """Take note of a page that a client has asked for; give it decoded, where it can be."""
        with contextlib.suppress(ValueError):  # whoever it is given to will say so
            answer = decoded(answer)
            self.note(answer)
        return answer

    def forget(self) -> None:
        """Take note that the tools have changed."""
        self._tools.clear()
        self._listing.is_done = False

    def list(self, then: Callable[[], None]) -> None:
        """List the tools, and go on; where they cannot be listed, go on as well."""

        def ask(params: dict[str, Any], take: TakePage) -> None:
            self._works.ask(LIST_TOOLS, params, lambda answer: take(self.note(answer), len(answer.raw)))

        self._listing.read(ask, then)
