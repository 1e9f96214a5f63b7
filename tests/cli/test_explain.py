"""`dragoman explain`: what there is between a client and a server, as text and as JSON."""

from __future__ import annotations

import argparse
import json

import pytest

from dragoman.cli.explain import TRANSPORTS, add_arguments, run
from dragoman.options import SCOPES


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
