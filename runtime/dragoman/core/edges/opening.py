"""How a server is opened: what it is asked, in which order, and which answer counts.

Lives here: one routine. Must not: send or sleep, which its edge does; or write the questions (`offer`, `probe`).

Theory of operation. Two requests show what a server is: `initialize`, which those with a handshake accept, and
`server/discover`, which those without one answer. The likelier one goes first. Its refusal leads to the other one, and
so does silence: a server that says nothing may still be starting (`npx`, `uvx`), so the same process is asked the other
one as well, and the first answer that decides counts. It is not ended: how long it may be silent is for whoever waits
for it. The late answer to the other question is nobody's, because both then have ids of ours. One that says that it has
no handshake, and then accepts `initialize`, has opened a session: some servers of both eras (TypeScript's `serveStdio`)
speak from then on as the last of both had it. So its answer to `initialize` is waited for.

Only what has ended is started again, and then without `server/discover`: servers on old SDKs end at any method that
they do not know. An answer to `initialize` that servers without a handshake give is kept while the server is asked what
it is, and counts after all if that does not show it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from dragoman.core.codes import ASKED_IN_VAIN, INTERNAL_ERROR
from dragoman.core.edges.offer import Accepted, InitializeRefused, Offer, Retried
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded
from dragoman.core.exact_json import encode
from dragoman.core.unchecked import find_object
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

if TYPE_CHECKING:
    from dragoman.core.edges.probe import Probe
    from dragoman.core.rules.verdict import Verdict

logger = logging.getLogger("dragoman.session")

SILENCE_S: Final = 11.0
"""After how many silent seconds a server that may still be starting is asked the other question as well. Clients of
both eras wait for ten, so it gets from us what it gets from them, and in their own words: `initialize` of such a client
comes first. Sooner, a server of both eras would be made to open a session."""

READ_SILENCE_S: Final = 5.0
"""The same for one that has read the question, or is reached over HTTP: it is up, and does not know what to say. So a
client that waits for ten seconds has its answer, also where the server ends at the other question, and starts anew."""

_NO_HANDSHAKE: Final = frozenset(revision.encode() for revision in REVISIONS if revision not in HANDSHAKE_REVISIONS)
"""The revisions that no answer to `initialize` may name, as they stand in a frame."""


class Ended(NamedTuple):
    """The server has ended."""

    reason: str


_IN_VAIN: Final = b'"data":' + encode({ASKED_IN_VAIN: True}) + b"}}\n"
"""How an error of ours ends that says so; a server could write the same, and would only refuse itself."""

Event = Frame | Malformed | Ended | None
"""What happened; None: nothing, for `SILENCE_S` or `READ_SILENCE_S`."""

Found: TypeAlias = "Accepted | InitializeRefused | Refusal | Verdict | None"
"""What became of it; None: the server has ended."""


class Opener(Protocol):
    """Who carries out what the routine wants; `offer` is None where the server is known to have no handshake."""

    offer: Offer | None

    def send_probe(self, revision: str | None = None) -> Probe:
        """Ask the server what it is."""

    def send_offer(self, frame: Frame | None = None) -> bool:
        """Send `initialize`: the first offer, or another one. Whether there is any."""

    def remember(self, has_handshake: bool) -> None:
        """Remember what the server is."""

    def begin_silence(self) -> None:
        """Say when nothing has come for `SILENCE_S`, or `READ_SILENCE_S`."""

    def open(self) -> None:
        """Start the server, in place of the one that there was."""

    def pass_on(self, frame: Frame | Malformed, has_offer: bool) -> None:
        """Take what answers neither question."""


@dataclass(slots=True)
class _Known:
    """What a server that is being opened has shown of itself.

    Attributes:
        was_refused: Whether it does not know `server/discover`, or says nothing to it.
        was_rejected: Whether it has rejected the revision of that question.
        shown: What its answer to that has shown.
        found: That it needs no handshake, while it may still accept the offer.
    """

    was_refused: bool = False
    was_rejected: bool = False
    shown: Verdict | None = None
    found: Verdict | None = None

    def conclude(self, edge: Opener, said: Accepted | InitializeRefused | Retried | Refusal) -> Found | Retried:
        """Return what its answer to the offer means, with what is known of it."""
        if self.found is not None and not isinstance(said, Accepted):
            return self.found
        shown = self.shown
        if isinstance(said, InitializeRefused) and shown is not None and not (shown.is_older or shown.supported):
            return said._replace(
                message=f"{said.message} (when it was asked what it is, it gave {shown.why})",
                answer=said.answer._replace(key=None),  # which says less: it is not passed on as it is
            )
        if self.was_refused and self.found is None and isinstance(said, Accepted):
            edge.remember(has_handshake=True)
        return said


def open_server(edge: Opener, asks_first: bool) -> Generator[None, Event, Found]:
    """Open a server, which is asked first what it is or offered a session; yields where it waits for what happens."""
    question = edge.send_probe() if asks_first else None
    has_offer = not asks_first and edge.send_offer()
    kept: Frame | None = None  # a doubtful answer to the offer
    reopened = 0  # how many offers had been made when the server was started last
    known = _Known()
    while True:
        event = yield
        offer = edge.offer
        if isinstance(event, Ended):
            if offer is None or (question is None and known.found is None and reopened == offer.offers - 1):
                return None
            logger.warning("%s when it was asked what it speaks; trying once more", event.reason)
            known.was_refused = known.was_refused or question is not None
            question, reopened = None, offer.offers - 1
            edge.open()
            has_offer = has_offer and kept is not None
        elif isinstance(event, Frame) and event.kind == "error" and event.raw.endswith(_IN_VAIN):
            return _read_in_vain(event, offer)
        elif question is not None and (verdict := question.judge(event)) is not None:
            question = None
            if verdict.discovers and kept is not None:
                edge.remember(has_handshake=False)  # it has refused the offer
            if verdict.discovers and kept is None and has_offer:
                known.found = verdict
                edge.begin_silence()
                continue
            if verdict.is_rejection and verdict.revision is not None and not known.was_rejected:
                # A client chooses among the revisions that a rejection names: 2026-07-28/basic/versioning.
                known.was_rejected, question = True, edge.send_probe(verdict.revision)
                continue
            if verdict.discovers or offer is None:
                return verdict
            # After the other question, a proxy that stands for a server of both eras has given up the first one.
            known.was_refused, known.shown = verdict.is_older and not has_offer, verdict
        elif event is None:
            known.was_refused = known.was_refused or question is not None
        elif offer is None or not has_offer or not offer.is_answer(event):
            edge.pass_on(event, has_offer)
            continue
        elif isinstance(event, Malformed):
            edge.pass_on(event, has_offer)
            return offer.fail(INTERNAL_ERROR, f"the server's answer to initialize is not a response: {event.reason}")
        else:
            kept, was_kept = event, kept
            if was_kept is None and known.found is None and is_doubtful(event, offer.offered):
                question = question or edge.send_probe()
                edge.begin_silence()
                continue
        # What there is to wait for is an answer to the offer, if that is not here already.
        if kept is None and known.found is not None:
            return known.found
        if kept is None or offer is None:
            has_offer = has_offer or edge.send_offer()
            continue
        said, kept = known.conclude(edge, offer.read_answer(kept)), None
        if not isinstance(said, Retried):
            return said
        edge.send_offer(said.frame)


def _read_in_vain(frame: Frame, offer: Offer | None) -> Refusal | InitializeRefused:
    """Whatever it was asked, a person would be asked again by what comes next."""
    error = find_object(decoded(frame).body, "error")
    told = error.get("code", INTERNAL_ERROR), str(error.get("message")), error["data"]
    return Refusal(*told) if offer is None else InitializeRefused(frame, *told)


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
