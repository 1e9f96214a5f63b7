"""Getting the bytes of an upstream schema: from a directory, or over HTTP.

The only I/O of the generator that leaves the machine. Knows addresses and transfers; nothing of schemas, hashes or
pins. `pull` calls it. Every failure is a `PullFailed` or `UnknownRevision` that says what to do.
"""

import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from codegen.errors import PullFailed, UnknownRevision

REPOSITORY = "modelcontextprotocol/modelcontextprotocol"
RAW_URL = f"https://raw.githubusercontent.com/{REPOSITORY}"
HEAD_URL = f"https://api.github.com/repos/{REPOSITORY}/commits/main"

TIMEOUT_S = 30.0
CHUNK_BYTES = 1 << 16
LIMIT_BYTES = 32 << 20  # the largest schema so far has 0.2 MB; more than this is some other file

ELSEWHERE = "Check the network, or give a local mirror with --from DIR."


def upstream_path(revision: str) -> str:
    """Return where the official repository keeps the schema of a revision."""
    return f"schema/{revision}/schema.json"


def fetch_official(revision: str, commit: str, progress: TextIO = sys.stderr) -> tuple[str, bytes]:
    """Download a revision's schema from the official repository at a commit; return the address and the bytes."""
    return fetch_url(revision, f"{RAW_URL}/{commit}", progress)


def fetch_from(revision: str, origin: str, progress: TextIO = sys.stderr) -> tuple[str, bytes]:
    """Get a revision's schema from a mirror; return the exact address and the bytes.

    Args:
        revision: the revision's name.
        origin: a directory or an `http(s)://` URL that has `schema/<revision>/schema.json` or, being the
            `schema` folder itself, `<revision>/schema.json`.
        progress: where the progress line goes.

    Raises:
        PullFailed: not reachable, not readable, or cut short.
        UnknownRevision: the mirror answers, and has no such revision.
    """
    if origin.startswith(("http://", "https://")):
        return fetch_url(revision, origin.rstrip("/"), progress)
    if "://" in origin:
        raise PullFailed(origin, "only directories, http:// and https:// are read", ELSEWHERE)
    return fetch_directory(revision, Path(origin))


def fetch_directory(revision: str, directory: Path) -> tuple[str, bytes]:
    """Read a revision's schema from a local mirror; return its path and the bytes."""
    if not directory.is_dir():
        raise PullFailed(str(directory), "no such directory", "Give --from an existing directory or a URL.")
    for path in (directory / place for place in _places(revision)):
        try:
            return str(path), path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise PullFailed(str(path), str(error.strerror), "Make it a file that can be read.") from error
    present = sorted({path.parent.name for pattern in _places("*") for path in directory.glob(pattern)})
    raise UnknownRevision(
        revision,
        f"{directory} has no {upstream_path(revision)}",
        f"It has: {', '.join(present) or 'no revision at all'}.",
    )


def fetch_url(revision: str, base: str, progress: TextIO) -> tuple[str, bytes]:
    """Download a revision's schema from below a base URL; return the address that had it and the bytes."""
    addresses = [f"{base}/{place}" for place in _places(revision)]
    for address in addresses:
        data = download(address, progress)
        if data is not None:
            return address, data
    raise UnknownRevision(
        revision, f"not found at {' nor '.join(addresses)}", "Check the name, and --commit or --from if you gave one."
    )


def head_commit() -> str:
    """Ask for the newest commit of the official repository.

    Raises:
        PullFailed: no answer, or an answer that is no commit; naming one with `--commit` avoids the question.
    """
    remedy = "Name the commit yourself with --commit SHA, or give a local mirror with --from DIR."
    request = urllib.request.Request(HEAD_URL, headers={"Accept": "application/vnd.github.sha"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            answer: str = response.read(CHUNK_BYTES).decode("ascii").strip()
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise PullFailed(HEAD_URL, _reason(error), remedy) from error
    if len(answer) != 40 or not set(answer) <= set("0123456789abcdef"):
        raise PullFailed(HEAD_URL, "the answer is not a commit", remedy)
    return answer


def download(address: str, progress: TextIO) -> bytes | None:
    """Stream one address; None when the server has no such thing (404, 410).

    Raises:
        PullFailed: unreachable, another HTTP error, too large, or fewer bytes than announced.
    """
    line = ProgressLine(address, progress)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as response:
            announced = response.headers.get("Content-Length")
            return _receive(address, response.read, int(announced) if announced else None, line)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            return None
        raise PullFailed(address, f"the server answered {error.code} {error.reason}", ELSEWHERE) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise PullFailed(address, _reason(error), ELSEWHERE) from error
    finally:
        line.end()


class ProgressLine:
    """One line on a terminal that is rewritten as bytes arrive; elsewhere one line, written once at the end."""

    def __init__(self, address: str, stream: TextIO) -> None:
        self._address = address
        self._stream = stream
        self._live = stream.isatty()
        self._text = ""

    def show(self, received: int, announced: int | None) -> None:
        """Show how many bytes have come, of how many if the server said."""
        total = f" of {announced:,}" if announced is not None else ""
        self._text = f"{self._address}: {received:,}{total} bytes"
        if self._live:
            self._stream.write(f"\r{self._text}")
            self._stream.flush()

    def end(self) -> None:
        """Finish the line; a transfer that never began leaves none."""
        if self._text:
            self._stream.write("\n" if self._live else f"{self._text}\n")


def _receive(address: str, read: Callable[[int], bytes], announced: int | None, line: ProgressLine) -> bytes:
    chunks: list[bytes] = []
    received = 0
    for chunk in _chunks(read):
        chunks.append(chunk)
        received += len(chunk)
        line.show(received, announced)
        if received > LIMIT_BYTES:
            raise PullFailed(address, f"it is larger than {LIMIT_BYTES:,} bytes", "Check the address.")
    # http.client only notices a short body when it reads all of it in one go.
    if announced is not None and received != announced:
        raise PullFailed(address, f"it was cut short: {received:,} of {announced:,} bytes came", "Run the pull again.")
    return b"".join(chunks)


def _chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while chunk := read(CHUNK_BYTES):
        yield chunk


def _places(revision: str) -> tuple[str, str]:
    """Where a mirror may keep a revision: below a clone of the repository, or below its schema folder."""
    return upstream_path(revision), f"{revision}/schema.json"


def _reason(error: Exception) -> str:
    match error:
        case http.client.IncompleteRead():
            return "it was cut short"
        case urllib.error.URLError():
            return f"no answer ({error.reason})"
        case TimeoutError():
            return f"no answer within {TIMEOUT_S:g} s"
    return f"no usable answer ({error})"
