"""Requests that wait for their answers: one table for each peer that asks.

Lives here: a request with its id and method, whose it is, those that were cancelled, and those that a server may still
speak of. Must not: look into frames, but for the id that a cancellation names and for progress tokens, or translate.

Where one client faces one server, ids pass unchanged and this table is the only one. Where several clients share a
server, or one client has several servers, a request also has an id at the server, which is lent to it by the switch.
Ids are kept as canonical JSON, so that `1` and `"1"` are two ids.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from dragoman.core.batches import Batch
from dragoman.core.envelope import (
    Frame,
    Refusal,
    decoded,
    id_of,
    key_of,
    notification_frame,
    read_params,
    rewrite,
    twin_of,
)
from dragoman.core.exact_json import decode, outline
from dragoman.core.methods import CANCELLED
from dragoman.core.peek import with_id
from dragoman.core.places import keep_latest
from dragoman.core.unchecked import find, with_meta

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.commands import HeldFrame, Reached

CANCELLED_KEPT: Final = 1024
"""How many cancelled requests are remembered, in case their answer was already on its way."""

NAME_BYTES: Final = 1024
"""How long the id and the method of a request may be together: both are kept until it is answered."""

OPEN_REQUESTS: Final = 4096
"""How many requests of one peer may be unanswered, unless told otherwise."""

TOO_MANY: Final = -32000
"""The implementation-defined code for a request that is one too many; also that of a connection that went away."""

OURS: Final = b'"dragoman-'
"""How the ids of requests begin that are made here, of any part of the proxy."""
_RENAMED: Final = OURS + b"renamed-"

SUSPECTS: Final = 1024
"""How many requests that nobody waits for are remembered one by one."""

UNANSWERED: Final = "dragoman/unanswered"
"""Stands in the data of an error that is not the server's answer: it may be at work on the request, and speak of it.
Whoever gives a request up says so, for a router or another proxy may be before it."""

OwnerT = TypeVar("OwnerT", bound=Hashable)


class Unfit(Enum):
    """Why a request is not taken in."""

    DUPLICATE = "its id belongs to a request that is not answered yet"
    TOO_MANY = "too many requests are unanswered"
    TOO_LONG = "its id and method are too long to be kept"


class Call:
    """A request that waits for its answer.

    Attributes:
        key: Its id, as whoever asked knows it.
        method: What it asks.
        batch: The array that it came in.
        front: The client's edge: whose request it is, or whom the server asks.
        at_server: What stands for it where it is served, while it is: its id at a shared server, the loan of a server
            without sessions, or what gives up a call of several rounds.
        held: What middleware has of it; None where it has nothing.
        own: Takes the answer as it comes, where somebody in the proxy asks.
        token: Its progress token as canonical JSON, where somebody has to know it.
        first: The id and progress token that it came with, where it goes on under others.
        stream: Of a server's request, the id of the client's request on whose stream it went out, if it did.
        translate: What makes the answer one of who asked, in place of the steps alone.
        seen: What an observer knows of it; None without one.
    """

    __slots__ = (
        "at_server",
        "batch",
        "first",
        "front",
        "held",
        "key",
        "method",
        "own",
        "seen",
        "stream",
        "token",
        "translate",
    )

    def __init__(self, key: bytes, method: str, batch: Batch | None = None, front: Reached | None = None) -> None:
        self.key = key
        self.method = method
        self.batch = batch
        self.front = front
        self.at_server: Any = None
        self.held: HeldFrame | None = None
        self.own: Callable[[Frame], None] | None = None
        self.token: bytes | None = None
        self.first: tuple[bytes, bytes | None] | None = None
        self.stream: bytes | None = None
        self.translate: Callable[[Frame], Frame | Refusal | None] | None = None
        self.seen: Any = None

    @property
    def revision(self) -> str | None:
        """What it is written in, where it says so itself; None where its session says so."""
        return None

    def refuse(self, failure: Refusal) -> Frame:
        """Return the error that answers it."""
        return failure.answer(self.key)


class Calls:
    """The requests that one peer has sent and that are not answered yet.

    Attributes:
        limit: How many there may be.
        waiting: Those that wait for their answer, by id.
        cancelled: Those that were cancelled, by id.
        tokens: Those that wait and whose progress token is known, by token.
        retired: Ids of requests whose answers may still come, and are for nobody.
        renamed: Those that wait under another id than they came with, by that.
    """

    __slots__ = ("_names", "cancelled", "limit", "renamed", "retired", "tokens", "waiting")

    def __init__(self, limit: int = OPEN_REQUESTS) -> None:
        self.limit = limit
        self.waiting: dict[bytes, Call] = {}
        self.cancelled: dict[bytes, Call] = {}
        self.tokens: dict[bytes, Call] = {}
        self.retired: dict[bytes, None] = {}
        self.renamed: dict[bytes, Call] = {}
        self._names = 0

    def add(self, call: Call) -> Unfit | None:
        """Remember a request; give the reason where it cannot be."""
        waiting, key = self.waiting, call.key
        if key in waiting or key in self.renamed:
            return Unfit.DUPLICATE
        if len(waiting) >= self.limit:
            return Unfit.TOO_MANY
        if len(key) + len(call.method) > NAME_BYTES:
            return Unfit.TOO_LONG
        if self.cancelled:  # an id that is used again has one answer, not two
            self.cancelled.pop(key, None)
            if self._names:
                self._disown(key if call.first is None else call.first[0])
        waiting[key] = call
        if call.first is not None:
            self.renamed[call.first[0]] = call
        return None

    def is_used(self, key: bytes) -> bool:
        """Whether another request of this id, or one that looks the same, may still be answered by the peer across.

        Ids that look like ours count: another proxy of ours, beside or behind this one, names its requests so, too.
        """
        retired = self.retired
        if key.startswith(OURS):
            return True
        if not (self.cancelled or retired):
            return False
        return len(retired) >= CANCELLED_KEPT or any(one in self.cancelled or one in retired for one in spellings(key))

    def rename(self, call: Call, frame: Frame) -> Frame:
        """Give a request an id that was never used, and its progress token the same, in place of one that `is_used`.

        Whoever asked first under that id does not wait any more: what answers that is for nobody.
        """
        first, token = call.key, read_token(frame)
        if first in self.renamed:
            return frame  # a duplicate, as it came
        if not first.startswith(OURS):
            self.retire(first)
        self._names += 1
        call.key, call.first = b'%b%d"' % (_RENAMED, self._names), (first, token)
        if token is None:
            return frame._replace(raw=with_id(frame, call.key), key=call.key, body=None)
        body = {**decoded(frame).body, "id": id_of(call.key)}
        body["params"] = with_meta(body["params"], "progressToken", body["id"])
        return rewrite(frame, body)._replace(key=call.key)

    def retire(self, key: bytes) -> None:
        """Record that the answer to a request is for nobody; who has too many such ids gets new ones for all."""
        for one in spellings(key):
            self.cancelled.pop(one, None)
        if len(self.retired) < CANCELLED_KEPT:
            self.retired[key] = None

    @property
    def has_renamed(self) -> bool:
        """Whether any request ever went on under another id."""
        return self._names > 0

    def _disown(self, first: bytes) -> None:
        """Note that answers to what was cancelled are for nobody that came under this id and went on under another."""
        for call in [call for call in self.cancelled.values() if call.first is not None and call.first[0] == first]:
            self.retire(call.key)

    def restore_token(self, frame: Frame) -> Frame | None:
        """Give progress the token that its request came with; None where it is of one that is over, or given up."""
        params = read_params(frame)
        token = key_of(params.get("progressToken"))
        for call in self.renamed.values():
            _, first = call.first or (b"", None)
            if first is not None and token == first:
                return None
            if first is not None and token == call.key:
                return rewrite(frame, {**decoded(frame).body, "params": {**params, "progressToken": id_of(first)}})
        return None if (token or b"").startswith(_RENAMED) else frame

    def fits(self, calls: list[Call]) -> bool:
        """Whether all these could be added."""
        keys = {call.key for call in calls}
        short = all(len(call.key) + len(call.method) <= NAME_BYTES for call in calls)
        fit = len(keys) == len(calls) and self.waiting.keys().isdisjoint(keys)
        fit = fit and not any(key in self.renamed or self.is_used(key) for key in keys)
        return short and fit and len(self.waiting) + len(calls) <= self.limit

    def take(self, key: bytes) -> Call | None:
        """Take the request that a response answers off the table; None for an unknown or late response."""
        call = self.waiting.pop(key, None) or self.cancelled.pop(key, None)
        if call is None:
            self.retired.pop(key, None)
        elif self.tokens or call.first is not None:
            self._forget(call)
        return call

    def put_back(self, call: Call) -> None:
        """Let a request that was just taken off the table wait on: somebody has the answer, and may tell more of it."""
        self.waiting[call.key] = call
        if call.token is not None:
            self.tokens[call.token] = call
        if call.first is not None:
            self.renamed[call.first[0]] = call

    def remove(self, call: Call) -> bool:
        """Take this request off the table; False where it is not there, or another one has its id."""
        key, table = call.key, self.waiting
        if table.get(key) is not call:
            table = self.cancelled
            if table.get(key) is not call:
                return False
        del table[key]
        if self.tokens or call.first is not None:
            self._forget(call)
        return True

    def cancel(self, key: bytes) -> Call | None:
        """Note that the sender does not wait any more; give the request.

        It is remembered, within bounds: the spec lets the answer cross with the cancellation, and the sender, not we,
        decides whether to ignore it.
        """
        call = self.waiting.pop(key, None)
        if call is None:
            return None
        self._forget(call)
        keep_latest(self.cancelled, key, call, CANCELLED_KEPT)
        return call

    def take_all(self) -> list[Call]:
        """Take every request that still waits, oldest first."""
        taken = list(self.waiting.values())
        self.waiting.clear()
        self.tokens.clear()
        self.renamed.clear()
        return taken

    def clear(self) -> None:
        """Forget everything."""
        self.waiting.clear()
        for table in (self.cancelled, self.tokens, self.retired, self.renamed):
            table.clear()

    def note_token(self, call: Call, token: bytes) -> None:
        """Record the progress token of a request that was added."""
        call.token = token
        self.tokens[token] = call

    def find_progressing(self, frame: Frame) -> Call | None:
        """Return the request that waits and that a `notifications/progress` is about, if its token is known."""
        if not self.tokens:
            return None
        token = key_of(read_params(frame).get("progressToken"))
        return None if token is None else self.tokens.get(token)

    def find_only(self) -> Call | None:
        """Return the request that waits if it is the only one, or one of an array if that is all that waits."""
        calls = iter(self.waiting.values())
        first = next(calls, None)
        if first is not None and all(call.batch is first.batch is not None for call in calls):
            return first
        return None

    def _forget(self, call: Call) -> None:
        if call.first is not None and self.renamed.get(call.first[0]) is call:
            del self.renamed[call.first[0]]
        if call.token is not None and self.tokens.get(call.token) is call:
            del self.tokens[call.token]


class Suspect(NamedTuple, Generic[OwnerT]):
    """Who may be the reason for what the server says.

    Attributes:
        owner: Whose request it is; None for somebody who has left, and for requests of our own.
        asks: Whether servers ask back during such a request.
    """

    owner: OwnerT | None
    asks: bool


class Suspects(Generic[OwnerT]):
    """Requests that ended without the server's answer, by our ids for them: it may still say something about them.

    A server that was told of a cancellation usually does not answer, and nothing else says that it has stopped. So
    whatever it says without naming a request may be about one of these, and nobody but their owners may hear it. An
    answer clears a suspect, however late. The table is bounded: the owner of a request that does not fit any more is
    suspected for as long as the server lives.

    Args:
        limit: How many are remembered one by one.
        restore_ids: Whether an id that came back as another type is known again.
    """

    def __init__(self, limit: int = SUSPECTS, restore_ids: bool = True) -> None:
        self._restore_ids = restore_ids
        self._limit = limit
        self._by_key: dict[bytes, Suspect[OwnerT]] = {}
        self._for_good: set[Suspect[OwnerT]] = set()

    def add(self, key: bytes, suspect: Suspect[OwnerT]) -> None:
        """Remember a request; if there are too many, its owner instead."""
        if len(self._by_key) >= self._limit:
            self._for_good.add(suspect)
        else:
            self._by_key[key] = suspect

    @property
    def keys(self) -> list[bytes] | None:
        """Our ids for them; None where there are others, too."""
        return None if self._for_good else list(self._by_key)

    def find(self, key: bytes) -> Suspect[OwnerT] | None:
        """Find a request by our id for it, or by one that differs in type alone."""
        return self._by_key.get(key) or self._by_key.get(self._twin(key))

    def clear(self, key: bytes) -> bool:
        """Record that the server has answered; whether it was a suspect."""
        return (self._by_key.pop(key, None) or self._by_key.pop(self._twin(key), None)) is not None

    def _twin(self, key: bytes) -> bytes:
        return (twin_of(key) if self._restore_ids else None) or b""

    def forget_all(self) -> None:
        """Record that the server is gone: it says nothing about any of them any more."""
        self._by_key.clear()
        self._for_good.clear()

    def forget(self, owner: OwnerT) -> None:
        """Record that somebody has left: their requests are nobody's, and suspect all the same."""

        def disown(one: Suspect[OwnerT]) -> Suspect[OwnerT]:
            return one._replace(owner=None) if one.owner is owner else one

        self._by_key = {key: disown(one) for key, one in self._by_key.items()}
        self._for_good = {disown(one) for one in self._for_good}

    def owners(self, only_asking: bool, among: Collection[object] | None = None) -> set[OwnerT | None]:
        """Return whose requests there are.

        Args:
            only_asking: Whether only those count during which servers ask back.
            among: The ids of those that count, of such as are remembered one by one; None for all.
        """
        known = [one for key, one in self._by_key.items() if among is None or key in among]
        return {one.owner for one in (*known, *self._for_good) if one.asks or not only_asking}

    def may_explain(self, owners: set[OwnerT], only_asking: bool) -> bool:
        """Whether what the server says may be about somebody else than these, whose requests are with it now."""
        others = self.owners(only_asking)
        return bool(others) and len(others | owners) > 1


def spellings(key: bytes) -> tuple[bytes, ...]:
    """Return an id, and the one that looks the same and has another type, if there is one."""
    twin = twin_of(key)
    return (key,) if twin is None else (key, twin)


def is_unanswered(frame: Frame) -> bool:
    """Whether a response stands in the place of the server's, which may still come."""
    return frame.kind == "error" and UNANSWERED.encode() in frame.raw


def cancelled_key(frame: Frame) -> bytes | None:
    """Return the id that a `notifications/cancelled` names, if it names one."""
    return key_of(read_params(frame).get("requestId"))


def cancellation(key: bytes, reason: str | None) -> Frame:
    """Say that nobody waits for the request with this id any more, and why, if that is known."""
    return notification_frame(CANCELLED, {"requestId": decode(key)} | ({"reason": reason} if reason else {}))


def read_reason(frame: Frame) -> str | None:
    """Return the reason that a `notifications/cancelled` names, if it names one."""
    reason = read_params(frame).get("reason")
    return reason if isinstance(reason, str) else None


def read_token(frame: Frame) -> bytes | None:
    """Return the progress token of a request; None without one."""
    raw = frame.bare or frame.raw  # a frame that is not written has its body
    if raw and (b"progressToken" not in raw or b"progressToken" not in outline(raw)):
        return None
    return key_of(find(read_params(frame), "_meta", "progressToken"))
