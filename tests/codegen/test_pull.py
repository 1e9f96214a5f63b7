"""Pull: what it writes, and that whatever goes wrong leaves `schema/` as it was."""

import argparse
import http.server
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codegen.errors import CodegenError, NotASchema, PinMismatch, PullFailed, UnknownRevision
from codegen.maintain import fetch
from codegen.maintain.pull import add_arguments, pull, run
from codegen.read.pins import SCHEMA_DIR, check_pins, read_pins, sha256_hex
from tests.support.judge import UPSTREAM

REVISION = "2031-01-02"
COMMIT = "0123456789abcdef0123456789abcdef01234567"

SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "definitions": {
        "PingRequest": {
            "type": "object",
            "description": "Prose.",
            "properties": {
                "method": {"const": "ping", "type": "string"},
                "description": {"description": "Prose.", "type": "string", "default": {"description": "data"}},
                "params": {"$ref": "#/definitions/Params"},
            },
        },
        "Params": {"type": "object", "additionalProperties": {"description": "Prose.", "type": "number"}},
    },
}
CANONICAL = """\
{
  "$defs": {
    "Params": {
      "additionalProperties": {
        "type": "number"
      },
      "type": "object"
    },
    "PingRequest": {
      "properties": {
        "description": {
          "default": {
            "description": "data"
          },
          "type": "string"
        },
        "method": {
          "const": "ping",
          "type": "string"
        },
        "params": {
          "$ref": "#/$defs/Params"
        }
      },
      "type": "object"
    }
  },
  "$schema": "http://json-schema.org/draft-07/schema#"
}
"""

Respond = Callable[[http.server.BaseHTTPRequestHandler], None]


@pytest.fixture
def schema_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "schema"
    directory.mkdir()
    return directory


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return write_upstream(tmp_path / "mirror", SCHEMA)


def write_upstream(directory: Path, schema: object, revision: str = REVISION) -> Path:
    path = directory / "schema" / revision / "schema.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema), encoding="utf-8")
    return directory


def tree(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    """A server on loopback that answers every GET with `respond`; yields its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            respond(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(60)


def answer(body: bytes, *, status: int = 200, announced: int | None = None, path: str | None = None) -> Respond:
    def respond(request: http.server.BaseHTTPRequestHandler) -> None:
        found = path is None or request.path == path
        request.send_response(status if found else 404)
        request.send_header("Content-Length", str((announced or len(body)) if found else 0))
        request.end_headers()
        request.wfile.write(body if found else b"")

    return respond


def test_pull_writes_the_canonical_form(schema_dir: Path, mirror: Path) -> None:
    pull(REVISION, origin=str(mirror), schema_dir=schema_dir)
    assert (schema_dir / REVISION / "schema.json").read_text() == CANONICAL


def test_pull_of_a_canonical_schema_changes_nothing(schema_dir: Path, tmp_path: Path) -> None:
    pull(REVISION, origin=str(write_upstream(tmp_path / "ours", CANONICAL)), schema_dir=schema_dir)
    assert (schema_dir / REVISION / "schema.json").read_text() == CANONICAL


def test_pull_pins_origin_and_hashes(schema_dir: Path, mirror: Path) -> None:
    pull(REVISION, origin=str(mirror), commit=COMMIT, schema_dir=schema_dir)
    pin = read_pins(schema_dir / "pins.toml")[REVISION]
    upstream = (mirror / pin.upstream).read_bytes()
    assert (pin.era, pin.commit, pin.upstream_sha256, pin.sha256) == (
        "per_request",
        COMMIT,
        sha256_hex(upstream),
        sha256_hex(CANONICAL.encode()),
    )


def test_pull_keeps_the_other_pins(schema_dir: Path, mirror: Path) -> None:
    write_upstream(mirror, SCHEMA, "2030-01-02")
    for revision in (REVISION, "2030-01-02"):
        pull(revision, origin=str(mirror), schema_dir=schema_dir)
    assert list(read_pins(schema_dir / "pins.toml")) == ["2030-01-02", REVISION]


def test_pull_twice_gives_the_same_bytes(schema_dir: Path, mirror: Path) -> None:
    pull(REVISION, origin=str(mirror), commit=COMMIT, schema_dir=schema_dir)
    first = tree(schema_dir)
    pull(REVISION, origin=str(mirror), schema_dir=schema_dir)
    assert tree(schema_dir) == first


def test_pull_reads_a_mirror_of_the_schema_folder_itself(schema_dir: Path, mirror: Path) -> None:
    pull(REVISION, origin=str(mirror / "schema"), schema_dir=schema_dir)
    assert (schema_dir / REVISION / "schema.json").read_text() == CANONICAL


def test_pull_derives_the_handshake_era(schema_dir: Path, tmp_path: Path) -> None:
    schema = {**SCHEMA, "definitions": {**SCHEMA["definitions"], "InitializeRequest": {"type": "object"}}}
    assert pull(REVISION, origin=str(write_upstream(tmp_path, schema)), schema_dir=schema_dir).era == "handshake"


def test_pull_takes_the_era_it_is_given(schema_dir: Path, mirror: Path) -> None:
    assert pull(REVISION, origin=str(mirror), era="handshake", schema_dir=schema_dir).era == "handshake"


@pytest.mark.parametrize("revision", sorted(read_pins()))
def test_pull_reproduces_the_committed_schema(revision: str, schema_dir: Path) -> None:
    if not (UPSTREAM / revision / "schema.json").is_file():
        pytest.skip("upstream's files are not here: run `nox -s pull -- --proofs`")
    commit = read_pins()[revision].commit
    assert pull(revision, origin=str(UPSTREAM), commit=commit, schema_dir=schema_dir) == read_pins()[revision]
    assert (schema_dir / revision / "schema.json").read_bytes() == (SCHEMA_DIR / revision / "schema.json").read_bytes()


def test_committed_schemas_have_their_pinned_hash() -> None:
    assert [path.parent.name for path in sorted(SCHEMA_DIR.glob("*/schema.json"))] == list(check_pins())


def test_check_pins_names_the_schema_that_was_edited(schema_dir: Path, mirror: Path) -> None:
    pull(REVISION, origin=str(mirror), schema_dir=schema_dir)
    (schema_dir / REVISION / "schema.json").write_text("{}")
    with pytest.raises(PinMismatch, match=rf"schema/{REVISION}/schema.json .*never edited by hand"):
        check_pins(schema_dir)


# Downloads


def test_pull_downloads_from_a_mirror(schema_dir: Path) -> None:
    body = json.dumps(SCHEMA).encode()
    with serving(answer(body, path=f"/mirror/schema/{REVISION}/schema.json")) as url:
        pull(REVISION, origin=f"{url}/mirror/", schema_dir=schema_dir, progress=io.StringIO())
    assert (schema_dir / REVISION / "schema.json").read_text() == CANONICAL


def test_pull_downloads_from_the_official_address_at_the_commit(
    schema_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(SCHEMA).encode()
    with serving(answer(body, path=f"/official/{COMMIT}/schema/{REVISION}/schema.json")) as url:
        monkeypatch.setattr(fetch, "RAW_URL", f"{url}/official")
        pin = pull(REVISION, commit=COMMIT, schema_dir=schema_dir, progress=io.StringIO())
    assert (pin.commit, pin.upstream) == (COMMIT, f"schema/{REVISION}/schema.json")


def test_pull_of_a_new_revision_asks_for_the_newest_commit(schema_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def respond(request: http.server.BaseHTTPRequestHandler) -> None:
        answer(COMMIT.encode() if request.path == "/head" else json.dumps(SCHEMA).encode())(request)

    with serving(respond) as url:
        monkeypatch.setattr(fetch, "HEAD_URL", f"{url}/head")
        monkeypatch.setattr(fetch, "RAW_URL", url)
        pin = pull(REVISION, schema_dir=schema_dir, progress=io.StringIO())
    assert pin.commit == COMMIT


@pytest.mark.parametrize(
    ("body", "status"), [(b"<html>", 200), (b"", 403)], ids=["answer that is no commit", "refusal"]
)
def test_pull_without_a_newest_commit_asks_for_one(
    body: bytes, status: int, schema_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answer(body, status=status)) as url:
        monkeypatch.setattr(fetch, "HEAD_URL", url)
        with pytest.raises(PullFailed, match="--commit SHA"):
            pull(REVISION, schema_dir=schema_dir)
    assert tree(schema_dir) == {}


def test_progress_is_one_line_where_there_is_no_terminal(schema_dir: Path) -> None:
    progress = io.StringIO()
    body = json.dumps({**SCHEMA, "filler": "x" * 200_000}).encode()
    with serving(answer(body)) as url:
        pull(REVISION, origin=url, schema_dir=schema_dir, progress=progress)
    size = f"{len(body):,}"
    assert progress.getvalue() == f"{url}/schema/{REVISION}/schema.json: {size} of {size} bytes\n"


def test_progress_rewrites_its_line_on_a_terminal(schema_dir: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    progress = Terminal()
    with serving(answer(json.dumps({**SCHEMA, "filler": "x" * 200_000}).encode())) as url:
        pull(REVISION, origin=url, schema_dir=schema_dir, progress=progress)
    assert (progress.getvalue().count("\r") > 1, progress.getvalue().count("\n")) == (True, 1)


# What goes wrong


def truncated(request: http.server.BaseHTTPRequestHandler) -> None:
    body = json.dumps(SCHEMA).encode()
    answer(body[: len(body) // 2], announced=len(body))(request)


def truncated_chunks(request: http.server.BaseHTTPRequestHandler) -> None:
    request.protocol_version = "HTTP/1.1"
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"40\r\nhalf a chunk")
    request.close_connection = True


@pytest.mark.parametrize(
    ("respond", "error", "message"),
    [
        (truncated, PullFailed, "cut short: .* Run the pull again"),
        (truncated_chunks, PullFailed, "cut short"),
        (answer(b"", status=500), PullFailed, "the server answered 500"),
        (answer(b"", status=403), PullFailed, "the server answered 403 .* --from DIR"),
        (answer(b"", status=404), UnknownRevision, "not found at .*Check the name"),
        (answer(b"<!DOCTYPE html><p>Sign in"), NotASchema, "it is not JSON .*web page"),
        (lambda request: None, PullFailed, "no usable answer|no answer"),
    ],
    ids=["half a download", "half a chunk", "500", "403", "404", "web page", "closed connection"],
)
def test_pull_from_a_bad_server_leaves_schema_alone(
    respond: Respond, error: type[CodegenError], message: str, schema_dir: Path, mirror: Path
) -> None:
    pull("2030-01-02", origin=str(write_upstream(mirror, SCHEMA, "2030-01-02")), schema_dir=schema_dir)
    before = tree(schema_dir)
    with serving(respond) as url, pytest.raises(error, match=message):
        pull(REVISION, origin=url, schema_dir=schema_dir, progress=io.StringIO())
    assert tree(schema_dir) == before


@pytest.mark.parametrize(("line_end", "mark"), [("\r\n", ""), ("\n", "\ufeff"), ("\r\n", "\ufeff")])
def test_a_file_that_was_saved_on_another_system_is_the_same_schema(
    line_end: str, mark: str, schema_dir: Path, tmp_path: Path
) -> None:
    text = mark + json.dumps(SCHEMA, indent=2).replace("\n", line_end)
    file = write_upstream(tmp_path / "mirror", "") / "schema" / REVISION / "schema.json"
    file.write_bytes(text.encode())
    pull(REVISION, origin=str(tmp_path / "mirror"), schema_dir=schema_dir, progress=io.StringIO())
    assert (schema_dir / REVISION / "schema.json").read_text("utf-8") == CANONICAL


def test_pull_from_an_unreachable_host_says_so(schema_dir: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(PullFailed, match=r"no answer .*schema/ is unchanged.*Check the network"):
            pull(REVISION, origin=origin, schema_dir=schema_dir)
    assert tree(schema_dir) == {}


def test_pull_from_a_silent_server_gives_up(schema_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(PullFailed, match="no answer"):
        pull(REVISION, origin=f"http://127.0.0.1:{server.getsockname()[1]}", schema_dir=schema_dir)


def test_pull_of_something_huge_gives_up(schema_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "LIMIT_BYTES", 100)
    with serving(answer(b" " * 101)) as url, pytest.raises(PullFailed, match="larger than 100 bytes"):
        pull(REVISION, origin=url, schema_dir=schema_dir, progress=io.StringIO())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        (json.dumps(SCHEMA)[:-40], "it is not JSON"),
        (json.dumps(SCHEMA).replace('"Params"', '"Params": {}, "Params"', 1), "the key 'Params' is there twice"),
        (json.dumps(SCHEMA).replace('"Params"', '"Par\\ud800ams": {}, "Params"', 1), "half a character, '.ud800', in"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "expected a JSON object, found list"),
        ("{}", r"`\$defs` or `definitions`"),
        ('{"$defs": {}}', r"`\$defs` or `definitions`"),
        ('{"$defs": {"A": {"type": "object"}}}', "defines no MCP method"),
        (json.dumps(SCHEMA).replace('"Params"', '"Other"'), "refers to the definition 'Params'"),
    ],
    ids=[
        *("empty", "half", "a key twice", "half a character", "NaN", "deep", "array"),
        *("no definitions", "empty definitions", "other schema", "dangling"),
    ],
)
def test_pull_of_what_is_no_schema_leaves_schema_alone(
    text: str, message: str, schema_dir: Path, tmp_path: Path
) -> None:
    origin = write_upstream(tmp_path / "mirror", text)
    with pytest.raises(NotASchema, match=message):
        pull(REVISION, origin=str(origin), schema_dir=schema_dir)
    assert tree(schema_dir) == {}


def test_pull_of_other_bytes_than_pinned_leaves_schema_alone(schema_dir: Path, mirror: Path) -> None:
    pull(REVISION, origin=str(mirror), schema_dir=schema_dir)
    before = tree(schema_dir)
    write_upstream(mirror, {**SCHEMA, "title": "moved"})
    with pytest.raises(PinMismatch, match=r"expected sha256 .*unchanged.*--accept-new-hash"):
        pull(REVISION, origin=str(mirror), schema_dir=schema_dir)
    assert tree(schema_dir) == before


def test_pull_accepts_a_new_hash_when_told(schema_dir: Path, mirror: Path) -> None:
    old = pull(REVISION, origin=str(mirror), commit=COMMIT, schema_dir=schema_dir)
    write_upstream(mirror, {**SCHEMA, "title": "moved"})
    new = pull(REVISION, origin=str(mirror), accept_new_hash=True, schema_dir=schema_dir)
    assert (new.upstream_sha256 != old.upstream_sha256, new.sha256 != old.sha256, new.commit) == (True, True, "")


@pytest.mark.parametrize("revision", ["draft", "2025-6-18", "2025-13-01", "../2025-06-18", "", "2025-06-18\n"])
def test_pull_refuses_what_is_no_revision_name(revision: str, schema_dir: Path, mirror: Path) -> None:
    with pytest.raises(UnknownRevision, match="Revisions are named by date"):
        pull(revision, origin=str(mirror), schema_dir=schema_dir)


def test_pull_of_a_revision_the_mirror_lacks_lists_what_it_has(schema_dir: Path, mirror: Path) -> None:
    with pytest.raises(UnknownRevision, match=rf"It has: {REVISION}"):
        pull("2030-01-02", origin=str(mirror), schema_dir=schema_dir)


def test_pull_of_an_unreadable_file_says_which(schema_dir: Path, mirror: Path) -> None:
    (mirror / "schema" / "2030-01-02" / "schema.json").mkdir(parents=True)
    with pytest.raises(PullFailed, match=r"2030-01-02/schema.json: .*Make it a file"):
        pull("2030-01-02", origin=str(mirror), schema_dir=schema_dir)


@pytest.mark.parametrize("origin", ["no/such/directory", "ftp://example.org/schema"])
def test_pull_from_nowhere_says_what_to_give(origin: str, schema_dir: Path) -> None:
    with pytest.raises(PullFailed, match="--from"):
        pull(REVISION, origin=origin, schema_dir=schema_dir)


def test_pull_into_a_place_that_cannot_be_written_says_so(schema_dir: Path, mirror: Path) -> None:
    (schema_dir / REVISION).write_text("in the way")
    with pytest.raises(CodegenError, match="cannot write"):
        pull(REVISION, origin=str(mirror), schema_dir=schema_dir)
    assert tree(schema_dir) == {REVISION: b"in the way"}


@pytest.mark.parametrize(
    "text", ["not toml", '["2031-01-02"]\nera = "handshake"', '["2031-01-02"]\nera = 1'], ids=["text", "short", "odd"]
)
def test_pull_with_broken_pins_says_how_to_mend_them(text: str, schema_dir: Path, mirror: Path) -> None:
    (schema_dir / "pins.toml").write_text(text)
    with pytest.raises(CodegenError, match=r"Restore it from git|Remove the row"):
        pull(REVISION, origin=str(mirror), schema_dir=schema_dir)


# What is lost with the prose


def test_pull_lists_the_fields_whose_absence_means_something(tmp_path: Path) -> None:
    said = {"type": "string", "description": "How it goes.\n- `now`: at once (default)\n- `later`: some time"}
    fields = {**SCHEMA["definitions"]["PingRequest"]["properties"], "when": said}
    ping = {**SCHEMA["definitions"]["PingRequest"], "properties": fields}
    schema = {**SCHEMA, "definitions": {**SCHEMA["definitions"], "PingRequest": ping}}
    progress, later = io.StringIO(), "2099-01-01"
    pull(REVISION, origin=str(write_upstream(tmp_path, schema)), schema_dir=tmp_path / "schema", progress=progress)
    told = "PingRequest.when is new and says what its absence means: - `now`: at once (default)\n"
    assert progress.getvalue() == f"pull: {told}"
    write_upstream(tmp_path / "later", schema, later)
    pull(later, origin=str(tmp_path / "later"), schema_dir=tmp_path / "schema", progress=progress)
    assert progress.getvalue() == f"pull: {told}"


# The command line


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(argv)


def test_run_pulls_and_says_what_comes_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codegen.maintain.pull.pull", lambda revision, **_: read_pins()[revision])
    code = run(parse("2025-06-18", "--from", "somewhere"))
    assert (code, capsys.readouterr().out.splitlines()[-1]) == (0, "next: nox -s regen")


def test_commit_is_taken_whole() -> None:
    assert parse(REVISION, "--commit", COMMIT).commit == COMMIT


def test_commit_must_be_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(REVISION, "--commit", "main")
    assert "expected the 40 hex digits of a commit" in capsys.readouterr().err
