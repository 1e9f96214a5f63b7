"""Configuration files that are broken: each error names line, column and remedy, and repeats no secret."""

import contextlib
import json
from pathlib import Path

import pytest

from dragoman.config import ConfigError, parse_config, read_config
from dragoman.core.switch.router.names import Names
from tests.support.effort import effort

ENVIRONMENT = {"TOKEN": "t0p-secret"}


def broken(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, ENVIRONMENT, path="/nowhere/mcp.json")
    return caught.value


SYNTAX = {
    "empty": ("", 1, 1, "the file is empty", "begin with"),
    "comma": (
        '{"mcpServers": {\n  "a": {"command": "a"}\n  "b": {"command": "b"}\n}}',
        2,
        24,
        "a comma or }",
        "put a comma",
    ),
    "unclosed": ('{"mcpServers": {\n  "a": {"command": "a"}\n}', 3, 2, "before the { of line 1, column 1", "add }"),
    "one-more": ('{"mcpServers": {}}\n}', 2, 1, "expected the end of the file", "remove this }"),
    "bracket": ('{"mcpServers": {"a": {"command": "a", "args": ["b"}}}', 1, 51, "a comma or ]", "write ] here"),
    "single-quotes": ("{'mcpServers': {}}", 1, 2, "expected a name", "straight double quotes"),
    "curly-quotes": ('{"mcpServers": {"a": {"command": “a”}}}', 1, 34, "expected a value", "straight double quotes"),
    "no-quotes": ("{mcpServers: {}}", 1, 2, "expected a name", 'write "mcpServers"'),
    "open-string": ('{"mcpServers": {"a": {"command": "a}}}', 1, 34, "does not end in its line", 'close it with "'),
    "backslash": ('{"mcpServers": {"a": {"command": "C:\\Users\\x"}}}', 1, 37, "is not an escape", "backslash twice"),
    "python": ('{"mcpServers": {"a": {"disabled": True}}}', 1, 35, "expected a value", "write true"),
    "colon": ('{"mcpServers" {}}', 1, 15, "a colon after 'mcpServers'", 'write "mcpServers":'),
    "twice": (
        '{"mcpServers": {\n "a": {"command": "a"},\n "a": {"command": "b"}}}',
        3,
        2,
        "is here twice",
        "in line 2",
    ),
    "comment": ('{"mcpServers": {} /* why }', 1, 19, "has no end", "close it with */"),
    "two-commas": ('{"mcpServers": {},,}', 1, 19, "expected a name", "remove it"),
}

MEANING = {
    "array": ("[]", 1, 1, "expected an object, found an array", "begin with"),
    "no-servers": ('{"theme": "dark"}', 1, 1, "no mcpServers", "begin with"),
    "misspelt": ('{"mcpServer": {}}', 1, 2, "found 'mcpServer'", 'write "mcpServers"'),
    "at-the-top": ('{"a": {"command": "a"}}', 1, 2, "stands at the top", "put all servers into"),
    "nameless": ('{"command": "a"}', 1, 1, "without a name", '"name"'),
    "two-tables": ('{"mcpServers": {}, "servers": {}}', 1, 31, "found mcpServers and servers", "move all"),
    "our-key-with-a-dot": (
        '{"mcpServers": {"a": {"command": "a"}}, "dragoman.rules": []}',
        1,
        41,
        "'dragoman.rules' means nothing at the top",
        'write "dragoman": {"rules": … }',
    ),
    "our-object-in-capitals": ('{"mcpServers": {}, "Dragoman": {}}', 1, 20, "'Dragoman' means nothing", '"dragoman"'),
    "our-rules-alone": (
        '{"mcpServers": {}, "rules": [{"deny": {"tools": ["x"]}}]}',
        1,
        20,
        "'rules' means nothing at the top",
        'write "dragoman": {"rules": … }',
    ),
    "not-an-object": ('{"mcpServers": {"a": "npx a"}}', 1, 22, "server 'a' to be an object", "between { and }"),
    "neither": ('{"mcpServers": {"a": {"args": []}}}', 1, 17, "neither command nor url", '"command": "program"'),
    "both": (
        '{"mcpServers": {"a": {"command": "a", "url": "http://a"}}}',
        1,
        46,
        "both a command and a url",
        "keep the one",
    ),
    "one-string": (
        '{"mcpServers": {"a": {"command": "npx -y b"}}}',
        1,
        34,
        "in one string",
        '"command": "npx", "args": ["-y", "b"]',
    ),
    "one-string-in-a-list": (
        '{"mcpServers": {"a": {"command": ["npx -y b"]}}}',
        1,
        34,
        "in one string",
        '"command": "npx", "args": ["-y", "b"]',
    ),
    "args": (
        '{"mcpServers": {"a": {"command": "a", "args": "-y b"}}}',
        1,
        47,
        "an array of strings",
        'write ["-y", "b"]',
    ),
    "number": ('{"mcpServers": {"a": {"command": "a", "args": ["-p", 80]}}}', 1, 54, "item 2 of args", 'write "80"'),
    "env": ('{"mcpServers": {"a": {"command": "a", "env": {"PORT": 80}}}}', 1, 55, "PORT of env", 'write "80"'),
    "env-array": (
        '{"mcpServers": {"a": {"command": "a", "env": ["A=b"]}}}',
        1,
        46,
        "to be an object",
        '{"NAME": "value"}',
    ),
    "ours": (
        '{"mcpServers": {"a": {"command": "a", "env": {"DRAGOMAN_X": "1"}}}}',
        1,
        46,
        "cannot be the name",
        "take it out",
    ),
    "flag": (
        '{"mcpServers": {"a": {"command": "a", "disabled": "true"}}}',
        1,
        51,
        "to be true or false",
        "without quotes",
    ),
    "cwd": (
        '{"mcpServers": {"a": {"command": "a", "cwd": "/no/such"}}}',
        1,
        46,
        "no directory '/no/such'",
        "create it",
    ),
    "env-file": (
        '{"mcpServers": {"a": {"command": "a", "envFile": "no"}}}',
        1,
        50,
        "cannot be read",
        "correct the path",
    ),
    "scheme": (
        '{"mcpServers": {"a": {"url": "example.com/mcp"}}}',
        1,
        30,
        "begins with http",
        "https://example.com/mcp",
    ),
    "type": ('{"mcpServers": {"a": {"type": "pigeon", "url": "http://a"}}}', 1, 31, "not a transport", "stdio, http"),
    "type-of-command": (
        '{"mcpServers": {"a": {"type": "http", "command": "a"}}}',
        1,
        31,
        "a type that needs a url",
        '"url"',
    ),
    "header": (
        '{"mcpServers": {"a": {"url": "http://a", "headers": {"Accept": "b"}}}}',
        1,
        64,
        "by the transport itself",
        "remove",
    ),
    "variable": ('{"mcpServers": {"a": {"command": "${NOBODY}"}}}', 1, 34, "no variable NOBODY", "${NOBODY:-}"),
    "input": ('{"servers": {"a": {"command": "${input:my-key}"}}}', 1, 31, "VS Code asks", "DRAGOMAN_INPUT_MY_KEY"),
    "own-key": ('{"mcpServers": {}, "dragoman": {"prefx": "always"}}', 1, 33, "no key 'prefx'", "write 'prefix'"),
    "own-value": (
        '{"mcpServers": {}, "dragoman": {"prefix": "never"}}',
        1,
        43,
        "one of clash, always, found",
        "correct",
    ),
    "own-empty": ('{"mcpServers": {}, "dragoman": {"name": " "}}', 1, 41, "dragoman.name is empty", "leave it out"),
    "own-zero": (
        '{"mcpServers": {}, "dragoman": {"pageSize": 0}}',
        1,
        45,
        "a whole number above 0, found '0'",
        "correct",
    ),
    "own-certificate": (
        '{"mcpServers": {"a": {"url": "https://h/"}}, "dragoman": {"servers": {"a": {"caFile": "/dev/null"}}}}',
        1,
        87,
        "expected certificates in PEM, found none in '/dev/null'",
        "correct",
    ),
    "own-server": (
        '{"mcpServers": {"files": {"command": "a"}}, "dragoman": {"servers": {"file": {}}}}',
        1,
        70,
        "no server 'file'",
        "'files'",
    ),
    "inside": (
        '{"mcpServers": {"a": {"command": "a", "dragoman": {}}}}',
        1,
        39,
        "does not belong",
        "beside the servers",
    ),
    "timeout": ('{"mcpServers": {}, "dragoman": {"listTimeout": "5s"}}', 1, 48, "to be a number", "such as 5"),
}


@pytest.mark.parametrize("name", [*SYNTAX, *MEANING])
def test_an_error_names_place_and_remedy(name: str) -> None:
    text, line, column, problem, remedy = (SYNTAX | MEANING)[name]
    (found,) = broken(text).problems
    assert ((found.line, found.column), problem in found.problem, remedy in found.remedy) == (
        (line, column),
        True,
        True,
    ), found


def test_all_that_is_wrong_is_said_at_once() -> None:
    error = broken('{"mcpServers": {\n"a": {"args": 1},\n"b": {"url": "x:y"},\n"c": {"command": 1}\n}}')
    assert [problem.line for problem in error.problems] == [2, 3, 4]


def test_an_error_is_a_line_for_each_problem() -> None:
    assert str(broken('{"mcpServers": {"a": 1}}')) == (
        "/nowhere/mcp.json: line 1, column 22: expected server 'a' to be an object, found the number 1; "
        "put it between { and }"
    )


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: no such file or directory; correct the path"):
        read_config(tmp_path / "none.json")


def test_a_file_that_is_not_utf8_is_said(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b'{"mcpServers":\n {"\xff": {}}}')
    with pytest.raises(ConfigError, match="line 2, column 4: expected UTF-8"):
        read_config(path)


@pytest.mark.parametrize(
    "entry",
    [
        '{"url": "http://a", "headers": {"A": "${TOKEN}\\nx"}}',
        '{"url": "gopher://${TOKEN}@a"}',
        '{"command": "a", "env": {"A=": "${TOKEN}"}}',
        '{"command": "npx server --key ${TOKEN}"}',
        '{"url": "example.com/mcp/${TOKEN}"}',
        '{"url": "example.com/mcp?key=t0p-secret"}',
    ],
)
def test_an_error_repeats_no_secret(entry: str) -> None:
    assert "t0p-secret" not in str(broken('{"mcpServers": {"a": ' + entry + "}}"))


def test_keys_of_toml_nest_no_deeper_than_other_values() -> None:
    parts = ".".join("a" * 50_000)
    for text in (f"{parts} = 1\n", f"[{parts}]\n", "a = " + "{a=" * 150 + "1" + "}" * 150):
        with pytest.raises(ConfigError, match="deep"):
            parse_config(text, {}, path="/nowhere/config.toml")
    assert effort(lambda: broken_toml(f"{parts} = 1\n")) < 20


def broken_toml(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_config(text, {}, path="/nowhere/config.toml")


@pytest.mark.parametrize("form", ["${A:-", "${", "${{secrets.", "${A", "$${A:-", "${env:A:-"])
@pytest.mark.parametrize("end", ["", "}"])
def test_forms_that_are_not_closed_are_not_read_again_and_again(form: str, end: str) -> None:
    text = json.dumps({"mcpServers": {"a": {"command": form * 20_000 + end}}})

    def read() -> None:
        with contextlib.suppress(ConfigError):
            parse_config(text, {"A": "a"}, path="/nowhere/mcp.json")

    assert effort(read) < 20


def test_reading_twice_as_many_servers_is_twice_the_work() -> None:
    def work(count: int) -> float:
        entries = {f"s{number}": {"command": "x"} for number in range(count)}
        text = json.dumps({"mcpServers": entries})
        return effort(lambda: Names().set_servers({one.name: one.name for one in parse_config(text, {}).servers}))

    assert work(20_000) < 8 * work(5_000)  # sixteen times, if each were compared with each


def test_what_may_be_a_clients_own_is_a_warning_at_the_top_and_stops_nobody() -> None:
    text = '{"mcpServers": {"a": {"command": "a"}}, "listTimeout": 5, "rules": ["be kind"], "name": "mine"}'
    (warning,) = parse_config(text, ENVIRONMENT).warnings
    assert "'listTimeout' means nothing at the top of the file" in str(warning)
    assert 'write "dragoman": {"listTimeout": … }' in str(warning)
