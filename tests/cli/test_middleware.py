"""`dragoman proxy --middleware`: what it finds, and what it says where it finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import middlewares
from dragoman.cli.loading import load_middleware
from tests.support import commands

OURS = """
from dragoman.middleware import Answer, Message, Proceed

async def shout(call: Message, proceed: Proceed) -> Answer:
    if call.method == "tools/call":
        return Answer.succeed({"content": [{"type": "text", "text": call.params["name"].upper()}]})
    return await proceed(call)

async def both_hear(notice, proceed):
    await proceed(notice)

class Made:
    def __init__(self, n):
        if n < 1:
            raise ValueError("n is too small")
        self.n = n
    async def __call__(self, call, proceed):
        return await proceed(call)

class Late:
    async def headers_to_server(self): ...
class Curious:
    def headers_to_server(self, request): ...
def plain(call, proceed): ...
async def alone(call): ...
number = 3
"""
SCRIPTED = str(Path(__file__).parents[1] / "proxy" / "servers" / "scripted.py")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "loading_ours.py").write_text(OURS, "utf-8")
    (tmp_path / "loading_broken.py").write_text("import nowhere_at_all", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def test_a_function_a_made_one_and_one_of_a_file_are_found_in_order(place: Path) -> None:
    names = ["loading_ours:shout", "loading_ours:Made(2)", "loading_ours.py:shout"]
    loaded = load_middleware(names, ["loading_ours:both_hear"])
    assert [getattr(one, "__name__", None) or one.n for one in loaded["middleware"]] == ["shout", 2, "shout"]
    assert (len(loaded["notice_middleware"]), len(loaded["header_middleware"])) == (1, 0)


def test_what_is_around_both_is_put_around_both() -> None:
    loaded = load_middleware(['dragoman.middlewares:Deny(tools=["x"])'], [])
    assert (len(loaded["middleware"]), len(loaded["notice_middleware"])) == (1, 1)


def test_what_gives_headers_is_asked_for_them_and_is_around_nothing() -> None:
    loaded = load_middleware(['dragoman.middlewares:InjectHeaders({"X": "1"})'], [])
    assert (loaded["middleware"], loaded["notice_middleware"], [one() for one in loaded["header_middleware"]]) == (
        (),
        (),
        [{"X": "1"}],
    )


def test_the_working_directory_stands_in_for_nothing_that_is_installed(tmp_path: Path) -> None:
    for name in ("dragoman_spec", "fnmatch", "uvicorn", "websockets"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the working directory')", "utf-8")
    (tmp_path / "loading_mine.py").write_text(f"import uvicorn\n{OURS}", "utf-8")
    named = ["dragoman.middlewares:RateLimit(per_minute=60)", "loading_mine:shout"]
    code = f"from dragoman.cli.loading import load_middleware; load_middleware({named}, []); import websockets"
    done = commands.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_is_run_once_and_may_be_called_as_a_module_of_python(place: Path) -> None:
    (place / "fractions.py").write_text(OURS, "utf-8")
    before = set(sys.modules)
    first, second = load_middleware(["fractions.py:shout", "./fractions.py:shout"], [])["middleware"]
    assert first is second
    assert "fractions" not in set(sys.modules) - before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loading_ours", "expected MODULE:NAME"),
        (":shout", "expected MODULE:NAME"),
        ("loading_nowhere:x", "there is no module loading_nowhere"),
        ("nowhere.py:x", "there is no file nowhere.py"),
        ("loading_broken:x", "loading_broken cannot be imported: No module named 'nowhere_at_all'"),
        ("loading_broken.py:x", "cannot be run: ModuleNotFoundError"),
        ("loading_ours:shut", "has no shut; it has: Answer, Curious, Late, Made"),
        ("dragoman.middlewares:Nope", f"it has: {', '.join(middlewares.__all__)}$"),
        ("loading_ours:Made", r"is a class; write loading_ours:Made\(\.\.\.\)"),
        ("loading_ours:Made()", "TypeError"),
        ("loading_ours:Made(0)", "n is too small"),
        ("loading_ours:Made(os)", "expected literals as arguments"),
        ("loading_ours:Made(1", "expected literals as arguments"),
        ("loading_ours:number(1)", "cannot be called"),
        ("loading_ours:number", "is not a function"),
        ("loading_ours:plain", "is not an async function"),
        ("loading_ours:Late()", "is not a function that answers at once"),
        ("loading_ours:Curious()", "takes arguments; it gets none"),
        ("loading_ours:alone", "does not take two arguments"),
    ],
)
def test_what_cannot_be_used_is_said(place: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        load_middleware([text], [])


def proxy(
    *options: str, said: list[Any], place: Path, behind: tuple[str, ...] = ("--", sys.executable, SCRIPTED)
) -> subprocess.CompletedProcess[str]:
    lines = "".join(json.dumps(frame) + "\n" for frame in said)
    return commands.dragoman("proxy", *options, *behind, input=lines, cwd=place)


def call_once() -> list[Any]:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "quiet"}},
    ]


@pytest.mark.parametrize("named_by", ["command", "file"])
def test_the_proxy_runs_what_is_named(place: Path, named_by: str) -> None:
    behind: tuple[str, ...] = ("--", sys.executable, SCRIPTED)
    if named_by == "file":
        servers = {"one": {"command": sys.executable, "args": [SCRIPTED]}, "other": {"command": "/nowhere"}}
        (place / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
        behind = ("--config", "mcp.json", "--server", "one")
    done = proxy("--middleware", "loading_ours:shout", said=call_once(), place=place, behind=behind)
    answers = {frame["id"]: frame for frame in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["result"]["content"][0]["text"] == "QUIET", done.stderr


def test_the_proxy_says_what_is_wrong_with_the_command_line(place: Path) -> None:
    done = proxy("--middleware", "loading_nowhere:x", said=[], place=place)
    assert done.returncode == 2
    assert "--middleware: there is no module loading_nowhere" in done.stderr


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (("--server", "x", "--", "true"), "--server means nothing without --config"),
        (("--config", "mcp.json", "--server", "x"), "there is no server 'x'"),
    ],
)
def test_a_server_is_chosen_from_a_file(place: Path, behind: tuple[str, ...], words: str) -> None:
    (place / "mcp.json").write_text('{"mcpServers": {"one": {"command": "true"}}}', "utf-8")
    done = proxy(said=[], place=place, behind=behind)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
