"""`--trace` as a person gives it: a file that is written, and one that cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conversation import READY, initialize, request
from tests.proxy.test_scopes import Client, Running
from tests.support import commands

SERVER = [sys.executable, str(Path(__file__).parents[1] / "proxy" / "servers" / "scripted.py")]


def run(*options: str, said: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return commands.dragoman("proxy", *options, "--", *SERVER, input=said.decode(), cwd=cwd)


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_session_over_stdio_is_written_to_its_end(tmp_path: Path) -> None:
    frames = [initialize("2025-06-18"), READY, request(1, "tools/list")]
    said = "".join(json.dumps(frame) + "\n" for frame in frames).encode()
    done = run("--trace", "t.ndjson", said=said, cwd=tmp_path)
    assert done.returncode == 0
    lines = read(tmp_path / "t.ndjson")
    received = [line["frame"] for line in lines if (line["side"], line["direction"]) == ("client", "received")]
    assert received == frames
    assert {line["direction"] for line in lines[-2:]} == {"closed"}


def test_sessions_over_http_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    running = Running(tmp_path, "--trace", str(path))
    try:
        for _ in range(2):
            client = Client(running.port)
            client.open("2025-06-18")
            client.end()
    finally:
        running.stop()
    assert {line["session"] for line in read(path) if "frame" in line} == {"session 1", "session 2"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no-such-folder/t", "--trace: cannot write to no-such-folder/t: No such file or directory"),
        (".", "--trace: cannot write to .: Is a directory"),
        ("/dev/stdout", "--trace: stdout carries the protocol"),
    ],
)
def test_a_trace_that_cannot_be_written_is_an_error_of_the_command_line(path: str, words: str, tmp_path: Path) -> None:
    done = run("--trace", path, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    frames = [initialize("2025-06-18"), READY, request(1, "tools/call", name="hang")]
    said = "".join(json.dumps(frame) + "\n" for frame in frames).encode()
    done = run("--request-timeout", "0.5", "--trace", "t.ndjson", said=said, cwd=tmp_path)
    given_up = {"method": "tools/call", "timeoutSeconds": 0.5, "dragoman/unanswered": True}
    assert json.loads(done.stdout.splitlines()[1])["error"]["data"] == given_up
    sent = [line["frame"] for line in read(tmp_path / "t.ndjson") if (line["side"], line["direction"]) == SENT]
    assert sent[-1]["method"] == "notifications/cancelled"


SENT = ("server", "sent")


def test_a_pipe_takes_the_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = commands.start(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    try:
        holder = os.open(tmp_path / "pipe", os.O_RDWR)  # opens at once, and lets the reader open it
        said = (json.dumps(initialize("2025-06-18")) + "\n").encode()
        done = run("--trace", str(tmp_path / "pipe"), said=said)
        os.close(holder)
        assert done.returncode == 0
        told, _ = reader.communicate(timeout=60)
    finally:
        reader.kill()
        reader.wait()
    assert json.loads(told.splitlines()[0])["frame"]["method"] == "initialize"
