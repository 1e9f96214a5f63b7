"""`dragoman convert`: lines in, lines out, and what is said about them."""

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman_spec
from dragoman.cli import EXIT_PIPE
from dragoman.cli.convert import EXIT_REFUSED, EXIT_USAGE, Job, add_arguments, convert_line, run
from tests.support import commands
from tests.support.lines import PATIENCE_S, Lines
from tests.support.nesting import deep

LIST_REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TITLED_TOOL = {"name": "add", "title": "Add", "inputSchema": {"type": "object"}}
PING = b'{"jsonrpc": "2.0", "method":"ping" , "id": "x"}'


class Run:
    """One run of the command in this process, and what came out of it."""

    def __init__(self, code: int, out: bytes, err: str, losses: list[dict[str, Any]]) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.losses = losses

    @property
    def frames(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Any:
    def convert(source: str, target: str, lines: bytes | list[Any], *options: str) -> Run:
        data = lines if isinstance(lines, bytes) else b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        losses = tmp_path / "losses"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = run(parse("--from", source, "--to", target, "--losses", str(losses), *options))
        sys.stderr.flush()
        captured = capfdbinary.readouterr()
        lost = [json.loads(line) for line in losses.read_text().splitlines()]
        return Run(code, captured.out, captured.err.decode(), lost)

    return convert


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(argv)


def result(tools: list[Any], **extra: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "result": {"tools": tools, **extra}}


@pytest.mark.parametrize(
    ("on_loss", "more", "code"),
    [
        ("report", {"outputSchema": {"type": "object"}}, 0),
        ("refuse", {"outputSchema": {"type": "object"}}, EXIT_REFUSED),
        ("refuse", {}, 0),
        ("refuse-all", {}, EXIT_REFUSED),
    ],
)
def test_convert_refuses_the_losses_that_the_user_minds(convert: Any, on_loss: str, more: Any, code: int) -> None:
    frame = result([TITLED_TOOL | more])
    done = convert("2025-06-18", "2024-11-05", [frame], "--method", "tools/list", "--on-loss", on_loss)
    assert (done.code, "error" in done.frames[0]) == (code, code == EXIT_REFUSED)


def test_convert_names_the_losses_that_a_line_is_refused_for(convert: Any) -> None:
    frame = result([TITLED_TOOL | {"outputSchema": {"type": "object"}}])
    done = convert("2025-06-18", "2024-11-05", [frame], "--method", "tools/list", "--on-loss", "refuse")
    assert done.frames[0]["error"]["data"]["losses"] == [
        {"pointer": "/result/tools/0/outputSchema", "kind": "dropped", "bytes": 17}
    ]
    assert done.losses == []


def test_convert_drops_what_the_target_does_not_name(convert: Any) -> None:
    done = convert("2025-06-18", "2024-11-05", [result([TITLED_TOOL])], "--method", "tools/list")
    assert done.frames == [result([{"name": "add", "inputSchema": {"type": "object"}}])]


def test_convert_writes_losses_with_line_and_pointer(convert: Any) -> None:
    lines = [LIST_REQUEST, result([TITLED_TOOL])]
    done = convert("2025-06-18", "2024-11-05", lines, "--method", "tools/list")
    assert done.losses == [
        {"line": 2, "pointer": "/result/tools/0/title", "kind": "dropped", "bytes": len('"Add"'), "cosmetic": True}
    ]


def test_convert_keeps_the_order_of_lines(convert: Any) -> None:
    lines = [{**LIST_REQUEST, "id": number} for number in range(50)]
    done = convert("2025-06-18", "2024-11-05", lines)
    assert [frame["id"] for frame in done.frames] == list(range(50))


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_convert_gives_unchanged_frames_back_as_the_same_bytes(ending: bytes, convert: Any) -> None:
    assert convert("2025-11-25", "2024-11-05", PING + ending).out == PING + b"\n"


def test_convert_goes_on_after_a_null_beside_what_is_very_deep(convert: Any) -> None:
    params = {"name": "t", "arguments": {"x": deep(600, "list")}, "task": None}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    run = convert("2025-11-25", "2024-11-05", [call, LIST_REQUEST])
    assert [frame["method"] for frame in run.frames] == ["tools/call", "tools/list"]


def test_convert_skips_blank_lines_and_counts_them(convert: Any) -> None:
    lines = b"\n  \n" + json.dumps(result([TITLED_TOOL])).encode()
    done = convert("2025-06-18", "2024-11-05", lines, "--method", "tools/list")
    assert (len(done.frames), done.losses[0]["line"]) == (1, 3)


def test_convert_of_nothing_is_nothing(convert: Any) -> None:
    done = convert("2025-06-18", "2024-11-05", b"")
    assert (done.code, done.out) == (0, b"")


def test_convert_says_on_stderr_what_was_done_and_lost(convert: Any) -> None:
    lines = [LIST_REQUEST, result([TITLED_TOOL])]
    done = convert("2025-06-18", "2024-11-05", lines, "--method", "tools/list")
    assert done.err.splitlines() == [
        "2025-06-18 to 2024-11-05 (strict): 1 converted, 1 unchanged, 0 swallowed, 0 refused",
        "losses: 1 dropped (5 bytes)",
    ]


def test_minimal_profile_leaves_legal_fields_alone(convert: Any) -> None:
    lines = [result([TITLED_TOOL])]
    done = convert("2025-06-18", "2024-11-05", lines, "--method", "tools/list", "--profile", "minimal")
    assert (done.frames, done.losses) == (lines, [])


def test_no_rule_turns_a_rule_off(convert: Any) -> None:
    contents = {"contents": [{"uri": "file:///a/b.txt", "text": "b"}]}
    lines = [{"jsonrpc": "2.0", "id": 1, "result": contents}]
    options = ("--method", "resources/read")
    named = convert("2025-03-26", "2025-06-18", lines, *options).frames[0]["result"]["contents"][0]
    plain = convert("2025-03-26", "2025-06-18", lines, *options, "--no-rule", "resource-contents-name")
    assert (named["name"], plain.frames) == ("b.txt", lines)


def test_rule_turns_a_rule_on(convert: Any) -> None:
    line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": None}}
    done = convert("2025-06-18", "2024-11-05", [line], "--rule", "sanitize-nulls")
    assert done.frames == [{**line, "params": {"name": "a"}}]


# Exact values


@pytest.mark.parametrize(
    "value",
    [
        "123456789012345678901234567890",
        "-9223372036854775809",
        "18446744073709551616",
        "1.0",
        "100",
        "-0.0",
        "1e-7",
        '"é 😀 \\u0000"',
        '{"a":[null,true,{}]}',
    ],
)
def test_convert_keeps_value_and_kind(value: str, convert: Any) -> None:
    tool = json.dumps({**TITLED_TOOL, "inputSchema": {"type": "object", "default": 0}}).replace("0", value)
    line = f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}'.encode()
    done = convert("2025-06-18", "2024-11-05", line, "--method", "tools/list")
    kept = done.frames[0]["result"]["tools"][0]["inputSchema"]["default"]
    assert (type(kept), repr(kept)) == (type(json.loads(value)), repr(json.loads(value)))


def test_convert_keeps_lone_surrogates(convert: Any) -> None:
    line = (
        b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a\\ud800","title":"T","inputSchema":{"type":"object"}}]}}'
    )
    done = convert("2025-06-18", "2024-11-05", line, "--method", "tools/list")
    assert done.frames[0]["result"]["tools"][0]["name"] == "a\ud800"


def test_convert_keeps_an_id_beyond_64_bits(convert: Any) -> None:
    line = b'{"jsonrpc":"2.0","id":123456789012345678901,"result":{"tools":[],"nextCursor":5}}'
    assert convert("2025-06-18", "2024-11-05", line, "--method", "tools/list").frames[0]["id"] == 123456789012345678901


# Refused and invalid lines


def refusal(frame: dict[str, Any]) -> tuple[Any, int]:
    return frame["id"], frame["error"]["code"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"{", (None, -32700)),
        (b"\xff", (None, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', (1, -32700)),
        (b"[" * 5000, (None, -32700)),
        (b"7", (None, -32600)),
        (b"{}", (None, -32600)),
        (b'{"jsonrpc":"1.0","id":3,"method":"ping"}', (3, -32600)),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":5}}', ("a", -32602)),
        (b'{"jsonrpc":"2.0","id":4,"method":"tools/call"}', (4, -32602)),
        (b'{"jsonrpc":"2.0","id":4,"method":"no/such"}', (4, -32601)),
        (b'{"jsonrpc":"2.0","id":5,"result":{"tools":"none"}}', (5, -32602)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', (None, -32600)),
    ],
)
def test_convert_answers_an_invalid_line_with_an_error_frame(line: bytes, expected: Any, convert: Any) -> None:
    done = convert("2025-06-18", "2024-11-05", line, "--method", "tools/list")
    assert (done.code, [refusal(frame) for frame in done.frames]) == (EXIT_REFUSED, [expected])


def test_error_frames_say_where_and_what_was_expected(convert: Any) -> None:
    line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}
    data = convert("2025-06-18", "2024-11-05", [line]).frames[0]["error"]["data"]
    assert (data["source"], data["target"], data["pointer"]) == ("2025-06-18", "2024-11-05", "/params/name")
    assert {"expected", "found"} <= data.keys()


def test_convert_refuses_a_method_that_the_target_lacks(convert: Any) -> None:
    schema = {"type": "object", "properties": {}}
    line = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "elicitation/create",
        "params": {"message": "?", "requestedSchema": schema},
    }
    done = convert("2025-06-18", "2025-03-26", [line])
    assert (done.code, done.frames[0]["id"], "error" in done.frames[0]) == (EXIT_REFUSED, 9, True)


def test_convert_goes_on_after_a_refused_line(convert: Any) -> None:
    done = convert("2025-06-18", "2024-11-05", b"nonsense\n" + PING)
    assert (done.code, done.out.splitlines()[1], done.err.splitlines()[0][:8]) == (EXIT_REFUSED, PING, "line 1: ")


def test_a_result_without_a_method_is_answered_with_what_to_give(convert: Any) -> None:
    done = convert("2025-06-18", "2024-11-05", [result([TITLED_TOOL])])
    assert (refusal(done.frames[0]), "--method" in done.frames[0]["error"]["message"]) == ((7, -32600), True)


def test_a_result_without_a_method_passes_between_equal_revisions(convert: Any) -> None:
    assert convert("2025-06-18", "2025-06-18", [result([TITLED_TOOL])]).frames == [result([TITLED_TOOL])]


def test_an_error_response_needs_no_method(convert: Any) -> None:
    line = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}
    assert convert("2025-06-18", "2024-11-05", [line]).frames == [line]


def test_no_validate_lets_oddities_through(convert: Any) -> None:
    line = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": 5}}
    checked = convert("2025-06-18", "2025-06-18", [line])
    unchecked = convert("2025-06-18", "2025-06-18", [line], "--no-validate")
    assert (checked.code, unchecked.code, unchecked.frames) == (EXIT_REFUSED, 0, [line])


def test_null_for_an_optional_field_is_let_through(convert: Any) -> None:
    line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": None}}
    assert convert("2025-06-18", "2025-06-18", [line]).code == 0


def test_a_swallowed_notification_leaves_only_a_loss(convert: Any) -> None:
    params = {"elicitationId": "e"}
    line = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}
    done = convert("2025-11-25", "2025-06-18", [line])
    assert (done.code, done.out, [loss["kind"] for loss in done.losses]) == (0, b"", ["swallowed"])


# Batches

BATCH = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"}]


def test_a_batch_stays_whole_between_equal_revisions(convert: Any) -> None:
    line = json.dumps(BATCH, indent=None, separators=(" , ", ": ")).encode()
    assert convert("2025-03-26", "2025-03-26", line).out == line + b"\n"


@pytest.mark.parametrize("target", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_becomes_single_lines_elsewhere(target: str, convert: Any) -> None:
    assert convert("2025-03-26", target, [BATCH]).frames == BATCH


@pytest.mark.parametrize("target", ["2025-03-26", "2024-11-05"])
@pytest.mark.parametrize("source", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_of_another_revision_is_refused(source: str, target: str, convert: Any) -> None:
    assert [refusal(frame) for frame in convert(source, target, [BATCH]).frames] == [(None, -32600)]


@pytest.mark.parametrize("batch", [[], [{**LIST_REQUEST, "method": "initialize"}]], ids=["empty", "initialize"])
def test_a_batch_that_may_not_be_is_refused(batch: list[Any], convert: Any) -> None:
    assert [refusal(frame) for frame in convert("2025-03-26", "2024-11-05", [batch]).frames] == [(None, -32600)]


def test_losses_of_a_batch_point_into_the_array(convert: Any) -> None:
    done = convert(
        "2025-03-26",
        "2024-11-05",
        [[BATCH[0], result([{**TITLED_TOOL, "annotations": {"title": "A"}}])]],
        "--method",
        "tools/list",
    )
    assert done.losses[0]["pointer"].startswith("/1/result/tools/0/")


def test_an_invalid_member_of_a_batch_is_answered_in_its_place(convert: Any) -> None:
    batch = [{"jsonrpc": "2.0", "id": 5, "method": "tools/call"}, BATCH[0]]
    (answer,) = convert("2025-03-26", "2025-03-26", [batch]).frames
    assert (refusal(answer[0]), answer[1]) == ((5, -32602), BATCH[0])


# The command itself


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--from", "2023-01-01", "--to", "2025-06-18"), ", ".join(dragoman_spec.REVISIONS)),
        (("--from", "2025-06-18", "--to", "2025-06-18", "--no-rule", "none"), ", ".join(dragoman_spec.RULES)),
        (("--from", "2025-06-18", "--to", "2025-06-18", "--profile", "none"), "minimal"),
    ],
    ids=["revision", "rule", "profile"],
)
def test_a_wrong_option_is_answered_with_the_right_ones(
    argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(*argv)
    assert message in capsys.readouterr().err


def test_losses_that_cannot_be_written_stop_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = run(parse("--from", "2025-06-18", "--to", "2025-06-18", "--losses", str(tmp_path)))
    assert (code, capsys.readouterr().err.startswith("dragoman convert: cannot write")) == (EXIT_USAGE, True)


def start(*options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dragoman", "convert", "--from", "2025-06-18", "--to", "2024-11-05", *options]
    pipe = subprocess.PIPE
    return commands.start(command, stdin=pipe, stdout=pipe, stderr=pipe)


def test_each_line_is_answered_before_the_next_one_comes() -> None:
    with start("--no-validate") as process:
        heard = Lines(process.stdout)
        for _ in range(3):
            process.stdin.write(PING + b"\n")
            process.stdin.flush()
            assert heard.read() == PING + b"\n"
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


def test_a_closed_pipe_ends_the_command_quietly() -> None:
    with start("--no-validate") as process:
        process.stdout.close()
        process.stdin.write(PING + b"\n")
        process.stdin.close()
        process.stdin = process.stdout = None
        _, said = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, said) == (EXIT_PIPE, b"")


def test_line_with_a_number_that_is_none_is_refused_under_its_id() -> None:
    job = Job(dragoman_spec.translator("2025-11-25", "2024-11-05"))
    (frame,) = convert_line(job, 1, b'{"jsonrpc":"2.0","id":"q","method":"ping","params":{"x":NaN}}').frames
    assert b'"id":"q"' in frame


CONVERT = [sys.executable, "-m", "dragoman", "convert", "--from", "2025-06-18", "--to", "2024-11-05"]


@pytest.mark.parametrize(("indent", "hints"), [(2, 1), (None, 0)])
def test_a_frame_that_is_spread_over_lines_is_explained_once(indent: int | None, hints: int) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}, indent=indent) + "\n"
    done = commands.run(CONVERT, input=text * 2, capture_output=True, text=True, timeout=60)
    assert done.stderr.count("expected one frame a line; a frame that is spread over lines") == hints


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_losses_that_cannot_be_written_are_said_with_the_file() -> None:
    tools = [{"name": "a", "title": "A", "inputSchema": {"type": "object"}}]
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})
    command = [*CONVERT, "--method", "tools/list", "--losses", "/dev/full"]
    done = commands.run(command, input=frame + "\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (
        1,
        "dragoman convert: cannot write: /dev/full: No space left on device\n",
    )


def test_a_closed_stdin_is_said() -> None:
    done = commands.run(["sh", "-c", 'exec "$@" <&-', "sh", *CONVERT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "dragoman convert: expected frames on stdin, found it closed\n")
