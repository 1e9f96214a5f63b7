"""What one proxy tells another of whose a request is: sealed, without a name, for a short time."""

from __future__ import annotations

import pytest

from dragoman.core.rules.state import NONCE_BYTES, Keeper, Seal
from dragoman.transports.callers import HEADER, Callers

KEY, OTHER = b"k" * 32, b"o" * 32


class Clock:
    def __init__(self, at_s: float = 1_000_000.0) -> None:
        self.at_s = at_s

    def __call__(self) -> float:
        return self.at_s


def tag(token: str, *keys: bytes, now_s: float = 1_000_000.0) -> str:
    return Callers(keys or (KEY,), Clock(now_s)).read(token).tag


def test_one_person_is_one_and_two_are_two_for_whoever_has_the_key() -> None:
    front = Callers((KEY,), Clock())
    ada, bob = front.tell("ada")[HEADER], front.tell("bob")[HEADER]
    again = Callers((KEY,), Clock()).tell("ada")[HEADER]  # after a restart
    assert tag(ada) == tag(again) != tag(bob)


def test_no_name_is_told() -> None:
    told = Callers((KEY,), Clock()).tell("ada-lovelace")[HEADER]
    assert "ada" not in told
    assert "ada" not in tag(told)
    assert tag(told) != tag(Callers((OTHER,), Clock()).tell("ada-lovelace")[HEADER], OTHER), "made with the key"


@pytest.mark.parametrize("name", ["", "session 3"])
def test_of_who_has_no_name_nothing_is_told(name: str) -> None:
    assert Callers((KEY,), Clock()).tell(name) == {}


def test_a_key_from_before_still_opens() -> None:
    told = Callers((KEY,), Clock()).tell("ada")[HEADER]
    assert tag(told, OTHER, KEY) == tag(told)


@pytest.mark.parametrize("token", ["", "x", "AQ" + "A" * 100, "ü"])
def test_what_nobody_has_sealed_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="not sealed with a key of --trust-callers"):
        tag(token)


def test_another_key_is_refused() -> None:
    with pytest.raises(ValueError, match="both proxies need the same one"):
        tag(Callers((OTHER,), Clock()).tell("ada")[HEADER])


def test_a_state_that_the_same_key_has_sealed_is_refused() -> None:
    sealed = Seal(KEY, b"i" * 16).seal(b'["0123456789abcdef", 1000000.0]', b"n" * NONCE_BYTES)
    with pytest.raises(ValueError, match="not sealed"):
        tag(sealed)
    told = Callers((KEY,), Clock()).tell("ada")[HEADER]
    assert Keeper(Seal(KEY, b"i" * 16)).seal.open(told) is None


@pytest.mark.parametrize(("later_s", "words"), [(150, "150 s ago"), (3600, "3600 s ago"), (-40, "40 s from now")])
def test_what_is_too_old_or_of_the_future_is_refused_with_a_word_on_clocks(later_s: float, words: str) -> None:
    told = Callers((KEY,), Clock()).tell("ada")[HEADER]
    with pytest.raises(ValueError, match=f"{words}.*set the clocks of both"):
        tag(told, now_s=1_000_000.0 + later_s)


def test_what_has_been_read_before_ends_all_the_same() -> None:
    clock = Clock()
    reads, told = Callers((KEY,), clock), Callers((KEY,), Clock()).tell("ada")[HEADER]
    assert reads.read(told) == reads.read(told)
    clock.at_s += 151
    with pytest.raises(ValueError, match="151 s ago"):
        reads.read(told)


@pytest.mark.parametrize("later_s", [59, -5])
def test_it_is_sealed_anew_once_a_minute_and_when_the_clock_was_put_back(later_s: float) -> None:
    clock = Clock()
    front = Callers((KEY,), clock)
    first = front.tell("ada")
    clock.at_s += later_s
    assert (front.tell("ada") is first) == (later_s > 0)
    clock.at_s += 2
    assert front.tell("ada") is not first


def test_keys_that_are_gone_open_nothing_any_more() -> None:
    reads, front = Callers((KEY,), Clock()), Callers((KEY,), Clock())
    told = front.tell("ada")[HEADER]
    reads.read(told)
    reads.change_keys((OTHER,))
    with pytest.raises(ValueError, match="not sealed"):
        reads.read(told)
    front.change_keys((OTHER,))
    assert reads.read(front.tell("ada")[HEADER]).tag
