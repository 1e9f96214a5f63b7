"""Asking one server after the other for a resource that is on no list: to read changes nothing.

Lives here: whose turn it is. Must not: know URIs and lists (`routes`). A server that is slow does not hold up the
others: after as long as a merged list would wait for it, the next is asked as well, and the first who has it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dragoman.core.calls import is_unanswered
from dragoman.core.envelope import Frame
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.router.member import Member, MemberState

_READ = "resources/read"


class Search:
    """One resource that is sought.

    Args:
        common: What all parts know.
        servers: Who may have it, in their order.
        params: Of the requests.
        meta: Their metadata.
        sender: In whose name it is sought.
        then: Called once, with who has it, or None, and the answer for the client.
    """

    def __init__(
        self,
        common: Common,
        servers: Sequence[Member],
        params: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        sender: str,
        then: Callable[[Member | None, Frame], None],
    ) -> None:
        self._common = common
        self._left = list(servers)
        self._params = params
        self._meta = meta
        self._sender = sender
        self._then = then
        self._is_over = False
        self._asked: dict[Member, bytes] = {}

    def go_on(self, refusal: Frame) -> None:
        """Ask the next server; where nobody is left, this is the answer."""
        while self._left:
            member = self._left.pop(0)
            if member.state is not MemberState.FAILED:  # it may have gone since
                key = self._asked[member] = self._common.next_key()
                member.suspect(key)  # of the client's request, which has another id here
                self._common.ask(
                    member, _READ, self._params, partial(self._take, member), self._meta, key, self._sender
                )
                if self._left:
                    self._common.outside.remind(member.list_timeout_s, partial(self._expire, member, refusal))
                return
        if not self._asked:
            self._end(None, refusal)

    def _expire(self, member: Member, refusal: Frame) -> None:
        if member in self._asked:
            self.go_on(refusal)

    def _take(self, member: Member, answer: Frame) -> None:
        key = self._asked.pop(member, None)
        if key is not None and not is_unanswered(answer):
            member.suspects.clear(key)
        if answer.kind == "result":
            self._end(member, answer)
        else:
            self.go_on(answer)

    def stop(self, reason: str) -> None:
        """Ask nobody any more."""
        self._is_over = True
        self._left.clear()
        asked, self._asked = self._asked, {}
        for member, key in asked.items():
            self._common.withdraw(member, key, reason)

    def _end(self, member: Member | None, answer: Frame) -> None:
        was_over = self._is_over
        self.stop("another server has answered")
        if not was_over:
            self._then(member, answer)
