"""A person signs in with a real browser."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.browser.test_browser import QUIET, REPORT_S
from tests.signin.house import Person, house

CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM", "")

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs DRAGOMAN_CHROMIUM, as `nox -s browser` sets it")


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
