"""The rules of HTTP: a server that keeps them, and the same one with each rule broken on its way out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.check.check import check_server
from dragoman.check.findings import CheckReport, holds
from dragoman.check.rules import RULES
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from dragoman.transports.upstream.mounted import mount
from dragoman_spec import REVISIONS
from tests.server.rooms import make
from tests.support.waiting import hang, run

NEWEST, CURRENT = REVISIONS[3], REVISIONS[4]

Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class Spoilt:
    """An application that breaks a rule of HTTP, whatever the one behind it does.

    Args:
        app: Which keeps all of them.
        rule: To break.
    """

    def __init__(self, app: App, rule: str) -> None:
        self.app = app
        self.rule = rule

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = b""
        more = scope["method"] == "POST"
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        status = self.replace(scope, body)
        if status is not None:
            await answer(send, status, body)
            return

        was_read = False

        async def again() -> Any:
            nonlocal was_read
            if was_read:
                return await receive()
            was_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(self.change(scope), again, lambda message: send(self.spoil(message)))

    def replace(self, scope: dict[str, Any], body: bytes) -> int | None:
        """Give a status to answer with in the place of the application."""
        headers = dict(scope["headers"])
        session = headers.get(b"mcp-session-id", b"")
        match self.rule:
            case "http-get" if scope["method"] == "GET":
                return 200
            case "http-origin" if b"origin" in headers:
                return 200
            case "http-session-needed" if scope["method"] == "POST" and not session and b"initialize" not in body:
                return 401
            case "http-session-unknown" if session.startswith(b"dragoman-check"):
                return 200
            case "http-revision" if headers.get(b"mcp-protocol-version", b"").startswith(b"1999"):
                return 200
            case "http-broken-body" if body == b'{"id":':
                return 202
            case "http-unknown-method" if b"no-such-method" in headers.get(b"mcp-method", b"") and b"no-such" in body:
                return 200
            case "http-headers-match" if (
                b"no-such-method" in headers.get(b"mcp-method", b"") and b"no-such" not in body
            ):
                return 400
            case "http-meta-status" if scope["method"] == "POST" and b'"params":{}' in body:
                return 404
            case "http-accepted" if b"notifications/initialized" in body:
                return 204
            case "http-session-ended" if scope["method"] == "DELETE":
                return 200
        return None

    def change(self, scope: dict[str, Any]) -> dict[str, Any]:
        return scope

    def spoil(self, message: dict[str, Any]) -> dict[str, Any]:
        """Change what the application answers."""
        if message["type"] != "http.response.start":
            return message
        headers = dict(message["headers"])
        match self.rule:
            case "http-content-type" if headers.get(b"content-type", b"").startswith(b"application/json"):
                headers[b"content-type"] = b"text/html"
            case "http-session-id" if b"mcp-session-id" in headers:
                headers[b"mcp-session-id"] = b"caf\xe9"
            case "http-no-session":
                headers[b"mcp-session-id"] = b"abc"
        return {**message, "headers": list(headers.items())}


async def answer(send: Send, status: int, body: bytes) -> None:
    """Answer with a result that says nothing."""
    try:
        number = json.loads(body).get("id")
    except ValueError:
        number = None
    told = b"" if status in (202, 204) else json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(told))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": told})


def check(revision: str, rule: str = "", wrap: type[Spoilt] = Spoilt) -> CheckReport:
    async def work() -> CheckReport:
        app = make(revision).app()
        async with mount(wrap(app, rule), drain_timeout_s=0.1) as connect:
            transport: Any = connect()
            config: UpstreamConfig = transport._config
            report = await check_server(connect, over="http", revisions=[revision], timeout_s=0.2, http=config)
        await app.close()
        return report

    return run(work())


class Hanging(Spoilt):
    """Opens a session, and the stream of each answer after that, and says nothing more."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> None:
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        body = (await receive())["body"] if is_post else b""
        if is_post and b'"initialize"' not in body and b"notifications/" not in body:
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b": here\n\n", "more_body": True})
            await hang()

        async def again() -> Any:
            nonlocal is_post
            if not is_post:
                return await receive()
            is_post = False
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)


def test_a_server_that_opens_streams_and_says_nothing_is_given_up() -> None:
    report = check(NEWEST, wrap=Hanging)
    (one,) = report.revisions
    assert (one.outcome, broken(report)) == ("spoken", {"answered"})
    assert one.findings[-1].found.endswith("so that nothing more was asked")


def test_a_server_that_cannot_be_reached_is_gone() -> None:
    config = UpstreamConfig("http://127.0.0.1:9/mcp")
    report = asyncio.run(check_server(lambda: open_upstream(config), over="http", http=config))
    assert {one.outcome for one in report.revisions} == {"gone"}
    assert "127.0.0.1:9" in report.revisions[0].why


def broken(report: CheckReport) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_a_good_server_breaks_nothing(revision: str) -> None:
    report = check(revision)
    assert report.findings == ()
    assert report.served == (revision,)


CASES = [
    (rule.name, revision)
    for rule in RULES.values()
    for revision in (NEWEST, CURRENT)
    if rule.over == "http" and holds(rule, revision, "http")
]


@pytest.mark.parametrize(("rule", "revision"), CASES)
def test_a_broken_rule_is_seen(rule: str, revision: str) -> None:
    assert rule in broken(check(revision, rule))
