"""Offers: one that was made for a client may be that of another in its place, and whose words a refusal has."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.codes import ASKED_IN_VAIN
from dragoman.core.edges.greeting import read_greeting
from dragoman.core.edges.offer import InitializeRefused, Offer
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.settings import Settings
from tests.core.upstream_talk import NEWEST, frame_of
from tests.proxy.conversation import initialize


def make_offer(**capabilities: Any) -> Offer:
    hello = frame_of(initialize(NEWEST, **capabilities))
    greeting = read_greeting(hello, "auto")
    assert not isinstance(greeting, Malformed)
    return Offer(Settings(), greeting, lambda _: hello, greeting.key)


@pytest.mark.parametrize(("theirs", "fits"), [({"roots": {}}, True), ({}, False), ({"sampling": {}}, False)])
def test_an_offer_goes_to_a_client_that_would_have_declared_the_same(theirs: dict[str, Any], fits: bool) -> None:
    mine, other = make_offer(roots={}), make_offer(**theirs)
    written = other.write()
    assert mine.hand_to(other, written) is fits  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "reason", "told"),
    [
        (None, "the server refused initialize: no", {"original": {"code": -32000}}),
        ({"hint": "x"}, "the server refused initialize: no", {"original": {"code": -32000}}),
        ({ASKED_IN_VAIN: True}, "no", {ASKED_IN_VAIN: True}),
    ],
)
def test_the_words_of_who_was_asked_in_vain_are_not_called_those_of_the_server(
    data: Any, reason: str, told: Any
) -> None:
    answer = Frame(b"", "error", b"1", None)
    assert InitializeRefused(answer, -32000, "no", data).told == (-32603, reason, told)
