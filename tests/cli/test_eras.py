"""The flags about the bridge between the eras, and the key of the states that clients carry."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from dragoman.cli.options import add_options
from dragoman.cli.proxy import chosen_bridging
from dragoman.core.rules.strategy import SETTINGS
from dragoman.options import ERAS
from dragoman.proxy import ProxyConfig
from dragoman.values import state_key_file

KEY = b"0123456789abcdef" * 2


def write(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "key"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_choices_are_those_of_the_bridge() -> None:
    (questions,) = [option for option in ERAS if option.name == "questions"]
    assert set(questions.kind) == set(SETTINGS)


def test_the_defaults_are_those_of_a_proxy() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, ERAS)
    assert ProxyConfig(**chosen_bridging(parser.parse_args([]))) == ProxyConfig()


@pytest.mark.parametrize("end", ["", "\n", " \r\n"])
def test_a_key_is_read(end: str, tmp_path: Path) -> None:
    assert state_key_file(write(tmp_path, KEY.hex() + end)).keys == (KEY,)


def test_further_lines_are_further_keys(tmp_path: Path) -> None:
    old = bytes(32)
    assert state_key_file(write(tmp_path, f"{KEY.hex()}\n{old.hex()}\n")).keys == (KEY, old)


def test_there_is_a_limit_for_keys(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than 8 keys"):
        state_key_file(write(tmp_path, f"{KEY.hex()}\n" * 9))


@pytest.mark.parametrize("text", ["", "secret", KEY.hex() + "00", "x" * 64, "0123456789abcdef " * 4])
def test_what_is_no_key_is_refused_and_not_shown(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hexadecimal digits") as caught:
        state_key_file(write(tmp_path, text))
    said = str(caught.value)
    assert "hexadecimal digits" in said
    assert "openssl rand -hex 32" in said
    assert not text or text not in said


@pytest.mark.parametrize("mode", [0o644, 0o602, 0o620, 0o601])
def test_a_key_that_others_can_use_is_refused(mode: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can be used by others"):
        state_key_file(write(tmp_path, KEY.hex(), mode))


def test_a_group_may_read_a_key(tmp_path: Path) -> None:
    assert state_key_file(write(tmp_path, KEY.hex(), 0o440)).keys == (KEY,)


def test_a_key_may_come_through_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, KEY.hex().encode())
    os.close(writer)
    try:
        assert state_key_file(f"/dev/fd/{reader}").keys == (KEY,)
    finally:
        os.close(reader)


def test_there_has_to_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        state_key_file(str(tmp_path / "nowhere"))


def test_a_key_is_not_shown_with_a_configuration() -> None:
    assert KEY.decode() not in repr(ProxyConfig(state_key=KEY))
