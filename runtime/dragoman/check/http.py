"""How a server speaks HTTP: statuses, content types, sessions, and headers that must not be believed.

Lives here: requests of HTTP made for what they are answered with, whatever the message in them says. Must not: open
connections by itself (`transports.upstream` does), or walk what a server offers (`visit`).

Source: basic/transports, Streamable HTTP, of each revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import dragoman_spec
from dragoman.check.findings import FindingLog
from dragoman.check.manners import NO_METHOD, NO_REVISION
from dragoman.check.opening import offer
from dragoman.check.plan import VisitPlan
from dragoman.check.talk import client_info
from dragoman.core.envelope import notification_frame, request_frame
from dragoman.core.exact_json import decode, encode
from dragoman.core.rules.headers import make_headers
from dragoman.core.rules.metadata import Metadata, stamp
from dragoman.core.unchecked import find
from dragoman.errors import TransportError
from dragoman.transports.upstream.answers import EVENT_STREAM, JSON
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool

FOREIGN: Final = "https://dragoman-check.invalid"
NO_SESSION: Final = "dragoman-check-no-such-session"
_PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a request of HTTP was answered with.

    Attributes:
        about: What was asked, in words.
        status: Of HTTP.
        media_type: Of the body.
        session: The session id that it gives.
        body: The beginning of the body.
    """

    about: str
    status: int
    media_type: str
    session: str
    body: bytes

    @property
    def code(self) -> int | None:
        """The code of the error in it, if it is one."""
        try:
            read = decode(self.body)
        except ValueError:
            return None
        found = find(read, "error", "code")
        return found if isinstance(found, int) else None


class HttpProbe:
    """Requests of HTTP to one server, in one revision.

    Args:
        config: Where it is.
        findings: Where rules that are broken are written down.
        plan: How long an answer may take, and who is told what is asked.
    """

    def __init__(self, config: UpstreamConfig, findings: FindingLog, plan: VisitPlan) -> None:
        self._config = config
        self._findings = findings
        self._plan = plan
        self._about, self._waits_s = "", plan.patience.timeout_s
        self._facts = dragoman_spec.facts(findings.revision)
        self._pool = ConnectionPool(config)
        self._only_opens = False

    async def run(self, only_opens: bool = False) -> None:
        """Try everything.

        Args:
            only_opens: Only the first words: the rest is for servers that speak the revision.
        """
        self._only_opens = only_opens
        try:
            if self._facts.era == "per_request":
                await self._try_per_request()
            else:
                await self._try_sessions()
        except (TransportError, TimeoutError) as error:
            reason = str(error) or f"nothing within {self._waits_s:g} s"
            self._findings.note("answered", f"the request {self._about}", "an answer", reason)
        finally:
            await self._pool.close()

    async def _send(
        self, method: str, about: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        accept = EVENT_STREAM if method == "GET" else f"{JSON}, {EVENT_STREAM}"
        self._about, self._waits_s = about, self._plan.patience.for_answer(is_doubtful=False)
        self._plan.on_step(self._findings.revision, about)
        async with asyncio.timeout(self._waits_s):
            answer = await self._pool.send(method, self._config.url, {"Accept": accept, **(headers or {})}, body)
            try:
                is_stream = answer.media_type == EVENT_STREAM
                begins = b"" if is_stream and method == "GET" else (await answer.some())[:_PIECE_BYTES]
            finally:
                answer.close()
        return HttpAnswer(about, answer.status, answer.media_type, answer.header("Mcp-Session-Id"), begins)

    def _note(self, rule: str, answer: HttpAnswer, expected: str, found: str) -> None:
        self._findings.note(rule, f"the answer to {answer.about}", expected, found)

    def _expect(self, rule: str, answer: HttpAnswer, status: int) -> None:
        if answer.status != status:
            self._note(rule, answer, f"the status {status}", f"the status {answer.status}")

    def _expect_refusal(self, rule: str, answer: HttpAnswer) -> None:
        if not 400 <= answer.status < 500:
            self._note(rule, answer, "a status that refuses it", f"the status {answer.status}")

    def _expect_type(self, answer: HttpAnswer) -> None:
        if answer.status == 200 and answer.media_type not in (JSON, EVENT_STREAM):
            self._note("http-content-type", answer, f"{JSON} or {EVENT_STREAM}", answer.media_type or "none")

    # With a handshake

    async def _try_sessions(self) -> None:
        method = self._facts.lifecycle["open"]
        opened = await self._send("POST", f"POST {method}", _request(method, offer(self._findings.revision)))
        self._expect_type(opened)
        if opened.status != 200:
            return  # an older transport, which has none of this
        headers = self._session_headers(opened)
        if self._only_opens:
            return
        begun = notification_frame(self._facts.lifecycle["opened"], None).raw
        accepted = await self._send("POST", "POST of a notification", begun, headers)
        self._expect_accepted(accepted)
        listening = await self._send("GET", "GET", None, headers)
        if not (listening.status == 200 and listening.media_type == EVENT_STREAM) and listening.status != 405:
            found = f"the status {listening.status} with {listening.media_type or 'nothing'}"
            self._note("http-get", listening, f"{EVENT_STREAM}, or the status 405", found)
        await self._try_foreign(headers, _request("ping", None))
        version = self._facts.headers.get("revision")
        if version is not None:
            wrong = {**headers, version.name: NO_REVISION}
            about = "POST in a revision that does not exist"
            self._expect("http-revision", await self._send("POST", about, _request("ping", None), wrong), 400)
        if opened.session:
            await self._try_session_ids(opened, headers)

    def _session_headers(self, opened: HttpAnswer) -> dict[str, str]:
        headers = {}
        if opened.session:
            headers["Mcp-Session-Id"] = opened.session
            if not all(0x21 <= ord(char) <= 0x7E for char in opened.session):
                self._note("http-session-id", opened, "visible ASCII", repr(opened.session[:60]))
        version = self._facts.headers.get("revision")
        if version is not None:
            headers[version.name] = self._findings.revision
        return headers

    def _expect_accepted(self, answer: HttpAnswer) -> None:
        self._expect("http-accepted", answer, 202)
        if answer.status == 202 and answer.body.strip():
            self._note("http-accepted", answer, "no body", f"{len(answer.body)} bytes")

    async def _try_session_ids(self, opened: HttpAnswer, headers: dict[str, str]) -> None:
        ping = _request("ping", None)
        bare = {name: value for name, value in headers.items() if name != "Mcp-Session-Id"}
        self._expect("http-session-needed", await self._send("POST", "POST without a session id", ping, bare), 400)
        other = {**headers, "Mcp-Session-Id": NO_SESSION}
        about = "POST in a session that does not exist"
        self._expect("http-session-unknown", await self._send("POST", about, ping, other), 404)
        ended = await self._send("DELETE", "DELETE", None, headers)
        if 200 <= ended.status < 300:
            after = await self._send("POST", "POST in a session that was ended", ping, headers)
            self._expect("http-session-ended", after, 404)

    async def _try_foreign(self, headers: Mapping[str, str], body: bytes) -> None:
        about = f"POST with the Origin {FOREIGN}"
        self._expect_refusal("http-origin", await self._send("POST", about, body, {**headers, "Origin": FOREIGN}))
        self._expect_refusal("http-broken-body", await self._send("POST", "POST of half an object", b'{"id":', headers))

    # Without

    async def _try_per_request(self) -> None:
        method = self._facts.lifecycle["discover"]
        usual = Metadata(self._findings.revision, {}, client_info())
        found = await self._send("POST", f"POST {method}", *_stamped(method, usual))
        self._expect_type(found)
        if self._only_opens:
            return
        if found.session:
            self._note("http-no-session", found, "no Mcp-Session-Id", repr(found.session[:60]))
        body, headers = _stamped(method, usual)
        await self._try_foreign(headers, body)
        strange = Metadata(NO_REVISION, {}, client_info())
        about = "POST in a revision that does not exist"
        self._expect("http-revision", await self._send("POST", about, *_stamped(method, strange)), 400)
        unknown = await self._send("POST", "POST of a method that does not exist", *_stamped(NO_METHOD, usual))
        self._expect("http-unknown-method", unknown, 404)
        await self._try_contradiction(method, body, headers)
        bare = await self._send("POST", "POST without metadata", _request(method, {}), headers)
        self._expect("http-meta-status", bare, 400)

    async def _try_contradiction(self, method: str, body: bytes, headers: Mapping[str, str]) -> None:
        name = self._facts.headers["method"].name
        codes: Mapping[int, str] = dragoman_spec.load(self._findings.revision).ERROR_CODES
        code = next(number for number, named in codes.items() if named == "HEADER_MISMATCH")
        about = f"POST {method} with another method in {name}"
        answer = await self._send("POST", about, body, {**headers, name: NO_METHOD})
        if answer.status != 400 or answer.code != code:
            found = f"the status {answer.status} and the error {answer.code}"
            self._note("http-headers-match", answer, f"the status 400 and the error {code}", found)


def _request(method: str, params: dict[str, Any] | None) -> bytes:
    return request_frame(b"1", method, params).raw


def _stamped(method: str, metadata: Metadata) -> tuple[bytes, dict[str, str]]:
    """Return a request of a revision without a handshake, and the headers that go with it."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": stamp(None, metadata)}
    return encode(body), dict(make_headers(body))
