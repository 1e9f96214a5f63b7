"""Colour: who gets it, and that it is never the only sign."""

from __future__ import annotations

import io
import logging
import os

import pytest

from dragoman.cli.ink import REVISIONS, Style, paint, takes_colour
from dragoman.cli.logs import LINE, OneLine
from dragoman.cli.screen import shown
from tests.cli.test_screen import at_terminal
from tests.support.commands import dragoman

EXPLAIN = ["explain", "--client", "2025-06-18", "--server", "2026-07-28"]
WRONG = ["call", "--url", "http://127.0.0.1:9/mcp", "x"]
"""Nobody listens there."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "0"}, False),
        (io.StringIO(), {"FORCE_COLOR": ""}, False),
        (None, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_who_gets_colour(
    stream: io.StringIO | None, variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ({"NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm"} | variables).items():
        monkeypatch.setenv(name, value)
    assert takes_colour(stream) is expected


def test_what_patterns_find_is_painted_and_what_others_say_stays_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    marks = {"^lost": Style.LOSS, **REVISIONS}
    painted = paint("lost 2025-06-18\nlost \x1b[31mlost\x1b[2J", marks, io.StringIO())
    loss = "\x1b[33mlost\x1b[0m"
    assert painted == f"{loss} \x1b[36m2025-06-18\x1b[0m\n{loss} lost\ufffd[2J"


@pytest.mark.parametrize("arguments", [EXPLAIN, WRONG, ["diff", "2025-06-18", "2025-11-25"], ["lsit"]], ids=" ".join)
def test_the_words_are_the_same_without_colour(arguments: list[str]) -> None:
    coloured = at_terminal(arguments, NO_COLOR="")
    assert "\x1b[" in coloured
    assert shown(coloured) == at_terminal(arguments)


def test_errors_losses_and_revisions_have_colours_of_their_own() -> None:
    assert f"\x1b[{Style.LOSS}mlost\x1b[0m" in at_terminal(EXPLAIN, NO_COLOR="")
    assert f"\x1b[{Style.REVISION}m2025-06-18\x1b[0m" in at_terminal(EXPLAIN, NO_COLOR="")
    assert f"\x1b[{Style.ERROR}mdragoman:\x1b[0m" in at_terminal(WRONG, NO_COLOR="")
    assert f"\x1b[{Style.ERROR}mdragoman: error:\x1b[0m" in at_terminal(["lsit"], NO_COLOR="")


@pytest.mark.parametrize(("variables", "has_colour"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_a_pipe_gets_colour_only_where_somebody_says_so(variables: dict[str, str], has_colour: bool) -> None:
    environment = {**os.environ, "NO_COLOR": "", "FORCE_COLOR": "", **variables}
    assert ("\x1b[" in dragoman(*EXPLAIN, env=environment).stdout) is has_colour


def test_json_has_no_colour_whatever_is_said() -> None:
    environment = {**os.environ, "NO_COLOR": "", "FORCE_COLOR": "1"}
    assert "\x1b[" not in dragoman(*EXPLAIN, "--json", env=environment).stdout


def test_the_level_of_a_line_of_the_log_has_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    record = logging.LogRecord("dragoman.proxy", logging.WARNING, "", 0, "a WARNING", (), None)
    assert OneLine(LINE).format(record) == "\x1b[33mWARNING\x1b[0m dragoman.proxy: a WARNING"
