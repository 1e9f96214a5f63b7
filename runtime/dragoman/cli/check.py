"""`dragoman check`: what a server does that its revisions forbid.

Lives here: options, and where reports go. Must not: know a rule (`dragoman.check`). Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import dragoman_spec
from dragoman.cli.against import compare_with_file
from dragoman.cli.child import Launcher
from dragoman.cli.ink import REVISIONS, Style, complain, write_painted
from dragoman.cli.options import add_seconds, revision, seconds
from dragoman.cli.screen import FORMATS, columns, fit
from dragoman.cli.session import (
    EXIT_GONE,
    EXIT_TIMEOUT,
    EXIT_UNFIT,
    add_server_arguments,
    check_server_arguments,
)
from dragoman.cli.signals import raise_on_interrupt
from dragoman.cli.upstream import choose_loop, configure_upstream, opener_of_server
from dragoman.errors import TransportError

if TYPE_CHECKING:
    from dragoman.check.findings import CheckReport
    from dragoman.check.rules import Wires
    from dragoman.cli.parsing import CommandParser

EXIT_BROKEN: Final = 1

_MARKS: Final = {
    r"^  MUST\b": Style.ERROR,
    r"^  SHOULD\b": Style.LOSS,
    r"^Clients of \S+ would lose": Style.LOSS,
    **REVISIONS,
}
"""The server breaks a rule."""


def add_arguments(parser: CommandParser) -> None:
    """Describe the command line of `check`."""
    add_server_arguments(parser, "")
    parser.add_argument(
        "--revision",
        dest="revisions",
        type=revision,
        action="append",
        default=[],
        metavar="REV",
        help="speak only this revision; may be repeated (default: each that the server takes)",
    )
    parser.add_argument("--call", action="store_true", help="call the tools that say that they only read")
    parser.add_argument("--strict", action="store_true", help="fail also if a recommendation is not followed")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--junit", metavar="FILE", help="write the report to this file as JUnit XML, too")
    add_seconds(parser, "--timeout", 10, "how long an answer may take, without progress")
    parser.add_argument(
        "--start-timeout",
        type=seconds,
        metavar="S",
        help="how long the very first answer may take (default: 12, or what --timeout says if that is more)",
    )
    add_seconds(parser, "--overall-timeout", 180, "how long the whole check may take")
    parser.add_argument(
        "--against",
        metavar="FILE",
        help="in place of the check: say what has changed since `dragoman list --json` has written this file, and fail "
        "if it would break clients",
    )
    parser.add_argument(
        "--error-format", choices=FORMATS, default="text", help="how --against prints it (default: %(default)s)"
    )
    parser.set_defaults(revision="any", log_level="warning", no_era_cache=False)


def run(args: argparse.Namespace) -> int:
    """Check a server."""
    if args.against is not None:
        return compare_with_file(args)
    check_server_arguments(args)
    import asyncio
    import contextlib
    import logging

    from dragoman.check.check import check_server
    from dragoman.cli.logs import set_up_logging
    from dragoman.cli.progress import ProgressLine, is_watched
    from dragoman.cli.stderr import ServerWords
    from dragoman.core.lines import DEFAULT_LIMIT_BYTES

    set_up_logging("warning")
    logging.getLogger("dragoman").setLevel("CRITICAL")  # what the transports warn of, the report has
    raise_on_interrupt()
    words = ServerWords(is_kept=not args.server_stderr)
    if args.owns_process and args.command:
        args.stderr = words.carry()
    line = ProgressLine(is_watched())

    async def check() -> CheckReport:
        with contextlib.closing(line):
            return await check_server(
                opener_of_server(args, Launcher(args), DEFAULT_LIMIT_BYTES),
                target=_name_of(args),
                over=_transport_of(args),
                revisions=args.revisions or dragoman_spec.REVISIONS,
                timeout_s=args.timeout,
                start_timeout_s=args.start_timeout,
                overall_timeout_s=args.overall_timeout,
                calls_tools=args.call,
                http=configure_upstream(args) if _transport_of(args) == "http" else None,
                on_step=lambda revision, about: line.show(f"{revision}: {about}"),
            )

    try:
        with asyncio.Runner(loop_factory=choose_loop()) as runner:
            report = runner.run(check())
    except TransportError as error:
        words.show()
        complain(f"dragoman: {error}")
        return EXIT_GONE
    code = _tell(report, args)
    if _is_in_trouble(report):
        words.show()
    return code


def _is_in_trouble(report: CheckReport) -> bool:
    """Whether a person will want to know what the server says of itself."""
    return not report.served or any(finding.rule in ("alive", "answered") for finding in report.findings)


def _name_of(args: argparse.Namespace) -> str:
    """Give what the server is called in reports: its name in a file, for secrets stand there; of a URL what is not."""
    if args.config is not None:
        return str(args.server)
    if args.url is None:
        return shlex.join(args.command)
    from dragoman.transports.upstream.config import describe_url

    return describe_url(args.url)


def _transport_of(args: argparse.Namespace) -> Wires:
    if args.url is None:
        return "stdio"
    return "http" if args.url.lower().startswith("http") else "any"


def _fit(line: str) -> str:
    """Break a line where a terminal ends, with what goes on a bit further in; addresses stay whole."""
    words = line.lstrip()
    return fit(line, len(line) - len(words) + 2, columns()) if " " in words else line


def _tell(report: CheckReport, args: argparse.Namespace) -> int:
    from dragoman.check.report import is_bad, write_json, write_junit, write_text
    from dragoman.cli.screen import print_json

    if args.junit is not None:
        try:
            Path(args.junit).write_text(write_junit(report, args.strict), encoding="utf-8")
        except OSError as error:
            complain(f"dragoman check: {args.junit} cannot be written: {error.strerror}")
            return EXIT_BROKEN
    if args.json:
        print_json(write_json(report))
    else:
        write_painted("\n".join(map(_fit, write_text(report).split("\n"))), _MARKS)
    if report.outcome in ("silent", "untried"):
        return EXIT_TIMEOUT
    if report.outcome == "gone":
        return EXIT_GONE
    if any(is_bad(finding, args.strict) for finding in report.findings):
        return EXIT_BROKEN
    if not report.is_whole:
        return EXIT_TIMEOUT
    return 0 if report.served else EXIT_UNFIT
