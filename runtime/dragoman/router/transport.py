"""A router as a transport: what the proxy before a client takes for the connection to its server.

Lives here: carrying the frames of one catalogue, the proxies before its servers, timers and backpressure. Must not:
decide where a frame goes (`core.switch.router`). Made by `router.Router.connect`, one for each session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.envelope import Frame, error_frame
from dragoman.core.label import LABEL, PRINCIPAL
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.switch.router.names import Names
from dragoman.core.switch.router.switch import Catalogue
from dragoman.proxy import Proxy
from dragoman.transports.base import Receiver
from dragoman.transports.frame_link import FrameLink

if TYPE_CHECKING:
    from dragoman.core.commands import Finish
    from dragoman.core.settings import RestartPolicy
    from dragoman.router.outages import Outages
    from dragoman.status import StatusBoard

logger = logging.getLogger("dragoman.router")

WAITING_BYTES = 16 * 1024 * 1024
"""How much may wait for a server that does not keep up: more is refused, so that the others are not held up."""

_FAREWELL_S = 2.0
"""How long servers may take to end in order when a session is over: its requests are answered by then."""


@dataclass(frozen=True, slots=True)
class _Running:
    """The proxy before a server."""

    link: FrameLink
    proxy: Proxy
    task: asyncio.Task[Finish]


class RouterTransport:
    """The servers of one client's session.

    Args:
        members: The servers, in their order.
        names: What everything is called.
        open_proxy: Makes the proxy before a server.
        identity: Name and version that clients are told.
        page_size: How many entries a page of a merged list has.
        most_questions: How many requests of servers to the client may be unanswered.
        restart: How a server that cannot be opened, or is lost for good, is tried again; None where it is not.
        closed: Called when the session is over.
        board: Is told which servers cannot be used.
        outages: Says it in the log.

    Attributes:
        catalogue: Who decides where a frame goes.
        label: What the log calls the session.
        is_over: Whether it is closed, or is being closed.
        is_paused: Whether the client does not keep up.
    """

    def __init__(
        self,
        members: Sequence[Member],
        names: Names,
        open_proxy: Callable[[Member, FrameLink], Proxy],
        identity: Mapping[str, Any],
        page_size: int,
        most_questions: int,
        restart: RestartPolicy | None,
        closed: Callable[[RouterTransport], None],
        board: StatusBoard,
        outages: Outages,
    ) -> None:
        self.catalogue = Catalogue(self, names, members, identity, page_size, most_questions, os.urandom(8).hex())
        self.label, self._principal = LABEL.get(), PRINCIPAL.get()
        self._open_proxy = open_proxy
        self._restart = restart
        self._closed = closed
        self._board = board
        self._outages = outages
        self._client = FrameLink(self.catalogue.take_from_client)
        self._running: dict[Member, _Running] = {}
        self._ending: set[_Running] = set()  # those whose servers have another one by now
        self._timers: set[asyncio.TimerHandle] = set()
        self.is_paused = self.is_over = False

    # What the client's proxy calls

    @property
    def is_signing_in(self) -> bool:
        """Whether a person is signing in to one of the servers."""
        return any(one.proxy.is_signing_in for one in self._running.values())

    def stop_signing_in(self) -> None:
        """Fail what waits for that: nobody waits for it."""
        for one in list(self._running.values()):
            one.proxy.stop_signing_in()

    def start(self, receiver: Receiver) -> None:
        """Begin."""
        self._client.start(receiver)

    def send(self, frames: Sequence[Frame]) -> None:
        """Take what the client says."""
        self._client.send(frames)

    def pause_reading(self) -> None:
        """Let the servers wait: the client does not keep up."""
        self.is_paused = True
        self._client.pause_reading()
        for one in self._running.values():
            one.link.hold(True)

    def resume_reading(self) -> None:
        """Go on."""
        self.is_paused = False
        for one in list(self._running.values()):
            one.link.hold(False)
        self._client.resume_reading()

    def hurry(self) -> None:
        """Stop the servers at once."""
        for one in (*self._running.values(), *self._ending):
            one.link.mute()  # what they answer to that is nobody's business
            one.proxy.stop("the session is over")

    async def close(self) -> None:
        """Close every server, and wait until they are gone."""
        if self.is_over:
            return
        self.is_over = True
        await self._client.close()
        for timer in self._timers:
            timer.cancel()
        for one in self._running.values():
            one.link.end()
        tasks = [one.task for one in (*self._running.values(), *self._ending)]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=_FAREWELL_S)
            if left:  # servers that are not even open, as like as not
                self.hurry()
                await asyncio.wait(left)
        for member in self.catalogue.members.values():
            self._outages.forget(member)
        self._closed(self)

    # What the catalogue asks for

    def tell_client(self, frame: Frame) -> None:
        """Send this to the client."""
        self._client.say(frame)

    def tell_member(self, member: Member, frame: Frame) -> None:
        """Send this to a server, which is started if nothing was sent to it before."""
        running = self._running.get(member)
        if running is None:
            if self.is_over or self.catalogue.members.get(member.name) is not member:
                return
            running = self._open(member)
        if not running.link.say(frame) and frame.kind == "request":
            refusal = error_frame(frame.key, CONNECTION_CLOSED, f"{member.name} does not read what it is sent")
            asyncio.get_running_loop().call_soon(self.catalogue.take_from_server, member, refusal)

    def remind(self, after_s: float, then: Callable[[], None]) -> None:
        """Tell the catalogue when a time is over, as long as the session is not."""
        if self.is_over:
            return

        def expire() -> None:
            self._timers.discard(timer)
            then()

        timer = asyncio.get_running_loop().call_later(after_s, expire)
        self._timers.add(timer)

    def note_state(self, member: Member) -> None:
        """Record since when a server is open; what it says waits from then on while the client does not keep up."""
        if member.state is MemberState.OPEN:
            self._running[member].link.hold(self.is_paused)
            self._outages.note_open(member)
            if member.opened_s is None:
                self._board.note_ready(member.name)
                member.opened_s = asyncio.get_running_loop().time()
        elif (
            member.state is MemberState.FAILED
            and not self.is_over  # then it is we who let it go
            and self.catalogue.members.get(member.name) is member
        ):
            was_there = member.opened_s is not None
            running = self._running.get(member)
            member.wants_person = running is not None and running.proxy.was_asked
            self._outages.note_failure(member, was_there, "" if running is None else running.proxy.not_started)
            (self._board.note_loss if was_there else self._board.note_problem)(member.name, member.reason)
            if not was_there:
                self.close_member(member)  # it will not be asked again; it may be tried again

    def close_member(self, member: Member) -> None:
        """Close a server that does not belong to the session any more, or could not be opened."""
        running = self._running.get(member)
        if running is not None:
            running.link.end()
            running.link.mute()  # what it still says is nobody's business

    def let_go(self, member: Member) -> None:
        """Have nothing to do any more with the proxy before a server, which is ending: the next is another one."""
        running = self._running.pop(member, None)
        if running is not None:
            self._ending.add(running)
            running.link.end()
            running.link.mute()

    def _open(self, member: Member) -> _Running:
        link = FrameLink(partial(self.catalogue.take_from_server, member), WAITING_BYTES)
        proxy = self._open_proxy(member, link)
        whose = copy_context()  # whoever has read the file again, where the server is new in it
        whose.run(LABEL.set, f"{self.label}, {member.name}" if self.label else member.name)
        whose.run(PRINCIPAL.set, self._principal)
        task = asyncio.get_running_loop().create_task(proxy.run(), context=whose)
        running = self._running[member] = _Running(link, proxy, task)
        task.add_done_callback(partial(self._note_end, member, running))
        return running

    def _note_end(self, member: Member, running: _Running, task: asyncio.Task[Finish]) -> None:
        reason = "its proxy was cancelled"
        with contextlib.suppress(asyncio.CancelledError):
            error = task.exception()
            reason = f"internal error: {error!r}" if error is not None else task.result().reason
        if running in self._ending:
            self._ending.remove(running)
            return
        del self._running[member]
        member.wants_person = member.wants_person or running.proxy.was_asked
        if not self.is_over and self.catalogue.members.get(member.name) is member:
            self.catalogue.lost(member, reason)
            self._try_again(member)

    def _try_again(self, member: Member) -> None:
        """Open a server once more, after a pause."""
        if self._restart is None:
            return
        opened_s, member.opened_s = member.opened_s, None
        if opened_s is not None and asyncio.get_running_loop().time() - opened_s >= self._restart.longest_s:
            member.tries = 0
        if member.tries < self._restart.attempts:
            self.remind(self._restart.pause_s(member.tries), partial(self._join, member))
            member.tries += 1

    def _join(self, member: Member) -> None:
        if self.catalogue.members.get(member.name) is member and member.state is MemberState.FAILED:
            self.catalogue.join(member)
