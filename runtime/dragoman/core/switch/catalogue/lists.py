"""Merged lists: asking every server, waiting for all of them but not for ever, and answering page by page.

Lives here: what is under way. Must not: know the time (it is reminded), or read pages (`pages`). Called by `catalogue`.

Theory of operation. A list is asked for anew each time that a client begins to read it: of each server all pages, one
after the other. A server that does not answer in time is left out, said to be missing, and asked no second time while
it owes the answer, nor for another page; what it had last is used until then. When it answers after all, the client is
told that the list has changed. Pages of the merged list are cut from what was read when the first was asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.envelope import Frame, error_frame
from dragoman.core.exact_json import encode
from dragoman.core.paging import Paging
from dragoman.core.switch.catalogue.common import Common
from dragoman.core.switch.catalogue.member import Member, MemberState
from dragoman.core.switch.catalogue.names import NameKind
from dragoman.core.switch.catalogue.own import Changes, OwnRequests, read_error
from dragoman.core.switch.catalogue.pages import LISTS, ListKind, Page, Piece, keep, read_page, write_slice

logger = logging.getLogger("dragoman.router")

MISSING: Final = "dragoman/missing"
"""The member of `_meta` in a merged list that names the servers which are not in it, and why."""


_MOST_BARREN_PAGES: Final = 20
_SNAPSHOTS: Final = 8
_OWES: Final = "it owes an earlier answer"
_GRACE_S: Final = 0.25
"""How long a list waits for a server that another list, or the opening, has waited for in vain."""

_CURSOR: Final = "dragoman"

NoteTasks = Callable[[Member, Iterable[str]], None]


class MemberListing:
    """All pages of one list of one server.

    Attributes:
        member: The server.
        is_late: Whether a merged list has been answered without it.
    """

    def __init__(self, lists: Lists, member: Member, kind: ListKind, meta: Mapping[str, Any] | None) -> None:
        self.member = member
        self.meta = meta
        self.is_late = False
        self.pages: list[Page] = []
        self.failure: str | None = None
        self.waiting: list[Gathering] = []
        self._lists = lists
        self._kind = kind
        self._paging = Paging()
        self._names: set[str] = set()
        self._barren = 0
        self._before: list[Page] = member.listed.get(kind.method, [])

    def ask_page(self, cursor: str | None = None) -> None:
        """Ask for the first page, or the one that a cursor names."""
        params = {} if cursor is None else {"cursor": cursor}
        self._lists.own.send(self.member, self._kind.method, params, self._take, self.meta)

    def _take(self, frame: Frame) -> None:
        self.member.is_late = False
        if frame.kind == "error":
            error = read_error(frame)
            is_empty = error.get("code") == METHOD_NOT_FOUND
            self._end(None if is_empty else f"it answered: {str(error.get('message'))[:200]}")
            return
        number = len(self.pages)
        try:
            show = partial(self._lists.common.names.show_uri, self.member.name)
            page = read_page(frame, self._kind, self._before[number] if number < len(self._before) else None, show)
        except ValueError as error:
            self._end(f"its answer cannot be read: {error}")
            return
        self._barren = 0 if page.names else self._barren + 1  # a server may look for more and find nothing
        is_old = self._names.issuperset(page.names) if page.names else self._barren > _MOST_BARREN_PAGES
        if number and is_old:
            self._end(None, "a page has nothing that was not on one before")
            return
        self.pages.append(page)
        self._names.update(page.names)
        cursor = self._paging.follow(page.rest, len(page.raw))
        if cursor is None:
            self._end(None, self._paging.cut)
        elif self.is_late:  # nobody waits any more; what it had last is better than a part
            cut = "not all of its pages came within its listTimeout"
            self._end(cut if self._before else None, cut)
        else:
            self.ask_page(cursor)

    def _end(self, failure: str | None, cut: str = "") -> None:
        if cut:
            self._lists.say_cut(self.member, self._kind, cut)
        self.failure = failure
        self._lists.finish(self, self._kind)


class Gathering:
    """A merged list that is being put together.

    Args:
        kind: What is listed.
        then: Called once all is there, or late.
    """

    def __init__(self, kind: ListKind, then: Callable[[Gathering], None]) -> None:
        self.kind = kind
        self.then: Callable[[Gathering], None] | None = then
        self.pending: set[MemberListing] = set()
        self.missing: dict[str, str] = {}

    def finish(self) -> None:
        """Go on, once."""
        then, self.then = self.then, None
        if then is not None:
            then(self)


class _Snapshot:
    def __init__(self, kind: ListKind, pieces: list[Piece], rest: dict[str, Any]) -> None:
        self.kind = kind
        self.pieces = pieces
        self.rest = rest


class Lists:
    """The merged lists of one client's session.

    Args:
        common: What all parts know.
        own: Asks servers.
        changes: Tells the client that a list has changed.
        note_tasks: Told whose the tasks are that a list names.
        page_size: How many entries a page has.
    """

    def __init__(
        self, common: Common, own: OwnRequests, changes: Changes, note_tasks: NoteTasks, page_size: int
    ) -> None:
        self.common = common
        self.own = own
        self._changes = changes
        self._note_tasks = note_tasks
        self._page_size = page_size
        self._under_way: dict[tuple[Member, str], MemberListing] = {}
        self._snapshots: dict[int, _Snapshot] = {}
        self._last = 0
        self._said: set[tuple[str, str]] = set()

    def answer_list(
        self, frame: Frame, kind: ListKind, params: Mapping[str, Any], meta: Mapping[str, Any] | None
    ) -> None:
        """Answer a client's request for a list."""
        key = frame.key
        assert key is not None
        cursor = params.get("cursor")
        if cursor is None:
            self.gather(kind, meta, lambda done: self._reply(key, self._keep(done), 0))
            return
        place = _read_cursor(cursor, kind)
        if place is None:
            self.common.reply(error_frame(key, INVALID_PARAMS, "this cursor was not given by this server"))
            return
        number, start = place
        known = self._snapshots.get(number)
        if known is not None and known.kind is kind:
            self._reply(key, number, start)
        else:  # it was given long ago, or to another session of the same client
            self.gather(kind, meta, lambda done: self._reply(key, self._keep(done), start))

    def gather(self, kind: ListKind, meta: Mapping[str, Any] | None, then: Callable[[Gathering], None]) -> None:
        """Ask every server that may have such a list."""
        gathering = Gathering(kind, then)
        by_time: dict[float, list[MemberListing]] = {}
        for member in self.common.members.values():
            if member.state is MemberState.FAILED:
                gathering.missing[member.name] = member.reason
            elif not member.lacks(kind.capability):
                listing = self._list(member, kind, meta)
                if not listing.is_late:
                    gathering.pending.add(listing)
                    listing.waiting.append(gathering)
                    by_time.setdefault(_GRACE_S if member.is_late else member.list_timeout_s, []).append(listing)
                else:
                    self._leave_out(gathering, listing, _OWES)
        for after_s, listings in by_time.items():
            self.common.outside.remind(after_s, partial(self._expire, gathering, listings, after_s))
        for listing in [listing for listing in gathering.pending if listing.failure is None and not listing.pages]:
            if listing.waiting == [gathering]:
                listing.ask_page()
        if not gathering.pending:
            gathering.finish()

    def _expire(self, gathering: Gathering, listings: Sequence[MemberListing], after_s: float) -> None:
        for listing in listings:
            if gathering.then is not None and listing in gathering.pending:
                gathering.pending.discard(listing)
                why = _OWES if listing.member.is_late else f"no answer within {after_s:g} s"
                listing.is_late = listing.member.is_late = True
                self._leave_out(gathering, listing, why)
        if not gathering.pending:
            gathering.finish()

    def give_up(self, member: Member) -> None:
        """Wait no more for a server that has had its time to open."""
        for listing in [one for one in self._under_way.values() if one.member is member]:
            for gathering in listing.waiting:
                self._expire(gathering, (listing,), member.list_timeout_s)
        member.is_late = True

    def forget(self, member: Member) -> None:
        """Record that a server is not there any more."""
        for key in [key for key in self._under_way if key[0] is member]:
            listing = self._under_way[key]
            listing.failure = member.reason or "it was removed"
            self.finish(listing, LISTS[key[1]])

    def finish(self, listing: MemberListing, kind: ListKind) -> None:
        """Record that a server has answered, or will not."""
        member = listing.member
        if self._under_way.get((member, kind.method)) is listing:
            del self._under_way[member, kind.method]
        changed = False
        if listing.failure is None:
            changed = self._note(member, kind, listing.pages)
            self._said.discard((member.name, kind.method))
        for gathering in listing.waiting:
            if listing in gathering.pending:
                gathering.pending.discard(listing)
                if listing.failure is not None:
                    self._leave_out(gathering, listing, listing.failure)
                if not gathering.pending:
                    gathering.finish()
        if listing.is_late and changed and kind.changed is not None:
            self._changes.tell(kind.changed)

    def say_cut(self, member: Member, kind: ListKind, why: str) -> None:
        """Say, once, that the list of a server ends early."""
        if (member.name, f"all of {kind.method}") not in self._said:
            self._said.add((member.name, f"all of {kind.method}"))
            logger.warning("%s of %s ends early: %s", kind.method, member.name, why)

    def _list(self, member: Member, kind: ListKind, meta: Mapping[str, Any] | None) -> MemberListing:
        found = self._under_way.get((member, kind.method))
        if found is None or (found.meta != meta and not found.is_late):
            found = self._under_way[member, kind.method] = MemberListing(self, member, kind, meta)
        return found

    def _note(self, member: Member, kind: ListKind, pages: list[Page]) -> bool:
        """Remember what a server has; whether it has changed."""
        before = member.listed.get(kind.method, [])
        if kind.names is not None and member.has_filter and kind.method == "tools/list":
            pages = [
                old if old is not None and old.raw == page.raw else keep(page, map(member.shows, page.names))
                for page, old in zip(pages, [*before, *[None] * len(pages)], strict=False)
            ]
        if len(pages) == len(before) and all(page is old for page, old in zip(pages, before, strict=True)):
            return False
        member.listed[kind.method] = pages
        if kind.names is not None:
            names = [name for page in pages for name in page.names]
            self.common.names.learn(member.name, kind.names, names)
        else:
            for page in pages:
                self._note_tasks(member, page.names)
        return True

    def _leave_out(self, gathering: Gathering, listing: MemberListing, why: str) -> None:
        member, method = listing.member, gathering.kind.method
        stale = method in member.listed and member.state is not MemberState.FAILED
        if stale:
            member.is_known = True
        else:
            gathering.missing[member.name] = why
        if (member.name, method) not in self._said:
            self._said.add((member.name, method))
            instead = "; what it had last is listed" if stale else ""
            logger.warning("%s is missing from %s: %s%s", member.name, method, why, instead)

    def _keep(self, gathering: Gathering) -> int:
        """Keep a merged list for as long as its pages may be asked for; give its number."""
        kind, names = gathering.kind, self.common.names
        pieces: list[Piece] = []
        rests: list[Mapping[str, Any]] = []
        for member in self.common.members.values():
            if member.name in gathering.missing or member.state is MemberState.FAILED:
                continue
            shown = {} if kind.names is None else names.show(member.name, kind.names)
            for page in member.listed.get(kind.method, ()):
                pieces.append(Piece(page, shown))
                rests.append(page.rest)
        if kind.names is not None:
            names.tell(kind.names)
        if kind.names in (NameKind.RESOURCE, NameKind.TEMPLATE) and any(piece.shown for piece in pieces):
            self.common.inspects = True
        self._last += 1
        rest = self.common.complete(_merge_rests(rests), bool(gathering.missing))
        if gathering.missing:
            missing = [{"server": name, "reason": reason} for name, reason in gathering.missing.items()]
            rest["_meta"] = {**rest.get("_meta", {}), MISSING: missing}
        self._snapshots[self._last] = _Snapshot(kind, pieces, rest)
        while len(self._snapshots) > _SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]
        return self._last

    def _reply(self, key: bytes, number: int, start: int) -> None:
        snapshot = self._snapshots[number]
        try:
            frame = self._write(key, number, start)
        except ValueError as error:  # read it could be, and not be written
            del self._snapshots[number]
            frame = error_frame(key, INTERNAL_ERROR, f"{snapshot.kind.method} cannot be written: {error}")
        self.common.reply(frame)

    def _write(self, key: bytes, number: int, start: int) -> Frame:
        snapshot = self._snapshots[number]
        entries, following = write_slice(snapshot.kind, snapshot.pieces, start, self._page_size)
        rest = snapshot.rest
        if following is not None:
            rest = {**rest, "nextCursor": f"{_CURSOR}:{snapshot.kind.method}:{number}:{following}"}
        elif start == 0:
            del self._snapshots[number]
        tail = b"," + encode(rest)[1:-1] if rest else b""
        member = snapshot.kind.member.encode()
        head = b'{"jsonrpc":"2.0","id":' + key + b',"result":{"' + member + b'":['
        return Frame(b"".join((head, *entries, b"]", tail, b"}}\n")), "result", key, None)


def _merge_rests(rests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say of a merged list how long it may be kept and by whom: what holds for all of its parts."""
    if not any("ttlMs" in rest or "cacheScope" in rest for rest in rests):
        return {}
    ttls = [ttl if isinstance(ttl := rest.get("ttlMs"), int) and ttl > 0 else 0 for rest in rests]
    is_public = all(rest.get("cacheScope") == "public" for rest in rests)
    return {"ttlMs": min(ttls), "cacheScope": "public" if is_public else "private"}


def _read_cursor(cursor: object, kind: ListKind) -> tuple[int, int] | None:
    parts = cursor.split(":") if isinstance(cursor, str) and len(cursor) < 200 else []
    if (
        len(parts) != 4
        or parts[:2] != [_CURSOR, kind.method]
        or not all(p.isascii() and p.isdigit() for p in parts[2:])
    ):
        return None
    return int(parts[2]), int(parts[3])
