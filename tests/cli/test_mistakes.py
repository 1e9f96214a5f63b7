"""Mistakes that people make with names, URLs, arguments and tokens: each has one line that says what to do."""

from __future__ import annotations

import http.server
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_screen import at_terminal
from tests.support.commands import dragoman

ADDER = str(Path(__file__).parent / "adder.py")
LONGEST_S = 60
OPTION = re.compile(r"^ +(?:-h, )?(--[a-z-]+)", re.MULTILINE)
RESOURCE = '"http://127.0.0.1/.well-known/oauth-protected-resource"'
CHALLENGE = {"WWW-Authenticate": f'Bearer error="invalid_token", resource_metadata={RESOURCE}'}
ANSWERS: dict[str, tuple[int, str, str, dict[str, str]]] = {
    "/json": (200, "application/json", '{"hello": "world"}', {}),
    "/page": (200, "text/html", "<html></html>", {}),
    "/busy": (429, "text/plain", "slow down", {"Retry-After": "17"}),
    "/sealed": (401, "text/plain", "no", CHALLENGE),
    "/open": (200, "application/json", '{"jsonrpc": "2.0", "id": 1, "result": {}}', {}),
}


class Web(http.server.BaseHTTPRequestHandler):
    """A web server: what it answers depends on the path alone."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, kind, text, headers = ANSWERS.get(self.path, (404, "text/html", "<html></html>", {}))
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET  # noqa: N815 -- the name is theirs

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--url", "http://{web}/"], 3, "; most servers have a path: is it http://{web}/mcp?"),
        (["--url", "http://{web}"], 3, "; most servers have a path: is it http://{web}/mcp?"),
        (["--url", "http://{web}/page"], 3, "(a web page: is the path of the URL right?)"),
        (["--url", "http://{web}/json"], 3, "no response to the request (is it MCP, and the path of the URL right?)"),
        (["--url", "http://{web}/busy"], 3, "wants fewer requests; it says 'slow down'; try again in 17 s"),
        (["--url", "http://{web}/sealed", "--no-sign-in"], 3, "people can sign in to it: without an Authorization"),
        (["--url", "http://{web}/sealed", "--header", "Authorization=Bearer old"], 3, "people can sign in to it"),
        (["--url", "ws://{web}/"], 3, "no WebSocket: it answered 404 Not Found (the URL of a server over HTTP begins"),
        (["--url", "http://127.0.0.1:81234/mcp"], 2, "expected a port up to 65535"),
    ],
)  # fmt: skip
def test_a_url_that_is_not_that_of_a_server(arguments: list[str], code: int, said: str, web: str) -> None:
    done = dragoman("list", *(one.format(web=web) for one in arguments))
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, said.format(web=web) in last) == (code, True), done.stderr
    assert "once more" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["status", "http://{web}/"], 3, "not a proxy of ours: it answered 404 Not Found to http://{web}/readyz"),
        (["status", "http://127.0.0.1:81234/"], 3, "Port out of range 0-65535"),
        (["proxy", "--listen", "http://127.0.0.1:81234", "--", "x"], 2, "with a port up to 65535"),
        (["login", "http://{web}/open"], 1, "it answers without a token, and asks nobody to sign in"),
        (["help", "lst"], 2, "no command 'lst'; there are: proxy, "),
        (["list", "tolls", "--", "x"], 2, "expected tools, resources, templates, prompts, found 'tolls'; did you mean"),
        (["list", "tools", "a", "b"], 2, "expected one name of a server beside tools, resources, templates, prompts"),
    ],
)
def test_a_mistake_in_another_command(arguments: list[str], code: int, said: str, web: str) -> None:
    done = dragoman(*(one.format(web=web) for one in arguments))
    assert (done.returncode, said.format(web=web) in done.stderr) == (code, True), done.stderr


def test_help_is_that_of_the_command() -> None:
    assert dragoman("help", "list").stdout == dragoman("list", "--help").stdout != ""
    assert dragoman("help").stdout == dragoman("--help").stdout != ""


@pytest.mark.parametrize("command", ["proxy", "list", "call", "read", "prompt", "check"])
def test_help_is_what_most_people_need_and_there_is_all_of_it(command: str) -> None:
    usual, everything = (set(OPTION.findall(dragoman(command, option).stdout)) for option in ("--help", "--help-all"))
    assert {"--url", "--config", "--header", "--env", "--help-all"} <= usual < everything
    assert len(usual) <= 20
    assert {"--connect-timeout", "--inherit-env", "--oauth-client-id"} <= everything - usual


def test_one_of_a_kind_is_the_kind() -> None:
    done = dragoman("list", "tool", "--json", "--", sys.executable, ADDER)
    assert json.loads(done.stdout).keys() == {"server", "revision", "tools"}, done.stderr


SIGNATURE = "it is add(a: float, b: int | None, word?: str)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], f"add needs a, b; {SIGNATURE}"),
        (["a=1"], f"add needs b; {SIGNATURE}"),
        (["a=one", "b=1"], f"add takes float for 'a', found 'one'; {SIGNATURE}"),
        (["a=1", "b=1.5"], f"add takes int | None for 'b', found '1.5'; {SIGNATURE}"),
    ],
)
def test_arguments_that_the_schema_does_not_take_are_said_before_they_are_sent(given: list[str], said: str) -> None:
    done = dragoman("call", "add", *given, "--", sys.executable, ADDER)
    assert (done.returncode, done.stderr) == (2, f"dragoman: {said}\n")


@pytest.mark.parametrize("given", [["a=1", "b=null", "word=5"], ["--arguments", '{"a": "one"}']])
def test_arguments_that_it_takes_and_those_that_are_sent_as_they_are_go_out(given: list[str]) -> None:
    assert dragoman("call", "add", *given, "--", sys.executable, ADDER).returncode == 0


# What servers write on stderr


def unless_waiting(stderr: str) -> str:
    """What is on stderr, unless the machine was so slow that the server was waited for, which shows all of it."""
    if "still waiting" in stderr:
        pytest.skip("the server took five seconds to start")
    return stderr


@pytest.mark.parametrize(
    ("options", "mode", "expected"),
    [
        ([], [], ""),
        (["--server-stderr"], [], "stderr: begun\nstderr: called\n"),
        ([], ["fails"], "The last that the server wrote on stderr:\n  stderr: begun\n  stderr: called\n"),
    ],
)
def test_the_stderr_of_a_server_is_shown_where_something_fails(
    options: list[str], mode: list[str], expected: str
) -> None:
    done = dragoman("call", "add", "a=1", "b=2", *options, "--", sys.executable, ADDER, *mode)
    assert (done.returncode, unless_waiting(done.stderr)) == (len(mode), expected)


def test_the_stderr_of_servers_of_a_file_is_kept_too(tmp_path: Path) -> None:
    servers = {name: {"command": sys.executable, "args": [ADDER]} for name in ("one", "two")}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    assert "stderr: begun" not in unless_waiting(
        dragoman("list", "tools", "--config", str(tmp_path / "mcp.json")).stderr
    )
    shown = dragoman("list", "tools", "--server-stderr", "--config", str(tmp_path / "mcp.json")).stderr
    assert "stderr: begun" in shown


def test_what_a_server_says_is_shown_once_it_is_waited_for() -> None:
    """It may be a link to open, for instance, and nobody would ever see it."""
    silent = "import sys, time; print('open this page', file=sys.stderr, flush=True); time.sleep(100)"
    done = dragoman("list", "--timeout", "6", "--", sys.executable, "-c", silent)
    assert done.stderr.index("open this page") < done.stderr.index("still waiting")


def test_the_progress_of_a_call_is_one_line_that_goes() -> None:
    seen = at_terminal(["call", "add", "a=1", "b=2", "--", sys.executable, ADDER])
    assert "\r\x1b[K1 of 2  half of it\r\x1b[K" in seen
    assert seen.endswith("['a', 'b']\n")


def test_a_report_of_a_check_fits_the_terminal_and_says_what_is_asked() -> None:
    seen = at_terminal(["check", "--revision", "2025-06-18", "--", sys.executable, ADDER])
    lines = [part for line in seen.split("\n") for part in line.split("\r\x1b[K")]
    assert [line for line in lines if len(line) > 80 and "https://" not in line] == []
    assert any(line.startswith("2025-06-18: ") for line in lines[:20])
