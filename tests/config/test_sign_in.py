"""How a configuration file says how to sign in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import Configuration, parse_config, read_config
from dragoman.signin.settings import DEFAULT, SignInSettings

SERVER = {"s": {"url": "https://s.example/mcp"}}


def written(oauth: Any) -> str:
    return json.dumps({"mcpServers": SERVER, "dragoman": {"servers": {"s": {"oauth": oauth}}}})


def problems(configuration: Configuration) -> str:
    return " ".join(str(problem) for problem in configuration.servers[0].problems)


def test_the_same_can_be_said_as_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    said = {
        "clientId": "me",
        "clientSecretFile": "secret",
        "grant": "client_credentials",
        "redirectPort": 4711,
        "authorizeParams": {"prompt": "consent"},
        "resource": False,
    }
    (tmp_path / "mcp.json").write_text(written(said))
    (server,) = read_config(str(tmp_path / "mcp.json")).servers
    assert problems(read_config(str(tmp_path / "mcp.json"))) == ""
    assert server.options.sign_in == SignInSettings(
        grant="client_credentials",
        client_id="me",
        client_secret_file=str(tmp_path / "secret"),
        redirect_port=4711,
        authorize_params=(("prompt", "consent"),),
        names_resource=False,
    )


@pytest.mark.parametrize(("said", "expected"), [({}, DEFAULT), (False, None)])
def test_nothing_and_no(said: Any, expected: SignInSettings | None) -> None:
    assert parse_config(written(said)).servers[0].options.sign_in == expected
    assert parse_config(json.dumps({"mcpServers": SERVER})).servers[0].options.sign_in == DEFAULT


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (True, "expected"),
        ({"clientid": "x"}, "did you mean 'clientId'|write 'clientId'"),
        ({"grant": "password"}, "grant"),
        (
            {"tokenEndpoint": "http://a.example/t", "authorizationEndpoint": "https://a.example"},
            "expected an https URL",
        ),
        ({"grant": "client_credentials"}, "needs a client id"),
        ({"clientSecretFile": "/no/such/file"}, "there is no file"),
        ({"authorizeParams": {"a": 1}}, "authorizeParams"),
    ],
)
def test_what_cannot_be_used_is_named(said: Any, problem: str) -> None:
    file = json.loads(written(said))
    file["mcpServers"]["t"] = {"command": "x"}
    found = problems(parse_config(json.dumps(file)))
    assert any(one in found for one in problem.split("|")), found
