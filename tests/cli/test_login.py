"""`dragoman login`, `tokens` and `logout`, and options that do not go together."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from dragoman.cli import main, make_parser
from dragoman.cli.oauth import read_sign_in
from dragoman.signin.settings import DEFAULT, OPTIONS
from tests.signin.house import get, house
from tests.support import waiting
from tests.transports.upstream.stage import Reply, Request

FOLLOW = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


def settings(*options: str) -> Any:
    return read_sign_in(make_parser("proxy").parse_args([*options, "--url", "https://s.example/mcp"]))


async def run(environment: dict[str, str], *words: str) -> tuple[int | None, str, str]:
    """Run a command; give how it ended, and what it said."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", *words),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await child.communicate()
    return child.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("takes", [True, False])
def test_tokens_are_given_back_with_logout(tmp_path: Path, takes: bool) -> None:
    (tmp_path / "follow.py").write_text(FOLLOW)
    browser = f"{sys.executable} {tmp_path / 'follow.py'}"
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "BROWSER": browser}
    revoked: list[dict[str, str]] = []

    async def revoke(request: Request, reply: Reply) -> None:
        revoked.append(dict(parse_qsl(request.body.decode())))
        await reply.json({}, status="200 OK" if takes else "503 Not Now")

    async def main() -> None:
        async with house(tmp_path) as home:
            home.metadata["revocation_endpoint"] = f"{home.base}/revoke"
            home.pages["/revoke"] = revoke
            await run(environment, "login", home.url)
            code, out, err = await run(environment, "logout", home.url)
            assert (code, out.splitlines()[0]) == (0, f"Forgotten: {home.url}.")
            assert [one["token"] for one in revoked] == ["refresh-secret-1", "token-secret-1"][: 2 if takes else 1]
            assert out.endswith(f"Its tokens are revoked at {home.base}.\n") is takes
            assert ("may still be good elsewhere" in err and "(status 503)" in err) is not takes
            assert "secret" not in out + err

    waiting.run(main())


def test_a_sign_in_that_cannot_be_kept_has_failed(tmp_path: Path) -> None:
    (tmp_path / "follow.py").write_text(FOLLOW)
    (tmp_path / "dragoman").write_text("no directory")
    browser = f"{sys.executable} {tmp_path / 'follow.py'}"
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "BROWSER": browser}

    async def main() -> None:
        async with house(tmp_path) as home:
            code, out, err = await run(environment, "login", home.url)
            assert (code, out.startswith("Signed in")) == (1, True)
            assert err.count("the sign-in cannot be kept") == 1

    waiting.run(main())


def test_a_person_signs_in_sees_what_there_is_and_forgets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "follow.py").write_text(FOLLOW)
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path),
        "BROWSER": f"{sys.executable} {tmp_path / 'follow.py'}",
    }
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    async def sign_in() -> tuple[str, str, str]:
        async with house(tmp_path) as home:
            _, out, err = await run(environment, "login", home.url, "--oauth-scope", "a b")
            return home.url, out, err

    url, out, err = waiting.run(sign_in())
    assert out == f"Signed in to {url} at {url.removesuffix('/mcp')}, for a b.\n"
    assert "secret" not in out + err.replace("code_challenge", "")
    assert main(["tokens", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert {"url": url, "scope": "a b", "refreshes": True}.items() <= entry.items()
    assert main(["tokens"]) == 0
    said = capsys.readouterr().out
    assert url in said
    assert "secret" not in said
    assert main(["logout", url]) == 0
    assert main(["logout", url]) == 1
    assert "there are no tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--oauth-grant", "client_credentials"],
        ["--oauth-grant", "identity_assertion", "--oauth-client-id", "x"],
        ["--oauth-client-secret-file", __file__],
        ["--oauth-token-endpoint", "https://a.example/t"],
        ["--oauth-token-endpoint", "http://a.example/t"],
        ["--oauth-redirect-port", "65536"],
        ["--oauth-authorize-param", "x"],
        ["--oauth-client-secret-file", "/no/such/file"],
    ],
)
def test_options_that_do_not_go_together_are_named(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings(*options)
    assert "--oauth" in capsys.readouterr().err


def test_options_become_settings() -> None:
    assert settings() == DEFAULT
    assert settings("--no-sign-in") is None
    given = settings("--oauth-authorize-param", "a=b=c", "--oauth-redirect-port", "99", "--no-oauth-resource")
    assert (given.authorize_params, given.redirect_port, given.names_resource) == ((("a", "b=c"),), 99, False)


def test_every_setting_can_be_written() -> None:
    fields = {option.setting for option in OPTIONS}
    assert fields == set(DEFAULT.__dataclass_fields__)


def test_options_mean_nothing_without_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["proxy", "--oauth-client-id", "x", "--", "true"])
    assert "--url" in capsys.readouterr().err


async def sign_in_by_hand(environment: dict[str, str], url: str, *pasted: str) -> tuple[int | None, str, str]:
    """Sign in without a browser, and paste one after the other; `BACK` stands for the address of the last page."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "login", "--no-browser", url),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stderr is not None
    told, back = "", ""
    for line in pasted:
        while not told.rstrip().endswith(("here:", "last page:", "in it.")):
            told += (await child.stderr.readline()).decode()
        if not back:
            page = next(word for word in told.split() if word.startswith("http") and "/authorize?" in word)
            back = (await get(page))[1]["location"]
        told += "(pasted)\n"
        child.stdin.write(line.replace("BACK", back).replace("CUT", back[:-40]).encode() + b"\n")
        await child.stdin.drain()
    out, err = await child.communicate()
    return child.returncode, out.decode(), told + err.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        ["nonsense"],
        ["http://127.0.0.1:1/callback?code=x&state=another"],
        ["http://[?code=x"],
        ["CUT"],
        ["?error=access_denied", "code=", "code=x&state="],
    ],
)
def test_a_wrong_paste_does_not_end_a_sign_in(tmp_path: Path, wrong: list[str]) -> None:
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}

    async def main() -> None:
        async with house(tmp_path) as home:
            code, out, err = await sign_in_by_hand(environment, home.url, *wrong, "BACK")
            assert (code, out.startswith("Signed in")) == (0, True), err
            assert err.count("That is not it") == len(wrong)

    waiting.run(main())


def test_what_is_left_of_an_address_is_enough_if_it_has_the_code(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}

    async def main() -> None:
        async with house(tmp_path) as home:
            code, _, err = await sign_in_by_hand(environment, home.url, "  BACK  ")
            assert code == 0, err

    waiting.run(main())
