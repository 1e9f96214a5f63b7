"""Signing in through the HTTP proxy of a company, which wants credentials: nothing of it goes another way."""

from __future__ import annotations

import logging
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.signin.house import house
from tests.support.company_proxy import company_proxy
from tests.transports.upstream.stage import on_loop
from tests.transports.upstream.test_real_proxies import proxy, running  # noqa: F401
from tests.transports.upstream.test_tls import certificate, context  # noqa: F401


@on_loop
async def test_everything_goes_through_tunnels(folder: Path, certificate: Path) -> None:  # noqa: F811
    async with house(folder, context(certificate)) as home, company_proxy(user="ann:pass word") as company:
        config = {"proxy": f"http://ann:pass%20word@{company.address}", "ca_file": str(certificate)}
        async with home.client(**config) as peer:
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        assert set(company.asked) == {f"CONNECT {urlsplit(home.url).netloc}"}
        assert len(company.asked) >= 5, "the server, its metadata and those of the other, registration, and tokens"


@on_loop
async def test_a_proxy_that_refuses_us_in_the_middle_is_named(
    folder: Path,
    certificate: Path,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with house(folder, context(certificate)) as home, company_proxy(user="ann:hers") as company:
        home.wants = lambda request: "" if request.rpc == "tools/list" else None
        config = {"proxy": f"http://ann:hers@{company.address}", "ca_file": str(certificate)}
        async with home.client(**config) as peer:
            company.user = "ann:another"
            error = (await peer.ask("tools/list"))["error"]["message"]
            named = f"the proxy {company.address} (as configured): it does not accept the user and password"
            assert named in error
    assert "hers" not in caplog.text
    assert home.person.pages == []


@on_loop
async def test_everything_goes_through_a_real_one(
    folder: Path,
    certificate: Path,  # noqa: F811
    proxy: list[str],  # noqa: F811
) -> None:
    async with house(folder, context(certificate)) as home, running(proxy) as address:
        config = {"proxy": f"http://ann:secret@{address}", "ca_file": str(certificate)}
        async with home.client(**config) as peer:
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
