"""One entry that cannot be used disables itself, and the other servers of the file can be used."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import ConfigError, Configuration, parse_config, read_config
from dragoman.proxy import ProxyConfig
from dragoman.router import Router

GOOD = '"good": {"command": "good"}'

BAD = {
    "missing-variable": ('{"url": "http://a/", "headers": {"A": "${NONE}"}}', 3, "no variable NONE"),
    "missing-env-file": ('{"command": "a", "envFile": "none.env"}', 3, "envFile of server 'bad' cannot be read"),
    "text": ('"npx -y server"', 3, "to be an object"),
    "number": ("5", 3, "to be an object"),
    "zed-extension": ('{"source": "extension", "settings": {}}', 3, "comes with an extension of Zed"),
    "misspelt": ('{"comand": "a"}', 3, "has the key 'comand', and no command"),
    "null-path": ('{"command": {"path": null}}', 3, "to be a string, found an object"),
    "pipe-as-env-file": ('{"command": "a", "envFile": "/dev/zero"}', 3, "it is not a file"),
}


def read(bad: str, own: str = "{}") -> Configuration:
    return parse_config(f'{{"mcpServers": {{\n {GOOD},\n "bad": {bad}\n}}, "dragoman": {own}}}', {})


@pytest.mark.parametrize("name", BAD)
def test_an_entry_that_cannot_be_used_is_left_out(name: str) -> None:
    text, line, problem = BAD[name]
    config = read(text)
    assert [server.name for server in config.enabled] == ["good"]
    (remark,) = config.remarks
    assert remark.startswith(f"line {line}, column ")
    assert problem in remark
    assert remark.endswith("; 'bad' is left out")
    with pytest.raises(LookupError, match=r"line 3"):
        config.choose("bad")


def test_options_that_are_wrong_concern_only_their_server() -> None:
    config = read('{"command": "b"}', '{"servers": {"bad": {"prefixx": "p"}, "good": {"prefix": "g"}}}')
    assert [server.name for server in config.enabled] == ["good"]
    assert config.choose("good").options.prefix == "g"


def test_a_file_of_which_nothing_can_be_used_is_an_error() -> None:
    with pytest.raises(ConfigError, match="neither command nor url"):
        parse_config('{"mcpServers": {"bad": {}}}', {})


def test_a_server_whose_entry_has_become_wrong_stays_what_it_was() -> None:
    async def change() -> None:
        router = Router(read('{"command": "b"}'), ProxyConfig(), lambda server: Exception)
        session = router.connect()
        assert set(session.catalogue.members) == {"good", "bad"}  # type: ignore[attr-defined]
        before = session.catalogue.members["bad"]  # type: ignore[attr-defined]
        router.apply(read('{"command": 5}'))
        assert session.catalogue.members["bad"] is before  # type: ignore[attr-defined]
        assert "expected command of server 'bad' to be a string" in router.status().problems["bad"]
        router.apply(read('{"command": "other"}'))
        assert session.catalogue.members["bad"] is not before  # type: ignore[attr-defined]
        assert router.status().problems == {}
        await session.close()

    asyncio.run(change())


def test_gemini_keeps_lists_of_servers_beside_them() -> None:
    text = '{"mcp": {"allowed": ["a", "b"], "excluded": ["b"]}, "mcpServers": {%s}}'
    servers = ", ".join(f'"{name}": {{"command": "{name}"}}' for name in "abc")
    assert [server.name for server in parse_config(text % servers, {}).enabled] == ["a"]


CONTINUE = """\
name: Local
schema: v1
mcpServers:
  - name: files
    command: npx
    args: ["-y", files]
    env:
      TOKEN: ${{ secrets.TOKEN }}
      MODE: on
  - name: far
    type: streamable-http
    url: https://example.com/mcp
    requestOptions:
      headers:
        Authorization: Bearer ${{ secrets.TOKEN }}
  - command: 5
"""

CODEX = """\
model = "some-model"

[mcp_servers.files]
command = "npx"
args = ["-y", "files"]
env_vars = ["TOKEN"]
startup_timeout_sec = 20

[mcp_servers.files.env]
A = "b"

[mcp_servers.far]
url = "https://example.com/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X = "y" }

[mcp_servers.bad]
# nothing yet
comand = "x"
"""


@pytest.mark.parametrize(("text", "name"), [(CONTINUE, "config.yaml"), (CODEX, "config.toml")])
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_files_in_yaml_and_toml_are_read(text: str, name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}{suffix}"
    path.write_text(text)
    config = read_config(path, {"TOKEN": "t0p"})
    files, far = (config.choose(one).target for one in ("files", "far"))
    assert files.command == ("npx", "-y", "files")  # type: ignore[union-attr]
    assert dict(files.env)["TOKEN"] == "t0p"  # type: ignore[union-attr]
    assert dict(far.headers)["Authorization"] == "Bearer t0p"  # type: ignore[union-attr]
    (remark,) = config.remarks
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "command: 5" in one or "comand" in one)
    assert remark.startswith(f"line {line}, ")


def test_yaml_has_only_two_booleans() -> None:
    config = parse_config(CONTINUE, {"TOKEN": "t0p"})
    assert dict(config.choose("files").target.env)["MODE"] == "on"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("mcpServers:\n  a: [\n", 3, "not YAML: "),
        ("mcpServers:\n  a: {}\n  a: {}\n", 3, "'a' is here twice"),
        ("[mcp_servers.a]\ncommand 'x'\n", 2, "not TOML: expected '=' after a key"),
    ],
)
def test_what_is_not_yaml_or_toml_is_placed(text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, {})
    (found,) = caught.value.problems
    assert found.line == line
    assert problem in found.problem


PIECES = [
    *'{}[],:"#',
    *('"mcpServers"', '"command"', '"path"', '"url"', '"a"', "null", "5", "1e999", "9" * 5000, '"${X}"', '"http://a"'),
    *("\n", "- ", "a: ", "&a ", "*a", "<<: ", "[mcp_servers.a]\n", "= ", "'", "dragoman"),
]


@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=30), path=st.sampled_from(["mcp.json", "mcp.yaml", "mcp.toml"])
)
def test_no_text_is_anything_but_usable_or_explained(pieces: list[str], path: str) -> None:
    with suppress(ConfigError):
        parse_config("".join(pieces), {}, path=path)
