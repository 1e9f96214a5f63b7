"""`dragoman demo` as it is typed: in a pipe, in a terminal, with wrong options."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from dragoman.cli import EXIT_INTERRUPTED, EXIT_PIPE, main
from dragoman.cli.demo import EXIT_FAILED
from dragoman.demo import stage
from tests.support import commands

DEMO = [sys.executable, "-m", "dragoman", "demo"]
WITHIN_AN_ERA = ["--client", "2024-11-05", "--server", "2025-11-25"]
PATIENCE_S = 60


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    return {**kept, "TERM": "xterm", **extra}


def in_a_terminal(**extra: str) -> str:
    """What a terminal is sent."""
    terminal, end = pty.openpty()
    with commands.start(DEMO, stdout=end, stdin=end, env=environment(**extra)) as process:
        os.close(end)
        shown = b""
        try:
            while piece := os.read(terminal, 65536):
                shown += piece
        except OSError:  # how Linux says that nobody has the other end any more
            pass
        os.close(terminal)
        assert process.wait(PATIENCE_S) == 0
    return shown.decode()


def test_demo_in_a_pipe_is_plain_and_quiet_and_succeeds() -> None:
    done = commands.run(DEMO, capture_output=True, env=environment(), timeout=PATIENCE_S)
    assert (done.returncode, done.stderr, done.stdout.count(b"\x1b")) == (0, b"", 0)


def test_demo_starts_without_the_models() -> None:
    options = "'--client', '2024-11-05', '--server', '2025-11-25'"  # no answer to a question is held against a schema
    code = f"import sys; from dragoman.cli import main; main(['demo', {options}]); sys.exit('pydantic' in sys.modules)"
    done = commands.run([sys.executable, "-c", code], capture_output=True, env=environment(), timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, b"")


def test_demo_on_a_terminal_has_colour() -> None:
    assert "\x1b[32m" in in_a_terminal()


def test_demo_respects_no_color() -> None:
    assert "\x1b" not in in_a_terminal(NO_COLOR="1")


def test_demo_survives_a_reader_that_goes_away() -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    done = commands.run(DEMO, stdout=write_fd, stderr=subprocess.PIPE, env=environment(), timeout=PATIENCE_S)
    os.close(write_fd)
    assert (done.returncode, done.stderr) == (EXIT_PIPE, b"")


def test_demo_writes_ascii_where_nothing_else_goes() -> None:
    command = [*DEMO, *WITHIN_AN_ERA]
    done = commands.run(command, capture_output=True, env=environment(PYTHONIOENCODING="ascii"), timeout=PATIENCE_S)
    assert (done.returncode, b"client -> server" in done.stdout) == (0, True)


def test_demo_shows_the_pair_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["demo", "--client", "2025-11-25", "--server", "2025-03-26"])
    heading = "A client of 2025-11-25 and a server of 2025-03-26, joined by the proxy."
    assert (code, capsys.readouterr().out.splitlines()[0]) == (0, heading)


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["demo", *options]) == 0
    return capsys.readouterr().out


def test_demo_shows_a_current_client_with_an_old_server_that_asks_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys)
    assert told.startswith("A client of 2026-07-28 and a server of 2025-06-18, joined by the proxy.\n")
    assert "Without the proxy: the client gives up: server/discover failed" in told
    asked, answered = told.index('"method":"elicitation/create"'), told.index("Published: team.")
    assert asked < told.index('"resultType":"input_required"') < told.index('"inputResponses"') < answered


@pytest.mark.parametrize("client", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_demo_shows_an_old_client_with_a_current_server(client: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys, "--client", client, "--server", "2026-07-28")
    assert "Without the proxy: the client gives up: initialize failed" in told
    assert ("Published: team." in told) is (client != "2024-11-05")
    assert ("dragoman-question-1" in told) is (client != "2024-11-05")


def test_demo_shows_two_that_speak_for_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys, "--client", "2026-07-28", "--server", "2026-07-28")
    assert "Without the proxy" not in told
    assert "Published: team." in told


@pytest.mark.parametrize("option", ["--client", "--server"])
@pytest.mark.parametrize(
    ("revision", "words"),
    [("2023-01-01", "there is no revision '2023-01-01'; choose from: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25")],
)
def test_demo_refuses_a_revision_that_it_cannot_show(
    capsys: pytest.CaptureFixture[str], option: str, revision: str, words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", option, revision])
    assert (ended.value.code, words in capsys.readouterr().err) == (2, True)


def test_demo_that_does_not_come_to_its_end_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stage, "perform", fail)
    assert main(["demo"]) == EXIT_FAILED
    assert capsys.readouterr().err == "dragoman demo: the server exited with status 1\n"


def test_demo_that_is_interrupted_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stage, "perform", interrupt)
    assert main(["demo"]) == EXIT_INTERRUPTED
    assert capsys.readouterr() == ("", "")


async def interrupt(client: str, server: str, watch: object) -> stage.Record:
    raise KeyboardInterrupt


async def fail(client: str, server: str, watch: object) -> stage.Record:
    return stage.Record(client, server, problem="the server exited with status 1")
