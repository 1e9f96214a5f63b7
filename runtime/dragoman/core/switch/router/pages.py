"""What a server answers to a request for a list, and the merged list that is made of such answers.

Lives here: reading pages, renaming what is in them, and cutting the whole into pages again. Must not: ask anybody
(`lists`). A list is often asked for again and seldom changes: bytes that came before are not read again, nor written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dragoman.core.envelope import Frame
from dragoman.core.exact_json import decode, encode
from dragoman.core.peek import with_id
from dragoman.core.switch.router.names import NameKind
from dragoman.core.switch.router.uris import Show, may_name_pages, show_pages


class ListKind(NamedTuple):
    """A list that servers have.

    Attributes:
        method: Asks for it.
        member: Of the result, with the entries.
        key: Of an entry, with its name.
        capability: That a server declares who has it.
        names: What its names are; None where they are nobody's but the server's.
        changed: Announces that it has changed.
    """

    method: str
    member: str
    key: str
    capability: str
    names: NameKind | None
    changed: str | None


LISTS: Final[Mapping[str, ListKind]] = {
    kind.method: kind
    for kind in (
        ListKind("tools/list", "tools", "name", "tools", NameKind.TOOL, "notifications/tools/list_changed"),
        ListKind("prompts/list", "prompts", "name", "prompts", NameKind.PROMPT, "notifications/prompts/list_changed"),
        ListKind(
            "resources/list",
            "resources",
            "uri",
            "resources",
            NameKind.RESOURCE,
            "notifications/resources/list_changed",
        ),
        ListKind(
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            "resources",
            NameKind.TEMPLATE,
            "notifications/resources/list_changed",
        ),
        ListKind("tasks/list", "tasks", "taskId", "tasks", None, None),
    )
}
"""By method."""

_SAME_ID: Final = b"0"


@dataclass(slots=True, eq=False)
class Page:
    """One page of one server.

    Attributes:
        raw: The answer, under an id that means nothing.
        entries: What is on it.
        names: Of the entries.
        rest: What else the result has.
    """

    raw: bytes
    entries: list[dict[str, Any]]
    names: list[str]
    rest: dict[str, Any]
    _shown: Mapping[str, str] = field(default_factory=dict)
    _joined: bytes | None = None
    _parts: list[bytes] | None = None

    def write(self, kind: ListKind, shown: Mapping[str, str]) -> bytes:
        """Return the entries as JSON, with commas between, under the names that clients know."""
        self._forget_unless(shown)
        if self._joined is None:
            self._joined = encode(self._rename(kind, shown))[1:-1]
        return self._joined

    def write_each(self, kind: ListKind, shown: Mapping[str, str]) -> list[bytes]:
        """Return each entry as JSON."""
        self._forget_unless(shown)
        if self._parts is None:
            self._parts = [encode(entry) for entry in self._rename(kind, shown)]
        return self._parts

    def _forget_unless(self, shown: Mapping[str, str]) -> None:
        if shown is not self._shown:
            if shown or self._shown:
                self._joined = self._parts = None
            self._shown = shown

    def _rename(self, kind: ListKind, shown: Mapping[str, str]) -> list[dict[str, Any]]:
        if not shown:
            return self.entries
        return [
            {**entry, kind.key: shown[name]} if name in shown else entry
            for entry, name in zip(self.entries, self.names, strict=True)
        ]


def read_page(frame: Frame, kind: ListKind, before: Page | None, show: Show) -> Page:
    """Read an answer.

    Args:
        frame: A result.
        kind: What was asked for.
        before: What the same server answered last time.
        show: Gives what clients know a URI of this server as.

    Raises:
        ValueError: It cannot be read.
    """
    raw = with_id(frame, _SAME_ID)
    if before is not None and before.raw == raw:
        return before
    result = (decode(frame.raw) if frame.body is None else frame.body)["result"]
    listed = result.get(kind.member) if isinstance(result, dict) else None
    if not isinstance(listed, list):
        raise ValueError(f"expected {kind.member} to be an array")
    entries = [entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get(kind.key), str)]
    names = [entry[kind.key] for entry in entries]
    if may_name_pages(raw):
        entries = [show_pages(entry, show) for entry in entries]
    return Page(raw, entries, names, {name: value for name, value in result.items() if name != kind.member})


def keep(page: Page, kept: Iterable[bool]) -> Page:
    """Return a page with some of its entries alone."""
    chosen = [(entry, name) for entry, name, is_kept in zip(page.entries, page.names, kept, strict=True) if is_kept]
    return Page(page.raw, [entry for entry, _ in chosen], [name for _, name in chosen], page.rest)


class Piece(NamedTuple):
    """A page of one server in a merged list."""

    page: Page
    shown: Mapping[str, str]


def write_slice(kind: ListKind, pieces: Sequence[Piece], start: int, count: int) -> tuple[list[bytes], int | None]:
    """Write a part of a merged list.

    Returns:
        The entries as JSON, to be joined: there are commas between them; and where the next part begins, None where
        this is the last.
    """
    written: list[bytes] = []
    at, end = 0, start + count
    for page, shown in pieces:
        size = len(page.entries)
        first, last = max(start - at, 0), min(end - at, size)
        if first == 0 and last == size and size:
            written += (b",", page.write(kind, shown))
        elif first < last:
            written += (b",", b",".join(page.write_each(kind, shown)[first:last]))
        at += size
    return written[1:], end if at > end else None
