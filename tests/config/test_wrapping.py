"""The proxy put before servers in the text of a file, and taken out again: the text is as it was."""

from __future__ import annotations

import json

import pytest

from dragoman.config.reading import parse_config
from dragoman.config.wrapping import find_entries, unwrap, wrap

PROGRAM = ["/usr/bin/dragoman"]

DESKTOP = """{
  // what I use
  "theme": "dark",
  "mcpServers": {
    "files": {
      "command": "npx", /* from npm */
      "args": ["-y", "some-server", "/srv"],
      "env": {"A": "1"},
    },
    "tracker": {
      "type": "sse",
      "url": "https://example.com/mcp",
      "headers": {"Authorization": "Bearer secret"}
    }
  }
}
"""

SHAPES = {
    "desktop": DESKTOP,
    "one line": '{"mcpServers": {"a": {"command": "x"}}}',
    "tabs": '{\n\t"servers": {\n\t\t"a": {\n\t\t\t"type": "stdio",\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n',
    "zed": '{"context_servers": {"a": {"source": "custom", "command": "x", "args": ["--stdio"], "env": null}}}',
    "command with its arguments": '{"mcp": {"a": {"type": "local", "command": ["x", "y"], "enabled": true}}}',
    "other ends of lines": '{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}\r\n',
    "a mark at the beginning": '\ufeff{"mcpServers": {"a": {"command": "é"}}}',
    "for single folders": json.dumps(
        {
            "mcpServers": {"a": {"command": "z"}},
            "projects": {"/a": {"mcpServers": {"a": {"command": "x"}}}, "/b": {"mcpServers": {"a": {"command": "y"}}}},
        },
        indent=2,
    ),
    "a secret in the query": '{"mcpServers": {"a": {"url": "https://example.com/$x?key=$$secret", "env": {"A": "1"}}}}',
    "a url alone": '{"mcpServers": {"a": {"serverUrl": "https://example.com/mcp", "disabled": false}}}',
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_text_is_as_it_was(text: str) -> None:
    wrapped = wrap(text, PROGRAM)
    assert not wrapped.left
    assert wrapped.text != text
    assert unwrap(wrapped.text, text).text == text


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_text_means_what_it_did_where_none_from_before_is_left(text: str) -> None:
    bare = unwrap(wrap(text, PROGRAM).text, None)
    before, after = (parse_config(one.removeprefix("\ufeff"), {}) for one in (text, bare.text))
    assert [(one.name, one.where) for one in after.servers] == [(one.name, one.where) for one in before.servers]
    assert [one.target for one in after.servers] == [one.target for one in before.servers]


def test_the_command_stands_behind_the_proxy() -> None:
    entry = find_entries(wrap(DESKTOP, PROGRAM).text)["files"].read()
    assert entry == {
        "command": "/usr/bin/dragoman",
        "args": ["proxy", "--", "npx", "-y", "some-server", "/srv"],
        "env": {"A": "1"},
    }


def test_a_secret_stands_in_no_argument() -> None:
    entry = find_entries(wrap(DESKTOP, PROGRAM).text)["tracker"].read()
    assert "secret" not in json.dumps(entry["args"])
    assert entry["args"][-2:] == ["--header", "Authorization: $WRAPPED_HEADER_1"]
    assert entry["env"] == {"WRAPPED_HEADER_1": "Bearer secret"}


@pytest.mark.parametrize("url", ["https://example.com/mcp?key=secret", "https://me:secret@example.com/mcp"])
def test_a_secret_of_a_url_stands_in_no_argument(url: str) -> None:
    entry = find_entries(wrap(json.dumps({"mcpServers": {"a": {"url": url}}}), PROGRAM).text)["a"].read()
    assert entry["args"] == ["proxy", "--url", "$WRAPPED_URL"]
    assert entry["env"] == {"WRAPPED_URL": url}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_we_can_read_what_we_have_wrapped(text: str) -> None:
    assert parse_config(wrap(text, PROGRAM).text.removeprefix("\ufeff"), {}).left_out == {}


def test_the_rest_of_the_file_stays() -> None:
    wrapped = wrap(DESKTOP, PROGRAM).text
    assert wrapped.splitlines()[:4] == DESKTOP.splitlines()[:4]
    assert wrapped.endswith("\n    }\n  }\n}\n")


def test_a_file_that_is_wrapped_twice_is_wrapped_once() -> None:
    once = wrap(DESKTOP, PROGRAM)
    twice = wrap(once.text, PROGRAM)
    assert (twice.text, twice.done) == (once.text, ())
    assert set(twice.left.values()) == {"the proxy is before it already"}


def test_only_the_named_server_changes() -> None:
    assert wrap(DESKTOP, PROGRAM, {"files"}).done == ("files",)


def test_what_was_changed_meanwhile_stays_changed() -> None:
    wrapped = wrap(DESKTOP, PROGRAM).text.replace('"/srv"', '"/home"')
    bare = unwrap(wrapped, DESKTOP)
    assert find_entries(bare.text)["files"].read()["args"] == ["-y", "some-server", "/home"]
    assert find_entries(bare.text)["tracker"].text == find_entries(DESKTOP)["tracker"].text


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "dragoman", "args": ["proxy", "--profile", "minimal", "--", "x"]}, "--profile minimal"),
        ({"command": "dragoman", "args": ["proxy", "--url", "https://a/b", "--insecure"]}, "--insecure"),
        ({"command": "dragoman", "args": ["proxy", "--"]}, "no command behind"),
        ({"command": "x"}, "not before it"),
        ({"command": "y", "args": ["proxy", "--", "x"]}, "not before it"),
    ],
)
def test_what_would_lose_something_stays(entry: dict[str, object], reason: str) -> None:
    text = json.dumps({"mcpServers": {"a": entry}})
    bare = unwrap(text, None)
    assert bare.text == text
    assert reason in bare.left["a"]


@pytest.mark.parametrize("entry", [5, None, {}, {"command": 5}, {"url": "file:///x"}, {"command": "x", "args": [1]}])
def test_an_entry_that_cannot_be_read_stays(entry: object) -> None:
    text = json.dumps({"mcpServers": {"a": entry, "b": {"command": "x"}}})
    edit = wrap(text, PROGRAM)
    assert edit.done == ("b",)
    assert [*edit.left] == ["a"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ('{"url": "http://a/", "headers": "Authorization: x"}', "its headers is not an object"),
        ('{"url": "http://a/", "headers": {"A": "b"}, "env": ["C=d"]}', "its env is not an object"),
        ('{"command": "x", "timeout": 1e400}', "a number that is too large"),
        ('{"command": "x", "cwd": "\\ud800"}', "text that is not Unicode"),
    ],
)
def test_an_entry_that_could_not_be_written_again_stays(entry: str, reason: str) -> None:
    """JSON has no infinity: a client would find its whole file broken."""
    text = f'{{"mcpServers": {{"a": {entry}, "b": {{"command": "x"}}}}}}'
    edit = wrap(text, PROGRAM)
    assert edit.done == ("b",)
    assert reason in edit.left["a"]
    assert entry in edit.text
