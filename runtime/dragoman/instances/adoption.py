"""Taking over sessions of an instance that is gone: what is kept of each, who takes it, and how it is opened again.

Lives here: records and heirs. Must not: hand requests on (`relay`), or keep what could be used to be somebody: a record
has neither the id of its session nor a name of its principal, but what is made of them and leads back to neither.

Theory of operation. A record is the `initialize` of the client, and what it has asked for since that lasts: its log
level and its subscriptions. When an instance is gone, whoever gets the next request of such a session opens it again,
under the same id: with the same `initialize`, whose answer nobody hears, if it is for the same revision. The server is
one over HTTP, or one that may be started again (`--restarts`); it sees a new session, and the client sees none.

An instance has one heir for each session, which is claimed once. Names of instances never come again, so the heirs of
heirs make a chain that everybody walks in the same way, and no lock has to be given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import itertools
import json
import logging
from collections.abc import Callable
from typing import Any, Final

from dragoman.core.methods import SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE
from dragoman.core.places import keep_latest
from dragoman.instances.directory import Directory
from dragoman.instances.events import EventLog
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.exchange import RETRY_AFTER, HttpRequest, RequestRefused
from dragoman.transports.http.reading import Posted
from dragoman.transports.http.sessions import HttpSession
from dragoman.transports.http.streamable_session import StreamableSession

logger = logging.getLogger("dragoman.http")

_LONGEST_BYTES: Final = 64 * 1024
"""The longest request of which anything is kept; URIs of subscriptions together are not longer, either."""

_MOST_SUBSCRIPTIONS: Final = 256
_MOST_GIVEN_UP: Final = 4096
_RENEWALS: Final = 4
"""How often a record is written again in the time for which it is kept."""

_TRY_AGAIN_S: Final = 3.0
"""After how long a record is written again that the store has not taken."""


class Adoption:
    """Sessions that may outlive their instance.

    Args:
        name: This instance.
        directory: Where records are kept.
        front: Of this instance.
        adopts: Says whether sessions of other instances are opened again here.
        events: What clients may resume of them; None where nothing is kept of it.

    Attributes:
        given_up: Sessions that were here, and go on at another instance.
    """

    def __init__(
        self,
        name: str,
        directory: Directory,
        front: HttpFront,
        adopts: Callable[[], bool],
        events: EventLog | None = None,
    ) -> None:
        self._name = name
        self._directory = directory
        self._front = front
        self._adopts = adopts
        self._events = events
        self._kept_s = 2 * front.config.patience.idle_s
        self._records: dict[str, dict[str, Any]] = {}
        self._unkept: dict[str, None] = {}
        self._opening: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._renewing: asyncio.Task[None] | None = None
        self.given_up: dict[str, None] = {}

    def begin(self) -> None:
        """Keep records fresh from now on."""
        self._renewing = asyncio.create_task(self._renew())

    async def end(self) -> None:
        """Wait until what is being written is written."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._writes:
            await asyncio.wait(self._writes, timeout=1.0)
        if self._events is not None:
            await self._events.end()

    def watch(self, session: HttpSession[StreamableSession]) -> None:
        """Have the streams of a session say what they keep, where that is to outlive this instance."""
        if self._events is not None and self._adopts():
            session.transport.log_events(functools.partial(self._events.note, _digest(session.id)))

    async def find_rest(self, session_id: str, last_event_id: str) -> list[bytes] | None:
        """Return what a client has missed of a stream that another instance had; None where nobody knows.

        Raises:
            RequestRefused: Nobody can tell just now.
        """
        if self._events is None or session_id.rpartition(".")[0] == self._name:
            return None
        return await self._events.find_rest(_digest(session_id), last_event_id)

    async def remember(self, session: HttpSession[StreamableSession], posted: Posted) -> None:
        """Keep what a client asked that lasts, before it is told that it has it."""
        if not self._adopts() or len(posted.frame.raw) > _LONGEST_BYTES:
            return
        params = _params_of(posted.frame.raw)
        if posted.initializes:
            self._records[session.id] = {
                "principal": _digest(session.caller.principal),
                "server": session.caller.server,
                "revision": session.transport.revision,
                "initialize": posted.frame.raw.decode(),
                "level": None,
                "uris": [],
                "heirs": [],
            }
        record = self._records.get(session.id)
        if record is None:
            return
        uri = params.get("uri")
        if posted.frame.method == SET_LEVEL:
            record["level"] = params.get("level")
        elif posted.frame.method == SUBSCRIBE and isinstance(uri, str) and uri not in record["uris"]:
            uris = [*record["uris"], uri][:_MOST_SUBSCRIPTIONS]
            record["uris"] = uris if sum(map(len, uris)) <= _LONGEST_BYTES else record["uris"]
        elif posted.frame.method == UNSUBSCRIBE and uri in record["uris"]:
            record["uris"].remove(uri)
        await self._write(session.id)

    async def end_for_good(self, session_id: str) -> None:
        """Take note that a client has ended its session: nobody goes on with it."""
        if self._records.pop(session_id, None) is not None:
            await self._directory.drop(_session_key(session_id))

    def forget(self, session_id: str, is_over: bool) -> None:
        """Take note that a session has ended here.

        Args:
            session_id: Its id.
            is_over: Whether it is over for good; if not, another instance may go on.
        """
        if self._events is not None:
            self._events.forget(_digest(session_id))
        if is_over:
            self._later(self.end_for_good(session_id))
        else:
            self._records.pop(session_id, None)

    def is_opening(self, session_id: str, principal: str) -> bool:
        """Whether a session is just being opened again here."""
        return (session_id, principal) in self._opening

    async def find_heir(self, session_id: str, gone: str, request: HttpRequest) -> str:
        """Return who has a session of an instance that is gone, or is ending; this one where it could be opened again.

        Raises:
            RequestRefused: Nobody can tell just now.
        """
        key = _heir_key(session_id, gone)
        mine = session_id, request.principal
        if mine not in self._opening:
            heir = await self._directory.read(key)
            if heir is not None or not self._adopts():
                return heir or ""
        if mine not in self._opening:
            self._opening[mine] = asyncio.create_task(self._take_over(session_id, key, request))
            self._opening[mine].add_done_callback(lambda _: self._opening.pop(mine))
        return await asyncio.shield(self._opening[mine])

    async def end_inherited(self) -> None:
        """End the sessions that another instance has taken over while nobody heard of this one."""
        for session in self._front.sessions.all():
            with contextlib.suppress(RequestRefused):
                if await self._directory.read(_heir_key(session.id, self._name)) is not None:
                    self._records.pop(session.id, None)
                    keep_latest(self.given_up, session.id, None, _MOST_GIVEN_UP)
                    logger.warning("a session ends here: another instance has taken it over")
                    session.runner.stop("another instance has taken this session over")

    async def _take_over(self, session_id: str, key: str, request: HttpRequest) -> str:
        """Open a session again here, unless another instance does; return who has it then, if anybody."""
        front = self._front.find_streamable(request)
        kept = await self._directory.read(_session_key(session_id))
        record = _read_record(kept or "{}")
        if (record.get("principal"), record.get("server")) != (_digest(request.principal), front.server):
            return ""
        if not await self._directory.claim(key, self._name, self._kept_s):
            return await self._directory.read(key) or ""
        lasting = [(SUBSCRIBE, {"uri": uri}) for uri in record["uris"]]
        if record.get("level") is not None:
            lasting.append((SET_LEVEL, {"level": record["level"]}))
        initialize = record["initialize"].encode()
        try:
            if not await front.open_again(request, session_id, initialize, record["revision"], lasting):
                if self._front.sessions.closing:
                    raise RequestRefused(503, "the server is stopping", RETRY_AFTER)
                return ""
        except RequestRefused:  # there is no room here, or not any more; it is still anybody's
            await self._directory.drop(key)
            raise
        record["heirs"].append(self._name)
        self._records[session_id] = record
        self.given_up.pop(session_id, None)
        logger.info("a session of an instance that is gone goes on here")
        return self._name

    async def _renew(self) -> None:
        while True:
            left_s = self._kept_s / _RENEWALS
            while left_s > 0:
                pause_s = min(left_s, _TRY_AGAIN_S)
                await asyncio.sleep(pause_s)
                left_s -= pause_s
                unkept, self._unkept = self._unkept, {}
                await self._write_all(list(unkept))
            await self._write_all(list(self._records))

    async def _write_all(self, sessions: list[str]) -> None:
        """Write records, as long as the store takes them; the rest later."""
        for place, session_id in enumerate(sessions):
            if session_id in self._records and not await self._write(session_id):
                self._unkept |= dict.fromkeys(sessions[place:])
                return
            await asyncio.sleep(0)  # a folder waits for nothing: with 20,000 sessions, that is a second of CPU

    async def _write(self, session_id: str) -> bool:
        """Write a record, and who its heirs are; false where it has to be written again."""
        record = self._records[session_id]
        kept = [await self._directory.keep(_session_key(session_id), json.dumps(record), self._kept_s)]
        names = [session_id.rpartition(".")[0], *record["heirs"]]
        for gone, heir in itertools.pairwise(names):  # if one is forgotten, the session is opened a second time
            kept.append(await self._directory.keep(_heir_key(session_id, gone), heir, self._kept_s))
        if not all(kept):
            self._unkept[session_id] = None
        return all(kept)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)


def _session_key(session_id: str) -> str:
    return f"session:{_digest(session_id)}"


def _heir_key(session_id: str, gone: str) -> str:
    return f"heir:{_digest(session_id)}:{gone}"


def _digest(text: str) -> str:
    return hashlib.sha256(b"dragoman " + text.encode()).hexdigest()


def _read_record(text: str) -> dict[str, Any]:
    """Return a record; an empty one where it is none of ours, or of another release."""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(text)
        if isinstance(record, dict) and isinstance(record.get("initialize"), str):
            lists = [record.get("uris"), record.get("heirs")]
            is_one = all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists)
            return record if is_one and "revision" in record else {}
    return {}


def _params_of(raw: bytes) -> dict[str, Any]:
    params = json.loads(raw).get("params")
    return params if isinstance(params, dict) else {}
