"""Which revision is answered, offered, believed and tried again."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.negotiation import (
    Rejection,
    choose_client_revision,
    choose_offer,
    choose_retry,
    explain_era,
    explain_unsupported,
    read_rejection,
    read_server_revision,
)
from dragoman.errors import UnsupportedRevision
from dragoman_spec import HANDSHAKE_REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS
E = "2026-07-28"


@pytest.mark.parametrize("asked", HANDSHAKE_REVISIONS)
def test_a_client_is_answered_in_the_revision_it_asked_for(asked: str) -> None:
    assert choose_client_revision(asked) == asked


@pytest.mark.parametrize("asked", [E, "draft", None, 5, []])
def test_a_client_that_asks_for_none_is_answered_in_the_newest(asked: Any) -> None:
    assert choose_client_revision(asked) == D


def test_a_pinned_client_is_answered_in_its_revision() -> None:
    assert choose_client_revision(D, A) == A


@pytest.mark.parametrize(
    ("asked", "setting", "expect_echo", "offer"),
    [
        (B, "auto", True, D),
        (B, "auto", False, B),
        (B, D, False, D),
        ("next", "auto", True, D),
        ("next", "auto", False, "next"),
        (E, "auto", False, B),
        (None, "auto", False, B),
    ],
)
def test_a_server_is_offered(asked: Any, setting: str, expect_echo: bool, offer: str) -> None:
    assert choose_offer(B, asked, setting, expect_echo=expect_echo) == offer


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_server_is_believed(revision: str) -> None:
    assert read_server_revision({"protocolVersion": revision}) == revision


@pytest.mark.parametrize("result", [{}, {"protocolVersion": E}, {"protocolVersion": 3}, {"protocolVersion": [A]}])
def test_a_server_that_names_no_handshake_revision_is_not(result: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedRevision) as caught:
        read_server_revision(result)
    assert caught.value.supported == HANDSHAKE_REVISIONS


@pytest.mark.parametrize(
    ("error", "supported"),
    [
        ({"code": 1, "message": "x", "data": {"supported": [A, "new"]}}, (A, "new")),
        ({"code": 1, "message": "x", "data": {"supported": [1, A]}}, (A,)),
        ({"code": 1, "message": "x", "data": {"supportedProtocolVersions": []}}, ()),
        ({"code": -32022, "message": "x"}, ()),
        ({"code": -32022}, ()),
        ({"code": -32602, "message": f"protocol version {C} is wrong, want {A} or 1066-10-14"}, (A,)),
        ({"code": 0, "message": "version '1' is not supported"}, ()),
        ({"code": 0, "message": "error", "data": {"reason": f"Protocol-Version {B}"}}, (B,)),
    ],
)
def test_an_explicit_rejection_is_recognised(error: dict[str, Any], supported: tuple[str, ...]) -> None:
    assert read_rejection(error, C) == Rejection(supported, C)


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32602, "message": "Invalid request parameters", "data": ""},
        {"code": -32601, "message": "Method not found"},
        {"code": -32603, "message": "no API key", "data": {"supported": {}}},
        {},
    ],
)
def test_other_errors_are_no_rejection(error: dict[str, Any]) -> None:
    assert read_rejection(error, C) is None


@pytest.mark.parametrize(
    ("supported", "requested", "asked", "retry"),
    [
        ((), D, D, C),
        ((), B, B, A),
        ((), A, A, D),
        ((), D, B, B),
        ((A, B), D, D, B),
        ((A, B), D, A, A),
        ((D,), A, A, D),
        ((A, C), B, B, C),
        ((A, D), C, C, D),
        ((E,), D, D, None),
        (("x",), D, D, None),
        ((D, A), "x", D, D),
        ((D,), D, A, None),
    ],
)
def test_the_next_offer_is_the_nearest(
    supported: tuple[str, ...], requested: str, asked: str, retry: str | None
) -> None:
    assert choose_retry(Rejection(supported, requested), asked) == retry


def test_what_was_rejected_is_not_offered_again() -> None:
    assert choose_retry(Rejection((), A), A, [D, A]) == C


def test_the_error_for_a_client_has_the_form_of_the_specification() -> None:
    assert explain_unsupported("1.0.0", (A,)) == (
        -32602,
        "Unsupported protocol version",
        {"supported": [A], "requested": "1.0.0"},
    )


def test_the_error_names_what_is_not_bridged() -> None:
    _, message, _ = explain_unsupported(D, (E,))
    assert E in message
    assert "per-request era" in message
    assert "server/discover" in message


@pytest.mark.parametrize("revision", [D, "x", None, 5])
def test_only_the_per_request_era_is_explained(revision: Any) -> None:
    assert explain_era(revision) == ""
