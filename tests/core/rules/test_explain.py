"""What there is between a client and a server, and that no method of any revision is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.explain import Explanation, explain
from dragoman.core.rules.features import FEATURES, Status
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS
E = "2026-07-28"


def between(client: str, server: str, **more: Any) -> Explanation:
    return explain(client, server, **more)


def fates(explanation: Explanation) -> dict[str, str]:
    return {row.feature: row.status.value for row in explanation.rows}


@pytest.mark.parametrize("revision", [*HANDSHAKE_REVISIONS, E])
def test_every_method_of_a_revision_belongs_to_a_feature(revision: str) -> None:
    package = dragoman_spec.load(revision)
    claimed = {method for feature in FEATURES for method in feature.methods}
    assert {*package.METHODS, *package.INPUT_METHODS} - claimed == set()


@pytest.mark.parametrize(
    ("client", "server", "status"), [(D, D, "works"), (D, A, "lost"), (A, D, None), (D, E, "lost"), (E, D, None)]
)
def test_a_method_that_no_feature_names_is_listed_by_itself(client: str, server: str, status: str | None) -> None:
    fewer = [feature for feature in FEATURES if "tasks/list" not in feature.methods]
    assert fates(between(client, server, features=fewer)).get("tasks/list") == status


@pytest.mark.parametrize(("client", "server"), [(D, E), (E, D)])
def test_a_method_of_both_eras_that_no_feature_names_works(client: str, server: str) -> None:
    fewer = [feature for feature in FEATURES if "completion/complete" not in feature.methods]
    assert fates(between(client, server, features=fewer))["completion/complete"] == "works"


def test_every_method_of_a_feature_is_one_of_some_revision() -> None:
    packages = [dragoman_spec.load(revision) for revision in REVISIONS]
    known = {method for package in packages for method in (*package.METHODS, *package.INPUT_METHODS)}
    assert {method for feature in FEATURES for method in feature.methods} - known == set()


def test_no_method_belongs_to_two_features() -> None:
    methods = [method for feature in FEATURES for method in feature.methods]
    assert len(methods) == len(set(methods))


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_every_feature_is_one_of_some_revision(feature: Any) -> None:
    assert any(feature.is_in(revision) for revision in REVISIONS)


@pytest.mark.parametrize("client", REVISIONS)
@pytest.mark.parametrize("server", REVISIONS)
def test_every_row_of_every_pair_has_a_fate_and_a_reason(client: str, server: str) -> None:
    for feature in FEATURES:
        starter, other = (client, server) if feature.starts == "client" else (server, client)
        if feature.over_http is not None or not feature.is_in(starter):
            continue
        rows = [row for row in between(client, server).rows if row.feature == feature.name]
        assert len(rows) == 1, (feature.name, other)
        assert rows[0].why.endswith((".", ")."))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_loses_nothing_to_itself(revision: str) -> None:
    explanation = between(revision, revision)
    assert explanation.select(Status.LOST) == explanation.select(Status.EMULATED) == ()
    assert {row.feature: row.why for row in explanation.rows}["contents of messages"] == "They pass as the same bytes."


@pytest.mark.parametrize(
    ("client", "server", "lost"),
    [
        (A, D, {"elicitation by form", "elicitation by URL", "tools in sampling", "tasks of clients"}),
        (C, D, {"elicitation by URL", "tools in sampling", "tasks of clients"}),
        (D, A, {"tasks of tools"}),
        (D, E, {"changes of roots", "advice to caches"}),
        (
            E,
            D,
            {"log messages outside of requests", "questions outside of requests", "tasks of clients"},
        ),
    ],
)
def test_a_pair_loses(client: str, server: str, lost: set[str]) -> None:
    assert {row.feature for row in between(client, server).select(Status.LOST)} == lost


@pytest.mark.parametrize(
    ("client", "server", "feature", "why"),
    [
        (D, E, "opening", "`initialize` is answered from"),
        (E, D, "opening", "`server/discover` is answered from"),
        (D, E, "sampling", "The question in the server's result becomes a request"),
        (E, D, "sampling", "The server's request becomes a question"),
        (E, E, "extensions", "They are passed on."),
        (A, B, "contents of messages", "They are converted step by step"),
    ],
)
def test_a_reason_is_that_of_the_pair(client: str, server: str, feature: str, why: str) -> None:
    (row,) = [row for row in between(client, server).rows if row.feature == feature]
    assert row.why.startswith(why)


def test_tasks_are_emulated_where_they_are_bridged() -> None:
    assert fates(between(D, E))["tasks of tools"] == "emulated"
    assert fates(between(E, D))["tasks of tools"] == "emulated"
    assert fates(between(E, A))["tasks of tools"] == "emulated"
    assert fates(between(D, A))["tasks of tools"] == "lost"
    assert "tasks of tools" not in fates(between(A, E))


def test_scopes_mean_nothing_where_the_server_has_no_session() -> None:
    assert fates(between(D, E, scope="shared")) == fates(between(D, E))


def test_a_shared_session_is_shared() -> None:
    alike, across = fates(between(D, D, scope="shared")), fates(between(E, D, scope="shared"))
    assert alike["state of a session"] == across["state of a session"] == "lost"
    assert alike["roots"] == "emulated"


@pytest.mark.parametrize(
    ("server", "words"), [(D, "the server gets an error"), (E, "the call fails, and its answer contains the question")]
)
@pytest.mark.parametrize("feature", ["elicitation by form", "elicitation by URL", "tools in sampling"])
def test_who_learns_that_a_client_cannot_be_asked_depends_on_how_the_server_asks(
    feature: str, server: str, words: str
) -> None:
    (row,) = (row for row in between(A, server).rows if row.feature == feature)
    assert row.status is Status.LOST
    assert words in row.why
