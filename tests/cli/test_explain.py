"""`dragoman explain`: what there is between a client and a server, as text and as JSON."""

from __future__ import annotations

import argparse
import json

import pytest

from dragoman.cli.explain import TRANSPORTS, add_arguments, run
from dragoman.options import SCOPES
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS


def run_with(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(argv))


def test_text_has_a_line_for_each_feature_and_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with("--client", "2025-06-18", "--server", "2025-11-25") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "A client of 2025-06-18 over stdio, a server of 2025-11-25 over stdio."
    assert lines[2].split() == ["works", "opening", "Each", "side", "is", "answered", "in", "its", "own", "revision."]
    assert lines[-1].startswith("works: ")
    assert lines[-1].endswith(", emulated: 0, lost: 3")


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--client", "2025-06-18", "--server", "2025-11-25", "--client-transport", "http", "--scope", "shared")
    assert run_with(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: value for name, value in found.items() if name != "features"} == {
        "client": "2025-06-18",
        "clientTransport": "http",
        "server": "2025-11-25",
        "serverTransport": "stdio",
        "scope": "shared",
    }
    assert found["features"][0] == {
        "feature": "opening",
        "status": "works",
        "why": "Each side is answered in its own revision.",
    }


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("scope", SCOPES)
def test_every_transport_and_scope_can_be_asked_for(transport: str, scope: str) -> None:
    arguments = ("--client", "2024-11-05", "--server", "2024-11-05", "--scope", scope)
    assert run_with(*arguments, "--client-transport", transport, "--server-transport", transport) == 0


@pytest.mark.parametrize(
    ("side", "transport"), [("client", "sse"), ("client", "websocket"), ("server", "sse"), ("server", "websocket")]
)
def test_a_revision_has_no_transport_that_came_before_it(
    side: str, transport: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with("--client", "2026-07-28", "--server", "2026-07-28", f"--{side}-transport", transport) == 2
    assert f"2026-07-28 has no {transport}" in capsys.readouterr().err


def test_scopes_are_those_of_the_proxy(capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("--client", "2026-07-28", "--server", "2025-11-25", "--scope")
    assert [run_with(*pair, scope) for scope in SCOPES] == [0, 0, 0]
    with pytest.raises(SystemExit):
        run_with(*pair, "request")
    assert "'request'" in capsys.readouterr().err


def test_without_a_pair_there_is_a_table_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Clients over stdio, servers over stdio: how many features works/emulated/lost."
    assert lines[2].split() == ["client", *REVISIONS]
    assert [line.split()[0] for line in lines[3:8]] == [*REVISIONS]
    assert all(len(line) <= 80 for line in lines)
    assert run_with("--client", "2025-06-18", "--server", "2025-11-25") == 0
    works, emulated, lost = (one.split()[1] for one in capsys.readouterr().out.splitlines()[-1].split(", "))
    assert lines[5].split()[4] == f"{works}/{emulated}/{lost}"


def test_a_table_has_the_pairs_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with("--server", "2025-11-25", "--client-transport", "sse", "--json") == 0
    pairs = [(one["client"], one["server"]) for one in json.loads(capsys.readouterr().out)]
    assert pairs == [(client, "2025-11-25") for client in HANDSHAKE_REVISIONS]
