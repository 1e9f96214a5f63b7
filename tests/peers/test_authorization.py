"""Signing in at authorization servers that others wrote: npm's `oidc-provider` and `better-auth`, with a server of the
official SDK, authlib's, FastMCP's, and those of the official Python SDK.

Needs the packages of `npm/package.json`, and environments of `requirements` and `released/requirements`; `nox -s peers`
brings them. The proxy is a process, and so is whoever signs in, as its browser.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.authorization import Place, running
from tests.peers.person import sign_in
from tests.peers.test_npm import FOLDER, node
from tests.peers.visits import ENVIRONMENTS, HERE, SELECTION, python_in
from tests.support.waiting import wait_until

REFRESHED = ["refresh_token", "rotate"]
PLACES = {
    "oidc-provider": ("authorization.mjs", ""),
    "better-auth": ("better_auth.mjs", ""),
    "authlib": ("authorization_server.py", "authlib"),
    "sdk-1": ("sdk_authorization.py sdk-1", "2025-11-25"),
    "sdk-1.12": ("sdk_authorization.py sdk-1", "2025-06-18"),
    "sdk-2": ("sdk_authorization.py sdk-2", "current"),
    "fastmcp-2": ("sdk_authorization.py fastmcp", "fastmcp-2"),
    "fastmcp-4": ("sdk_authorization.py fastmcp", "fastmcp-4"),
}
"""Programs of this folder or of `npm`, and the environments that they run in."""

ONLY_IN_FULL = ("sdk-1.12", "fastmcp-2")


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What belongs to the user, and whoever signs in."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    person = [sys.executable, str(HERE / "person.py"), str(tmp_path / "pages")]
    monkeypatch.setenv("BROWSER", shlex.join(person))


@pytest.fixture
def place(ours: None, tmp_path: Path) -> Iterator[Place]:
    """Oidc-provider, and a server of the TypeScript SDK."""
    with started("oidc-provider", tmp_path) as place:
        yield place


@contextlib.contextmanager
def started(name: str, folder: Path, *more: str) -> Iterator[Place]:
    """Start one of `PLACES`, with more words for it."""
    kind, environment = PLACES[name]
    if kind.endswith(".mjs"):
        if not FOLDER:
            pytest.skip("no packages of npm: run `nox -s peers`")
        command = [node(), str(HERE / "npm" / kind), str(FOLDER), str(folder), *more]
    else:
        if ENVIRONMENTS is None:
            pytest.skip("no peer environments: run `nox -s peers`")
        program, *words = kind.split()
        command = [python_in(environment), str(HERE / program), *words, str(folder), *more]
    with running(command, folder) as place:
        yield place


@pytest.fixture(params=["oidc-provider", "authlib"])
def each_place(request: pytest.FixtureRequest, ours: None, tmp_path: Path) -> Iterator[Place]:
    """Those two that know clients with credentials, and more than one scope."""
    with started(request.param, tmp_path) as place:
        yield place


@pytest.fixture(params=[name for name in PLACES if name not in ONLY_IN_FULL or SELECTION == "full"])
def any_place(request: pytest.FixtureRequest, ours: None, tmp_path: Path) -> Iterator[Place]:
    """Each of them."""
    with started(request.param, tmp_path) as place:
        yield place


def dragoman(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


def test_tokens_are_refreshed_expire_are_revoked_and_clients_forgotten(any_place: Place) -> None:
    with any_place.sitting() as sitting:
        first = sitting.call("read")
        assert (first[:8], any_place.did()) == ("read by ", ["register", "authorization_code"])
        any_place.tell("end")
        assert sitting.call("read") == first
        assert "refresh_token" in any_place.did()
        any_place.tell("expire")
        assert sitting.call("read") == first
        assert "authorization_code" in any_place.did()
        any_place.tell("forget")
        any_place.tell("end")
        any_place.did()
        assert sitting.call("read")[:8] == "read by "
        assert [one for one in any_place.did() if one != "refuse"] == ["register", "authorization_code"]
    any_place.tell("forget")
    done = dragoman("login", any_place.url)
    assert (done.returncode, done.stdout.partition(" to ")[0]) == (0, "Signed in"), "no page said that it knows nobody"
    assert [one for one in any_place.did() if one != "refuse"] == ["register", "authorization_code"]
    wait_until(lambda: len(any_place.pages) == 4)
    assert all("You are signed in" in page for page in any_place.pages)
    done = dragoman("logout", any_place.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "end refresh_token" in any_place.did()


def test_a_person_signs_in_once_and_every_later_proxy_uses_the_token(each_place: Place) -> None:
    with each_place.sitting() as one, each_place.sitting() as two:
        assert one.call("read") == two.call("read")
    wait_until(lambda: len(each_place.pages) > 0)
    assert (each_place.did(), len(each_place.pages)) == (["register", "authorization_code"], 1)
    assert "You are signed in" in each_place.pages[0]


def test_a_token_is_for_the_server_that_it_was_got_for(each_place: Place) -> None:
    with each_place.sitting() as sitting:
        sitting.call("read")
    assert each_place.tell()[-1] == {"did": "authorization_code", "resource": each_place.url}


def test_tokens_that_have_ended_are_refreshed_and_the_refresh_token_is_another_one_then(each_place: Place) -> None:
    with each_place.sitting() as sitting:
        before = sitting.call("read")
        each_place.did()
        for _ in range(3):
            each_place.tell("end")
            assert sitting.call("read") == before
            assert sorted(each_place.did()) == REFRESHED


def test_more_is_asked_for_when_a_call_needs_it(each_place: Place) -> None:
    with each_place.sitting() as sitting:
        sitting.call("read")
        each_place.did()
        assert sitting.call("write").startswith("write by ")
        assert sitting.call("read").startswith("read by ")


def test_who_we_are_is_in_a_document(place: Place) -> None:
    document = "https://client.example/dragoman.json"
    with place.sitting("--oauth-client-metadata-url", document) as sitting:
        assert sitting.call("read") == f"read by {document}"
        assert place.did() == ["authorization_code"]


@pytest.mark.parametrize(
    ("client", "option", "file"),
    [("robot", "--oauth-client-secret-file", "secret"), ("signer", "--oauth-private-key-file", "key.pem")],
)
def test_a_client_with_credentials_needs_nobody(place: Place, client: str, option: str, file: str) -> None:
    options = "--oauth-grant", "client_credentials", "--oauth-client-id", client, option, str(place.folder / file)
    with place.sitting(*options) as sitting:
        assert sitting.call("read") == f"read by {client}"
        assert (place.did(), place.pages) == (["client_credentials"], [])


def test_a_code_is_typed_on_another_device(place: Place) -> None:
    command = [sys.executable, "-m", "dragoman", "login", "--oauth-grant", "device_code", place.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as login:
        assert login.stderr is not None
        words = login.stderr.readline().split()
        page = next(word for word in words if word.startswith("http"))
        assert "Sign-in Success" in sign_in(page)
        said, wrong = login.communicate(timeout=60)
        assert (login.returncode, wrong) == (0, "")
        assert said.startswith("Signed in to ")
    with place.sitting() as sitting:
        assert sitting.call("read").startswith("read by ")
    assert place.pages == []


def test_tokens_are_given_back_by_logout(each_place: Place) -> None:
    with each_place.sitting() as sitting:
        before = sitting.call("read")
        each_place.did()
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "logout", each_place.url], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "end refresh_token" in each_place.did()
        assert sitting.call("read") != before, (
            "the access token is worth nothing any more, and who we were is forgotten"
        )
        assert each_place.did() == ["register", "authorization_code"]


def test_a_client_with_a_secret_needs_nobody_at_either(each_place: Place) -> None:
    secret = "--oauth-client-secret-file", str(each_place.folder / "secret")
    with each_place.sitting("--oauth-grant", "client_credentials", "--oauth-client-id", "robot", *secret) as sitting:
        assert sitting.call("read") == "read by robot"
