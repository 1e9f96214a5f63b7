"""Checking a server in pytest: one test for each revision.

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_my_server(revision: str) -> None:
        assert_conforms(["python", "my_server.py"], revision)

Lives here: what `dragoman check` does, as an assertion. Must not: know a rule (`dragoman.check`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from dragoman.check.check import OVERALL_TIMEOUT_S, check_server
from dragoman.check.report import is_bad, write_findings
from dragoman.check.rules import RULES
from dragoman.client.connect import open_target
from dragoman.errors import TransportError
from dragoman.server import Server
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman_spec import REVISIONS

__all__ = ["REVISIONS", "assert_conforms"]

ServerTarget = str | Sequence[str] | Callable[[], Transport] | Server
"""A URL, a command with its arguments, what opens a transport, or a server of this library."""


def assert_conforms(
    target: ServerTarget,
    revision: str,
    *,
    ignore: Collection[str] = (),
    is_strict: bool = False,
    calls_tools: bool = False,
    must_speak: bool = False,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
    overall_timeout_s: float = OVERALL_TIMEOUT_S,
) -> None:
    """Check a server in one revision; skip the test if the server does not speak it.

    Args:
        target: The server.
        revision: To speak.
        ignore: Names of rules that do not count.
        is_strict: Whether recommendations count.
        calls_tools: Whether tools are called that say that they only read.
        must_speak: Whether the test fails if the server does not speak the revision.
        headers: Sent along with each request to a URL.
        timeout_s: How long an answer may take, without progress, in seconds.
        overall_timeout_s: How long everything may take.

    Raises:
        AssertionError: The server breaks a rule, and the text says what `dragoman check` says; or it takes too long.
        ValueError: There is no such rule to ignore.
        TransportError: The server cannot be started or reached.
    """
    __tracebackhide__ = True  # the report says it all
    if unknown := set(ignore) - RULES.keys():
        raise ValueError(f"there are no rules {', '.join(sorted(unknown))}")
    given = headers or {}
    is_http = isinstance(target, str) and target.lower().startswith("http")
    http = UpstreamConfig(target, tuple(given.items())) if isinstance(target, str) and is_http else None
    work = check_server(
        target.connect if isinstance(target, Server) else open_target(target, given),
        over="http" if is_http else "any" if isinstance(target, str) else "stdio",
        revisions=[revision],
        timeout_s=timeout_s,
        overall_timeout_s=overall_timeout_s,
        calls_tools=calls_tools,
        http=http,
    )
    try:
        report = asyncio.run(work)
    except TransportError as error:
        raise error.with_traceback(None) from None
    if not report.is_whole:
        raise AssertionError(f"the check is not done after {overall_timeout_s:g} s: the server takes too long")
    (one,) = report.revisions
    if not one.served:
        if must_speak:
            raise AssertionError(f"the server does not speak {revision}: {one.why}")
        import pytest

        pytest.skip(f"the server does not speak {revision}: {one.why}")
    if bad := [found for found in one.findings if is_bad(found, is_strict) and found.rule not in ignore]:
        raise AssertionError("\n".join([f"the server breaks rules of {revision}:", *write_findings(bad)]))
