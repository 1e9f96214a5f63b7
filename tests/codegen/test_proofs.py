"""Upstream's own files for the tests: fetched by pinned hash, into a folder of their own, and never anything else."""

from __future__ import annotations

import functools
import http.server
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.errors import PinMismatch, PullFailed
from codegen.maintain.proofs import Proof, pull_proofs, read_proofs
from codegen.read.pins import Pin, sha256_hex, write_pins
from tests.support.drafts import ARE_THERE, _files
from tests.support.judge import UPSTREAM

REVISION = "2031-01-02"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    f"{REVISION}/schema.json": b"{}",
    f"{REVISION}/examples/Tool/one.json": b'{"name": 1}',
    f"drafts/{COMMIT[:8]}.json": b'{"a": 1}',
}
HASHES = {place: sha256_hex(data) for place, data in FILES.items()}


@pytest.fixture
def schema_dir(tmp_path: Path) -> Path:
    """A `schema` folder that pins three files."""
    made = tmp_path / "schema"
    made.mkdir()
    schema, example, draft = HASHES.values()
    pin = Pin(REVISION, "per_request", f"schema/{REVISION}/schema.json", COMMIT, schema, "")
    (made / "pins.toml").write_text(write_pins({REVISION: pin}), encoding="utf-8")
    (made / "proofs.toml").write_text(
        f'[examples]\ncommit = "{COMMIT}"\n[examples.files]\n"{REVISION}/examples/Tool/one.json" = "{example}"\n'
        f'[[draft]]\ncommit = "{COMMIT}"\ndate = "2031-01-01"\nsha256 = "{draft}"\n',
        encoding="utf-8",
    )
    return made


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder that has the files."""
    made = tmp_path / "mirror"
    for place, data in FILES.items():
        (made / place).parent.mkdir(parents=True, exist_ok=True)
        (made / place).write_bytes(data)
    return made


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def address(mirror: Path) -> Iterator[str]:
    """The same over HTTP, on loopback."""
    handler = functools.partial(Quiet, directory=str(mirror))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def there(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder).as_posix()): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fetched(origin: str, schema_dir: Path, folder: Path) -> int:
    return pull_proofs(origin, schema_dir=schema_dir, folder=folder, progress=io.StringIO())


def test_files_come_from_a_folder(mirror: Path, schema_dir: Path, tmp_path: Path) -> None:
    assert (fetched(str(mirror), schema_dir, tmp_path / "to"), there(tmp_path / "to")) == (3, FILES)


def test_files_come_over_http(address: str, schema_dir: Path, tmp_path: Path) -> None:
    assert (fetched(address, schema_dir, tmp_path / "to"), there(tmp_path / "to")) == (3, FILES)


def test_files_are_asked_for_at_their_commits(schema_dir: Path) -> None:
    example = f"{REVISION}/examples/Tool/one.json"
    assert [(proof.commit, proof.path) for proof in read_proofs(schema_dir)] == [
        (COMMIT, f"schema/{REVISION}/schema.json"),
        (COMMIT, f"schema/{example}"),
        (COMMIT, "schema/draft/schema.json"),
    ]


def test_what_is_there_is_not_fetched_again(mirror: Path, schema_dir: Path, tmp_path: Path) -> None:
    fetched(str(mirror), schema_dir, tmp_path / "to")
    (tmp_path / "to" / REVISION / "schema.json").write_bytes(b"altered")
    assert (fetched(str(mirror), schema_dir, tmp_path / "to"), there(tmp_path / "to")) == (1, FILES)


def test_other_bytes_are_refused_and_not_written(mirror: Path, schema_dir: Path, tmp_path: Path) -> None:
    (mirror / REVISION / "examples/Tool/one.json").write_bytes(b"{}")
    with pytest.raises(PinMismatch, match=r"one\.json is not the pinned"):
        fetched(str(mirror), schema_dir, tmp_path / "to")
    assert list(there(tmp_path / "to")) == [f"{REVISION}/schema.json"]


@pytest.mark.parametrize("over_http", [False, True])
def test_a_file_that_is_not_there_is_named(
    over_http: bool, address: str, mirror: Path, schema_dir: Path, tmp_path: Path
) -> None:
    (mirror / REVISION / "schema.json").unlink()
    with pytest.raises(PullFailed, match=f"{REVISION}/schema.json"):
        fetched(address if over_http else str(mirror), schema_dir, tmp_path / "to")


def test_a_revision_and_the_proofs_are_not_pulled_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["pull"], ["pull", REVISION, "--proofs"]):
        with pytest.raises(SystemExit):
            main(words)
    assert "--proofs" in capsys.readouterr().err


@pytest.mark.skipif(not ARE_THERE, reason="upstream's files are not here: run `nox -s pull -- --proofs`")
def test_files_that_are_pinned_are_those_of_the_tests() -> None:
    def data(proof: Proof) -> bytes:
        return _files()[Path(proof.place).stem] if proof.date else (UPSTREAM / proof.place).read_bytes()

    proofs = read_proofs()
    assert len(proofs) > 300
    assert [proof.place for proof in proofs if sha256_hex(data(proof)) != proof.sha256] == []
