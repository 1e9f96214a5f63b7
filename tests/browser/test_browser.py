"""A page in a real browser as client of the proxy's front: CORS, Origin and Host are what the browser makes of them.

`nox -s browser` brings Chromium where there is none, and names it in DRAGOMAN_CHROMIUM. Every name of a page's origin
leads to this machine, by a rule given to the browser, as it would after DNS rebinding.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.visits import listening_proxy

HERE: Final = Path(__file__).parent
CHROMIUM: Final = os.environ.get("DRAGOMAN_CHROMIUM")
QUIET: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
REPORT_S: Final = 60
ADVERTISED: Final = "friend.example"
STRANGER: Final = "stranger.example"
REBOUND: Final = "rebound.example"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser: run `nox -s browser`")


class PageServer(ThreadingHTTPServer):
    """Serves the page under any name, and takes its report."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), PageHandler)
        self.reports: queue.Queue[Any] = queue.Queue()

    def origin(self, host: str) -> str:
        """Return the origin of the page under a name."""
        return f"http://{host}:{self.server_port}"


class PageHandler(BaseHTTPRequestHandler):
    """One request of the browser."""

    server: PageServer

    def do_GET(self) -> None:
        self.reply((HERE / "page.html").read_bytes())

    def do_POST(self) -> None:
        self.server.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.reply(b"")

    def reply(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def pages() -> Iterator[PageServer]:
    with PageServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join(30)


class Front:
    """A proxy for pages to call: its address, its log, and what its server was asked."""

    def __init__(self, folder: Path) -> None:
        self.address = ""
        self.log = folder / "log"
        self.asked_log = folder / "asked"

    def asked(self) -> list[str]:
        """Return the methods that reached the server."""
        return self.asked_log.read_text("utf-8").splitlines() if self.asked_log.exists() else []


@contextlib.contextmanager
def front_for(*origins: str) -> Iterator[Front]:
    """Start the proxy, to be called by pages of these origins."""
    with tempfile.TemporaryDirectory() as folder:
        front = Front(Path(folder))
        allowed = [part for origin in origins for part in ("--allow-origin", origin)]
        behind = ["--", sys.executable, str(HERE / "server.py"), str(front.asked_log)]
        with listening_proxy("http", behind, front.log, *allowed) as url:
            front.address = url.removeprefix("http://").removesuffix("/mcp")
            yield front


def show(pages: PageServer, host: str, target: str, *options: str) -> Any:
    """Open the page under a name, and return what it reports about a target."""
    assert CHROMIUM is not None
    # The browser's children may still write into the profile when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        named = "--host-resolver-rules=MAP *.example 127.0.0.1,EXCLUDE 127.0.0.1"
        url = f"{pages.origin(host)}/?target={target}"
        command = [CHROMIUM, *QUIET, named, f"--user-data-dir={profile}", "--remote-debugging-port=0", *options, url]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return pages.reports.get(timeout=REPORT_S)
        finally:
            browser.terminate()
            browser.wait(20)


@pytest.fixture(scope="module")
def welcomed(pages: PageServer) -> Any:
    with front_for(pages.origin(ADVERTISED)) as front:
        return show(pages, ADVERTISED, front.address)


def test_a_welcome_page_holds_a_session_over_http(welcomed: Any) -> None:
    assert [answer["status"] for answer in welcomed["http"]["answers"]] == [200, 202, 200]
    assert welcomed["http"]["answers"][2]["frame"]["result"]["content"][0]["text"] == "hello, page"


def test_a_welcome_page_reads_the_session_id(welcomed: Any) -> None:
    assert welcomed["http"]["session"]
    assert welcomed["http"]["closed"] in (200, 204)


def test_a_welcome_page_opens_the_stream(welcomed: Any) -> None:
    assert welcomed["http"]["stream"]["status"] == 200
    assert welcomed["http"]["stream"]["type"].startswith("text/event-stream")


def test_a_welcome_page_holds_a_session_over_websocket(welcomed: Any) -> None:
    assert welcomed["ws"]["protocol"] == "mcp"
    assert welcomed["ws"]["answers"][1]["result"]["content"][0]["text"] == "hello, page"
    assert welcomed["ws"]["code"] == 1000


@pytest.mark.parametrize("host", [STRANGER, f"not-{ADVERTISED}"])
def test_another_page_reaches_nothing(pages: PageServer, host: str) -> None:
    """It may send a plain POST without a preflight: CORS only keeps the answer from it, so the front has to refuse."""
    with front_for(pages.origin(ADVERTISED)) as front:
        report = show(pages, host, front.address)
        assert report["http"] == {"error": "TypeError: Failed to fetch"}
        assert report["ws"] == {"error": "error: "}
        assert report["blind"] == {"type": "opaque"}
        assert front.asked() == []


def test_a_rebound_name_reaches_nothing(pages: PageServer) -> None:
    """Its page is welcome, so that the name by which it calls the server is all that is wrong."""
    with front_for(pages.origin(REBOUND)) as front:
        port = front.address.rpartition(":")[2]
        report = show(pages, REBOUND, f"{REBOUND}:{port}")
        assert "answers" not in report["ws"]
        assert report["http"].get("answers", [{"status": 421}])[0]["status"] == 421
        assert front.asked() == []
