"""A server's command is started before anything else is imported, and found just as it would be later."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dragoman.cli import make_parser
from dragoman.options import ERAS, GREETING, KNOWN, MIDDLEWARE, REVISIONS, SESSIONS, TRANSLATION, WATCHING
from dragoman.start import SWITCHES, TAKING_VALUES, find_command
from dragoman.transports.early import begin
from tests.support.waiting import PATIENCE_S

HARMLESS = (*REVISIONS, *TRANSLATION, *SESSIONS, KNOWN, GREETING, *WATCHING, *MIDDLEWARE, *ERAS)
"""The options that change nothing about how a command is started."""

NOTING = """
import os, sys
spawn = os.posix_spawnp
def note(name, *rest, **more):
    print("started", name, *sorted(sys.modules), file=sys.stderr, flush=True)
    return spawn(name, *rest, **more)
os.posix_spawnp = note
from dragoman.start import main
sys.exit(main())
"""
"""A proxy that tells what it has imported whenever a process is started first."""


def run(program: str, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a program of Python to its end: that of its stderr, which every server has, too."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        **more,  # type: ignore[call-overload]
    )
    return done


def test_the_options_that_are_known_first_are_those_of_the_table() -> None:
    assert {option.name for option in HARMLESS if option.kind == "switch"} == SWITCHES
    assert {option.name for option in HARMLESS if option.kind != "switch"} == TAKING_VALUES
    takes_value = {
        name.removeprefix("--"): action.nargs is None
        for action in make_parser("proxy")._actions
        for name in action.option_strings
    }
    assert {name for name in SWITCHES | TAKING_VALUES if takes_value[name]} == TAKING_VALUES


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("proxy -- a b", ["a", "b"]),
        ("proxy --trace x --no-greeting --log-level=info -- a -- --b", ["a", "--", "--b"]),
        ("proxy --", []),
        ("proxy a b", []),
        ("proxy --trace -- a", []),
        ("proxy --trace --no-greeting -- a", []),
        ("proxy --no-greeting=x -- a", []),
        ("proxy --listen http://127.0.0.1:0 -- a", []),
        ("proxy --env A=b -- a", []),
        ("proxy --cwd / -- a", []),
        ("proxy --inherit-env none -- a", []),
        ("proxy --config x --server y", []),
        ("proxy --help -- a", []),
        ("proxy --trac x -- a", []),
        ("call -- a", []),
        ("--version", []),
        ("", []),
    ],
)
def test_only_a_command_line_that_is_known_whole_is_recognised(words: str, command: list[str]) -> None:
    assert find_command(words.split()) == command


def test_a_server_is_started_before_anything_is_imported_for_the_proxy() -> None:
    done = run(NOTING, "proxy", "--log-level", "error", "--", "cat")
    bare = run("import sys; print(*sys.modules)").stdout.split()
    ours = {"dragoman", "dragoman.start", "dragoman.transports", "dragoman.transports.early"}
    ours |= {"dragoman_spec", "dragoman_spec.version", "__future__", "gc"}
    said = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("started ")]
    assert [name for name, *_ in said] == ["/bin/sh", "cat"]
    assert set(said[1][1:]) - set(bare) <= ours


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_server_finds_the_same_whether_it_is_started_first_or_later(tmp_path: Path) -> None:
    note = tmp_path / "found"
    shows = "{ pwd; ls /proc/self/fd; grep 'Sig[BIC]' /proc/self/status; env | sort"
    shows += "; [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo leads its session; } > $NOTE"
    read_fd, write_fd = os.pipe()
    found = []
    with open(read_fd, "rb"), open(write_fd, "wb"):
        for options in ((), ("--inherit-env", "all")):
            done = run(
                NOTING,
                *("proxy", *options, "--log-level", "critical", "--", "sh", "-c", shows),
                pass_fds=(read_fd, write_fd),
                env={**os.environ, "NOTE": str(note), "DRAGOMAN_AUTH_TOKEN": "hush"},
            )
            assert ("started sh" in done.stderr) == (not options)
            # The C library has two signals for itself (from 32); what it does with them is not the server's business.
            found.append(re.sub(r"Sig.*:\t.{9}", "", note.read_text()).splitlines())
    assert found[0] == found[1]
    assert "leads its session" in found[0]
    assert not any("hush" in line for line in found[0])


@pytest.mark.parametrize(
    ("options", "code"), [(("--log-level", "no"), 2), (("--trace", "/nowhere/at/all"), 2), (("--rule", "x"), 2)]
)
def test_a_wrong_option_ends_the_server(options: tuple[str, ...], code: int) -> None:
    done = run(NOTING, "proxy", *options, "--", "sh", "-c", "trap '' HUP; exec sleep 600")
    assert "started sh" in done.stderr
    assert done.returncode == code


@pytest.mark.parametrize("words", [("proxy", "--", "cat"), ("proxy", "--url", "https://a.example/mcp"), ("check", "x")])
def test_who_is_interrupted_while_all_is_imported_ends_without_a_word(words: tuple[str, ...]) -> None:
    interrupting = """
        import signal, sys
        class Interrupting:
            def find_spec(self, name, *_):
                if name == "dragoman.cli":
                    signal.raise_signal(signal.SIGINT)
        sys.meta_path.insert(0, Interrupting())
        from dragoman.start import main
        sys.exit(main())
    """
    done = run(interrupting, *words)
    assert (done.returncode, done.stderr) == (130, "")


def test_the_warden_hears_of_a_server_before_anything_else_happens() -> None:
    program = """
        import os
        from dragoman.transports.early import begin
        begin(["sh", "-c", "trap '' HUP TERM; sleep 600 & wait; sleep 600"])
        os.kill(os.getpid(), 9)
    """
    assert run(program).returncode == -signal.SIGKILL


def test_a_command_that_does_not_exist_is_told_as_if_it_had_been_tried_later() -> None:
    first, later = (run(NOTING, "proxy", *more, "--", "no-such-program") for more in ((), ("--inherit-env", "all")))
    lines = [line for line in first.stderr.splitlines() if not line.startswith("started ")]
    assert lines == later.stderr.splitlines()
    assert first.returncode == later.returncode == 127


def test_a_server_is_started_again_where_our_own_code_has_changed_what_it_finds(tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(
        "import os\nos.environ['ADDED'] = 'later'\nasync def nothing(context, go_on):\n    return await go_on()\n"
    )
    note = tmp_path / "found"
    shows = f"echo ${{ADDED-nothing}} >> {note}; exec cat"
    done = run(NOTING, "proxy", "--middleware", f"{tmp_path / 'ours.py'}:nothing", "--", "sh", "-c", shows)
    assert "started sh" in done.stderr
    assert note.read_text().splitlines()[-1] == "later"


def test_nobody_takes_a_server_that_was_started_otherwise() -> None:
    for command, environment, directory in (
        (["cat", "-"], None, None),
        (["cat"], {"A": "b"}, None),
        (["cat"], None, "/"),
    ):
        early = begin(["cat"])
        assert early is not None
        given = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        assert early.take(command, given if environment is None else environment, directory) is None
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(early.warden_fd)
        early.shell.wait(PATIENCE_S)


def test_a_session_with_a_server_that_was_started_first_ends_as_any_other() -> None:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
    done = subprocess.run(
        [sys.executable, "-c", NOTING, "proxy", "--", "sh", "-c", "read line; exit 7"],
        input=f"{line}\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "the server exited with status 7" in done.stderr
