"""Merged lists: asking every server, waiting for all of them but not for ever, and answering page by page.

Lives here: what is under way. Must not: know the time (it is reminded), or read pages (`pages`). Called by `catalogue`.

Theory of operation. A list is asked for anew each time that a client begins to read it: of each server all pages, one
after the other. A server that does not answer in time is left out, said to be missing, and asked no second time while
it owes the answer, nor for another page; what it had last is used until then. When it answers after all, the client is
told that the list has changed, if it has. The lists of a server that comes late are read for that. Pages of the merged
list are cut from what was read when the first was asked for.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.envelope import Frame, error_frame
from dragoman.core.exact_json import encode
from dragoman.core.paging import Paging
from dragoman.core.places import keep_latest
from dragoman.core.switch.router.common import Common, read_error
from dragoman.core.switch.router.gathering import Gathering
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.switch.router.names import NameKind
from dragoman.core.switch.router.pages import LISTS, ListKind, Page, Piece, keep, read_page, write_slice
from dragoman.core.switch.router.tasks import name_task

logger = logging.getLogger("dragoman.router")

MISSING: Final = "dragoman/missing"
"""The member of `_meta` in a merged list that names the servers which are not in it, and why."""


_MOST_BARREN_PAGES: Final = 20
_SNAPSHOTS: Final = 8
_MOST_LISTED: Final = 256
"""How many lists of a server are kept, of all whom it is told."""

_OWES: Final = "it owes an earlier answer"
_GRACE_S: Final = 0.25
"""How long a list waits for a server that another list, or the opening, has waited for in vain."""

_CURSOR: Final = re.compile(r"dragoman:([a-z/]+):([0-9]{1,18}):([0-9]{1,18})")
"""A place in a merged list: which list, the number under which it is kept, and how many entries come before."""


Reading = Generator[dict[str, Any], Frame, list[Page]]
"""Yields the params of requests for pages, takes the answers, and returns all pages; or a ValueError says why not."""


@dataclass(slots=True, eq=False)
class MemberListing:
    """One list of one server, while it is read.

    Attributes:
        meta: Of the requests.
        sender: In whose name they are, where the server is told.
        is_late: Whether a merged list has been answered without it.
        is_news: Whether it is read to find out what is to be told of a server that has come late.
        waiting: Those that wait for it.
    """

    member: Member
    kind: ListKind
    meta: Mapping[str, Any] | None
    sender: str = ""
    is_late: bool = False
    is_news: bool = False
    waiting: list[Gathering[MemberListing]] = field(default_factory=list)


class _Snapshot(NamedTuple):
    sender: str
    kind: ListKind
    pieces: list[Piece]
    rest: dict[str, Any]


class Lists:
    """The merged lists of one client's session.

    Args:
        common: What all parts know.
        tell_changed: Tells the client with this notification that a list has changed.
        page_size: How many entries a page has.
    """

    def __init__(self, common: Common, tell_changed: Callable[[str], None], page_size: int) -> None:
        self._common = common
        self._tell_changed = tell_changed
        self._page_size = page_size
        self._under_way: dict[tuple[Member, str, str], MemberListing] = {}
        self._snapshots: dict[int, _Snapshot] = {}
        self._last = 0
        self._said: set[tuple[str, str]] = set()
        self._meta: Mapping[str, Any] | None = None  # of the last request for a list

    def answer_list(
        self, frame: Frame, kind: ListKind, params: Mapping[str, Any], meta: Mapping[str, Any] | None
    ) -> None:
        """Answer a client's request for a list."""
        key = frame.key
        assert key is not None
        cursor = params.get("cursor")
        start = 0
        if cursor is not None:
            place = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
            if place is None or place[1] != kind.method:
                self._common.reply(error_frame(key, INVALID_PARAMS, "this cursor was not given by this server"))
                return
            number, start = int(place[2]), int(place[3])
            known = self._snapshots.get(number)
            if known is not None and known.kind is kind and known.sender == frame.sender:
                self._reply(key, number, start)
                return
            # It was given long ago, or to another session of the same client.

        def go_on(done: Gathering[MemberListing]) -> None:
            self._reply(key, self._keep(kind, done.missing, frame.sender), start)

        self.gather((kind,), meta, frame.sender, go_on)

    def gather(
        self,
        kinds: Iterable[ListKind],
        meta: Mapping[str, Any] | None,
        sender: str,
        then: Callable[[Gathering[MemberListing]], None],
    ) -> None:
        """Ask every server that may have such lists, in the name of whoever has sent this."""
        gathering = Gathering(then)
        self._meta = meta
        new: list[MemberListing] = []
        by_time: dict[float, list[MemberListing]] = {}
        for kind, member in product(kinds, self._common.members.values()):
            if self._common.has_failed(member):
                gathering.missing[member.name] = member.reason
            elif not member.lacks(kind.capability):
                whose = sender if member.tells else ""
                listing = self._under_way.get((member, kind.method, whose))
                if listing is not None and listing.is_news:
                    listing.is_late = False  # who asks for it has it
                if listing is None or (listing.meta != meta and not listing.is_late):
                    listing = MemberListing(member, kind, meta, whose)
                    self._under_way[member, kind.method, whose] = listing
                    new.append(listing)
                if listing.is_late:
                    self._leave_out(gathering, listing, _OWES)
                else:
                    gathering.pending.add(listing)
                    listing.waiting.append(gathering)
                    by_time.setdefault(_GRACE_S if member.is_late else member.list_timeout_s, []).append(listing)
        for after_s, listings in by_time.items():
            self._common.outside.remind(after_s, partial(self._expire, gathering, listings, after_s))
        for listing in new:
            self._go_on(listing, self._read(listing), None)
        if not gathering.pending:
            gathering.finish()

    def find_news(self, member: Member) -> None:
        """Read the lists of a server that has come late; the client is told of those in which it has something."""
        for kind in LISTS.values():
            if kind.changed is None or member.lacks(kind.capability) or (member, kind.method, "") in self._under_way:
                continue  # who has asked already is told, or answered
            if self._common.is_per_request and self._meta is None:
                self._tell_changed(kind.changed)
                continue
            listing = MemberListing(member, kind, self._meta, is_late=True, is_news=True)
            self._under_way[member, kind.method, ""] = listing
            self._go_on(listing, self._read(listing), None)

    def _expire(self, gathering: Gathering[MemberListing], listings: Sequence[MemberListing], after_s: float) -> None:
        for listing in listings:
            if listing in gathering.pending:
                why = _OWES if listing.member.is_late else f"no answer within {after_s:g} s"
                listing.is_late = listing.member.is_late = True
                self._leave_out(gathering, listing, why)
                gathering.settle(listing)

    def give_up(self, member: Member) -> None:
        """Wait no more for a server that has had its time to open."""
        for listing in [one for one in self._under_way.values() if one.member is member]:
            for gathering in listing.waiting:
                self._expire(gathering, (listing,), member.list_timeout_s)
        member.is_late = True

    def owes(self, member: Member) -> bool:
        """Whether a list of a server is under way."""
        return any(one is member for one, *_ in self._under_way)

    # One list of one server

    def _go_on(self, listing: MemberListing, reading: Reading, answer: Frame | None) -> None:
        """Ask for a page, with the answer that has come before; or end."""
        try:
            params = next(reading) if answer is None else reading.send(answer)
        except StopIteration as read:
            self._finish(listing, read.value, "")
        except ValueError as error:
            self._finish(listing, [], str(error))
        else:
            take = partial(self._go_on, listing, reading)
            self._common.ask(listing.member, listing.kind.method, params, take, listing.meta, sender=listing.sender)

    def _read(self, listing: MemberListing) -> Reading:
        member, kind = listing.member, listing.kind
        before: Sequence[Page] = member.listed.get((kind.method, listing.sender), ())
        show = partial(self._common.names.show_uri, member.name)
        paging, pages, names, barren = Paging(), list[Page](), set[str](), 0
        params: dict[str, Any] = {}
        while True:
            answer = yield params
            member.is_late = False
            if answer.kind == "error":
                error = read_error(answer)
                if error.get("code") == METHOD_NOT_FOUND:
                    return pages
                raise ValueError(member.reason or f"it answered: {str(error.get('message'))[:200]}")
            number = len(pages)
            try:
                page = read_page(answer, kind, before[number] if number < len(before) else None, show)
            except ValueError as fault:
                raise ValueError(f"its answer cannot be read: {fault}") from None
            barren = 0 if page.names else barren + 1  # a server may look for more and find nothing
            is_old = names.issuperset(page.names) if page.names else barren > _MOST_BARREN_PAGES
            if number and is_old:
                self._say_cut(listing, "a page has nothing that was not on one before")
                return pages
            pages.append(page)
            names.update(page.names)
            cursor = paging.follow(page.rest, len(page.raw))
            if cursor is None:
                self._say_cut(listing, paging.cut)
                return pages
            if listing.is_late and not listing.is_news:  # nobody waits any more; what it had last is better than a part
                cut = "not all of its pages came within its listTimeout"
                self._say_cut(listing, cut)
                if before:
                    raise ValueError(cut)
                return pages
            params = {"cursor": cursor}

    def _finish(self, listing: MemberListing, pages: list[Page], failure: str) -> None:
        """Record what a server has; or why that is not known."""
        member, kind = listing.member, listing.kind
        place = member, kind.method, listing.sender
        if self._under_way.get(place) is listing:
            del self._under_way[place]
        changed = False
        if not failure:
            changed = self._note(listing, pages)
            self._said.discard((member.name, kind.method))
        for gathering in listing.waiting:
            if listing in gathering.pending:
                if failure:
                    self._leave_out(gathering, listing, failure)
                gathering.settle(listing)
        if listing.is_late and changed and kind.changed is not None:
            self._tell_changed(kind.changed)

    def _say_cut(self, listing: MemberListing, why: str) -> None:
        """Say, once, that the list of a server ends early, if it does."""
        name, method = listing.member.name, listing.kind.method
        if why and self._is_news(name, f"all of {method}"):
            logger.warning("%s of %s ends early: %s", method, name, why)

    def _is_news(self, server: str, what: str) -> bool:
        """Whether this was not said of a server; it is now."""
        is_news = (server, what) not in self._said
        self._said.add((server, what))
        return is_news

    def _note(self, listing: MemberListing, pages: list[Page]) -> bool:
        """Remember what a server has; whether its entries have changed."""
        member, kind, place = listing.member, listing.kind, (listing.kind.method, listing.sender)
        before = member.listed.get(place, [])
        if kind.names is NameKind.TOOL and member.has_filter:
            pages = [
                old if old is not None and old.raw == page.raw else keep(page, map(member.shows, page.names))
                for page, old in zip(pages, [*before, *[None] * len(pages)], strict=False)
            ]
        if len(pages) == len(before) and all(page is old for page, old in zip(pages, before, strict=True)):
            return False
        keep_latest(member.listed, place, pages, _MOST_LISTED)
        names = [name for page in pages for name in page.names]
        if kind.names is not None:
            self._common.names.learn(member.name, kind.names, names)
        return [entry for page in before for entry in page.entries] != [
            entry for page in pages for entry in page.entries
        ]

    def _leave_out(self, gathering: Gathering[MemberListing], listing: MemberListing, why: str) -> None:
        member, method = listing.member, listing.kind.method
        stale = (method, listing.sender) in member.listed and member.state is not MemberState.FAILED
        if stale:
            member.is_known = True
        else:
            gathering.missing[member.name] = why
        if self._is_news(member.name, method):
            instead = "; what it had last is listed" if stale else ""
            logger.warning("%s is missing from %s: %s%s", member.name, method, why, instead)

    # The merged list

    def _keep(self, kind: ListKind, missing: Mapping[str, str], sender: str) -> int:
        """Keep a merged list for as long as its pages may be asked for, by whom it is for; give its number."""
        names = self._common.names
        pieces: list[Piece] = []
        for member in self._common.members.values():
            if member.name not in missing and member.state is not MemberState.FAILED:
                for page in member.listed.get((kind.method, sender if member.tells else ""), ()):
                    tasks = {} if kind.names else {task: name_task(member, task) for task in page.names}
                    pieces.append(Piece(page, names.show(member.name, kind.names) if kind.names else tasks))
        if kind.names is not None:
            names.tell(kind.names)
            if kind.names.is_uri and any(piece.shown for piece in pieces):
                self._common.inspects = True
        rest = self._common.complete(_merge_rests([piece.page.rest for piece in pieces]), bool(missing))
        if missing:
            named = [{"server": name, "reason": reason} for name, reason in missing.items()]
            rest["_meta"] = {**rest.get("_meta", {}), MISSING: named}
        self._last += 1
        keep_latest(self._snapshots, self._last, _Snapshot(sender, kind, pieces, rest), _SNAPSHOTS)
        return self._last

    def _reply(self, key: bytes, number: int, start: int) -> None:
        _, kind, pieces, rest = self._snapshots[number]
        try:
            entries, following = write_slice(kind, pieces, start, self._page_size)
            if following is not None:
                rest = {**rest, "nextCursor": f"dragoman:{kind.method}:{number}:{following}"}
            tail = b"," + encode(rest)[1:-1] if rest else b""
            head = b'{"jsonrpc":"2.0","id":' + key + b',"result":{"' + kind.member.encode() + b'":['
            frame = Frame(b"".join((head, *entries, b"]", tail, b"}}\n")), "result", key, None)
        except ValueError as error:  # read it could be, and not be written
            following, start = None, 0
            frame = error_frame(key, INTERNAL_ERROR, f"{kind.method} cannot be written: {error}")
        if following is None and start == 0:
            del self._snapshots[number]
        self._common.reply(frame)


def _merge_rests(rests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say of a merged list how long it may be kept and by whom: what holds for all of its parts."""
    if not any("ttlMs" in rest or "cacheScope" in rest for rest in rests):
        return {}
    ttls = [ttl if isinstance(ttl := rest.get("ttlMs"), int) and ttl > 0 else 0 for rest in rests]
    is_public = all(rest.get("cacheScope") == "public" for rest in rests)
    return {"ttlMs": min(ttls), "cacheScope": "public" if is_public else "private"}
