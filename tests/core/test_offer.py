"""An offer that was made for one client may be that of another, which has come in its place."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.edges.greeting import read_greeting
from dragoman.core.edges.offer import Offer
from dragoman.core.envelope import Malformed
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
