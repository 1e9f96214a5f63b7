"""What a person at a terminal sees: nothing that steers it, lines that fit, and what a server has."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.ink import Style
from dragoman.cli.screen import fit, lay_out, shown
from dragoman.cli.stderr import ServerWords
from dragoman.cli.values import signature
from tests.support import commands

LONGEST_S = 60
EVIL = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \u202egnp.exe \x9b5n\u2066\u200f\U000e0041"

SERVER = """
import json, sys
evil = json.loads(sys.argv[1])
print("stderr", evil, file=sys.stderr, flush=True)
tool = {"name": "show" + evil, "description": evil + " described " + "at length " * 20,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
prompt = {"name": "greet", "description": evil, "arguments": [{"name": "who", "required": True}, {"name": "how"}]}
contents = [{"uri": "x:evil", "text": evil}]
for line in sys.stdin:
    frame = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                       "serverInfo": {"name": "evil" + evil, "version": evil}},
        "tools/list": {"tools": [tool]}, "prompts/list": {"prompts": [prompt]}, "resources/list": {"resources": []},
        "resources/templates/list": {"resourceTemplates": []}, "resources/read": {"contents": contents},
        "tools/call": {"content": [{"type": "text", "text": evil}], "isError": True},
        "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": evil}}]},
    }
    answer = {"error": {"code": -32601, "message": evil}}
    if frame["method"] in results:
        answer = {"result": results[frame["method"]]}
    if "id" in frame:
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **answer}), flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    path = tmp_path / "evil_server.py"
    path.write_text(SERVER, encoding="utf-8")
    return [sys.executable, str(path), json.dumps(EVIL)]


def at_terminal(arguments: list[str], columns: int = 80, **variables: str) -> str:
    """Run a command at a terminal, and return everything that is written there; without colour, if nobody wants it."""
    ours, theirs = pty.openpty()
    colours = {"NO_COLOR": "1", "FORCE_COLOR": ""}
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **colours, **variables}
    with commands.start(
        [sys.executable, "-m", "dragoman", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        told = b""
        try:
            while part := os.read(ours, 65536):
                told += part
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        finally:
            os.close(ours)
            process.wait(LONGEST_S)
    return told.decode().replace("\r\n", "\n")


COMMANDS: dict[str, list[str]] = {
    "list": ["list"],
    "list-json": ["list", "--json"],
    "call": ["call", f"show{EVIL}"],
    "call-json": ["call", f"show{EVIL}", "--json"],
    "wrong-tool": ["call", "shown"],
    "read": ["read", "x:evil"],
    "prompt": ["prompt", "greet", "who=you"],
    "prompt-json": ["prompt", "greet", "who=you", "--json"],
    "check": ["check", "--revision", "2025-11-25"],
    "proxy": ["proxy"],
}


@pytest.mark.parametrize("no_colour", ["", "1"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_of_a_server_steers_a_terminal(name: str, no_colour: str, server: list[str]) -> None:
    told = at_terminal([*COMMANDS[name], "--", *server], NO_COLOR=no_colour)
    ours = told.replace("\r\x1b[K", "")  # the line of progress of `check`
    if not no_colour:
        ours = re.sub(rf"\x1b\[(?:{'|'.join(Style)})m([^\x1b]*)\x1b\[0m", r"\1", ours)
    assert [ascii(line) for line in ours.splitlines() if shown(line) != line] == []
    assert told, "something was said"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prompt", "gret"], "the server has no prompt 'gret'; did you mean greet?"),
        (["prompt", "greet", "woh=you"], "the prompt has no argument 'woh'; did you mean who?; it is greet(who, how?)"),
    ],
)
def test_what_is_near_a_prompt_is_named(arguments: list[str], said: str, server: list[str]) -> None:
    assert said in at_terminal([*arguments, "--", *server])


def test_json_on_a_terminal_is_the_same_value(server: list[str]) -> None:
    told = at_terminal(["read", "x:evil", "--json", "--", *server])
    start = told.index("{")
    value: dict[str, Any] = json.loads(told[start : told.rindex("}") + 1])
    assert value["contents"][0]["text"] == EVIL


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo"],
        ["demo", "--client", "2024-11-05", "--server", "2025-11-25"],
        ["diff", "2024-11-05", "2026-07-28"],
        ["explain", "--client", "2025-06-18", "--server", "2026-07-28"],
        ["--help"],
        ["proxy", "--help"],
        ["call"],
    ],
    ids=" ".join,
)
def test_lines_on_a_terminal_fit_it(arguments: list[str]) -> None:
    told = at_terminal(arguments)
    assert [line for line in told.splitlines() if len(shown(line)) > 80] == []


def test_a_list_on_a_terminal_fits_it(server: list[str]) -> None:
    told = at_terminal(["list", "--", *server])
    assert [line for line in told.splitlines() if len(line) > 80 and "described" in line] == []
    assert "(text?: str)" in told
    assert "greet(who, how?)" in told


def test_letters_and_signs_of_all_languages_are_shown() -> None:
    text = "naïve 中文 👩\u200d💻 עברית\u00a0x\ty\n"
    assert shown(text) == text


def test_a_server_that_is_started_twice_says_it_once() -> None:
    words = ServerWords()
    told = [words.filter(line) for line in (b"ready\n", b"port 1\n", b"ready\n", b"port 2\n")]
    assert b"".join(told) == b"ready\nport 1\nport 2\n"
    words.is_opening = False
    assert words.filter(b"ready\n") == b"ready\n"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, "t()"),
        (
            {"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["a"]},
            "t(a: str, b?: int)",
        ),
        ({"properties": {"a": {"type": "array", "items": {"type": "number"}}}}, "t(a?: list[float])"),
        ({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "t(a?: str | None)"),
        ({"properties": {"a": {"enum": ["x", "y"]}}}, 't(a?: "x" | "y")'),
        ({"properties": {"a": {"enum": [1, 2, 3, 4, 5]}}}, "t(a?: 1 | 2 | 3 | 4 | …)"),
        ({"properties": {"a": {"$ref": "#/$defs/Thing"}, "b": True}}, "t(a?: Thing, b?: any)"),
        ({"properties": {"a": {"type": ["object", "null"]}}}, "t(a?: dict | None)"),
        ({"properties": 5}, "t()"),
    ],
)
def test_a_tool_is_shown_with_its_arguments(schema: dict[str, Any], expected: str) -> None:
    assert signature("t", schema) == expected


def test_columns_fit_what_is_narrow_and_what_is_wide() -> None:
    rows = [("short", "about " * 20), ("long" * 20, "about it")]
    assert lay_out(rows, None)[0] == "  short" + " " * 37 + ("about " * 20).rstrip()
    assert all(len(line) <= 80 for entry in lay_out([("short", "about " * 20)], 80) for line in entry.split("\n"))
    assert fit("a b c", 2, 3) == "a b c"
