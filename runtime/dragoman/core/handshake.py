"""The two handshakes of a session, which are one: the client's `initialize` becomes the offer to the server.

Lives here: what the client asked, what was offered, what the server said to it, and the bytes of each. Must not: decide
what happens next (the table in `core.lifecycle`), nor which revision to choose (`core.negotiation`). Called by
`core.session`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from dragoman.core import negotiation
from dragoman.core.envelope import PARSE_ERROR, Frame, Malformed, classify, encode_error, twin_of
from dragoman.core.exact_json import decode, encode, encode_line
from dragoman.core.failures import Failed
from dragoman.core.negotiation import Rejection
from dragoman.core.settings import Settings
from dragoman.core.translate import Adaptor, Counters, Refusal, Translator
from dragoman.errors import UnsupportedRevision
from dragoman_spec import HANDSHAKE_REVISIONS, LATEST, facts

logger = logging.getLogger("dragoman.session")

_WORDS_SHOWN = 200
"""How much of what a server says about its refusal is repeated in the log, and to requests that waited for it."""

RETRY_ID = "dragoman-initialize-"
"""How the ids of later offers begin: "The request ID MUST NOT have been previously used", so none is the client's."""


PROTOCOL_VERSION_KEY = facts(LATEST).request_meta.get("protocolVersion")
"""Where a request of the per-request era names its revision: in its `_meta` (2026-07-28/basic/index)."""


DISCOVER = facts(LATEST).lifecycle.get("discover")
"""How a client of the per-request era asks what a server speaks (2026-07-28/server/discover)."""


INITIALIZED = "notifications/initialized"
LEGACY_INITIALIZED = "initialized"
"""How some clients call it, and no revision does."""

_INITIALIZED_LINE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class Answered(NamedTuple):
    """The server accepted: the line that answers the client."""

    line: bytes
    server_revision: str


class Refused(NamedTuple):
    """The server refused, not for the revision: the line that tells the client, and the server's own words."""

    line: bytes
    words: str


class Retried(NamedTuple):
    """The server rejected the revision: the line that offers it another."""

    line: bytes


class Handshake:
    """One `initialize` of the client and the offers that it leads to.

    Args:
        settings: What the user decided.
        translate: Gives the composed steps from one revision to another.
        frame: The client's request, decoded.
        counters: Where losses are counted.
    """

    __slots__ = (
        "_counters",
        "_frame",
        "_retries_left",
        "_settings",
        "_translate",
        "_tried",
        "capabilities",
        "client_revision",
        "key",
        "offered",
        "requested",
    )

    def __init__(
        self, settings: Settings, translate: Callable[[str, str], Translator], frame: Frame, counters: Counters
    ) -> None:
        assert frame.key is not None
        self._settings = settings
        self._translate = translate
        self._frame = frame
        self._counters = counters
        params = frame.body.get("params")
        params = params if isinstance(params, dict) else {}
        self.requested = params.get("protocolVersion")
        capabilities = params.get("capabilities")
        self.capabilities: dict[str, Any] = capabilities if isinstance(capabilities, dict) else {}
        self.key = frame.key
        self.client_revision = negotiation.choose_client_revision(self.requested, settings.client_revision)
        may_probe = settings.expect_echo and settings.retry_older
        self.offered = negotiation.choose_offer(
            self.client_revision, self.requested, settings.server_revision, expect_echo=may_probe
        )
        self._tried = [self.offered]
        probing = settings.server_revision == negotiation.AUTO and self.offered != self.client_revision
        self._retries_left = settings.retry_older + (may_probe and probing)

    @property
    def retried(self) -> bool:
        """Whether the first offer was rejected and another one made."""
        return self.offers > 1

    @property
    def offers(self) -> int:
        """How many offers have been made."""
        return len(self._tried)

    @property
    def sent_key(self) -> bytes:
        """The id under which the offer now stands."""
        return encode(f"{RETRY_ID}{self.offers}") if self.retried else self.key

    def is_answer(self, frame: Frame) -> bool:
        """Whether a frame of the server answers the offer; an error without id can be about nothing else."""
        if frame.kind not in ("result", "error"):
            return False
        twin = twin_of(frame.key) if frame.key is not None and self._settings.restore_ids else None
        return self.sent_key in (frame.key, twin) or frame.key is None

    def write_offer(self) -> bytes | Refusal:
        """Write the `initialize` request for the server, in the revision that it is offered."""
        line = self._adapt(self.client_revision, self.translatable(self.offered), self._frame)
        if isinstance(line, Refusal):
            return line
        if self.offered == self.requested and not self.retried:
            return line
        body = dict(decode(line))
        body["params"] = {**body.get("params", {}), "protocolVersion": self.offered}
        body["id"] = decode(self.sent_key)
        return encode_line(body)

    def read_answer(self, frame: Frame) -> Answered | Refused | Retried | Failed:
        """Read the server's response to the offer."""
        try:
            body = decode(frame.raw) if frame.body is None else frame.body
        except ValueError as error:
            return self.fail(-32603, f"the server's answer to initialize cannot be read: {error}")
        member = body["error" if frame.kind == "error" else "result"]
        if not isinstance(member, dict):
            return self.fail(-32603, "the server's answer to initialize is not an object")
        if frame.kind == "error":
            rejection = negotiation.read_rejection(member, self.offered)
            return self._read_refusal(frame, member) if rejection is None else self._take_rejection(rejection)
        return self._read_result(frame._replace(body=body), member)

    def fail(self, code: int, message: str) -> Failed:
        """Give the error for a client whose `initialize` cannot succeed."""
        return Failed(code, message, self.describe())

    def describe(self) -> dict[str, Any]:
        """Say, for the data of an error, what was asked and offered."""
        return {"requested": self.requested, "offered": self.offered}

    def _read_result(self, frame: Frame, result: dict[str, Any]) -> Answered | Failed:
        try:
            revision = negotiation.read_server_revision(result)
        except UnsupportedRevision as error:
            code, message, data = negotiation.explain_unsupported(self.requested, error.supported)
            message += f": the server answered with {error.requested}{negotiation.explain_era(error.requested)}"
            return Failed(code, message, {**data, "offered": self.offered, "answered": error.requested})
        line = self._adapt(revision, self.client_revision, frame, "initialize")
        if isinstance(line, Refusal):
            return Failed(line.code, line.message, line.data)
        return Answered(self._dress(line, revision, frame.key), revision)

    def _read_refusal(self, frame: Frame, error: dict[str, Any]) -> Refused:
        code, message = error.get("code", -32603), str(error.get("message", ""))
        words = f"{message[:_WORDS_SHOWN]} ({code})"
        if frame.key == self.key:
            return Refused(frame.raw, words)
        return Refused(encode_error(self.key, code, message, error.get("data")), words)

    def _take_rejection(self, rejection: Rejection) -> Retried | Failed:
        """Make another offer, if one is allowed and left; after one from the server's own list there is no other."""
        may_retry = self._retries_left > 0
        retry = negotiation.choose_retry(rejection, self.client_revision, self._tried) if may_retry else None
        if retry is not None:
            self._retries_left = 0 if rejection.supported else self._retries_left - 1
            self._tried.append(retry)
            self.offered = retry
            line = self.write_offer()
            if not isinstance(line, Refusal):
                named = ", ".join(rejection.supported) or "none"
                logger.warning("the server rejected %s (it named: %s); offering %s", rejection.requested, named, retry)
                return Retried(line)
        code, message, data = negotiation.explain_unsupported(self.requested, rejection.supported)
        return Failed(code, message, {**data, "offered": rejection.requested})

    def _dress(self, line: bytes, server_revision: str, key: bytes | None) -> bytes:
        """Put the client's own revision and id on the answer; the bytes stay as they are if both are there already."""
        if server_revision == self.client_revision and key == self.key:
            return line
        body = dict(decode(line))
        body["result"] = {**body["result"], "protocolVersion": self.client_revision}
        body["id"] = decode(self.key)
        return encode_line(body)

    def _adapt(self, source: str, target: str, frame: Frame, method: str = "initialize") -> bytes | Refusal:
        adaptor = Adaptor(self._translate(source, target), self._settings.on_loss, self._counters)
        line = adaptor.adapt(frame, method)
        return frame.raw if line is None else line

    def translatable(self, revision: str) -> str:
        """Give the revision to translate with: this one, or the client's where this one is nobody's."""
        return revision if revision in HANDSHAKE_REVISIONS else self.client_revision


def read_per_request_revision(frame: Frame) -> str | None:
    """Give the revision that a request names for itself, as only those of the per-request era do."""
    try:
        body = decode(frame.raw) if frame.body is None else frame.body
    except ValueError:
        return None
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = meta.get(PROTOCOL_VERSION_KEY) if isinstance(meta, dict) else None
    return named if isinstance(named, str) else None


def refuse_per_request(frame: Frame, revision: str) -> bytes:
    """Turn away a client of the per-request era, so that one that knows both eras falls back to `initialize`.

    2026-07-28/basic/transports/stdio, Backward Compatibility: any error that is not a modern one means "legacy".
    """
    if frame.method == DISCOVER:
        code, message = -32601, f"{DISCOVER} is not served"
    else:
        code, message = -32602, "Unsupported protocol version"
    message += f"{negotiation.explain_era(revision)}; open the session with initialize"
    data = {"supported": list(HANDSHAKE_REVISIONS), "requested": revision}
    return encode_error(frame.key, code, message, data)


def read_initialize(frame: Frame) -> Frame | Malformed:
    """Decode the client's `initialize`, whose params everything depends on."""
    if frame.body is not None:
        return frame
    try:
        return classify(frame.raw, decode(frame.raw))
    except ValueError as error:
        return Malformed(PARSE_ERROR, str(error))


def read_initialized(frame: Frame, accept_legacy: bool) -> Frame | None:
    """Give the client's `notifications/initialized`, if that is what it is; by its own name, whatever it came as."""
    if frame.kind != "notification":
        return None
    if frame.method == LEGACY_INITIALIZED and accept_legacy:
        logger.info("the client sent %s for %s", LEGACY_INITIALIZED, INITIALIZED)
        return Frame(_INITIALIZED_LINE, "notification", None, INITIALIZED)
    return frame if frame.method == INITIALIZED else None
