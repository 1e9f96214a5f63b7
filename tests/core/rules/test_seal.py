"""Tokens that only we can read and nobody can change."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.rules.state import Opened, Seal

KEY, OTHER_KEY = b"k" * 32, b"K" * 32
ONE, TWO = b"1" * 16, b"2" * 16
NONCE = b"n" * 12
SEAL = Seal(KEY, ONE)


@given(st.binary(max_size=300), st.binary(min_size=12, max_size=12))
def test_what_is_sealed_opens(payload: bytes, nonce: bytes) -> None:
    token = SEAL.seal(payload, nonce)
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert SEAL.open(token) == Opened(ONE, payload)


def test_another_instance_with_the_key_opens_it_and_sees_whose_it_is() -> None:
    assert Seal(KEY, TWO).open(SEAL.seal(b"x", NONCE)) == Opened(ONE, b"x")


def test_another_key_opens_nothing() -> None:
    assert Seal(OTHER_KEY, ONE).open(SEAL.seal(b"x", NONCE)) is None


def test_the_first_of_several_keys_seals_and_all_of_them_open() -> None:
    both = Seal((OTHER_KEY, KEY), TWO)
    assert both.open(SEAL.seal(b"x", NONCE)) == Opened(ONE, b"x")
    assert Seal(OTHER_KEY, ONE).open(both.seal(b"x", NONCE)) == Opened(TWO, b"x")


def test_keys_can_be_changed() -> None:
    seal = Seal(KEY, ONE)
    before = seal.seal(b"x", NONCE)
    seal.change_keys((OTHER_KEY,))
    assert seal.open(before) is None
    assert Seal(OTHER_KEY, TWO).open(seal.seal(b"y", NONCE)) == Opened(ONE, b"y")


def test_a_token_does_not_show_what_it_says() -> None:
    assert b"secret" not in SEAL.seal(b"secret", NONCE).encode()
    assert SEAL.seal(b"secret", NONCE) != Seal(KEY, TWO).seal(b"secret", NONCE)


def test_a_token_that_was_changed_anywhere_does_not_open() -> None:
    token = SEAL.seal(b"payload", NONCE)
    for place, letter in enumerate(token):
        changed = token[:place] + ("A" if letter != "A" else "B") + token[place + 1 :]
        assert SEAL.open(changed) is None, place


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: t + "A", lambda t: t + "=", lambda t: " " + t, str.lower]
)
def test_a_token_of_another_length_or_spelling_does_not_open(change: object) -> None:
    assert callable(change)
    assert SEAL.open(change(SEAL.seal(b"payload", NONCE))) is None


@pytest.mark.parametrize("token", ["", "A", "AQ", "é" * 80, "AQ" * 20, "Ag" * 60, "*" * 80, "A" * (1024 * 1024 + 4)])
def test_what_was_never_sealed_does_not_open(token: str) -> None:
    assert SEAL.open(token) is None


@pytest.mark.parametrize(("key", "instance"), [(b"short", ONE), (KEY, b"short")])
def test_keys_and_instances_have_a_length(key: bytes, instance: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Seal(key, instance)


def test_nonces_have_a_length() -> None:
    with pytest.raises(ValueError, match="12 bytes"):
        SEAL.seal(b"", b"short")


def test_importing_the_module_does_not_import_the_library() -> None:
    program = "import sys, dragoman.core.rules.state; sys.exit('cryptography' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
