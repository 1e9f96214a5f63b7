"""What a server is offered, and how it answers.

Lives here: one handshake with a server, over as many offers as it takes, and the frames of each. Must not: decide what
happens next (the tables in `lifecycle`), nor which revision to choose (`core.negotiation`). Called by `upstream`.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, Protocol

from dragoman.core import negotiation
from dragoman.core.codes import ASKED_IN_VAIN, INTERNAL_ERROR
from dragoman.core.commands import Side
from dragoman.core.edges.greeting import Greeting
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, Malformed, Refusal, read_params, twin_of
from dragoman.core.exact_json import decode, encode, encode_line
from dragoman.core.negotiation import Rejection
from dragoman.core.settings import Settings
from dragoman.core.translate import Counters
from dragoman.core.unchecked import MOST_LEVELS, find_object, is_deeper
from dragoman.errors import UnsupportedRevision
from dragoman_spec import HANDSHAKE_REVISIONS

logger = logging.getLogger("dragoman.session")

WORDS_SHOWN = 200
"""How much of what a server says about its refusal is repeated in the log, and to requests that waited for it."""

OFFER_ID = "dragoman-initialize-"
"""How the ids of later offers begin: "The request ID MUST NOT have been previously used", so none is the client's. Also
that of a first offer whose answer may come late: then nobody else may have that id."""


class Accepted(NamedTuple):
    """The server accepted: its answer, decoded, and the revision that it speaks."""

    answer: Frame
    revision: str


class InitializeRefused(NamedTuple):
    """The server refused, not for the revision: its answer, and its own words."""

    answer: Frame
    code: int
    message: str
    data: Any

    @property
    def words(self) -> str:
        """For the log, and for requests that waited."""
        return f"{self.message[:WORDS_SHOWN]} ({self.code})"

    @property
    def told(self) -> Refusal:
        """What a client is told that has not sent `initialize` itself: this answers none of its requests."""
        if isinstance(self.data, dict) and ASKED_IN_VAIN in self.data:
            return Refusal(INTERNAL_ERROR, self.message, {ASKED_IN_VAIN: True})
        said = f"the server refused initialize: {self.message[:WORDS_SHOWN]}"
        return Refusal(INTERNAL_ERROR, said, {"original": {"code": self.code}})


class Retried(NamedTuple):
    """The server rejected the revision: the frame that offers it another."""

    frame: Frame


class Introduce(Protocol):
    """Writes an `initialize` request."""

    def __call__(self, revision: str) -> Frame | Refusal:
        """Write it for a server that is offered this revision."""


class Offer:
    """One `initialize` of a client, or of the proxy itself, and the offers that it leads to.

    Args:
        settings: What the user decided.
        greeting: Whose session leads to it.
        introduce: Writes the request; the revision and the id that it names are replaced where they do not fit.
        key: Its id.
    """

    __slots__ = ("_greeting", "_introduce", "_key", "_retries_left", "_settings", "_tried", "offered")

    def __init__(self, settings: Settings, greeting: Greeting, introduce: Introduce, key: bytes) -> None:
        self._settings = settings
        self._greeting = greeting
        self._introduce = introduce
        self._key = key
        may_probe = settings.expect_echo and settings.retry_older
        self.offered = negotiation.choose_offer(
            greeting.revision, greeting.requested, settings.server_revision, expect_echo=may_probe
        )
        self._tried = [self.offered]
        probing = settings.server_revision == negotiation.AUTO and self.offered != greeting.revision
        self._retries_left = settings.retry_older + (may_probe and probing)

    @property
    def offers(self) -> int:
        """How many offers have been made."""
        return len(self._tried)

    @property
    def key(self) -> bytes:
        """The id under which the offer now stands."""
        return self._key if self.offers == 1 else encode(f"{OFFER_ID}{self.offers}")

    @property
    def translatable(self) -> str:
        """The revision to translate with: the one offered, or the client's where that is nobody's."""
        return self.offered if self.offered in HANDSHAKE_REVISIONS else self._greeting.revision

    def is_answer(self, frame: Frame | Malformed) -> bool:
        """Whether a frame of the server answers the offer; an error without id can be about nothing else."""
        if isinstance(frame, Malformed):
            return frame.is_response and frame.key == self.key
        if frame.kind not in ("result", "error"):
            return False
        twin = twin_of(frame.key) if frame.key is not None and self._settings.restore_ids else None
        return self.key in (frame.key, twin) or frame.key is None

    def hand_to(self, other: Offer, written: Frame) -> bool:
        """Let the offer that was made be that of another client, if that one would have declared the same."""
        mine = self.write()
        if isinstance(mine, Refusal) or _read_capabilities(mine) != _read_capabilities(written):
            return False
        self._greeting, self._introduce = other._greeting, other._introduce
        return True

    def write(self) -> Frame | Refusal:
        """Write the `initialize` request for the server, in the revision that it is offered."""
        target = self.translatable
        frame = self._introduce(target)
        if isinstance(frame, Refusal):
            return frame
        # A conversion names the revision that it leads to; without one, the offer may not be what was asked for.
        named = target if target != self._greeting.revision else self._greeting.requested
        if self.offered == named and self.offers == 1 and frame.key == self._key:
            return frame
        body = dict(decode(frame.raw) if frame.body is None else frame.body)
        body["params"] = {**find_object(body, "params"), "protocolVersion": self.offered}
        body["id"] = decode(self.key)
        return Frame(encode_line(body), "request", self.key, "initialize", body)

    def read_answer(self, frame: Frame) -> Accepted | InitializeRefused | Retried | Refusal:
        """Read the server's response to the offer."""
        try:
            body = decode(frame.raw) if frame.body is None else frame.body
        except ValueError as error:
            return self.fail(INTERNAL_ERROR, f"the server's answer to initialize cannot be read: {error}")
        member = body["error" if frame.kind == "error" else "result"]
        if not isinstance(member, dict) or is_deeper(member):
            expected = "not an object" if not isinstance(member, dict) else f"nested deeper than {MOST_LEVELS} levels"
            return self.fail(INTERNAL_ERROR, f"the server's answer to initialize is {expected}")
        if frame.kind == "result":
            return self._read_result(frame._replace(body=body), member)
        rejection = negotiation.read_rejection(member, self.offered)
        if rejection is not None:
            return self._take_rejection(rejection)
        return InitializeRefused(
            frame, member.get("code", INTERNAL_ERROR), str(member.get("message", "")), member.get("data")
        )

    def fail(self, code: int, message: str) -> Refusal:
        """Return the error for a client whose `initialize` cannot succeed."""
        return Refusal(code, message, self.describe())

    def describe(self) -> dict[str, Any]:
        """Say, for the data of an error, what was asked and offered."""
        return {"requested": self._greeting.requested, "offered": self.offered}

    def _read_result(self, frame: Frame, result: dict[str, Any]) -> Accepted | Refusal:
        try:
            revision = negotiation.read_server_revision(result)
        except UnsupportedRevision as error:
            code, message, data = negotiation.explain_unsupported(self._greeting.requested, error.supported)
            message += f": the server answered with {error.requested}{negotiation.explain_era(error.requested)}"
            return Refusal(code, message, {**data, "offered": self.offered, "answered": error.requested})
        return Accepted(frame, revision)

    def _take_rejection(self, rejection: Rejection) -> Retried | Refusal:
        """Make another offer, if one is allowed and left; after one from the server's own list there is no other."""
        may_retry = self._retries_left > 0
        retry = negotiation.choose_retry(rejection, self._greeting.revision, self._tried) if may_retry else None
        if retry is not None:
            self._retries_left = 0 if rejection.supported else self._retries_left - 1
            self._tried.append(retry)
            self.offered = retry
            frame = self.write()
            if not isinstance(frame, Refusal):
                named = ", ".join(rejection.supported) or "none"
                logger.warning("the server rejected %s (it named: %s); offering %s", rejection.requested, named, retry)
                return Retried(frame)
        code, message, data = negotiation.explain_unsupported(self._greeting.requested, rejection.supported)
        return Refusal(code, message, {**data, "offered": rejection.requested})


def _read_capabilities(frame: Frame) -> Any:
    return read_params(frame).get("capabilities")


def pass_on(greeting: Greeting, wiring: Wiring, counters: Counters) -> Introduce:
    """Return what writes a client's own `initialize` for its server.

    Args:
        greeting: What the client asked.
        wiring: Gives what translates it.
        counters: Where losses are counted.
    """

    def introduce(revision: str) -> Frame | Refusal:
        adaptor = wiring.make_adaptor(Side.CLIENT, greeting.revision, revision, counters)
        frame = adaptor.adapt(greeting.frame, "initialize")
        return greeting.frame if frame is None else frame

    return introduce
