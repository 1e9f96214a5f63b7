"""A person signs in with a real browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.test_browser import HERE, QUIET, REPORT_S
from tests.conformance.signing_in import Http
from tests.peers.authorization import OPENING, Place, running
from tests.peers.visits import HERE as PEERS
from tests.peers.visits import proxy_command, started
from tests.signin.far import find_link
from tests.signin.house import Person, house
from tests.support.ports import free_port
from tests.support.waiting import wait_until

CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM", "")
PACKAGES = os.environ.get("DRAGOMAN_BROWSER_NPM")
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs DRAGOMAN_CHROMIUM, as `nox -s browser` sets it")


def placed(folder: Path) -> contextlib.AbstractContextManager[Place]:
    """Start `oidc-provider`, and a server that takes its tokens."""
    return running([str(NODE), str(PEERS / "npm" / "authorization.mjs"), str(PACKAGES), str(folder)], folder)


class ChromiumUser(Person):
    """Goes where they are sent, with Chromium."""

    def __init__(self, profile: Path) -> None:
        super().__init__()
        self.profile = profile

    async def _go(self, url: str) -> None:
        options = *QUIET, f"--user-data-dir={self.profile}", "--remote-debugging-port=0"
        nowhere = asyncio.subprocess.DEVNULL
        child = await asyncio.create_subprocess_exec(CHROMIUM, *options, url, stdout=nowhere, stderr=nowhere)
        try:
            await asyncio.Event().wait()  # until the test is done
        finally:
            child.terminate()
            await child.wait()


@pytest.mark.skipif(not PACKAGES or NODE is None, reason="needs node and packages of npm: `nox -s browser` brings them")
def test_a_person_signs_in_at_a_server_that_others_wrote_and_reads_that_the_page_may_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = [str(NODE), str(HERE / "sign_in.mjs"), str(PACKAGES), CHROMIUM, str(tmp_path / "last")]
    monkeypatch.setenv("BROWSER", shlex.join(person))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with placed(tmp_path) as place, place.sitting() as sitting:
        assert sitting.call("read").startswith("read by ")
        text, picture = tmp_path / "last.txt", tmp_path / "last.png"
        wait_until(text.exists)
        assert text.read_text().split("\n\n")[:2] == [
            "You are signed in",
            f"{place.url} can be used now. You may close this page.",
        ]
        assert picture.stat().st_size > 1000
        assert place.did() == ["register", "authorization_code"]


@pytest.mark.skipif(not PACKAGES or NODE is None, reason="needs node and packages of npm: `nox -s browser` brings them")
def test_a_person_far_away_comes_by_a_link_from_another_site_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    port, secrets = free_port(), tmp_path / "secrets"
    secrets.write_text("ann secret-of-ann")
    where = "--oauth-redirect-url", f"http://localhost:{port}/oauth/callback"  # to browsers, 127.0.0.1 is another site
    options = "--listen", f"http://127.0.0.1:{port}", "--auth-token-file", str(secrets), *where
    with placed(tmp_path) as place:
        command = proxy_command(*options, "--url", place.url)
        with started(command, tmp_path / "log", announced_on_stderr=True):
            line = Http(f"http://127.0.0.1:{port}/mcp")
            line.headers["X-API-Key"] = "secret-of-ann"
            opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING}
            link = find_link(line.send(opening)["error"]["message"])
            person = [str(NODE), str(HERE / "sign_in.mjs"), str(PACKAGES), CHROMIUM, str(tmp_path / "last"), link]
            subprocess.run(person, check=True, timeout=REPORT_S)
            assert (tmp_path / "last.txt").read_text().startswith("You are signed in")
            assert "result" in line.send(opening)
        assert place.did() == ["register", "authorization_code"]


def test_a_real_browser_comes_back_with_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    async def main() -> None:
        async with house(tmp_path) as home:
            home.person = ChromiumUser(tmp_path / "profile")
            home.wants = lambda request: "" if request.rpc == "tools/list" else None
            async with home.client() as peer:
                asked = peer.start("tools/list")
                await peer.until(lambda: asked in peer.answers, patience_s=REPORT_S)
                assert peer.answers[asked]["result"] == {"sent": "Bearer token-secret-1"}

    asyncio.run(main())
