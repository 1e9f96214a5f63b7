"""Whether a message is one whole JSON object.

Lives here: finding out, at a cost that is known, and what can still be read of one that is not. Must not: judge what a
message says. Called by `transports.lines` for a line whose end nobody saw, by the clients of servers over a network for
each message (docs/decisions/0016), and by the WebSocket front.

Theory of operation. A proper prefix of a JSON object is never a JSON object: either it ends within a string, or a
bracket is open. So a message that parses is whole. One that does not, or is too large to be turned into objects only to
look at it, is searched for strings, which are taken out; of the rest only brackets are kept; pairs of them that enclose
nothing are taken out until there are none. What is whole leaves the outermost pair and nothing else. This looks at
nothing but the structure: other defects, such as bytes that are not UTF-8, are for whoever decodes the message.

Where a transport has seen the end of a message, this is a second look. After a closing bracket within an object comes a
comma or another closing bracket: where nothing else follows one, strings included, it is no two texts, and it is enough
that as many brackets are closed as are opened. The search is for those where that is not so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import orjson

from dragoman.core.codes import INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed, classify
from dragoman.core.lines import Overlong
from dragoman.core.peek import read_beginning, read_line

GLANCED_BYTES: Final = 2048
"""From here on a second look counts brackets: to parse takes ten times as long."""

PARSED_BYTES: Final = 256 * 1024
"""Up to here a message is parsed, which takes 17 ms at worst; beyond it the search takes less time, and no memory."""

PIECE_BYTES: Final = 256 * 1024
"""How much is searched at once; whoever has others to serve may do so in between."""

_LEVELS: Final = 256
_TEXTS: Final = 100
_READ_BYTES: Final = 1024 * 1024
_APART: Final = re.compile(rb"\}[^,\]}](?!\Z)")
"""What follows the end of a text that is not the last one, and of an object within a text only if it is in a string."""

_NOT_BRACKETS: Final = bytes(code for code in range(256) if code not in b"[]{}")


class Brackets:
    """Searches a message, given in pieces.

    Attributes:
        is_broken: Whether it cannot be whole any more: nested deeper than we follow, or with a line end in a string.
    """

    __slots__ = ("_began", "_escape", "_in_string", "_last", "_open", "is_broken")

    def __init__(self) -> None:
        self.is_broken = False
        self._in_string = False
        self._escape = b""  # a backslash whose next byte has not come
        self._began = False
        self._open = b""  # the brackets between the first and the last one that have no counterpart yet
        self._last = b""

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        if self.is_broken:
            return
        brackets = self._last + self._outside(piece).translate(None, _NOT_BRACKETS)
        if not self._began and brackets:
            self._began = True
            self._open, brackets = b"" if brackets[:1] == b"{" else brackets[:1], brackets[1:]
        self._last = brackets[-1:]
        self._pair(self._open + brackets[:-1])

    def is_whole(self) -> bool:
        """Whether the pieces so far are one whole object."""
        return self._last == b"}" and not (self._open or self._in_string or self.is_broken)

    def _outside(self, piece: bytes) -> bytes:
        """Return what is not in a string."""
        if self._escape or b"\\" in piece:
            piece = (self._escape + piece).replace(b"\\\\", b"")
            self._escape = b"\\" if piece.endswith(b"\\") else b""
            piece = piece.removesuffix(b"\\").replace(b'\\"', b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        if b"\n" in piece or b"\r" in piece:
            self.is_broken |= any(b"\n" in text or b"\r" in text for text in parts[not self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        return outside

    def _pair(self, brackets: bytes) -> None:
        for _ in range(_LEVELS):
            rest = brackets.replace(b"{}", b"").replace(b"[]", b"")
            if len(rest) == len(brackets):
                break
            brackets = rest
        self._open = brackets
        self.is_broken |= len(brackets) > _LEVELS


def pieces_of(message: bytes) -> Iterator[memoryview]:
    """Return a message in pieces that can be searched one after the other."""
    view = memoryview(message)
    return (view[start : start + PIECE_BYTES] for start in range(0, len(message), PIECE_BYTES))


def parses(message: bytes) -> bool:
    """Whether a message is small enough to be parsed, and JSON: then it is whole."""
    if len(message) > PARSED_BYTES:
        return False
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        return False
    return True


def seems_whole(message: bytes, bare: bytes) -> bool:
    """Whether nothing speaks against it that a message is whole of which the transport says so.

    Args:
        message: It.
        bare: The same without its long strings.
    """
    if len(message) <= GLANCED_BYTES:
        return parses(message)
    if not message.rstrip().endswith(b"}") or _APART.search(bare) is not None:
        return False
    brackets = bare.translate(None, _NOT_BRACKETS)
    return brackets.count(b"{") == brackets.count(b"}") and brackets.count(b"[") == brackets.count(b"]")


def is_whole(message: bytes) -> bool:
    """Whether a message is one whole JSON object; of a small one, whether it is one JSON text."""
    if parses(message):
        return True
    brackets = Brackets()
    for piece in pieces_of(message):
        brackets.feed(bytes(piece))
    return brackets.is_whole() and message.rstrip().endswith(b"}")


def is_one_text(line: bytes, bare: bytes) -> bool:
    """Whether a line that begins and ends as an object is one JSON text; what else is wrong is for its decoder.

    Args:
        line: It.
        bare: The same without its long strings.
    """
    return (len(line) > GLANCED_BYTES and _APART.search(bare) is None) or is_whole(line)


def read_last_line(line: bytes | Overlong) -> Frame | Malformed | None:
    """Tell what a line holds whose line feed never came: a frame only if it is whole.

    Raises nothing: of what was cut off, the id is read where its beginning has one.
    """
    frame = read_line(line)
    if frame is None or isinstance(line, Overlong):
        return frame
    if isinstance(frame, Frame) and (frame.body is not None or is_whole(line)):
        return frame
    reason = "the line ends in the middle of a frame"
    if isinstance(frame, Malformed):
        return frame if frame.code == INVALID_REQUEST else read_beginning(line, frame.code, f"{reason}: {frame.reason}")
    return read_beginning(line, PARSE_ERROR, reason)


def read_broken(message: bytes, code: int, reason: str) -> list[Malformed]:
    """Tell what can be read of a message that is not one whole JSON text: whom it was for, of each frame in it.

    Args:
        message: As it came: cut off, or several texts one after the other.
        code: The JSON-RPC error code that names the defect.
        reason: What was expected and what came.
    """
    found: list[Malformed] = []
    text = message.decode(errors="replace").lstrip() if len(message) <= _READ_BYTES else ""
    decoder = json.JSONDecoder()
    while text and len(found) < _TEXTS:
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            break
        frame = classify(b"", value)
        is_response = not frame.is_owed if isinstance(frame, Malformed) else frame.method is None
        found.append(Malformed(code, reason, frame.key, is_response))
        text = text[end:].lstrip()
    rest = message if not found else text.encode()
    return [*found, read_beginning(rest, code, reason)] if rest else found
