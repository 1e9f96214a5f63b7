"""How a server is asked what it is: with a handshake, or without.

Lives here: what an upstream edge does about it, by the table `lifecycle.UPSTREAM`. Must not: read the answer (`probe`).
A base of `upstream.UpstreamEdge`.

A server is asked where its answer to `initialize` leaves a doubt, where it is said to have no handshake, or where its
client can do without one. A doubtful answer counts after all if the server does not show that it has none.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import Wake
from dragoman.core.edges.lifecycle import UpstreamEvent, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, Offer, Retried
from dragoman.core.edges.restarting import Restarting
from dragoman.core.envelope import Frame, Malformed, decoded, result_frame
from dragoman.core.translate import Refusal
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

if TYPE_CHECKING:
    from dragoman.core.bridge.verdict import Verdict
    from dragoman.core.edges.probe import Probe

GLANCES: Final = 5
"""How often the clock is looked at while a server is asked what it is. One that has read the question, and is silent at
the first look, may have died of it without ending: it is started again at once if it can be offered a session. One that
has not read it is still starting."""

_NO_HANDSHAKE: Final = frozenset(revision.encode() for revision in REVISIONS if revision not in HANDSHAKE_REVISIONS)
"""The revisions that no answer to `initialize` may name, as they stand in a frame."""

logger = logging.getLogger("dragoman.session")


class Probing(Restarting):
    """The part of an upstream edge that finds out the era of its server."""

    __slots__ = ("_doubted", "_glances", "_probe", "_probes", "_verdict", "has_read")

    has_read: bool  # whether the server has taken all that it was sent: the host says so before each `expire`
    takes_headers: bool
    _doubted: Frame | None  # what it answered to `initialize`, while it is asked what it is
    _glances: int  # how often the clock will be looked at before the server counts as silent
    _keeps_nothing: bool
    _offer: Offer | None
    _probe: Probe | None
    _probes: int
    _verdict: Verdict | None  # the last one: it has discovered, or rejected the revision of the question
    _waiting: Frame | None

    def _follow_answer(self, answer: Accepted | InitializeRefused | Retried | Refusal) -> None:
        raise NotImplementedError

    def _fail(self, failure: Refusal) -> None:
        raise NotImplementedError

    def _tell_offered(self) -> None:
        raise NotImplementedError

    def expire(self) -> None:
        """Take note that the time has passed that this edge asked for."""
        if self.state is UpstreamState.PROBED:  # it says nothing about what it is
            may_offer = self._waiting is not None and self._doubted is None
            self._glances -= 1
            if self._glances > 0 and not (may_offer and self.has_read):
                self._outbox.add(Wake(self, self._probe_glance_s()))
                return
            if may_offer:
                self._offer_afresh("it did not answer")
                return
            self._take_verdict(None, "it did not answer in time")
        else:
            super().expire()

    def _take_probed(self, frame: Frame | Malformed) -> None:
        probe = self._probe
        assert probe is not None
        if isinstance(frame, Malformed):
            self._tell(frame)
            if frame.is_response and frame.key == probe.key:
                self._take_verdict(None, f"its answer is not a response: {frame.reason}")
        elif probe.is_answer(frame):
            verdict = probe.read(frame)
            self._take_verdict(verdict, verdict.why)
        elif frame.kind == "request" and frame.method == "ping":
            self.send(result_frame(frame.key or b"null", {}))
        else:
            logger.debug("%s of the server dropped: it was asked what it is", frame.kind)

    def _take_verdict(self, verdict: Verdict | None, why: str) -> None:
        if not self.takes_headers:
            self._outbox.add(Wake(self, None))
        rejected, self._verdict = self._verdict, verdict
        if verdict is not None and verdict.discovered is not None and verdict.revision is not None:
            self._doubted = None
            self._advance(UpstreamEvent.DISCOVERED)
            return
        if verdict is not None and verdict.is_rejection and verdict.revision is not None and rejected is None:
            self._advance(UpstreamEvent.PROBE_REJECTED)
            return
        self._verdict = None
        if self._doubted is not None:
            self._take_doubted()
        elif self._waiting is not None:
            self._offer_session()
        else:
            message = f"the server was said to speak {self._settings.server_revision}, and does not: {why}"
            self._fail(Refusal(INTERNAL_ERROR, message, {"supported": list(verdict.supported) if verdict else []}))

    def _offer_afresh(self, reason: str) -> None:
        """Open a session with a fresh server: the one that was asked what it is may answer nothing any more."""
        logger.info("%s when it was asked what it is; starting it once more", reason)
        self._advance(UpstreamEvent.LOST_ON_RETRY)
        self._offer_session()

    def _offer_session(self) -> None:
        """Open a session after all: the server has not shown that it can do without."""
        self._advance(UpstreamEvent.HANDSHAKE_FOUND)
        self._tell_offered()

    def _take_doubted(self) -> None:
        """Let its answer to `initialize` count."""
        frame, self._doubted = self._doubted, None
        assert frame is not None
        assert self._offer is not None
        self._follow_answer(self._offer.read_answer(frame))

    # An action of the table

    def _send_probe(self) -> None:
        # Loaded where it is needed: most servers have a handshake.
        from dragoman.core.edges.probe import Probe

        self._probes += 1
        # A client chooses among the revisions that a rejection names: 2026-07-28/basic/versioning.
        self._probe = Probe(self._probes, self._verdict.revision if self._verdict is not None else None)
        self.send(self._probe.write())
        self._glances = GLANCES
        if not self.takes_headers:  # over HTTP it is answered, or the transport gives up
            self._outbox.add(Wake(self, self._probe_glance_s()))

    def _write_ping(self, key: bytes) -> Frame:
        if not self._keeps_nothing:
            return super()._write_ping(key)
        from dragoman.core.edges.probe import Probe

        self._probes += 1
        return Probe(self._probes).write()

    def _probe_glance_s(self) -> float:
        from dragoman.core.bridge.verdict import PROBE_TIMEOUT_S

        return PROBE_TIMEOUT_S / GLANCES


def is_doubtful(frame: Frame, offered: str) -> bool:
    """Whether its answer may be that of a server that has no handshake."""
    if frame.kind == "result" and not any(revision in frame.raw for revision in _NO_HANDSHAKE):
        return False
    try:
        body = decoded(frame).body
    except ValueError:  # whoever reads the answer says so
        return False
    if frame.kind == "result":
        result = body["result"]
        return isinstance(result, dict) and str(result.get("protocolVersion")).encode() in _NO_HANDSHAKE
    from dragoman.core.edges.probe import suspects_newer

    return isinstance(body["error"], dict) and suspects_newer(body["error"], offered)
