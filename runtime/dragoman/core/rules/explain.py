"""What works between a client and a server, what is emulated, and what is lost: feature by feature, with the reason.

Lives here: looking the features up for a pair. Must not: print. Called by `dragoman explain`, and by what makes the
table in the documentation: both say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from dragoman.core.rules.capabilities import Path, Scope
from dragoman.core.rules.features import (
    CALL_FAILS,
    CONTENTS,
    FEATURES,
    PROMOTED,
    ROOTS,
    STATE,
    TASKS,
    UNASKABLE,
    UNCHANGED,
    Fate,
    Feature,
    Status,
    emulated,
    lost,
    works,
)
from dragoman_spec import era, load
from dragoman_spec.record import record

Transport = Literal["stdio", "http", "sse", "websocket"]

_PASSED_ON: Final = works("It is passed on.")
_SHARED_STATE: Final = lost("All clients share one session of the server, and whatever it keeps (scope `shared`).")
_NOBODYS_ROOTS: Final = emulated(
    "The server is told that there are none while several clients share it (scope `shared`)."
)


@record
class Row:
    """One feature of a pair."""

    feature: str
    status: Status
    why: str


@record
class Explanation:
    """What there is between a client and a server.

    Attributes:
        path: The way between them.
        rows: The features, in an order for readers.
    """

    path: Path
    rows: tuple[Row, ...]

    def select(self, status: Status) -> tuple[Row, ...]:
        """Return the features of which this becomes."""
        return tuple(row for row in self.rows if row.status is status)


def explain(
    client: str,
    server: str,
    *,
    client_transport: Transport = "stdio",
    server_transport: Transport = "stdio",
    scope: Scope = "client",
    features: Sequence[Feature] = FEATURES,
) -> Explanation:
    """Say what there is between a client and a server.

    Args:
        client: Revision of the client.
        server: Revision of the server.
        client_transport: How the client reaches the proxy.
        server_transport: How the proxy reaches the server.
        scope: Who shares a session of the server.
        features: The table.

    Raises:
        UnsupportedRevision: There is no such revision here.
    """
    path = Path(client, server, scope, tasks=True)
    over_http = {side for side, over in (("client", client_transport), ("server", server_transport)) if over == "http"}
    rows = []
    for feature in (*features, *_find_others(path, features)):
        if feature.over_http is not None and feature.over_http not in over_http:
            continue
        fate = _find_fate(feature, path)
        if fate is not None:
            rows.append(Row(feature.name, fate.status, fate.why))
    return Explanation(path, tuple(rows))


def _find_others(path: Path, features: Sequence[Feature]) -> list[Feature]:
    """Make a feature of each method that the table does not name: a new revision may have some."""
    claimed = {method for feature in features for method in feature.methods}
    known = {**load(path.server).METHODS, **load(path.client).METHODS}
    return [
        Feature(
            name,
            "client" if "client" in method.sender else "server",
            _PASSED_ON,
            _PASSED_ON,
            _PASSED_ON,
            lost("Only one of the two revisions has it."),
            methods=(name,),
        )
        for name, method in sorted(known.items())
        if name not in claimed
    ]


def _find_fate(feature: Feature, path: Path) -> Fate | None:
    """Say what becomes of a feature; None where nobody would begin to use it."""
    starter, other = (path.client, path.server) if feature.starts == "client" else (path.server, path.client)
    if not feature.is_in(starter):
        return None
    if (limited := _find_limit_of_scope(feature, path)) is not None:
        return limited
    if not feature.is_in(other):
        if path.bridge == "to_session" and feature.name == TASKS:
            return PROMOTED
        return CALL_FAILS if path.bridge == "to_stateless" and feature.lacks is UNASKABLE else feature.lacks
    if path.bridge is None:
        return UNCHANGED if feature.name == CONTENTS and path.client == path.server else feature.alike
    return feature.to_stateless if path.bridge == "to_stateless" else feature.to_session


def _find_limit_of_scope(feature: Feature, path: Path) -> Fate | None:
    """Say what sharing, or not sharing, a session of the server does to a feature."""
    if era(path.server) == "per_request":
        return None
    if path.scope == "shared" and path.bridge is None and feature.name == ROOTS and feature.is_in(path.client):
        return _NOBODYS_ROOTS
    return _SHARED_STATE if path.scope == "shared" and feature.name == STATE else None
