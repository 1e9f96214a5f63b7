"""The pages of configuration files and of options are made from the tables that their readers use."""

import dataclasses

import pytest

from dragoman.config import model
from dragoman.config.own_keys import ROUTER_KEYS, SERVER_KEYS
from tests.docs import options
from tests.docs.configuration import PAGE, documented_fields, text


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run `python -m tests.docs.configuration`"


def test_the_page_of_options_is_up_to_date() -> None:
    assert options.PAGE.read_text(encoding="utf-8") == options.text(), "run `python -m tests.docs.options`"


def test_every_option_has_a_key() -> None:
    assert {key.setting for key in ROUTER_KEYS} == {field.name for field in dataclasses.fields(model.RouterOptions)}
    assert {key.setting for key in SERVER_KEYS} == {field.name for field in dataclasses.fields(model.ServerOptions)}


@pytest.mark.parametrize(
    "owner",
    [
        model.Configuration,
        model.ServerConfig,
        model.CommandTarget,
        model.UrlTarget,
        model.RouterOptions,
        model.ServerOptions,
    ],
)
def test_every_field_is_documented(owner: type) -> None:
    assert documented_fields(owner) == {field.name for field in dataclasses.fields(owner)}
