"""The page beside a proxy: where it is, who gets it, and that it shows what crosses."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conversation import request
from tests.proxy.test_processes import Running, call, running
from tests.support import commands
from tests.support.lines import Lines
from tests.support.ports import free_port
from tests.support.waiting import wait_until

PATIENCE_S = 60
ADDRESS = re.compile(r"inspect at (https?)://([^:/]+|\[.*\]):(\d+)/\?key=([\w-]+)")


class Page:
    """A visitor of a page."""

    def __init__(self, line: str) -> None:
        found = ADDRESS.fullmatch(line.strip())
        assert found, line
        self.port, self.key = int(found[3]), found[4]
        self.cookie = f"dragoman_inspect_{self.port}={self.key}"

    @contextlib.contextmanager
    def open(self, path: str, method: str = "GET", **headers: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, headers={"Cookie": self.cookie} | headers)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        with self.open(path, method, **headers) as answer:
            return answer.status, answer.headers, answer.read()

    def read(self, path: str) -> Any:
        status, _, body = self.get(path)
        assert status == 200
        return json.loads(body)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.get("/trace")[2].splitlines()]


Visit = tuple[Running, Page]


@contextlib.contextmanager
def visiting() -> Iterator[Visit]:
    options = ("--inspect", "http://127.0.0.1:0", "--no-greeting", "--no-era-cache")
    with running("--speak", "2025-11-25", options=options) as run:
        page = Page(Lines(run.process.stderr, PATIENCE_S).read().decode())
        run.open("2025-06-18")
        run.say(call(1, "x"))
        run.hear()
        yield run, page


@pytest.fixture
def visit() -> Iterator[Visit]:
    with visiting() as visit:
        yield visit


@pytest.fixture(scope="module")
def seen() -> Iterator[Visit]:
    """A page that is only looked at."""
    with visiting() as visit:
        yield visit


def test_what_crosses_is_shown_before_and_after(visit: Visit) -> None:
    run, page = visit
    run.say(request(2, "tools/list"))
    run.hear()
    wait_until(lambda: any(line.get("method") == "tools/list" for line in page.lines()))
    (listed,) = [line for line in page.lines() if line.get("method") == "tools/list" and line["side"] == "server"]
    assert listed["before"]["result"]["tools"][0] != listed["after"]["result"]["tools"][0]
    assert listed["losses"]


def test_lines_come_as_events_and_the_end_is_told(visit: Visit) -> None:
    run, page = visit
    with page.open("/events?from=1") as events:
        first = next(line for line in events if line.startswith(b"data: "))
        assert json.loads(first.removeprefix(b"data: "))["frame"]["method"] == "initialize"
        assert run.process.stdin is not None
        run.process.stdin.close()
        assert any(line == b"event: over\n" for line in events)
    assert run.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(("query", "headers"), [("?from=" + "9" * 4400, {}), ("", {"Last-Event-ID": "9" * 4400})])
def test_a_number_that_no_line_has_is_no_place_to_go_on_from(seen: Visit, query: str, headers: dict[str, str]) -> None:
    _, page = seen
    with page.open(f"/events{query}", **headers) as events:
        first = next(line for line in events if line.startswith(b"data: "))
    assert json.loads(first.removeprefix(b"data: "))["n"] == 1


def test_the_viewer_ends_with_its_proxy(visit: Visit) -> None:
    run, page = visit
    run.process.kill()

    def is_gone() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", page.port)) != 0

    wait_until(is_gone)


def test_the_key_becomes_a_cookie_that_no_script_and_no_other_site_has(seen: Visit) -> None:
    _, page = seen
    status, headers, _ = page.get(f"/?key={page.key}&a=b", Cookie="")
    assert (status, headers["location"]) == (303, "/?a=b")
    cookie = headers["set-cookie"]
    assert cookie.startswith(page.cookie)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize("path", ["/", "/events", "/trace", "/line/1", "/about", "/page/main.js", "/bundle", "/?key=x"])
def test_without_the_key_nothing_is_shown(seen: Visit, path: str) -> None:
    _, page = seen
    status, _, body = page.get(path, Cookie="dragoman_inspect_1=other")
    assert status == 403
    assert b"initialize" not in body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 200),  # a link that somebody follows; its cookie is not sent along
    ],
)
def test_another_name_and_another_page_get_nothing(seen: Visit, headers: dict[str, str], status: int) -> None:
    assert seen[1].get("/about", **headers)[0] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ],
)
def test_a_link_may_stand_anywhere_and_a_picture_may_not(seen: Visit, headers: dict[str, str], status: int) -> None:
    assert seen[1].get("/", **headers)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(seen: Visit, method: str) -> None:
    assert seen[1].get("/about", method)[0] == 405


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/nothing", "/trace"])
def test_every_answer_has_a_policy_that_runs_nothing_of_others(seen: Visit, path: str) -> None:
    headers = seen[1].get(path)[1]
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_a_pair_is_explained(seen: Visit) -> None:
    rows = seen[1].read("/explain/2026-07-28/2024-11-05")
    assert {"feature", "status", "why"} == set(rows[0])
    assert seen[1].get("/explain/2026-07-28/2099-01-01")[0] == 404
    assert seen[1].read("/about")["revisions"][0] == "2024-11-05"


def test_what_the_steps_decide_is_told_with_its_reasons(seen: Visit) -> None:
    first, last = seen[1].read("/why/2025-11-25/2025-03-26")
    assert (first["from"], last["to"], first["page"]) == ("2025-11-25", "2025-03-26", "docs/steps/2025-11-25.md")
    (hidden,) = [row for row in first["decisions"] if row.get("name") == "hide-tools-that-need-tasks"]
    assert (hidden["at"], hidden["losses"]) == (["Tool"], ["hidden"])
    assert "cannot create a task" in hidden["reason"]
    assert first["places"]["ListToolsResult.tools[]"] == ["Tool"]
    assert seen[1].read("/why/2025-11-25/2025-11-25") == []
    assert seen[1].get("/why/2025-11-25/2099-01-01")[0] == 404


def test_a_secret_does_not_reach_the_page(visit: Visit) -> None:
    run, page = visit
    run.say(request(3, "tools/call", name="x", arguments={"password": "hunter2", "text": "Bearer abcdefgh12345678"}))
    run.hear()
    wait_until(lambda: b"[redacted]" in page.get("/trace")[2])
    shown = page.get("/trace")[2]
    assert b"hunter2" not in shown
    assert b"abcdefgh12345678" not in shown


def test_a_viewer_that_is_gone_ends_no_session(visit: Visit) -> None:
    run, _ = visit
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children")
    if not children.exists():
        pytest.skip("needs /proc to find the viewer")
    for child in children.read_text().split():
        if b"dragoman.inspect" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), 9)
    for key in range(10, 20):
        run.say(call(key, "x"))
        assert run.hear()["id"] == key


def test_a_trace_is_written_beside_the_page(tmp_path: Path) -> None:
    options = ("--inspect", "http://127.0.0.1:0", "--trace", str(tmp_path / "trace"))
    with running("--speak", "2025-11-25", options=options) as run:
        page = Page(Lines(run.process.stderr, PATIENCE_S).read().decode())
        run.open("2025-06-18")
        wait_until(lambda: len(page.lines()) >= 7)
        shown = page.lines()
        run.end()
    written = [json.loads(line) for line in (tmp_path / "trace").read_bytes().splitlines()]
    for line in (*written, *shown):
        del line["time"]
    assert written[: len(shown)] == shown


def test_the_page_of_a_file_shows_what_is_written_to_it_later(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text('{"direction":"sent","side":"client","frame":{"id":1,"password":"hunter2"}}\nnonsense\n')
    command = [sys.executable, "-m", "dragoman", "inspect", str(trace), "--at", "http://127.0.0.1:0"]
    with commands.start(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            page = Page(Lines(process.stderr, PATIENCE_S).read().decode())
            wait_until(lambda: len(page.lines()) == 1)
            assert page.lines()[0]["frame"] == {"id": 1, "password": "[redacted]"}
            with trace.open("a") as file:
                file.write('{"direction":"ended","side":"client","reason":"over"}\n')
            wait_until(lambda: len(page.lines()) == 2)
            trace.unlink()
            assert page.get("/")[0] == 200
            trace.write_text('{"direction":"ended","side":"client","reason":"anew"}\n')
            wait_until(lambda: len(page.lines()) == 3)
            assert page.lines()[-1]["reason"] == "anew"
        finally:
            process.terminate()


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_the_address_that_is_printed_can_be_opened(host: str) -> None:
    if host == "[::]" and not socket.has_ipv6:
        pytest.skip("no IPv6")
    with running(options=("--inspect", f"http://{host}:0", "--inspect-anywhere")) as run:
        found = ADDRESS.fullmatch(Lines(run.process.stderr, PATIENCE_S).read().decode().strip())
        assert found
        name, port = found[2].strip("[]"), int(found[3])
        try:
            where = (name, port) if ipaddress.ip_address(name) else ("", 0)
        except ValueError:  # its own name, which need not be known to anybody here
            where = ("::1" if host == "[::]" else "127.0.0.1", port)
        with contextlib.closing(http.client.HTTPConnection(*where, timeout=PATIENCE_S)) as connection:
            connection.request("GET", f"/?key={found[4]}", headers={"Host": f"{found[2]}:{port}"})
            assert connection.getresponse().status == 303


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--open"], "--open means nothing without --inspect"),
        (["--inspect", "http://0.0.0.0:0"], "plain text; use https:// with --tls-cert, or --inspect-anywhere"),
        (["--inspect", "https://127.0.0.1:0"], "expected --tls-cert with https:// in --inspect"),
        (["--inspect", "127.0.0.1:6300"], "expected http://HOST:PORT"),
        (["--inspect", "--tls-cert", __file__], "--tls-cert means nothing without --listen"),
        (
            ["--inspect", "--listen", "http://127.0.0.1:0", "--tls-cert", __file__],
            "expected --tls-cert with https:// in --listen or --inspect, and only then",
        ),
    ],
)
def test_options_that_make_no_sense_are_named(options: list[str], words: str) -> None:
    command = [sys.executable, "-m", "dragoman", "proxy", *options, "--", "true"]
    done = commands.run(command, capture_output=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.decode().split())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("certificate")
    chain, key = str(folder / "chain.pem"), str(folder / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=t", "-keyout", key, "-out", chain]
    try:
        commands.run(made, check=True, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl to make a certificate")
    return ("--tls-cert", chain, "--tls-key", key)


def ask_over_tls(port: int, path: str, chain: str) -> http.client.HTTPResponse:
    trusting = ssl.create_default_context(cafile=chain)
    trusting.check_hostname = False
    with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_S, context=trusting)) as to:
        to.request("GET", path)
        return to.getresponse()


def test_the_page_is_served_over_tls_where_the_client_is_none_of_http(certificate: tuple[str, ...]) -> None:
    with running(options=("--inspect", "https://127.0.0.1:0", *certificate)) as run:
        page = Page(Lines(run.process.stderr, PATIENCE_S).read().decode())
        assert "; Secure" in ask_over_tls(page.port, f"/?key={page.key}", certificate[1]).headers["set-cookie"]


@pytest.mark.parametrize(("listen", "inspect"), [("http", "https"), ("https", "http"), ("https", "https")])
def test_the_page_and_the_clients_have_tls_each_as_its_address_says(
    listen: str, inspect: str, certificate: tuple[str, ...]
) -> None:
    options = ("--listen", f"{listen}://127.0.0.1:0", "--inspect", f"{inspect}://127.0.0.1:0", *certificate)
    command = [sys.executable, "-m", "dragoman", "proxy", *options, "--", "true"]
    with commands.start(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            lines = Lines(process.stderr, PATIENCE_S)
            page = Page(lines.read().decode())
            url = lines.read().decode().split()[-1]
            assert url.startswith(f"{listen}://")
            for scheme, port, path in (
                (inspect, page.port, f"/?key={page.key}"),
                (listen, int(url[:-4].split(":")[2]), "/healthz"),
            ):
                if scheme == "https":
                    assert ask_over_tls(port, path, certificate[1]).status in (200, 303)
                else:
                    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as plain:
                        plain.request("GET", path)
                        assert plain.getresponse().status in (200, 303)
        finally:
            process.terminate()


def test_the_page_of_a_file_is_served_over_tls(tmp_path: Path, certificate: tuple[str, ...]) -> None:
    (tmp_path / "trace").write_text("")
    command = [sys.executable, "-m", "dragoman", "inspect", str(tmp_path / "trace"), "--at", "https://127.0.0.1:0"]
    with commands.start([*command, *certificate], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            page = Page(Lines(process.stderr, PATIENCE_S).read().decode())
            assert ask_over_tls(page.port, f"/?key={page.key}", certificate[1]).status == 303
        finally:
            process.terminate()


@pytest.mark.parametrize("command", [["proxy", "--inspect"], ["inspect", __file__, "--at"], ["demo", "--inspect"]])
def test_a_certificate_that_cannot_be_used_is_an_error_before_anything_is_shown(command: list[str]) -> None:
    options = [
        *command,
        "https://127.0.0.1:0",
        "--tls-cert",
        __file__,
        *(["--", "true"] if command[0] == "proxy" else []),
    ]
    done = commands.run(
        [sys.executable, "-m", "dragoman", *options], capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 1
    assert "expected a chain and its key, in PEM" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_an_address_that_is_taken_is_an_error_if_it_was_named() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        command = [sys.executable, "-m", "dragoman", "proxy", "--inspect", f"http://127.0.0.1:{port}", "--", "true"]
        done = commands.run(command, capture_output=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert b"cannot listen" in done.stderr


def test_without_the_option_nothing_of_the_page_is_loaded() -> None:
    code = "import dragoman.cli.proxy, dragoman.proxy, sys; print([m for m in sys.modules if 'dragoman.inspect' in m])"
    done = commands.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]"
