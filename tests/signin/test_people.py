"""How a person is asked: browsers, and the page that they come back to."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dragoman.signin.page import CallbackPage
from dragoman.signin.people import find_browsers, open_page
from tests.signin.house import get
from tests.support.waiting import wait_until
from tests.transports.upstream.stage import on_loop


def test_browser_is_respected() -> None:
    chosen = os.pathsep.join(["first --new %s", "second"])
    assert find_browsers({"BROWSER": chosen}) == [["first", "--new", "%s"], ["second"]]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a screen")
def test_without_a_screen_there_is_no_browser() -> None:
    assert find_browsers({}) == []


@pytest.mark.parametrize("template", ["{} -c '{}' {}", "{} -c '{}' {} %s"])
def test_a_page_is_opened_without_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str) -> None:
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    out, url = tmp_path / "out", "https://a.example/x?a=$(touch hacked)&b='; touch hacked;'"
    command = f'{sys.executable} -c "{code}" {out}' + (" %s" if "%s" in template else "")
    monkeypatch.setenv("BROWSER", os.pathsep.join(["/no/such/browser", command]))
    assert open_page(url)
    wait_until(lambda: out.exists() and out.read_text() == url)


@on_loop
async def test_only_who_brings_the_state_is_heard() -> None:
    page = CallbackPage()
    await page.start("localhost", 0)
    waits = asyncio.ensure_future(page.wait("s"))
    assert (await get(f"{page.url}?code=evil&state=other"))[0] == 404
    assert (await get(page.url.replace("callback", "x") + "?code=evil&state=s"))[0] == 404
    came = asyncio.ensure_future(get(f"{page.url}?code=c%20d&state=s"))
    assert await waits == {"code": "c d", "state": "s"}
    await page.close("<Done>", "a & b")
    status, headers, body = await came
    assert (status, "&lt;Done&gt;" in body, "a &amp; b" in body) == (200, True, True)
    assert headers["cache-control"] == "no-store"
