"""The names that go without saying, and what is said of them."""

from __future__ import annotations

import socket

import pytest

from dragoman.cli.names import describe_names, is_loopback, is_wildcard, own_names


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "::1"])
def test_on_loopback_there_are_no_other_names(host: str) -> None:
    assert is_loopback(host)
    assert own_names(host) == (f"[{host}]" if ":" in host else host,)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_wildcard_is_no_name_of_its_own(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Desk.example.com")
    assert is_wildcard(host)
    assert own_names(host) == ("desk.example.com", "desk")
    said = describe_names(host, own_names(host))
    assert said.startswith("clients may reach this server as any address of this machine")
    assert "or as desk.example.com, desk, or by loopback names" in said
    assert said.endswith("add --allow-host NAME")


@pytest.mark.parametrize(
    ("host", "name"), [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "[2001:db8::7]"), ("a.b", "a.b")]
)
def test_elsewhere_there_is_where_it_listens_and_what_the_machine_is_called(
    host: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    assert own_names(host) == (name, "desk")
    assert describe_names(host, own_names(host)).startswith(f"clients may reach this server as {name}, desk, or by")


def test_a_machine_that_is_called_localhost_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    assert own_names("0.0.0.0") == ()
