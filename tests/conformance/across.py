"""What the conformance suite misses where client and server are of different eras, and why.

`docs/eras.md` repeats each of these sentences.
"""

from __future__ import annotations

from typing import Final

ACROSS: Final = "across"
"""The column of the other era's peer: the server where servers are judged, the client where clients are."""

OLDER: Final = "2025-11-25"
NEWER: Final = "2026-07-28"

_KEY: Final = "the questions of a server with a handshake have ids, and the proxy gives them keys of its own"
_EARLY: Final = "a server with a handshake asks, and cannot be answered before"
_CODE: Final = "the server says by an error of its own that it does not know a method"
_FIXED: Final = "the tools and prompts of this server with a handshake do not change"
_POLL: Final = "a server without a handshake does not ask a client to come back for the rest of a stream"
_OFFER: Final = "the first request of a client with a handshake is initialize, which has no metadata and no headers"

WHY: Final[dict[tuple[str, ...], str]] = {
    (NEWER, "input-required-result-basic-elicitation"): _KEY,
    (NEWER, "input-required-result-ignore-extra-params"): _EARLY,
    (NEWER, "server-stateless", "sep-2575-http-server-method-not-found-404"): _CODE,
    (NEWER, "server-stateless", "sep-2575-server-sends-prompts-list-changed-on-subscription"): _FIXED,
    (NEWER, "server-stateless", "sep-2575-server-sends-tools-list-changed-on-subscription"): _FIXED,
    (NEWER, "request-metadata", "ClientSendsVersionHeader"): _OFFER,
    (NEWER, "request-metadata", "ClientPopulatesMeta"): _OFFER,
    (NEWER, "request-metadata", "ClientSendsClientInfo"): _OFFER,
    (OLDER, "server-sse-polling"): _POLL,
}


def explain(revision: str, scenario: str, check: str) -> str | None:
    """Give the sentence that explains a loss; None where there is none."""
    return WHY.get((revision, scenario, check)) or WHY.get((revision, scenario))
