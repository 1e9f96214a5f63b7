"""A trace played back: as the server that answered in it, and as the client that asked."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.inspect import play as player
from dragoman.inspect.capture import NoCapture, read_capture
from dragoman.inspect.mock import MockServer
from tests.proxy.conversation import notification, request, result
from tests.proxy.test_processes import SERVER, call, running
from tests.support import commands
from tests.support.effort import effort

PATIENCE_S = 60


def line(direction: str, frame: Any, side: str = "server", connection: int = 2) -> bytes:
    return json.dumps({"side": side, "connection": connection, "direction": direction, "frame": frame}).encode() + b"\n"


def told(name: str, text: str, key: int) -> list[bytes]:
    answer = result(key, {"content": [{"type": "text", "text": text}]})
    return [line("sent", call(key, name)), line("received", answer)]


def answers(lines: list[bytes], *frames: Any) -> list[Any]:
    said = io.BytesIO()
    server = MockServer(read_capture(lines, "server"), said)
    server.run(json.dumps(frame).encode() for frame in frames)
    return [json.loads(line) for line in said.getvalue().splitlines()]


def test_a_request_is_answered_as_it_was_with_its_own_id() -> None:
    lines = [*told("a", "one", 1), *told("b", "two", 2)]
    (answer,) = answers(lines, call("x", "b"))
    assert answer == result("x", {"content": [{"type": "text", "text": "two"}]})


def test_the_same_request_gets_one_answer_after_the_other_and_then_the_last() -> None:
    lines = [*told("a", "one", 1), *told("a", "two", 2)]
    heard = answers(lines, call(1, "a"), call(2, "a"), call(3, "a"))
    assert [answer["result"]["content"][0]["text"] for answer in heard] == ["one", "two", "two"]


def test_other_arguments_are_answered_by_the_same_tool_and_another_tool_by_an_error() -> None:
    lines = told("a", "one", 1)
    asked = request(5, "tools/call", name="a", arguments={"other": 1})
    first, second = answers(lines, asked, call(6, "never"))
    assert first["result"]["content"][0]["text"] == "one"
    assert "the trace has no answer to tools/call" in second["error"]["message"]


def test_progress_of_then_names_the_token_of_now() -> None:
    def asked(key: int, token: str) -> dict[str, Any]:
        return request(key, "tools/call", name="a", _meta={"progressToken": token})

    progress = notification("notifications/progress", progressToken="then", progress=1)
    lines = [line("sent", asked(1, "then")), line("received", progress), line("received", result(1, {}))]
    first, second = answers(lines, asked(9, "now"))
    assert first["params"] == {"progressToken": "now", "progress": 1}
    assert second == result(9, {})


def test_a_long_trace_with_much_progress_is_read_in_time_that_grows_with_its_length() -> None:
    def read(count: int) -> object:
        progress = line("received", notification("notifications/progress", progressToken=1, progress=1))
        calls = (told("a", "one", key) for key in range(count))
        return read_capture((part for asked, answer in calls for part in (asked, progress, answer)), "server")

    assert effort(lambda: read(8000)) < 18 * effort(lambda: read(1000))


def test_a_trace_without_an_answer_is_not_played() -> None:
    with pytest.raises(NoCapture, match="nothing was asked and answered on a connection to a server"):
        read_capture([line("sent", call(1, "a")), b"nonsense\n", b"[]\n"], "server")
    with pytest.raises(NoCapture, match="no connection 7"):
        read_capture(told("a", "one", 1), "server", 7)


def test_the_parts_of_a_batch_are_played_and_requests_with_one_id_are_kept_apart() -> None:
    batch = [line("sent", [call(1, "a"), call(2, "b")]), line("received", [result(2, {"n": 2}), result(1, {"n": 1})])]
    asked = answers(batch, call(7, "b"), call(8, "a"))
    assert [one["result"] for one in asked] == [{"n": 2}, {"n": 1}]
    twice = [json.loads(one) for one in (line("received", call(1, "a")), line("received", call(1, "b")))]
    twice += [json.loads(one) for one in (line("sent", result(1, {"n": "b"})), line("sent", result(1, {"n": "a"})))]
    lines = [
        json.dumps({**one, "side": "client", "number": number}).encode()
        for one, number in zip(twice, (1, 2, 2, 1), strict=True)
    ]
    first, second = read_capture(lines, "client").calls
    assert (first.answer, second.answer) == (result(1, {"n": "a"}), result(1, {"n": "b"}))


def record(path: Path) -> None:
    """Write the trace of a session."""
    with running("--speak", "2025-11-25", options=("--trace", str(path))) as run:
        run.open("2025-06-18")
        run.say(request(1, "tools/list"))
        run.hear()
        run.say(call(2, "x"))
        run.hear()
        assert run.end()[0] == 0


def play(*arguments: str, said: bytes = b"") -> tuple[int, str, str]:
    command = [sys.executable, "-m", "dragoman", "inspect", *arguments]
    done = commands.run(command, input=said, capture_output=True, timeout=PATIENCE_S, check=False)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_real_trace_is_played_to_the_same_server_and_to_another(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    record(trace)
    proxy = [sys.executable, "-m", "dragoman", "proxy", "--"]
    code, out, _ = play(str(trace), "--play", "--", *proxy, *SERVER, "--speak", "2025-11-25")
    assert (code, out.splitlines()) == (0, ["initialize: same", "tools/list: same", "tools/call x: same"])
    code, out, _ = play(str(trace), "--play", "--", *proxy, *SERVER, "--speak", "2024-11-05")
    assert code == 1
    assert "tools/list: differs at /result/tools/0/" in out
    code, out, _ = play(str(trace), "--play", "--", str(tmp_path / "nothing"))
    assert code == 1
    assert "does not start" in out


def test_no_word_of_a_server_or_trace_steers_the_terminal(tmp_path: Path) -> None:
    trace, server = tmp_path / "trace", tmp_path / "server.py"
    record(trace)
    trace.write_bytes(trace.read_bytes().replace(b"tools/list", rb"tools/\u001b[31mlist\n: same"))
    evil = r"""import sys, json
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = '{"\\u001b]0;title\\u0007":1,"\\ud800":2}'
        print('{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(asked["id"]), result), flush=True)
"""
    server.write_text(evil)
    code, out, _ = play(str(trace), "--play", "--", sys.executable, str(server))
    assert code == 1
    assert len(out.splitlines()) == 3
    assert not set(out) & {"\x1b", "\x07"}


def test_a_server_that_does_not_read_does_not_hold_up_the_end(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    record(trace)
    with trace.open("rb") as file:
        capture = read_capture(file, "client")
    long = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "x" * 1_000_000}}
    capture = dataclasses.replace(capture, notices=[(0, long)])
    said = list(player.play(capture, [sys.executable, "-c", "import time; time.sleep(600)"], 0.2))
    assert [(line.endswith("no answer within 0.2 s"), differs) for line, differs in said] == [(True, True)] * 3


def test_a_real_trace_serves_a_client(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    record(trace)
    asked = [request(1, "tools/list"), call(2, "x")]
    code, out, _ = play(str(trace), "--serve", said=b"".join(json.dumps(one).encode() + b"\n" for one in asked))
    assert code == 0
    assert [json.loads(one)["id"] for one in out.splitlines()] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no trace at nowhere"),
        (["nowhere", "--play"], "--play needs the command of a server"),
        (["http://127.0.0.1:1/", "--serve"], "expected the file of a trace to play back"),
    ],
)
def test_a_mistake_is_explained(arguments: list[str], words: str) -> None:
    code, _, err = play(*arguments)
    assert code != 0
    assert words in err


def test_a_file_that_is_no_trace_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("nothing\n")
    code, _, err = play(str(tmp_path / "file"), "--serve")
    assert code == 3
    assert "nothing was asked and answered" in err
