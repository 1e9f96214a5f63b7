"""The site in a real browser, from a folder and without a network: nothing is asked of a host, and the search finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.browser.test_browser import HERE

ROOT = HERE.parents[1]
CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM", "")
PACKAGES = os.environ.get("DRAGOMAN_BROWSER_NPM")
SITE_PACKAGES = os.environ.get("DRAGOMAN_SITE_NPM")
NODE = shutil.which("node")
BUILD_S = 300
READ_S = 180

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and PACKAGES and SITE_PACKAGES and NODE),
    reason="needs Chromium and packages of npm, as `nox -s browser` brings them",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser saw of a site that was built for this."""
    pytest.importorskip("zensical", reason="`nox -s browser` brings Zensical")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "website", str(folder / "site")]
    subprocess.run(command, cwd=ROOT, check=True, timeout=BUILD_S)
    script = [str(NODE), str(HERE / "site.mjs"), str(PACKAGES), CHROMIUM, (folder / "site").as_uri()]
    done = subprocess.run(script, capture_output=True, text=True, timeout=READ_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_page_asks_a_host_or_fails(report: Any) -> None:
    assert (report["asked"], report["failed"]) == ([], [])


def test_no_page_is_wider_than_its_screen(report: Any) -> None:
    assert report["wide"] == []


def test_the_search_finds_a_page(report: Any) -> None:
    assert any("sign-in.html" in link for link in report["found"])


def test_diagrams_are_drawn(report: Any) -> None:
    assert report["drawn"] == 4


def test_the_scheme_can_be_chosen(report: Any) -> None:
    assert report["schemes"] == ["default", "slate"]


def test_the_site_begins_with_its_name(report: Any) -> None:
    assert report["title"] == "Dragoman"
