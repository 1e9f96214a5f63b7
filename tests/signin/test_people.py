"""How a person is asked: browsers, and the page that they come back to."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.signin.authority import SignIn
from dragoman.signin.people import AtDesktop, CallbackPage, find_browsers, open_page
from dragoman.signin.settings import GRANTS, SignInSettings
from tests.signin.house import get
from tests.support.waiting import wait_until
from tests.transports.upstream.stage import on_loop


def test_how_a_person_was_asked_makes_no_other_tokens() -> None:
    paths = {grant: SignIn("https://mcp.example/mcp", SignInSettings(grant=grant)).path for grant in GRANTS}
    assert paths["device_code"] == paths["authorization_code"]
    assert len(set(paths.values())) == len(GRANTS) - 1


def test_browser_is_respected() -> None:
    chosen = os.pathsep.join(["first --new %s", "second"])
    assert find_browsers({"BROWSER": chosen}) == [["first", "--new", "%s"], ["second"]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("firefox", ["firefox", "URL"]),
        ("firefox --new-window", ["firefox", "--new-window", "URL"]),
        ("firefox --url=%s --new", ["firefox", "--url=URL", "--new"]),
        ("firefox %s &", ["firefox", "URL"]),
        ("'a browser' '%s'", ["a browser", "URL"]),
        ("sh -c 'x %s'", ["sh", "-c", "x %s", "URL"]),
        ("firefox 'x", ["firefox 'x", "URL"]),
    ],
)
def test_browser_is_read_as_by_python(monkeypatch: pytest.MonkeyPatch, text: str, line: list[str]) -> None:
    begun: list[list[str]] = []

    def begin(words: list[str], **_: object) -> None:
        begun.append(words)
        raise FileNotFoundError(errno.ENOENT, "No such file")

    monkeypatch.setattr(subprocess, "Popen", begin)
    monkeypatch.setenv("BROWSER", text)
    assert asyncio.run(open_page("URL")) == f"{line[0]}: No such file"
    assert begun == [line]


def test_a_command_may_have_spaces_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "a browser"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    assert find_browsers({"BROWSER": str(command)}) == [[str(command)]]


@on_loop
async def test_a_broken_browser_is_named_with_the_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BROWSER", os.pathsep.join(["/no/such/browser", "false %s", "' & "]))
    await AtDesktop().show("https://s.example/mcp", "https://a.example/x")
    said = caplog.messages[-1]
    assert "/no/such/browser: No such file or directory, false: ended with 1, ' &: No such" in said
    assert said.endswith("open this page by hand: https://a.example/x")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a screen")
def test_without_a_screen_there_is_no_browser() -> None:
    assert find_browsers({}) == []


@pytest.mark.parametrize("template", ["{} -c '{}' {}", "{} -c '{}' {} %s"])
def test_a_page_is_opened_without_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str) -> None:
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    out, url = tmp_path / "out", "https://a.example/x?a=$(touch hacked)&b='; touch hacked;'"
    command = f'{sys.executable} -c "{code}" {out}' + (" %s" if "%s" in template else "")
    monkeypatch.setenv("BROWSER", os.pathsep.join(["/no/such/browser", command]))
    assert asyncio.run(open_page(url)) == ""
    wait_until(lambda: out.exists() and out.read_text() == url)


@on_loop
async def test_only_who_brings_the_state_is_heard() -> None:
    page = CallbackPage()
    await page.start("localhost", 0)
    waits = asyncio.ensure_future(page.wait("s"))
    assert (await get(f"{page.url}?code=evil&state=other"))[0] == 404
    assert (await get(page.url.replace("callback", "x") + "?code=evil&state=s"))[0] == 404
    before = page.url
    page.move("/callback/own")
    assert page.url == f"{before}/own"
    assert (await get(f"{before}?code=evil&state=s"))[0] == 404, "it is another authorization server's"
    came = asyncio.ensure_future(get(f"{page.url}?code=c%20d&state=s"))
    assert await waits == {"code": "c d", "state": "s"}
    await page.close("<Done>", "a & b")
    status, headers, body = await came
    assert (status, "&lt;Done&gt;" in body, "a &amp; b" in body) == (200, True, True)
    assert headers["cache-control"] == "no-store"
