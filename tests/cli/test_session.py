"""`dragoman list`, `call` and `read`: real processes, over stdio and HTTP, with the exit codes that the page lists."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.values import read_value
from tests.support import commands
from tests.support.lines import Lines

SERVER = str(Path(__file__).parent.parent / "client" / "echo_server.py")
STDIO = ["--", sys.executable, SERVER]
LONGEST_S = 60

TASKS = """
import json, sys
TOOLS = [
    {"name": "plain", "inputSchema": {"type": "object"}},
    {"name": "slow", "title": "Slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
    {"name": "both", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
]
for line in sys.stdin:
    asked = json.loads(line)
    said = {"error": {"code": -32601, "message": "no"}}
    if asked["method"] == "initialize":
        about = {"capabilities": {"tools": {}, "tasks": {}}, "serverInfo": {"name": "s", "version": "1"}}
        said = {"result": {"protocolVersion": "2025-11-25", **about}}
    elif asked["method"] == "tools/list":
        said = {"result": {"tools": TOOLS}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


def dragoman(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return commands.dragoman(*arguments, text=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, SERVER, "--http"]
    with commands.start(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        finally:
            process.kill()


# Servers of a configuration file


@pytest.fixture
def config(tmp_path: Path, url: str) -> str:
    servers = {
        "here": {"command": sys.executable, "args": [SERVER, "--few"], "env": {"X": "1"}},
        "there": {"type": "http", "url": url},
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return str(path)


@pytest.mark.parametrize(("name", "tools"), [("here", 2), ("there", 6)])
def test_a_server_of_a_configuration_file_is_asked(name: str, tools: int, config: str) -> None:
    done = dragoman("list", "tools", "--json", "--config", config, "--server", name)
    assert len(json.loads(done.stdout)["tools"]) == tools, done.stderr


def test_a_call_goes_to_a_server_of_a_configuration_file(config: str) -> None:
    done = dragoman("call", "echo", "count=3", "--config", config, "--server", "here")
    assert json.loads(done.stdout) == {"count": 3}


def test_without_a_name_all_servers_of_a_configuration_file_are_one(config: str) -> None:
    listed = json.loads(dragoman("list", "tools", "--json", "--config", config).stdout)
    names = [tool["name"] for tool in listed["tools"]]
    assert names == ["here_echo", "here_fail", "there_echo", "there_fail", "ask", "hang", "exit", "odd"]


@pytest.mark.parametrize("tool", ["here_echo", "there_echo"])
def test_a_call_reaches_the_server_that_has_the_tool(tool: str, config: str) -> None:
    done = dragoman("call", tool, "count=3", "--config", config)
    assert json.loads(done.stdout) == {"count": 3}, done.stderr


def test_a_resource_is_read_at_the_server_that_has_it(config: str) -> None:
    assert (
        dragoman("read", "here+x:text", "--config", config).stdout == dragoman("read", "x:text", *STDIO).stdout != b""
    )


def test_a_check_needs_the_name_of_one_server(config: str) -> None:
    done = dragoman("check", "--config", config)
    assert (done.returncode, b"there are: here, there" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--server", "nowhere"], "there is no server 'nowhere'"),
        (["--url", "http://127.0.0.1:1/mcp"], "found both"),
        (["--header", "A=b"], "means nothing without --url"),
    ],
)
def test_what_is_wrong_with_the_choice_is_said(options: list[str], words: str, config: str) -> None:
    done = dragoman("list", "--config", config, *options)
    assert (done.returncode, words in done.stderr.decode()) == (2, True), done.stderr


def test_a_broken_configuration_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("{", "utf-8")
    done = dragoman("list", "--config", str(tmp_path / "mcp.json"))
    assert (done.returncode, b"mcp.json" in done.stderr) == (2, True)


def test_a_server_needs_a_file() -> None:
    done = dragoman("list", "--server", "x", *STDIO)
    assert b"--server means nothing without --config" in done.stderr


# Servers that are slow, and whom a file gives little time

HESITANT = """
import os, runpy, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
sys.argv = [sys.argv[2], "--few"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def hesitant(tmp_path: Path) -> tuple[str, Path]:
    """A file with a server that waits for a sign, and the sign."""
    sign = tmp_path / "go"
    servers = {
        "quick": {"command": sys.executable, "args": [SERVER, "--few"]},
        "slow": {"command": sys.executable, "args": ["-c", HESITANT, str(sign), SERVER]},
    }
    given = {"listTimeout": 0.1, "openTimeout": 0.1, "servers": {"slow": {"listTimeout": 0.1}}}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, "dragoman": given}), "utf-8")
    return str(path), sign


def test_a_command_waits_for_every_server_and_says_for_whom(hesitant: tuple[str, Path]) -> None:
    config, sign = hesitant
    line = [sys.executable, "-m", "dragoman", "list", "tools", "--json", "--config", config]
    with commands.start(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said = Lines(process.stderr, 60.0)
        assert said.read() == b"dragoman: waiting for slow\n"
        sign.touch()
        out, _ = said.rest(process, 60.0)
    names = [tool["name"] for tool in json.loads(out)["tools"]]
    assert names == ["quick_echo", "quick_fail", "slow_echo", "slow_fail"]


def test_a_tool_that_is_not_found_may_be_that_of_a_server_that_is_silent(hesitant: tuple[str, Path]) -> None:
    done = dragoman("call", "slow_echo", "--config", hesitant[0], "--timeout", "3")
    assert done.returncode == 2
    assert b"the server has no tool 'slow_echo'" in done.stderr
    assert b"not asked, or silent: slow\n" in done.stderr


# What is remembered of a server

NOTING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1] + "/log", "a") as log:
        print(asked["method"], file=log)
    said = {"error": {"code": -32601, "message": "no"}}
    if asked["method"] == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        said = {"result": {"protocolVersion": asked["params"]["protocolVersion"], **about}}
    elif asked["method"] == "tools/list":
        said = {"result": {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}}
    elif asked["method"] == "tools/call":
        said = {"result": {"content": []}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


def test_a_server_that_had_a_handshake_is_not_asked_again_what_it_is(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "mcp.json"
    command = [sys.executable, "-c", NOTING, str(tmp_path)]
    file.write_text(json.dumps({"mcpServers": {"s": {"command": command[0], "args": command[1:]}}}), "utf-8")
    for asked, by in (
        (["list", "tools"], ["--", *command]),
        (["call", "x"], ["--", *command]),
        (["list", "tools"], ["--config", str(file)]),
        (["list", "tools", "--no-era-cache"], ["--", *command]),
    ):
        done = dragoman(*asked, *by)
        assert done.returncode == 0, done.stderr
    first = [line for line in log.read_text("utf-8").split() if line in ("server/discover", "initialize")]
    assert first == ["server/discover", *["initialize"] * 3, "server/discover", "initialize"]


# What they print


def test_list_shows_what_there_is() -> None:
    done = dragoman("list", *STDIO)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert lines[0] == "echo 1, revision 2025-11-25"
    assert lines[1:3] == ["tools: 6", "  echo(count?: int, text?: str, any?: any)  Gives its arguments back"]
    assert lines[-5:] == ["resources: 2", "  x:text", "  x:blob", "templates: none", "prompts: none"]


@pytest.mark.parametrize("revision", ["any", "2025-11-25"])
def test_list_says_which_tools_run_as_tasks(revision: str, tmp_path: Path) -> None:
    """Only the revision of the server says so of a tool: a client of the newest one asks for no task."""
    (tmp_path / "server.py").write_text(TASKS)
    done = dragoman("list", "tools", "--revision", revision, "--", sys.executable, str(tmp_path / "server.py"))
    rows = [line.split() for line in done.stdout.decode().splitlines()[2:]]
    assert rows == [
        ["plain()"],
        ["slow()", "[taskSupport:", "required]", "Slow"],
        ["both()", "[taskSupport:", "optional]"],
    ]


def test_list_says_it_of_each_of_several_servers_though_their_tools_have_other_names(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(TASKS)
    server = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"one": server, "two": server}}))
    done = dragoman("list", "tools", "--config", str(tmp_path / "mcp.json"))
    marked = [line.split()[1] for line in done.stdout.decode().splitlines() if "required" in line]
    assert marked == ["one_slow()", "two_slow()"]


def test_list_of_one_kind_as_json() -> None:
    done = dragoman("list", "tools", "--json", *STDIO)
    shown = json.loads(done.stdout)
    assert sorted(shown) == ["revision", "server", "tools"]
    assert shown["tools"][0]["name"] == "echo"


def test_call_reads_values_by_the_schema_of_the_tool() -> None:
    done = dragoman("call", "echo", "count=3", "text=4", 'any={"a": null}', *STDIO)
    assert json.loads(done.stdout) == {"count": 3, "text": "4", "any": {"a": None}}
    assert done.returncode == 0


def test_call_takes_arguments_as_json() -> None:
    given = '{"count": 3, "text": "a", "unknown": 5}'
    done = dragoman("call", "echo", "--arguments", given, "text=b", "--json", *STDIO)
    assert json.loads(json.loads(done.stdout)["content"][0]["text"]) == {"count": 3, "text": "b", "unknown": 5}


def test_read_writes_text_and_bytes_as_they_are() -> None:
    assert dragoman("read", "x:text", *STDIO).stdout == b"hello\n"
    assert dragoman("read", "x:blob", *STDIO).stdout == b"\x00\x01\x02"
    assert json.loads(dragoman("read", "x:blob", "--json", *STDIO).stdout)["contents"][0]["blob"] == "AAEC"


@pytest.mark.parametrize(
    ("uri", "seen", "said"),
    [
        ("x:text", b"hello\r\n", ""),
        ("x:lines", b"one\r\ntwo\r\n", ""),
        ("x:blob", b"", "dragoman: x:blob is not text (3 bytes): send it to a file with > FILE\n"),
    ],
)
def test_read_ends_lines_on_a_terminal_and_writes_no_bytes_there(uri: str, seen: bytes, said: str) -> None:
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "read", uri, *STDIO]
    with os.fdopen(screen, "rb", buffering=0) as shown:
        try:
            done = commands.run(command, stdout=terminal, stderr=subprocess.PIPE, timeout=LONGEST_S, check=False)
            os.set_blocking(screen, False)
            found = shown.read()  # None: nothing was written
        finally:
            os.close(terminal)
    assert (done.returncode, found or b"", done.stderr.decode()) == (0, seen, said)


def test_read_in_a_pipe_adds_nothing() -> None:
    assert dragoman("read", "x:lines", *STDIO).stdout == b"onetwo"


def test_they_reach_a_url(url: str) -> None:
    assert json.loads(dragoman("call", "echo", "count=3", "--url", url).stdout) == {"count": 3}
    assert dragoman("read", "x:text", "--url", url).stdout == b"hello\n"
    listed = dragoman("list", "--url", url, "--revision", "2025-06-18")
    assert listed.stdout.startswith(b"echo 1, revision 2025-06-18\n")


def test_a_server_of_any_revision_is_translated() -> None:
    done = dragoman("list", "tools", *STDIO, "--revision", "2024-11-05")
    assert done.stdout.startswith(b"echo 1, revision 2024-11-05\n")


def test_questions_are_declined_where_nobody_can_be_asked() -> None:
    done = dragoman("call", "ask", *STDIO)
    assert json.loads(done.stdout) == {"action": "decline"}
    assert "Who is there?" in done.stderr.decode()


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("Ada\n36\ny\n", {"action": "accept", "content": {"name": "Ada", "age": 36}}),
        ("\nAda\n\ny\n", {"action": "accept", "content": {"name": "Ada"}}),
        ("Ada\n36\nn\n", {"action": "decline"}),
        ("\x04", {"action": "cancel"}),
    ],
)
def test_questions_are_asked_at_the_terminal(typed: str, answer: dict[str, object]) -> None:
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "call", "ask", *STDIO]
    try:
        os.write(keyboard, typed.encode())  # the terminal keeps it, line by line, until somebody reads
        done = commands.run(command, stdin=terminal, capture_output=True, timeout=LONGEST_S, check=False)
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert json.loads(done.stdout) == answer


# How they end


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["call", "fail", *STDIO], 1, ""),
        (["read", "x:none", *STDIO], 1, "there is no resources/read (-32601)"),
        (["call", "echo"], 2, "expected a server"),
        (["call", "echo", "word", *STDIO], 2, "expected KEY=VALUE, found 'word'"),
        (["call", "echo", "--arguments", "[]", *STDIO], 2, "expected a JSON object"),
        (["list", "--url", "http://127.0.0.1:9", *STDIO], 2, "found both"),
        (["list", "--revision", "2026-01-01", *STDIO], 2, "there is no revision"),
        (["list", "--header", "a=b", *STDIO], 2, "--header means nothing without --url"),
        (["list", "--", "/nowhere/server"], 3, "/nowhere/server"),
        (["call", "exit", *STDIO], 3, "the server exited with status 0"),
        (["list", "prompts", *STDIO], 4, "needs the capability prompts"),
        (["call", "odd", *STDIO], 4, "/result/content/0/text"),
        (["list", "--revision", "2025-06-18", *STDIO, "--revision", "2025-03-26"], 4, "expected revision 2025-06-18"),
        (["call", "hang", "--timeout", "0.3", *STDIO], 5, "tools/call was not answered within 0.3 s"),
    ],
)
def test_exit_codes_say_what_happened(arguments: list[str], code: int, words: str) -> None:
    done = dragoman(*arguments)
    assert (done.returncode, words in done.stderr.decode()) == (code, True), done.stderr.decode()


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("3", {"type": "integer"}, 3),
        ("3", {"type": "string"}, "3"),
        ("3", {"type": ["string", "null"]}, "3"),
        ("null", {"type": ["string", "null"]}, None),
        ("3.5", {"type": "integer"}, "3.5"),
        ("true", {"type": "boolean"}, True),
        ("true", {"type": "integer"}, "true"),
        ("[1]", {"anyOf": [{"type": "array"}, {"type": "null"}]}, [1]),
        ("2", {"enum": [1, 2]}, 2),
        ("2", {"enum": ["1", "2"]}, "2"),
        ("{", {}, "{"),
        ("3", {}, 3),
        ("3", None, "3"),
    ],
)
def test_a_value_is_read_as_its_schema_wants_it(text: str, schema: object, value: object) -> None:
    assert read_value(text, schema) == value
