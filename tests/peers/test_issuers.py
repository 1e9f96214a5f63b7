"""Authorization servers that others wrote as issuers for the guard of the proxy, and clients of the official SDKs, and
ours, that find them by the proxy's challenge, sign in, and call a tool.

Needs what `test_authorization.py` needs; `nox -s peers` brings it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.peers.authorization import Place
from tests.peers.test_authorization import ours, started
from tests.peers.test_npm import FOLDER, node
from tests.peers.visits import HERE, SELECTION, python_in
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

__all__ = ["ours"]

ISSUERS = {
    "oidc-provider jwt": ("jwt", ""),
    "oidc-provider opaque": ("opaque", "/token/introspection"),
    "authlib jwt": ("jwt", ""),
    "authlib opaque": ("opaque", "/introspection"),
    "better-auth jwt": ("", ""),
    "sdk-1 opaque": ("", "/introspect"),
    "sdk-2 opaque": ("", "/introspect"),
    "fastmcp-4 opaque": ("", "/introspect"),
}
"""By the name in `PLACES`, and what its tokens are: what it is told of them, and where it is asked about them."""

WITH_CREDENTIALS = [name for name in ISSUERS if name.startswith(("oidc", "authlib"))]
SIGNING = [name for name in WITH_CREDENTIALS if name.endswith("jwt")]
CLIENTS = ("ours", "current", "2025-11-25", "@modelcontextprotocol/client", "sdk-1.32")
NOT_TOGETHER = [("better-auth jwt", "2025-11-25")]
"""The issuer wants to know that a client is no web page, and the client cannot say so."""

SIGN_IN = [
    (name, client)
    for place, name in enumerate(ISSUERS)
    for turn, client in enumerate(CLIENTS)
    if SELECTION == "full" or (turn - place) % len(CLIENTS) in (0, 2)
]
"""By default two clients at each issuer, in turn."""


@dataclass
class Guarded:
    """An issuer, and a proxy that wants its tokens.

    Attributes:
        place: The issuer.
        proxy: The process before the server.
        url: Of the proxy; what tokens have to be for.
        issuer: The name of the issuer.
        log: Its access log.
    """

    place: Place
    proxy: Listening
    url: str
    issuer: str
    log: Path

    def give(self, scope: str = "tools", resource: str | None = None) -> str:
        """Return a token that the issuer gives a program with credentials."""
        form = {"grant_type": "client_credentials", "scope": scope, "resource": resource or self.url}
        pair = f"robot:{quote((self.place.folder / 'secret').read_text())}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        asked = urllib.request.Request(f"{self.place.issuer}/token", urlencode(form).encode(), headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return str(json.load(answer)["access_token"])

    def show(self, token: str) -> tuple[int, str]:
        """Open a session with a token; return the status, and the challenge."""
        status, headers, _ = self.proxy.post(INITIALIZE, authorization=f"Bearer {token}")
        return status, {name.lower(): value for name, value in headers.items()}.get("www-authenticate", "")


def find_name(issuer: str) -> str:
    """Return the name of an issuer as it writes it itself, perhaps with a slash at its end: clients compare it so."""
    url = urlsplit(issuer)
    for kind in ("oauth-authorization-server", "openid-configuration"):
        with contextlib.suppress(urllib.error.HTTPError):
            where = f"{url.scheme}://{url.netloc}/.well-known/{kind}{url.path}"
            with urllib.request.urlopen(where, timeout=PATIENCE_S) as answer:
                return str(json.load(answer)["issuer"])
    raise AssertionError("it has no metadata")


@contextlib.contextmanager
def guarding(name: str, folder: Path, *options: str) -> Iterator[Guarded]:
    """Start one of `ISSUERS`, and the proxy that it gives tokens for."""
    form, asked_at = ISSUERS[name]
    url = f"http://127.0.0.1:{free_port()}/mcp"
    with started(name.split()[0], folder, url, form) as place:
        issuer = find_name(place.issuer)
        given = [*("--auth-issuer", issuer), *("--resource-url", url), *("--auth-scope", "tools")]
        if asked_at:
            given += ["--auth-introspection", place.issuer + asked_at]
            if name in WITH_CREDENTIALS:
                secret = ("--auth-introspection-secret-file", str(folder / "secret"))
                given += ["--auth-introspection-client", "robot", *secret]
        log = folder / "access"
        with listening(*given, *options, "--access-log", str(log), url=url.removesuffix("/mcp")) as proxy:
            yield Guarded(place, proxy, url, issuer, log)


def call_with(client: str, guarded: Guarded) -> str:
    """Let one of `CLIENTS` sign in and call a tool; return what the tool said."""
    if client == "ours":
        with Place(guarded.place.issuer, guarded.url, guarded.place.folder, guarded.place.child).sitting() as sitting:
            return sitting.call("tool_0")
    if client[0].isdigit() or client == "current":
        command = [python_in(client), str(HERE / "signing_client.py"), guarded.url]
    else:
        if not FOLDER:
            pytest.skip("no packages of npm: run `nox -s peers`")
        command = [node(), str(HERE / "npm" / "signing.mjs"), FOLDER, client, guarded.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["said"])


@pytest.mark.parametrize(("name", "client"), SIGN_IN)
def test_a_client_finds_the_issuer_signs_in_and_calls(ours: None, name: str, client: str, tmp_path: Path) -> None:
    if (name, client) in NOT_TOGETHER:
        pytest.skip("this client cannot register there")
    with guarding(name, tmp_path) as guarded:
        assert call_with(client, guarded) == "x" * 200
        wait_until(lambda: "method=tools/call" in guarded.log.read_text())
        (call,) = [line for line in guarded.log.read_text().splitlines() if "method=tools/call" in line]
        assert f"of {guarded.issuer}' " in call
        assert " by " in call


@pytest.mark.parametrize("name", WITH_CREDENTIALS)
def test_a_token_for_somebody_else_or_for_too_little_does_not_count(name: str, tmp_path: Path) -> None:
    with guarding(name, tmp_path, "--auth-implies", "write=tools") as guarded:
        status, challenge = guarded.show("no-token-at-all")
        assert status == 401
        where = guarded.url.removesuffix("/mcp") + "/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in challenge
        with urllib.request.urlopen(where, timeout=PATIENCE_S) as answer:
            said = json.load(answer)
        assert (said["resource"], said["authorization_servers"]) == (guarded.url, [guarded.issuer])
        assert guarded.show(guarded.give())[0] == 200
        assert guarded.show(guarded.give("write"))[0] == 200
        assert guarded.show(guarded.give(resource=guarded.place.url))[0] == 401
        status, challenge = guarded.show(guarded.give("other"))
        assert status == 403
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="tools"' in challenge


@pytest.mark.parametrize("name", [one for one in WITH_CREDENTIALS if one.endswith("opaque")])
def test_a_token_that_was_withdrawn_does_not_count(name: str, tmp_path: Path) -> None:
    with guarding(name, tmp_path) as guarded:
        token = guarded.give()
        guarded.place.tell("end")
        assert guarded.show(token)[0] == 401
        assert guarded.show(guarded.give())[0] == 200


@pytest.mark.parametrize("name", SIGNING)
def test_a_new_key_of_the_issuer_counts_at_once(name: str, tmp_path: Path) -> None:
    with guarding(name, tmp_path) as guarded:
        unseen = guarded.give()
        assert guarded.show(guarded.give())[0] == 200
        guarded.place.tell("rotate")
        assert guarded.show(guarded.give())[0] == 200
        assert guarded.show(unseen)[0] == 401


def test_while_the_issuer_is_away_its_old_keys_count(tmp_path: Path) -> None:
    with guarding("oidc-provider jwt", tmp_path) as guarded:
        unseen = guarded.give()
        assert guarded.show(guarded.give())[0] == 200
        guarded.place.tell("leave")
        assert guarded.show(unseen)[0] == 200
        with pytest.raises(urllib.error.URLError):
            guarded.give()
        guarded.place.tell("return")
        assert guarded.show(guarded.give())[0] == 200


def test_a_token_that_names_its_client_alone_counts_where_that_client_is_named(tmp_path: Path) -> None:
    """As authlib has it, where a client names no server: then the token is for the client."""
    with guarding("authlib jwt", tmp_path) as guarded:
        plain = guarded.give(resource="robot")
        assert guarded.show(plain)[0] == 401
    with guarding("authlib jwt", tmp_path, "--auth-client", "robot") as guarded:
        assert guarded.show(guarded.give(resource="robot"))[0] == 200
